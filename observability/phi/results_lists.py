"""The lists of a record in parts: problems, medications, allergies, laboratory series. PHI.

Contradicted entries come first, then flagged and outdated ones, then the others, each in the order
of the list. The number of an entry is its number in the list, so its address stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from observability.phi.lab_charts import LabGroup, lab_groups
from observability.phi.list_entries import LIST_TITLES, ListEntry, entry_of
from observability.phi.portions import Portion, portion
from pipeline.core.labels import counted
from pipeline.models import RecordListItem, RecordListKind
from pipeline.models.outdated import StaleResults

ENTRIES_SHOWN = 20
"""Entries of a list that the page shows at a time."""
SERIES_SHOWN = 8
"""Laboratory series that the page shows at a time."""
PLACES_SHOWN = 8
"""Encounters of an entry that the page shows at a time."""
MESSAGES_SHOWN = 3
"""Contradictions that an entry repeats; all are in the section of the contradictions."""


@dataclass(frozen=True, kw_only=True)
class FoundContradiction:
    """A contradiction with its entry."""

    number: int
    """1-based in the record."""
    message: str = field(repr=False)
    title: str
    """The title of the list."""
    kind: str
    entry: str
    """The address of the entry."""

    @property
    def anchor(self) -> str:
        """The id of the contradiction on the page, and its address."""
        return f"contradiction-{self.number}"


@dataclass(frozen=True, kw_only=True)
class EntryOutline:
    """What the order of a list needs of an entry."""

    item_id: UUID
    number: int
    """1-based in the list."""
    is_contradicted: bool
    is_flagged: bool
    """Whether an entity behind the entry has a flag, or has changed since."""
    first_contradiction: int
    """The number of its first contradiction in the record."""


@dataclass(frozen=True, kw_only=True)
class ListOutline:
    """The order of a list, with all its contradictions."""

    kind: str
    entries: Sequence[EntryOutline]
    contradictions: Sequence[FoundContradiction] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ShownEntry:
    """One entry with the shown part of its encounters or results."""

    anchor: str
    """The id of the entry on the page, and its address."""
    entry: ListEntry = field(repr=False)
    places: Portion[tuple[int, str]]
    """Number and id of supporting encounters."""
    groups: Sequence[LabGroup] = field(repr=False)
    """The results of a laboratory series by unit; empty for another kind."""
    messages: Sequence[str] = field(repr=False)
    """The first contradictions."""
    messages_left_out: str
    """The number of the others in words; "" without others."""
    messages_at: str
    """The address of the first of the others."""


@dataclass(frozen=True, kw_only=True)
class ResultsList:
    """One list: its shown part, and how many of all its entries come first."""

    kind: str
    title: str
    part: Portion[ShownEntry]
    contradicted: int
    flagged: int
    """Entries with a flag or a change and without a contradiction."""

    @property
    def is_labs(self) -> bool:
        """Whether the entries are laboratory series."""
        return self.kind == RecordListKind.LAB_SERIES.value


def list_outlines(shell_file_id: UUID, stale: StaleResults) -> dict[str, ListOutline]:
    """Return the order of each list that has an entry, in one statement."""
    rows: dict[str, list[tuple[UUID, Sequence[Mapping[str, Any]], bool]]] = {
        kind: [] for kind in LIST_TITLES
    }
    items = RecordListItem.objects.filter(shell_file_id=shell_file_id).order_by("item_index")
    for item, kind, contradictions, flags in items.values_list(
        "id", "kind", "contradictions", "summary__flags"
    ):
        rows[kind].append((item, contradictions, bool(flags) or item in stale.list_items))
    outlines: dict[str, ListOutline] = {}
    told = 0
    for kind, of in rows.items():
        if of:
            outlines[kind] = _outline(kind, of, told)
            told += len(outlines[kind].contradictions)
    return outlines


def results_lists(
    outlines: Mapping[str, ListOutline],
    chosen: str,
    indexes: Mapping[UUID, int],
    displays: Mapping[str, str],
    stale: StaleResults,
) -> list[ResultsList]:
    """Return the part of each list that contains the row `chosen`, in one statement.

    Raises RecordListItem.DoesNotExist if an entry is gone since the outlines were read.
    """
    parts = {kind: _part(of, chosen) for kind, of in outlines.items()}
    wanted = [each.item_id for part in parts.values() for each in part.rows]
    items = RecordListItem.objects.in_bulk(wanted)
    if len(items) < len(wanted):
        raise RecordListItem.DoesNotExist
    return [
        ResultsList(
            kind=kind,
            title=LIST_TITLES[kind],
            part=part.of(
                [
                    _shown(
                        f"{kind}-{each.number}",
                        each,
                        entry_of(items[each.item_id], indexes, displays, stale),
                        chosen,
                    )
                    for each in part.rows
                ]
            ),
            contradicted=sum(each.is_contradicted for each in outlines[kind].entries),
            flagged=sum(
                each.is_flagged and not each.is_contradicted for each in outlines[kind].entries
            ),
        )
        for kind, part in parts.items()
    ]


def _outline(
    kind: str, rows: Sequence[tuple[UUID, Sequence[Mapping[str, Any]], bool]], told: int
) -> ListOutline:
    entries: list[EntryOutline] = []
    contradictions: list[FoundContradiction] = []
    for number, (item, messages, is_flagged) in enumerate(rows, start=1):
        entries.append(
            EntryOutline(
                item_id=item,
                number=number,
                is_contradicted=bool(messages),
                is_flagged=is_flagged,
                first_contradiction=told + len(contradictions) + 1,
            )
        )
        contradictions += [
            FoundContradiction(
                number=told + len(contradictions) + n,
                message=str(each["message"]),
                title=LIST_TITLES[kind],
                kind=kind,
                entry=f"{kind}-{number}",
            )
            for n, each in enumerate(messages, start=1)
        ]
    entries.sort(key=lambda each: (not each.is_contradicted, not each.is_flagged))
    return ListOutline(kind=kind, entries=entries, contradictions=contradictions)


def _part(outline: ListOutline, chosen: str) -> Portion[EntryOutline]:
    addresses = [f"{outline.kind}-{each.number}" for each in outline.entries]
    asked, _ = _inner(chosen)
    at = addresses.index(asked) if asked in addresses else 0
    is_labs = outline.kind == RecordListKind.LAB_SERIES
    return portion(outline.entries, addresses, at, SERIES_SHOWN if is_labs else ENTRIES_SHOWN)


def _inner(chosen: str) -> tuple[str, int | None]:
    """Return the address of an entry, and the number of a row inside; None for the entry alone."""
    *entry, last = chosen.split("-")
    if len(entry) == 2 and last.isdecimal() and len(last) < 7:
        return "-".join(entry), int(last)
    return chosen, None


def _shown(anchor: str, outline: EntryOutline, entry: ListEntry, chosen: str) -> ShownEntry:
    asked, number = _inner(chosen)
    inside = number if asked == anchor else None
    places = list(zip(entry.encounters, entry.encounter_ids, strict=True))
    at = min(max((inside or 1) - 1, 0), max(len(places) - 1, 0))
    left_out = len(entry.contradictions) - MESSAGES_SHOWN
    return ShownEntry(
        anchor=anchor,
        entry=entry,
        places=portion(
            places, [f"{anchor}-{n}" for n in range(1, len(places) + 1)], at, PLACES_SHOWN
        ),
        groups=lab_groups(entry.summary, address=anchor, chosen=inside),
        messages=entry.contradictions[:MESSAGES_SHOWN],
        messages_left_out=counted(left_out, "more contradiction") if left_out > 0 else "",
        messages_at=f"contradiction-{outline.first_contradiction + MESSAGES_SHOWN}",
    )
