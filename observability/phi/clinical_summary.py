"""All results of a record: encounters, narratives, lists, contradictions and codes.

`results.py` reads the same in parts for a page. All texts are PHI, so each caller audits the
reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any
from uuid import UUID

from observability.phi.encounter_table import EncounterLine, encounter_rows
from observability.phi.list_entries import LIST_TITLES, ListEntry, entry_of, list_order
from observability.phi.narratives import Narrative, narrative_places, narratives_at
from observability.phi.record_findings import CodeCount, record_findings
from pipeline.models import RecordListItem
from pipeline.models.outdated import StaleResults, stale_results


@dataclass(frozen=True, kw_only=True)
class ClinicalSummary:
    """What Passes 1.5 to 3 found in a record; `record_findings` explains the other fields."""

    shell_file_id: str
    incomplete_note: str
    open_passes: tuple[str, ...]
    warnings: tuple[str, ...]
    reused: tuple[str, ...]
    encounters: tuple[EncounterLine, ...]
    narratives: tuple[Narrative, ...]
    """The record's own narrative first."""
    lists: dict[str, tuple[ListEntry, ...]]
    """By kind, in the order of `LIST_TITLES`; a kind without entries is left out. `list_order`
    orders the entries."""
    codes: tuple[CodeCount, ...]
    entities: int
    entities_flagged: int

    def as_json(self) -> dict[str, Any]:
        """Return the summary as JSON-ready values; days are ISO dates."""
        return asdict(self, dict_factory=_with_iso_days)


def _with_iso_days(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: each.isoformat() if isinstance(each, date) else each for key, each in pairs}


def clinical_summary(shell_file_id: UUID) -> ClinicalSummary:
    """Return the results of a record, in ten statements for any record.

    Raises ShellFile.DoesNotExist.
    """
    encounters = encounter_rows(shell_file_id)
    found = record_findings(shell_file_id, encounters)
    indexes = {UUID(each.encounter_id): each.number for each in encounters}
    stale = stale_results(shell_file_id)
    return ClinicalSummary(
        shell_file_id=str(shell_file_id),
        incomplete_note=found.incomplete_note,
        open_passes=found.open_passes,
        warnings=found.warnings,
        reused=found.reused,
        encounters=tuple(encounters),
        narratives=narratives_at(narrative_places(shell_file_id), indexes, stale),
        lists=_lists(shell_file_id, indexes, found.displays, stale),
        codes=found.codes,
        entities=found.entities,
        entities_flagged=found.entities_flagged,
    )


def _lists(
    shell_file_id: UUID,
    indexes: Mapping[UUID, int],
    displays: Mapping[str, str],
    stale: StaleResults,
) -> dict[str, tuple[ListEntry, ...]]:
    found: dict[str, list[ListEntry]] = {kind: [] for kind in LIST_TITLES}
    items = RecordListItem.objects.filter(shell_file_id=shell_file_id)
    for item in items.order_by("kind", "item_index"):
        found[item.kind].append(entry_of(item, indexes, displays, stale))
    for entries in found.values():
        entries.sort(key=lambda each: list_order(bool(each.contradictions), each.is_marked))
    return {kind: tuple(entries) for kind, entries in found.items() if entries}
