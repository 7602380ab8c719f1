"""The scheduler of a fan-out: decides from the time and the reported results what starts and ends.

The scheduler is deterministic: it reads no clock and starts no thread. Both limits hold, and a
waiting retry holds no slot. Every item ends in exactly one of Succeeded, Failed, Replaced and
Returned. A late reply changes no item.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias

from pipeline.core.deadline import StepDeadline
from pipeline.execution.fanout.cancel_event import CancelEvent
from pipeline.execution.fanout.events import (
    DEADLINE,
    AttemptFailed,
    CallTimedOut,
    DeadlineExceeded,
    Decision,
    Event,
    Fail,
    Failed,
    Finished,
    G,
    GroupSettled,
    Item,
    K,
    LateReply,
    Limits,
    Park,
    R,
    Replace,
    Replaced,
    Retry,
    Returned,
    Started,
    Stopped,
    Succeeded,
    Tick,
)
from pipeline.execution.fanout.ready_queue import Entry, ItemGroup, ReadyQueue

Decide: TypeAlias = Callable[[Item[K, G], int, BaseException, float], Decision[K, G]]
Admit: TypeAlias = Callable[[Item[K, G], float], float | Park | None]
AdmitMany: TypeAlias = Callable[[Sequence[Item[K, G]], float], tuple[int, float | Park | None]]
"""Returns how many of the items may start, in their order, and why the next one may not."""

MOST_AT_ONCE = 32
"""The most items about which one question asks."""
MIN_HOLD_S = 0.001
"""A limiter that answers 0 s is asked again so much later; else the run would spin."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Call(Generic[K, G]):
    """One call that the driver must run; `cancel` is set once its result is not needed."""

    call_no: int
    item: Item[K, G]
    attempt: int
    started_at: float
    cancel: CancelEvent


