"""The lists of a record in parts: problems, medications, allergies, laboratory series. PHI.

`list_entries.list_order` orders the entries. The number of an entry is its number in the list, so
its address stays the same. Only the shown entries and contradictions are read in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection

from observability.phi.lab_charts import LabGroup, lab_groups
from observability.phi.list_entries import LIST_TITLES, ListEntry, entry_of, list_order
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
CONTRADICTIONS_SHOWN = 20
"""Contradictions that the page shows at a time."""

# PostgreSQL counts, because decoding the JSON of each entry would cost most of the page.
_OUTLINES = """
SELECT id, kind, jsonb_array_length(contradictions),
  coalesce(jsonb_array_length(summary -> 'flags'), 0) > 0
FROM record_list_items WHERE shell_file_id = %s ORDER BY item_index
"""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryOutline:
    """What the order of a list needs of an entry."""

    item_id: UUID
    kind: str
    anchor: str
    """The id of the entry on the page, and its address: the kind and the number in the list."""
    contradictions: int
    is_flagged: bool
    """Whether an entity behind the entry has a flag, or has changed since."""
    first_contradiction: int
    """The number of its first contradiction in the record."""


ListOutlines = Mapping[str, Sequence[EntryOutline]]
"""The entries of each list that has an entry, in the order of `list_order`."""


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
    def order_words(self) -> str:
        """What comes first, for a list with several parts; "" if nothing does."""
        is_ordered = not self.part.is_whole and (self.contradicted or self.flagged)
        return ", contradicted and flagged first" if is_ordered else ""

    @property
    def is_labs(self) -> bool:
        """Whether the entries are laboratory series."""
        return self.kind == RecordListKind.LAB_SERIES.value


@dataclass(frozen=True, kw_only=True)
class ResultsLists:
    """The shown parts of all lists, and of the contradictions of the record."""

    lists: Sequence[ResultsList]
    contradictions: Portion[FoundContradiction]


def list_outlines(shell_file_id: UUID, stale: StaleResults) -> ListOutlines:
    """Return the order of each list that has an entry, in one statement."""
    found: dict[str, list[tuple[UUID, int, bool]]] = {kind: [] for kind in LIST_TITLES}
    with connection.cursor() as cursor:
        cursor.execute(_OUTLINES, [shell_file_id])
        for item, kind, contradictions, is_flagged in cursor.fetchall():
            found[kind].append((item, contradictions, is_flagged or item in stale.list_items))
    told = 0
    outlines: dict[str, list[EntryOutline]] = {}
    # Contradictions are numbered across the lists, in the order of the page.
    for kind, rows in found.items():
        entries = outlines[kind] = []
        for number, (item, contradictions, is_flagged) in enumerate(rows, start=1):
            entries.append(
                EntryOutline(
                    item_id=item,
                    kind=kind,
                    anchor=f"{kind}-{number}",
                    contradictions=contradictions,
                    is_flagged=is_flagged,
                    first_contradiction=told + 1,
                )
            )
            told += contradictions
        entries.sort(key=lambda each: list_order(bool(each.contradictions), each.is_flagged))
    return {kind: entries for kind, entries in outlines.items() if entries}


def results_lists(
    outlines: ListOutlines,
    chosen: str,
    indexes: Mapping[UUID, int],
    displays: Mapping[str, str],
    stale: StaleResults,
) -> ResultsLists:
    """Return the part of each list that contains the row `chosen`, in one statement.

    Raises RecordListItem.DoesNotExist if an entry is gone since the outlines were read.
    """
    parts = {kind: _part(kind, of, chosen) for kind, of in outlines.items()}
    contradictions = _contradictions(outlines, chosen)
    wanted = {each.item_id for part in parts.values() for each in part.rows}
    wanted |= {each.item_id for each, _ in contradictions.rows}
    items = RecordListItem.objects.in_bulk(wanted)
    if len(items) < len(wanted):
        raise RecordListItem.DoesNotExist
    lists = [
        ResultsList(
            kind=kind,
            title=LIST_TITLES[kind],
            part=part.of(
                [
                    _shown(each, entry_of(items[each.item_id], indexes, displays, stale), chosen)
                    for each in part.rows
                ]
            ),
            contradicted=sum(bool(each.contradictions) for each in outlines[kind]),
            flagged=sum(each.is_flagged and not each.contradictions for each in outlines[kind]),
        )
        for kind, part in parts.items()
    ]
    messages = [_message(items[each.item_id], each, at) for each, at in contradictions.rows]
    return ResultsLists(lists=lists, contradictions=contradictions.of(messages))


def _contradictions(outlines: ListOutlines, chosen: str) -> Portion[tuple[EntryOutline, int]]:
    """Return the shown contradictions: the entry of each, and its 0-based place in the entry."""
    entries = [each for of in outlines.values() for each in of if each.contradictions]
    entries.sort(key=lambda each: each.first_contradiction)
    found = [(each, at) for each in entries for at in range(each.contradictions)]
    addresses = [f"contradiction-{number}" for number in range(1, len(found) + 1)]
    at = addresses.index(chosen) if chosen in addresses else 0
    return portion(found, addresses, at, CONTRADICTIONS_SHOWN)


def _message(item: RecordListItem, outline: EntryOutline, at: int) -> FoundContradiction:
    return FoundContradiction(
        number=outline.first_contradiction + at,
        message=str(item.contradictions[at]["message"]),
        title=LIST_TITLES[outline.kind],
        kind=outline.kind,
        entry=outline.anchor,
    )


def _part(kind: str, entries: Sequence[EntryOutline], chosen: str) -> Portion[EntryOutline]:
    addresses = [each.anchor for each in entries]
    asked, _ = _inner(chosen)
    at = addresses.index(asked) if asked in addresses else 0
    is_labs = kind == RecordListKind.LAB_SERIES
    return portion(entries, addresses, at, SERIES_SHOWN if is_labs else ENTRIES_SHOWN)


def _inner(chosen: str) -> tuple[str, int | None]:
    """Return the address of an entry, and the number of a row inside; None for the entry alone."""
    *entry, last = chosen.split("-")
    if len(entry) == 2 and last.isdecimal() and len(last) < 7:
        return "-".join(entry), int(last)
    return chosen, None


def _shown(outline: EntryOutline, entry: ListEntry, chosen: str) -> ShownEntry:
    anchor = outline.anchor
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
