"""The queue of ready items: which item starts next while the number of open groups is limited.

Of the items that were sent away least often, the largest that may start is first. A group opens
when one of its items starts, and closes when it has nothing in flight and nothing ready.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Generic, TypeAlias

from pipeline.execution.fanout.events import G, Item, K

Rank: TypeAlias = tuple[int, float, int, int]
"""(free retries, -size, group order, item order). The least rank starts first, so the largest item
starts first.

An item that was sent away without spending an attempt goes behind items that were not. Otherwise
the largest item would ask first after each cooldown, and would alone use up its limited calls.
"""


@dataclass(slots=True, eq=False)
class ItemGroup(Generic[K, G]):
    """The place of a group in the run, and its items in flight and ready."""

    key: G
    order: int
    unsettled: int = 0
    in_flight: int = 0
    is_open: bool = False
    ready: list[tuple[Rank, Entry[K, G]]] = field(default_factory=list)
    failed: list[tuple[int, K]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Entry(Generic[K, G]):
    """The place of an item in the run; `item` is replaced as attempts are spent."""

    item: Item[K, G]
    group: ItemGroup[K, G]
    order: int
    ready_since: float
    has_opened: bool = False
    """Whether the last start of the item has opened its group."""
    settled: bool = False

    @property
    def rank(self) -> Rank:
        """The rank of the item among all items."""
        return (self.item.free_retries, -self.item.size, self.group.order, self.order)


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
        """Return the group of that key; a new group goes to the end of the order."""
        if key not in self._by_key:
            self._by_key[key] = ItemGroup(key=key, order=len(self.groups))
            self.groups.append(self._by_key[key])
        return self._by_key[key]

    def push(self, entry: Entry[K, G], since: float) -> None:
        """Put an entry into the queue."""
        entry.ready_since = since
        self.ready += 1
        heapq.heappush(entry.group.ready, (entry.rank, entry))
        self._show_head(entry.group)

    def first(self) -> Entry[K, G] | None:
        """Return the entry of the least rank that may start; the entry stays in the queue."""
        heads = [self._peek(is_open=True)]
        if self.groups_open < self._group_limit:
            heads.append(self._peek(is_open=False))
        rank = min((head for head in heads if head is not None), default=None)
        return None if rank is None else self.groups[rank[2]].ready[0][1]

    def take(self, first: Entry[K, G]) -> None:
        """Move the first entry from the queue into flight, and open its group."""
        group = first.group
        heapq.heappop(group.ready)
        self.ready -= 1
        group.in_flight += 1
        first.has_opened = not group.is_open
        if not group.is_open:
            group.is_open = True
            self.groups_open += 1
        self._show_head(group)

    def put_back(self, taken: Entry[K, G]) -> None:
        """Undo `take` for the entry that was taken last."""
        group = taken.group
        group.in_flight -= 1
        if taken.has_opened:
            group.is_open = False
            self.groups_open -= 1
        self.push(taken, taken.ready_since)

    def land(self, entry: Entry[K, G]) -> None:
        """Take an entry out of flight, and close its group if the group is idle now."""
        group = entry.group
        group.in_flight -= 1
        if not group.in_flight and not group.ready:
            group.is_open = False
            self.groups_open -= 1

    def _show_head(self, group: ItemGroup[K, G]) -> None:
        if group.ready:
            heapq.heappush(self._heads[group.is_open], group.ready[0][0])

    def _peek(self, *, is_open: bool) -> Rank | None:
        # Pushing a head is cheap; a head that is no longer the first of its group is dropped here.
        heads = self._heads[is_open]
        while heads:
            rank = heads[0]
            group = self.groups[rank[2]]
            if group.is_open == is_open and group.ready and group.ready[0][0] == rank:
                return rank
            heapq.heappop(heads)
        return None
