"""The results page of a record, in parts: each section shows the part with the asked row. PHI.

An address names a row: `problem-3`, `lab_series-3-40` (result 40 of series 3), `encounter-7`,
`contradiction-21`, `code-51`, `narrative-9`, `narrative-<encounter>`. Contradicted and flagged
entries come first in their list. Reading takes at most twelve statements for any record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from observability.phi.encounter_table import EncounterLine, encounter_rows
from observability.phi.encounter_timeline import EncounterTimeline, encounter_timeline
from observability.phi.narratives import (
    Narrative,
    NarrativePlace,
    narrative_places,
    narratives_at,
)
from observability.phi.portions import Portion, portion
from observability.phi.record_findings import CodeCount, RecordFindings, record_findings
from observability.phi.results_lists import (
    FoundContradiction,
    ResultsList,
    list_outlines,
    results_lists,
)
from pipeline.models import NarrativeSentence, RecordListItem
from pipeline.models.outdated import StaleResults, stale_results

ENCOUNTERS_SHOWN = 20
NARRATIVES_SHOWN = 3
CODES_SHOWN = 20
HELD_SHOWN = 20
"""Links to encounters without results."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class EncounterSection:
    """The encounters: the shown part, and what the other parts must not hide."""

    part: Portion[EncounterLine]
    timeline: EncounterTimeline | None = field(repr=False)
    """The shown encounters on a line of time; None if fewer than two days are known."""
    held: Sequence[EncounterLine]
    """The first encounters without results."""
    held_left_out: str
    """The number of further ones in words; "" if `held` has all."""
    held_next: str
    """The address of the first further one."""
    to_review: int
    """Entities of all encounters that a person must check."""
    to_review_in: int
    """Encounters with such an entity."""
    to_review_at: str
    """The address of the first of these encounters."""


@dataclass(frozen=True, kw_only=True)
class NarrativeSection:
    """The record's own narrative, and the shown part of the encounters' narratives."""

    own: Narrative | None = field(repr=False)
    part: Portion[Narrative]
    outdated: int
    """Sentences of all encounters' narratives that rest on a changed entity."""
    outdated_at: str
    """The address of the first narrative with such a sentence."""


@dataclass(frozen=True, kw_only=True)
class ResultsPage:
    """Everything that the results page shows."""

    findings: RecordFindings
    chosen: str
    """The address of the asked row; "" for the beginning of each section."""
    contradictions: Portion[FoundContradiction]
    encounters: EncounterSection
    lists: Sequence[ResultsList]
    narratives: NarrativeSection
    codes: Portion[CodeCount]


def results_page(shell_file_id: UUID, chosen: str = "") -> ResultsPage:
    """Read the page; an unknown address means the beginning of each section.

    Raises ShellFile.DoesNotExist.
    """
    try:
        return _read(shell_file_id, chosen)
    except RecordListItem.DoesNotExist:
        # A review that closes between two statements builds the lists again, with new ids.
        return _read(shell_file_id, chosen)


def _read(shell_file_id: UUID, chosen: str) -> ResultsPage:
    encounters = encounter_rows(shell_file_id)
    found = record_findings(shell_file_id, encounters)
    indexes = {UUID(each.encounter_id): each.number for each in encounters}
    stale = stale_results(shell_file_id)
    outlines = list_outlines(shell_file_id, stale)
    listed = results_lists(outlines, chosen, indexes, found.displays, stale)
    return ResultsPage(
        findings=found,
        chosen=chosen,
        contradictions=listed.contradictions,
        encounters=_encounters(encounters, chosen),
        lists=listed.lists,
        narratives=_narratives(shell_file_id, chosen, indexes, stale),
        codes=_part(found.codes, "code", chosen, CODES_SHOWN),
    )


def _part(
    rows: Sequence[T], kind: str, chosen: str, size: int, addresses: Sequence[str] = ()
) -> Portion[T]:
    addresses = addresses or [f"{kind}-{n}" for n in range(1, len(rows) + 1)]
    at = addresses.index(chosen) if chosen in addresses else 0
    return portion(rows, addresses, at, size)


def _encounters(rows: Sequence[EncounterLine], chosen: str) -> EncounterSection:
    part = _part(rows, "encounter", chosen, ENCOUNTERS_SHOWN, [each.anchor for each in rows])
    held = [each for each in rows if not each.is_published]
    waiting = [each for each in rows if each.to_review]
    return EncounterSection(
        part=part,
        timeline=encounter_timeline([each.days for each in part.rows]),
        held=held[:HELD_SHOWN],
        held_left_out=f"and {len(held) - HELD_SHOWN:,} more" if held[HELD_SHOWN:] else "",
        held_next=held[HELD_SHOWN].anchor if held[HELD_SHOWN:] else "",
        to_review=sum(each.to_review for each in waiting),
        to_review_in=len(waiting),
        to_review_at=waiting[0].anchor if waiting else "",
    )


def _narratives(
    shell_file_id: UUID, chosen: str, indexes: Mapping[UUID, int], stale: StaleResults
) -> NarrativeSection:
    places = narrative_places(shell_file_id)
    own = [each for each in places if each.encounter_id is None]
    others = [each for each in places if each.encounter_id is not None]
    addresses = [f"narrative-{n}" for n in range(1, len(others) + 1)]
    part = _part(others, "narrative", _numbered(chosen, others), NARRATIVES_SHOWN, addresses)
    told = narratives_at([*own, *part.rows], indexes, stale)
    outdated = _outdated(others, addresses, stale) if stale.sentences else []
    return NarrativeSection(
        own=told[0] if own else None,
        part=part.of(told[len(own) :]),
        outdated=len(outdated),
        outdated_at=outdated[0] if outdated else "",
    )


def _outdated(
    places: Sequence[NarrativePlace], addresses: Sequence[str], stale: StaleResults
) -> list[str]:
    """Return the address of the narrative of each outdated sentence, in the order of the page."""
    numbers = {each.narrative_id: where for each, where in zip(places, addresses, strict=True)}
    sentences = NarrativeSentence.objects.filter(id__in=stale.sentences, supported=True)
    narratives = sentences.order_by("narrative__narrative_index").values_list(
        "narrative_id", flat=True
    )
    return [numbers[narrative] for narrative in narratives if narrative in numbers]


def _numbered(chosen: str, places: Sequence[NarrativePlace]) -> str:
    """Return the address with the number of a narrative for the address with its encounter."""
    kind, _, encounter = chosen.partition("-")
    if kind != "narrative":
        return chosen
    for number, each in enumerate(places, start=1):
        if encounter == str(each.encounter_id):
            return f"narrative-{number}"
    return chosen
