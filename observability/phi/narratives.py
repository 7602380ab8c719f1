"""The narratives of a record: their supported sentences with the pages of the cited entities. PHI.

A sentence that is not supported is never part of a narrative here; only the number of such
sentences is told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from pipeline.models import Entity, NarrativeSentence
from pipeline.models.outdated import StaleResults

WHOLE_RECORD = "record"
"""What the address of the record's own narrative has in place of an encounter's id."""


@dataclass(frozen=True, kw_only=True)
class SummarySentence:
    """One supported sentence with the entities that it cites."""

    text: str
    entity_ids: tuple[str, ...]
    pages: tuple[int, ...]
    """Pages of the cited entities."""
    sources: tuple[tuple[int, str], ...] = ()
    """Each page with the first cited entity on the page."""
    is_outdated: bool = False
    """A reviewer has rejected, corrected or moved a cited entity since."""


@dataclass(frozen=True, kw_only=True)
class Narrative:
    """The supported sentences about one encounter, or about the record."""

    title: str
    encounter_id: str | None
    sentences: tuple[SummarySentence, ...]
    left_out: int
    """Sentences that the cited entities do not support."""

    @property
    def anchor(self) -> str:
        """The id of the heading on the page."""
        return f"narrative-{self.encounter_id or WHOLE_RECORD}"


@dataclass(frozen=True, kw_only=True)
class NarrativePlace:
    """A narrative without its sentences."""

    narrative_id: UUID
    encounter_id: UUID | None
    """None for the narrative of the whole record."""


def narrative_places(shell_file_id: UUID) -> list[NarrativePlace]:
    """Return the narratives that have a sentence, the record's own first, in one statement."""
    rows = (
        NarrativeSentence.objects.filter(shell_file_id=shell_file_id)
        .order_by("narrative__narrative_index")
        .values_list("narrative_id", "narrative__healthcare_encounter_id")
        .distinct()
    )
    found = [
        NarrativePlace(narrative_id=narrative, encounter_id=encounter)
        for narrative, encounter in rows
    ]
    return sorted(found, key=lambda each: each.encounter_id is not None)


def narratives_at(
    places: Collection[NarrativePlace], indexes: Mapping[UUID, int], stale: StaleResults
) -> tuple[Narrative, ...]:
    """Return the narratives at these places, in two statements; `indexes` numbers encounters."""
    sentences: defaultdict[UUID, list[SummarySentence]] = defaultdict(list)
    left_out: Counter[UUID] = Counter()
    rows = list(
        NarrativeSentence.objects.filter(narrative_id__in=[each.narrative_id for each in places])
        .order_by("sentence_index")
        .values_list("id", "narrative_id", "text", "entity_ids", "supported")
    )
    cited = {each for *_, ids, supported in rows if supported for each in ids}
    pages = dict(Entity.objects.filter(id__in=cited).values_list("id", "page_number"))
    for sentence, narrative, text, ids, supported in rows:
        if not supported:
            left_out[narrative] += 1
            continue
        sentences[narrative].append(
            SummarySentence(
                text=text,
                entity_ids=tuple(map(str, ids)),
                pages=tuple(sorted({pages[each] for each in ids if each in pages})),
                sources=_sources(ids, pages),
                is_outdated=sentence in stale.sentences,
            )
        )
    return tuple(
        Narrative(
            title=_title(each, indexes),
            encounter_id=str(each.encounter_id) if each.encounter_id else None,
            sentences=tuple(sentences[each.narrative_id]),
            left_out=left_out[each.narrative_id],
        )
        for each in places
    )


def _title(place: NarrativePlace, indexes: Mapping[UUID, int]) -> str:
    if place.encounter_id is None:
        return "The whole record"
    return f"Encounter {indexes[place.encounter_id]}"


def _sources(ids: Sequence[UUID], pages: Mapping[UUID, int]) -> tuple[tuple[int, str], ...]:
    first: dict[int, str] = {}
    for each in ids:
        if each in pages:
            first.setdefault(pages[each], str(each))
    return tuple(sorted(first.items()))
