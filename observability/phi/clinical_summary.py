"""The results of a record: encounters, narratives, lists, contradictions and codes.

A sentence that is not supported is never part of a narrative here; only the number of such
sentences is told. All texts are PHI, so each caller audits the reading.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any
from uuid import UUID

from observability.phi.encounter_table import EncounterLine, encounter_rows
from observability.phi.encounter_timeline import EncounterTimeline, encounter_timeline
from observability.phi.flag_words import in_words
from observability.phi.lab_charts import LabGroup, lab_groups
from observability.phi.list_words import seen, words_of
from observability.phi.open_passes import open_passes
from pipeline.core.states import Step
from pipeline.models import (
    EnrichedEntity,
    Entity,
    NarrativeResult,
    NarrativeSentence,
    RecordListItem,
    Reuse,
    Session,
    ShellFile,
    selectors,
)
from pipeline.models.outdated import StaleResults, stale_results

LIST_TITLES = {
    "problem": "Problems",
    "medication": "Medications",
    "allergy": "Allergies",
    "lab_series": "Laboratory series",
}
"""The titles of the lists, in the order in which they are shown."""
CODES_SHOWN = 50
"""Codes of a record that the summary lists, the most frequent first."""


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
        return f"narrative-{self.encounter_id or 'record'}"


@dataclass(frozen=True, kw_only=True)
class ListEntry:
    """One entry of a list of the record."""

    id: str
    name: str
    code: str | None
    """`system|code`."""
    display: str
    words: str
    """What the summary says, in one line."""
    seen: str
    """The first and the last day."""
    flags: tuple[str, ...]
    """Reasons for a review of an entity that supports the entry."""
    summary: dict[str, Any]
    encounters: tuple[int, ...]
    """1-based numbers of the supporting encounters."""
    encounter_ids: tuple[str, ...]
    """Their ids, in the same order."""
    contradictions: tuple[str, ...]
    entity_ids: tuple[str, ...]
    is_outdated: bool = False
    """A reviewer has rejected, corrected or moved an entity since; the list is built again when
    the review closes."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The flags in words."""
        return in_words(self.flags)

    @property
    def groups(self) -> tuple[LabGroup, ...]:
        """The results of a laboratory series by unit; empty for another kind."""
        return lab_groups(self.summary)

    @property
    def latest_entity(self) -> str:
        """The last entity in the order of the record."""
        return self.entity_ids[-1]

    @property
    def says_nothing(self) -> bool:
        """Whether the entry says nothing beside its name."""
        return not (self.words or self.contradictions or self.flags)

    @property
    def places(self) -> Iterator[tuple[int, str]]:
        """Number and id of each supporting encounter."""
        return zip(self.encounters, self.encounter_ids, strict=True)


@dataclass(frozen=True, kw_only=True)
class CodeCount:
    """One chosen code, and how many entities have it."""

    code: str
    display: str
    entities: int


@dataclass(frozen=True, kw_only=True)
class ClinicalSummary:
    """What Passes 1.5 to 3 found in a record."""

    shell_file_id: str
    incomplete_note: str
    open_passes: tuple[str, ...]
    """A sentence for each pass whose results are missing or incomplete."""
    warnings: tuple[str, ...]
    """What the passes warn of: held pages, unread parts, …"""
    reused: tuple[str, ...]
    """The records whose results this record reuses."""
    encounters: tuple[EncounterLine, ...]
    narratives: tuple[Narrative, ...]
    """The record's own narrative first."""
    lists: dict[str, tuple[ListEntry, ...]]
    """By kind, in the order of `LIST_TITLES`; a kind without entries is left out."""
    codes: tuple[CodeCount, ...]
    entities: int
    entities_flagged: int

    @property
    def titled(self) -> list[tuple[str, str, tuple[ListEntry, ...]]]:
        """The lists with their kinds and titles."""
        return [(kind, LIST_TITLES[kind], entries) for kind, entries in self.lists.items()]

    @property
    def timeline(self) -> EncounterTimeline | None:
        """The encounters on a line of time; None if fewer than two days are known."""
        return encounter_timeline([each.days for each in self.encounters])

    @property
    def contradictions(self) -> int:
        """The number of contradictions in all lists."""
        return sum(len(each.contradictions) for of in self.lists.values() for each in of)

    def as_json(self) -> dict[str, Any]:
        """Return the summary as JSON-ready values; days are ISO dates."""
        return asdict(self, dict_factory=_with_iso_days)


def _with_iso_days(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: each.isoformat() if isinstance(each, date) else each for key, each in pairs}


