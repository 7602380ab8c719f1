"""A clock that moves only when the run waits, and an executor whose calls take simulated time.

Instead of `SystemClock` and `ThreadExecutor` they make a run deterministic and instant, without a
thread or a sleep. Tests and benchmarks use them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic

from pipeline.execution.fanout.events import G, Item, K, R
from pipeline.execution.fanout.scheduler import Call
from pipeline.execution.fanout.thread_pool import (
    CallFunction,
    CallResult,
    Clock,
    Message,
    StopRequest,
    Unchecked,
)


class SimulatedClock:
    """Time in seconds, from 0, moved by hand or by the executor's waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the simulated time."""
        return self.now


class SimulatedExecutor(Generic[K, G, R]):
    """Makes each call at once and delivers its result `latency(item, attempt)` s later.

    Pass `functools.partial(SimulatedExecutor, latency=…, clock=…)` as `executor`, or keep one
    made beforehand and pass `lambda call, clock: …`. `at` schedules every other action.
    """

    def __init__(
        self,
        call: CallFunction[K, G, R],
        clock: Clock,
        *,
        latency: Callable[[Item[K, G], int], float],
    ) -> None:
        if not isinstance(clock, SimulatedClock):
            raise TypeError("simulated calls need the simulated clock")
        self._call = call
        self._clock = clock
        self._latency = latency
        self._due: list[
            tuple[float, int, Call[K, G] | Callable[[], None], CallResult[R] | None]
        ] = []
        self._posted: list[StopRequest] = []
        self._scheduled = 0

    @property
    def running(self) -> list[Call[K, G]]:
        """The calls in flight that are not cancelled."""
        calls = [due[2] for due in self._due if isinstance(due[2], Call)]
        return [call for call in calls if not call.cancel.is_set()]

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Do something at a moment, as another thread or a signal would."""
        self._schedule(moment, action, None)

    def submit(self, call: Call[K, G]) -> None:
        """Make the call, and schedule the delivery of its result."""
        result: R | None = None
        error: BaseException | None = None
        took_s = self._latency(call.item, call.attempt)
        try:
            answer = self._call(call.item, call.attempt, call.cancel)
            result = answer.check() if isinstance(answer, Unchecked) else answer
        except BaseException as exc:  # noqa: BLE001 - as in a real call thread
            error = exc
        outcome = CallResult(call_no=call.call_no, result=result, error=error, duration_s=took_s)
        self._schedule(self._clock.now + took_s, call, outcome)

    def post(self, request: StopRequest) -> None:
        """Keep a request for the next wait."""
        self._posted.append(request)

    def wait(self, timeout_s: float) -> list[Message[R]]:
        """Move the clock to what comes first, within `timeout_s`, and return all that is due."""
        if timeout_s > 0 and not self._posted:
            until = self._clock.now + timeout_s
            self._clock.now = max(self._clock.now, min([until, *[due[0] for due in self._due[:1]]]))
        messages: list[Message[R]] = []
        while self._due and self._due[0][0] <= self._clock.now:
            _, _, what, outcome = heapq.heappop(self._due)
            if outcome is not None:
                messages.append(outcome)
            elif not isinstance(what, Call):
                what()
        messages += self._posted
        self._posted.clear()
        return messages

    def close(self) -> None:
        """Nothing runs, so nothing is left to end."""

    def _schedule(
        self, moment: float, what: Call[K, G] | Callable[[], None], outcome: CallResult[R] | None
    ) -> None:
        self._scheduled += 1
        heapq.heappush(self._due, (moment, self._scheduled, what, outcome))
