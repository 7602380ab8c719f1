"""The line of ready items: who starts next when only so many groups may be open.

Imports `events` only. Promises: of the items that have waited least often, the largest that may
start is first; a group opens when one of its items starts, and closes when it has nothing in
flight and nothing ready.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Generic, TypeAlias

from pipeline.execution.fanout.events import G, Item, K

Rank: TypeAlias = tuple[int, float, int, int]
"""(waits, -size, group order, item order): the least starts first, so the largest does.

One that was sent away and spent nothing goes behind those that were not: else the largest would be
the first to ask after each cooldown, and alone use up what an item may meet of limits.
"""


@dataclass(slots=True, eq=False)
class ItemGroup(Generic[K, G]):
    """A group's place in the run and what it has under way."""

    key: G
    order: int
    unsettled: int = 0
    in_flight: int = 0
    is_open: bool = False
    ready: list[tuple[Rank, Entry[K, G]]] = field(default_factory=list)
    failed: list[tuple[int, K]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Entry(Generic[K, G]):
    """An item's place in the run; its `item` is replaced as attempts are spent."""

    item: Item[K, G]
    group: ItemGroup[K, G]
    order: int
    ready_since: float
    settled: bool = False

    @property
    def rank(self) -> Rank:
        """Where it stands among all items."""
        return (self.item.waits, -self.item.size, self.group.order, self.order)


class ReadyQueue(Generic[K, G]):
    """All groups, with their ready items in order."""

    def __init__(self, group_limit: int) -> None:
        self.groups: list[ItemGroup[K, G]] = []
        self.groups_open = 0
        self.ready = 0
        self._group_limit = group_limit
        self._by_key: dict[G, ItemGroup[K, G]] = {}
        self._heads: dict[bool, list[Rank]] = {True: [], False: []}

    def group(self, key: G) -> ItemGroup[K, G]:
        """Return the group of that key, made at the end of the order if it is new."""
        if key not in self._by_key:
            self._by_key[key] = ItemGroup(key=key, order=len(self.groups))
            self.groups.append(self._by_key[key])
        return self._by_key[key]

    def push(self, entry: Entry[K, G], since: float) -> None:
        """Let an entry compete for a start."""
        entry.ready_since = since
        self.ready += 1
        heapq.heappush(entry.group.ready, (entry.rank, entry))
        self._show_head(entry.group)

    def first(self) -> Entry[K, G] | None:
        """Return the entry of the least rank that may start, leaving it in line."""
        heads = [self._peek(is_open=True)]
        if self.groups_open < self._group_limit:
            heads.append(self._peek(is_open=False))
        rank = min((head for head in heads if head is not None), default=None)
        return None if rank is None else self.groups[rank[2]].ready[0][1]

    def take(self, first: Entry[K, G]) -> None:
        """Move the first entry from the line into flight, opening its group."""
        group = first.group
        heapq.heappop(group.ready)
        self.ready -= 1
        group.in_flight += 1
        if not group.is_open:
            group.is_open = True
            self.groups_open += 1
        self._show_head(group)

    def land(self, entry: Entry[K, G]) -> None:
        """Take an entry out of flight; its group gives up its place if that left it idle."""
        group = entry.group
        group.in_flight -= 1
        if not group.in_flight and not group.ready:
            group.is_open = False
            self.groups_open -= 1

    def _show_head(self, group: ItemGroup[K, G]) -> None:
        if group.ready:
            heapq.heappush(self._heads[group.is_open], group.ready[0][0])

    def _peek(self, *, is_open: bool) -> Rank | None:
        # Heads are shown freely and dropped here, once they no longer are their group's first.
        heads = self._heads[is_open]
        while heads:
            rank = heads[0]
            group = self.groups[rank[2]]
            if group.is_open == is_open and group.ready and group.ready[0][0] == rank:
                return rank
            heapq.heappop(heads)
        return None