def clinical_summary(shell_file_id: UUID) -> ClinicalSummary:
    """Return the results of a record, in fourteen statements for any record.

    Raises ShellFile.DoesNotExist.
    """
    record = ShellFile.objects.only("warnings").get(id=shell_file_id)
    encounters = encounter_rows(shell_file_id)
    indexes = {UUID(each.encounter_id): each.number for each in encounters}
    counts: Counter[tuple[str, str]] = Counter()
    total = flagged = 0
    rows = EnrichedEntity.objects.filter(shell_file_id=shell_file_id)
    for system, code, display, flags in rows.values_list(
        "code_system", "code", "code_display", "flags"
    ).iterator(2_000):
        total += 1
        flagged += bool(flags)
        if code:
            counts[f"{system}|{code}", display or ""] += 1
    stale = stale_results(shell_file_id)
    return ClinicalSummary(
        shell_file_id=str(shell_file_id),
        incomplete_note=selectors.incomplete_note_of(shell_file_id),
        open_passes=open_passes(_statuses(shell_file_id)),
        warnings=tuple(str(each["message"]) for each in record.warnings),
        reused=_reused(shell_file_id),
        encounters=tuple(encounters),
        narratives=_narratives(shell_file_id, indexes, stale),
        lists=_lists(shell_file_id, indexes, dict(counts.keys()), stale),
        codes=tuple(
            CodeCount(code=code, display=display, entities=number)
            for (code, display), number in counts.most_common(CODES_SHOWN)
        ),
        entities=total,
        entities_flagged=flagged,
    )


def _statuses(shell_file_id: UUID) -> dict[Step, str]:
    steps = (Step.PASS1_5, Step.PASS2, Step.PASS3)
    row = Session.objects.values_list(*(f"{step}_status" for step in steps)).get(
        shell_file_id=shell_file_id
    )
    return dict(zip(steps, row, strict=True))


def _reused(shell_file_id: UUID) -> tuple[str, ...]:
    sources = Reuse.objects.filter(shell_file_id=shell_file_id, source__isnull=False)
    ids = sources.order_by("source_id").values_list("source_id", flat=True).distinct()
    return tuple(map(str, ids))


def _narratives(
    shell_file_id: UUID, indexes: dict[UUID, int], stale: StaleResults
) -> tuple[Narrative, ...]:
    sentences: defaultdict[UUID, list[SummarySentence]] = defaultdict(list)
    left_out: Counter[UUID] = Counter()
    rows = list(
        NarrativeSentence.objects.filter(shell_file_id=shell_file_id)
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
    narratives = NarrativeResult.objects.filter(
        processing_session__shell_file_id=shell_file_id, id__in=[*sentences, *left_out]
    ).order_by("narrative_index")
    found = [
        Narrative(
            title=f"Encounter {indexes[encounter]}" if encounter else "The whole record",
            encounter_id=str(encounter) if encounter else None,
            sentences=tuple(sentences[narrative]),
            left_out=left_out[narrative],
        )
        for narrative, encounter in narratives.values_list("id", "healthcare_encounter_id")
    ]
    return tuple(sorted(found, key=lambda each: each.encounter_id is not None))


def _sources(ids: Sequence[UUID], pages: Mapping[UUID, int]) -> tuple[tuple[int, str], ...]:
    first: dict[int, str] = {}
    for each in ids:
        if each in pages:
            first.setdefault(pages[each], str(each))
    return tuple(sorted(first.items()))


def _lists(
    shell_file_id: UUID, indexes: dict[UUID, int], displays: dict[str, str], stale: StaleResults
) -> dict[str, tuple[ListEntry, ...]]:
    found: dict[str, list[ListEntry]] = {kind: [] for kind in LIST_TITLES}
    items = RecordListItem.objects.filter(shell_file_id=shell_file_id)
    for item in items.order_by("kind", "item_index"):
        encounters = _in_order(item.encounter_ids, indexes)
        code = f"{item.code_system}|{item.code}" if item.code else None
        found[item.kind].append(
            ListEntry(
                id=str(item.id),
                name=item.name,
                code=code,
                display=displays.get(code, "") if code else "",
                words=words_of(item.kind, item.summary),
                seen=seen(item.summary),
                flags=tuple(item.summary.get("flags", ())),
                summary=item.summary,
                encounters=tuple(indexes[each] for each in encounters),
                encounter_ids=tuple(map(str, encounters)),
                contradictions=tuple(each["message"] for each in item.contradictions),
                entity_ids=tuple(map(str, item.entity_ids)),
                is_outdated=item.id in stale.list_items,
            )
        )
    return {kind: tuple(entries) for kind, entries in found.items() if entries}


def _in_order(encounters: Sequence[UUID], indexes: dict[UUID, int]) -> list[UUID]:
    return sorted((each for each in encounters if each in indexes), key=indexes.__getitem__)