class Scheduler(Generic[K, G, R]):
    """The state of one run. Not thread-safe: one thread calls the methods, in order of time."""

    def __init__(
        self,
        items: Iterable[Item[K, G]],
        decide: Decide[K, G],
        *,
        limits: Limits,
        now: float,
        groups: Iterable[G] = (),
        admit: Admit[K, G] | None = None,
        admit_many: AdmitMany[K, G] | None = None,
        deadline: StepDeadline | None = None,
    ) -> None:
        self.events: deque[Event[K, G, R]] = deque()
        self._done = False
        self._decide = decide
        self._admit_many = admit_many if admit is None else _one_by_one(admit)
        self._most_at_once = self._asks_about = MOST_AT_ONCE if admit is None else 1
        self._admitted: deque[Entry[K, G]] = deque()
        """Items that were admitted together, and that the next calls of `start_next` start."""
        self._limits = limits
        self._deadline = deadline
        self._line: ReadyQueue[K, G] = ReadyQueue(limits.groups)
        self._entries: dict[K, Entry[K, G]] = {}
        self._timers: list[tuple[float, int, Entry[K, G]]] = []
        # Every call has the same deadline, so the first in the dict is the first to be overdue.
        self._in_flight: dict[int, tuple[Call[K, G], Entry[K, G]]] = {}
        self._checking: set[int] = set()
        """Calls in flight that the provider has answered: their threads check the replies."""
        self._written_off: dict[int, Call[K, G]] = {}
        self._calls_made = 0
        self._unsettled = 0
        self._held_until = now
        self._stop_reason: str | None = None
        self._drain_until = now
        for key in groups:
            self._line.group(key)
        for item in items:
            self._add(item, now)
        for group in self._line.groups:
            self._settle_if_complete(group)

    @property
    def stop_reason(self) -> str | None:
        """Why the run is draining, or None while it admits."""
        return self._stop_reason

    def start_next(self, now: float) -> Call[K, G] | None:
        """Return the next call to begin, or None when nothing may start now."""
        if not self._admitted:
            if self._stop_reason is not None or now < self._held_until:
                return None
            self._ask(now)
        return self._start(self._admitted.popleft(), now) if self._admitted else None

    def answer(self, call_no: int) -> None:
        """Record that the provider has answered a call, so that its slot is free."""
        if call_no in self._in_flight:
            self._checking.add(call_no)

    def succeed(self, call_no: int, result: R, *, duration_s: float) -> None:
        """Record that a call returned."""
        if self._is_late(call_no, result, None, duration_s):
            return
        call, entry = self._land(call_no)
        self.events.append(
            Succeeded(
                key=entry.item.key,
                attempt=call.attempt,
                call_no=call_no,
                result=result,
                duration_s=duration_s,
            )
        )
        self._settle(entry)

    def fail(self, call_no: int, error: BaseException, *, now: float, duration_s: float) -> None:
        """Record that a call raised, and do what the policy decides."""
        if self._is_late(call_no, None, error, duration_s):
            return
        item = self._in_flight[call_no][1].item
        decision = self._decide(item, item.attempts + 1, error, now)
        call, entry = self._land(call_no)
        verdict = self._within_deadline(decision, error, now)
        self._note_failure(call, entry, error, verdict, duration_s)
        self._apply(entry, verdict, error, now)

    def advance(self, now: float) -> None:
        """Apply the passing of time: retries fall due, calls are written off, a drain ends."""
        while self._timers and self._timers[0][0] <= now:
            due, _, entry = heapq.heappop(self._timers)
            self._line.push(entry, due)
        while (overdue := self._first_in_flight()) is not None:
            if now < overdue.started_at + self._limits.call_deadline_s:
                break
            self._write_off(overdue, now)
        self._keep_to_deadline(now)
        self._end_if_over(now)

    def stop(self, reason: str, *, now: float, grace_s: float | None = None) -> None:
        """Start no more calls; those in flight have `grace_s`. A later stop only shortens it."""
        until = now + (self._limits.grace_s if grace_s is None else grace_s)
        if self._stop_reason is None:
            self._stop_reason = reason
            self._drain_until = until
        self._drain_until = min(self._drain_until, until)

    def next_wake(self) -> float | None:
        """Return when `advance` or `start_next` has something to do, if no result comes before."""
        wakes = []
        if (call := self._first_in_flight()) is not None:
            wakes.append(call.started_at + self._limits.call_deadline_s)
        if self._stop_reason is not None:
            wakes.append(self._drain_until)
        else:
            if self._deadline is not None:
                wakes.append(self._deadline.soft_ends_at)
            if self._timers:
                wakes.append(self._timers[0][0])
            if self._first_in_line() is not None:
                wakes.append(self._held_until)
        return min(wakes, default=None)

    def tick(self) -> Tick:
        """Return the counts of this moment."""
        return Tick(
            in_flight=len(self._in_flight),
            ready=self._line.ready,
            waiting=self._unsettled - self._line.ready - len(self._in_flight),
            groups_open=self._line.groups_open,
            written_off=len(self._written_off),
            unsettled=self._unsettled,
        )

    def abandon(self) -> None:
        """Tell every running call that its result is not needed."""
        for call, _ in self._in_flight.values():
            call.cancel.set()

    def _add(self, item: Item[K, G], now: float) -> None:
        if item.key in self._entries:
            raise ValueError("two items of a fan-out have the same key")
        group = self._line.group(item.group)
        entry = Entry(item=item, group=group, order=len(self._entries), ready_since=now)
        self._entries[item.key] = entry
        group.unsettled += 1
        self._unsettled += 1
        self._line.push(entry, now)

    def _first_in_line(self, taken: int = 0) -> Entry[K, G] | None:
        checking = len(self._checking)
        asking = len(self._in_flight) - checking + taken
        # Replies that come in faster than they are checked would fill the memory. With a limit of
        # one, nothing overlaps.
        if max(asking, checking) >= self._limits.calls:
            return None
        return self._line.first()

    def _ask(self, now: float) -> None:
        """Admit the first items of the queue, as many as there are free slots."""
        if self._admit_many is None:
            self._admitted.extend(self._take_first(1))
            return
        taken = self._take_first(self._asks_about)
        if not taken:
            return
        count, hold = self._admit_many([entry.item for entry in taken], now)
        # While the limiter refuses, a question about many items would cost more than it can give.
        asked = len(taken) if hold is None else count
        self._asks_about = min(max(2 * asked, 1), self._most_at_once)
        self._admitted.extend(taken[:count])
        for entry in reversed(taken[count:]):
            self._line.put_back(entry)
        if isinstance(hold, Park):
            self.stop(hold.reason, now=now)
            if not self._admitted:
                self._end_if_over(now)
        elif hold is not None:
            self._held_until = now + max(hold, MIN_HOLD_S)

    def _take_first(self, most: int) -> list[Entry[K, G]]:
        taken: list[Entry[K, G]] = []
        while len(taken) < most and (entry := self._first_in_line(len(taken))) is not None:
            self._line.take(entry)
            taken.append(entry)
        return taken

    def _start(self, entry: Entry[K, G], now: float) -> Call[K, G]:
        self._calls_made += 1
        call = Call(
            call_no=self._calls_made,
            item=entry.item,
            attempt=entry.item.attempts + 1,
            started_at=now,
            cancel=CancelEvent(),
        )
        self._in_flight[call.call_no] = (call, entry)
        self.events.append(
            Started(
                key=entry.item.key,
                attempt=call.attempt,
                call_no=call.call_no,
                queue_wait_s=now - entry.ready_since,
            )
        )
        return call

    def _first_in_flight(self) -> Call[K, G] | None:
        return next((call for call, _ in self._in_flight.values()), None)

    def _land(self, call_no: int) -> tuple[Call[K, G], Entry[K, G]]:
        call, entry = self._in_flight.pop(call_no)
        self._checking.discard(call_no)
        self._line.land(entry)
        return call, entry

    def _is_late(
        self, call_no: int, result: R | None, error: BaseException | None, duration_s: float
    ) -> bool:
        call = self._written_off.pop(call_no, None)
        if call is not None:
            self.events.append(
                LateReply(
                    key=call.item.key,
                    attempt=call.attempt,
                    call_no=call_no,
                    result=result,
                    error=error,
                    duration_s=duration_s,
                )
            )
        return call is not None or call_no not in self._in_flight

    def _within_deadline(
        self, decision: Decision[K, G], error: BaseException, now: float
    ) -> Decision[K, G]:
        if not isinstance(decision, Retry) or self._deadline is None or self._stop_reason:
            return decision
        remaining_s = self._deadline.soft_ends_at - now
        if decision.delay_s <= remaining_s:
            return decision
        # A run that has progressed is continued by another run, which has time for this retry.
        if self._deadline.has_progressed and decision.delay_s <= self._deadline.soft_s:
            return decision
        exceeded = DeadlineExceeded(
            remaining_s=max(remaining_s, 0.0), delay_s=decision.delay_s, original=error
        )
        return Fail(error=exceeded, spends_attempt=decision.spends_attempt)

    def _note_failure(
        self,
        call: Call[K, G],
        entry: Entry[K, G],
        error: BaseException,
        decision: Decision[K, G],
        duration_s: float,
    ) -> None:
        retries = isinstance(decision, Retry) and self._stop_reason is None
        self.events.append(
            AttemptFailed(
                key=entry.item.key,
                attempt=call.attempt,
                call_no=call.call_no,
                error=error,
                retry_in_s=decision.delay_s if isinstance(decision, Retry) and retries else None,
                spends_attempt=isinstance(decision, Retry | Fail) and decision.spends_attempt,
                duration_s=duration_s,
            )
        )

    def _apply(
        self, entry: Entry[K, G], decision: Decision[K, G], error: BaseException, now: float
    ) -> None:
        match decision:
            case Retry():
                item = entry.item
                if decision.spends_attempt:
                    entry.item = replace(item, attempts=item.attempts + 1)
                else:
                    entry.item = replace(item, free_retries=item.free_retries + 1)
                if self._stop_reason is None:
                    due = now + max(decision.delay_s, 0.0)
                    heapq.heappush(self._timers, (due, entry.order, entry))
            case Fail():
                self.events.append(Failed(key=entry.item.key, error=decision.error or error))
                entry.group.failed.append((entry.order, entry.item.key))
                self._settle(entry)
            case Park():
                self.stop(decision.reason, now=now)
            case Replace():
                self._replace(entry, decision.items, now)

    def _replace(self, entry: Entry[K, G], items: tuple[Item[K, G], ...], now: float) -> None:
        if not items or any(item.group != entry.item.group for item in items):
            raise ValueError("an item is replaced by at least one item, all of its own group")
        self.events.append(Replaced(key=entry.item.key, items=items))
        for item in items:
            self._add(item, now)
        self._settle(entry)

    def _settle(self, entry: Entry[K, G]) -> None:
        entry.settled = True
        entry.group.unsettled -= 1
        self._unsettled -= 1
        self._settle_if_complete(entry.group)

    def _settle_if_complete(self, group: ItemGroup[K, G]) -> None:
        if group.unsettled == 0:
            failed = tuple(key for _, key in sorted(group.failed, key=lambda pair: pair[0]))
            self.events.append(GroupSettled(group=group.key, failed_keys=failed))

    def _write_off(self, call: Call[K, G], now: float) -> None:
        elapsed_s = now - call.started_at
        error = CallTimedOut(deadline_s=self._limits.call_deadline_s, elapsed_s=elapsed_s)
        self.fail(call.call_no, error, now=now, duration_s=elapsed_s)
        call.cancel.set()
        self._written_off[call.call_no] = call
        if len(self._written_off) >= self._limits.calls and self._stop_reason is None:
            self.stop("written_off", now=now)

    def _keep_to_deadline(self, now: float) -> None:
        """Start no call after the soft deadline, and wait for no call after the hard deadline."""
        if self._deadline is None:
            return
        if self._stop_reason is None and self._unsettled and now >= self._deadline.soft_ends_at:
            self.stop(DEADLINE, now=now, grace_s=max(self._deadline.ends_at - now, 0.0))
        if self._stop_reason is not None:
            self._drain_until = min(self._drain_until, max(self._deadline.ends_at, now))

    def _end_if_over(self, now: float) -> None:
        if self._done:
            return
        if self._stop_reason is None:
            if self._unsettled == 0:
                self._done = True
                self.events.append(Finished())
            return
        if self._in_flight and now < self._drain_until:
            return
        self._done = True
        self.abandon()
        cut = {entry.item.key: call.call_no for call, entry in self._in_flight.values()}
        self._in_flight.clear()
        self._checking.clear()
        for key, entry in self._entries.items():
            if not entry.settled:
                self.events.append(Returned(key=key, call_no=cut.get(key)))
        self.events.append(Stopped(reason=self._stop_reason, returned=self._unsettled))


def _one_by_one(admit: Admit[K, G]) -> AdmitMany[K, G]:
    def admit_many(items: Sequence[Item[K, G]], now: float) -> tuple[int, float | Park | None]:
        hold = admit(items[0], now)
        return int(hold is None), hold

    return admit_many
