"""The driver of a fan-out: connects scheduler, executor and clock, and yields events to one thread.

Freed slots are filled before an event is yielded. The consumer gets an event at least every
`tick_s`. `stop` is safe in a signal handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Generic, Self, cast

from pipeline.core.deadline import StepDeadline
from pipeline.execution.fanout.events import Event, Finished, G, Item, K, Limits, R, Stopped
from pipeline.execution.fanout.scheduler import Admit, AdmitMany, Decide, Scheduler
from pipeline.execution.fanout.thread_pool import (
    Answered,
    CallFunction,
    Clock,
    Executor,
    Message,
    StopRequest,
    SystemClock,
    ThreadExecutor,
)


class FanOut(Generic[K, G, R]):
    """One run of many calls, consumed by one thread.

    1. `with FanOut(items, call=…, decide=…) as run: for event in run.events(): …`
    2. `call(item, attempt, cancel)` runs in a call thread; an error that it raises is its result.
       A call that returns `Unchecked` hands back its slot before its thread checks the reply.
    3. `decide(item, attempt, error, now)` and `admit(item, now)` run in the consumer's thread; what
       they raise leaves `events()`. `admit` returns None to start, or the seconds after which to
       ask again. It is asked about the first ready item only, right before the start. `admit_many`
       in its place is asked about as many ready items as there are free slots: it returns how many
       of them start, and what `admit` would return for the next one.
    4. Both may also return Park: the run then drains, as by `stop`.
    5. After the soft end of `deadline` nothing is begun, and the run stops with the reason
       `DEADLINE`; at its hard end the calls in flight are given up.
    6. `groups` gives the order of groups, also of groups without items, which settle at once.
       Other groups follow in the order of their first item.
    """

    def __init__(
        self,
        items: Iterable[Item[K, G]],
        *,
        call: CallFunction[K, G, R],
        decide: Decide[K, G],
        limits: Limits | None = None,
        groups: Iterable[G] = (),
        admit: Admit[K, G] | None = None,
        admit_many: AdmitMany[K, G] | None = None,
        deadline: StepDeadline | None = None,
        clock: Clock | None = None,
        executor: Callable[[CallFunction[K, G, R], Clock], Executor[K, G, R]] = ThreadExecutor,
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._executor = executor(call, self._clock)
        self._scheduler: Scheduler[K, G, R] = Scheduler(
            items,
            decide,
            limits=self._limits,
            now=self._clock.monotonic(),
            groups=groups,
            admit=admit,
            admit_many=admit_many,
            deadline=deadline,
        )
        self._last_tick = self._clock.monotonic()
        self._begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def stop_reason(self) -> str | None:
        """Why the run is draining, or None while it admits."""
        return self._scheduler.stop_reason

    def events(self) -> Iterator[Event[K, G, R]]:
        """Yield the events of the run, the last being Finished or Stopped; once, in one thread.

        Raises RuntimeError when it is asked for a second time.
        """
        if self._begun:
            raise RuntimeError("a fan-out runs once")
        self._begun = True
        try:
            while True:
                self.dispatch()
                now = self._clock.monotonic()
                if now >= self._last_tick + self._limits.tick_s:
                    yield self._scheduler.tick()
                    # CounterPart from here, so that a slow consumer still gets other events.
                    self._last_tick = self._clock.monotonic()
                elif self._scheduler.events:
                    event = self._scheduler.events.popleft()
                    yield event
                    if isinstance(event, Finished | Stopped):
                        return
                else:
                    self._take(self._executor.wait(self._patience(now)))
        finally:
            self.close()

    def dispatch(self) -> None:
        """Record the calls that have ended and start new ones; never blocks, never yields.

        The consumer may call this between two slow statements.
        """
        self._take(self._executor.wait(0))
        self._scheduler.advance(self._clock.monotonic())
        while (call := self._scheduler.start_next(self._clock.monotonic())) is not None:
            self._executor.submit(call)

    def stop(self, reason: str, *, grace_s: float | None = None) -> None:
        """Ask the run to drain, from any thread or a signal handler.

        The run sees the request at once. A signal in the instant before the consumer begins to wait
        is the exception: Python runs the handler after that wait, at the next tick at the latest.
        The first reason counts; a later stop can only shorten the grace. `grace_s` in seconds,
        default that of the limits.
        """
        self._executor.post(StopRequest(reason=reason, grace_s=grace_s))

    def close(self) -> None:
        """Cancel the running calls and end the threads; idempotent."""
        self._scheduler.abandon()
        self._executor.close()

    def _take(self, messages: list[Message[R]]) -> None:
        now = self._clock.monotonic()
        for message in messages:
            if isinstance(message, StopRequest):
                self._scheduler.stop(message.reason, now=now, grace_s=message.grace_s)
            elif isinstance(message, Answered):
                self._scheduler.answer(message.call_no)
            elif message.error is not None:
                self._scheduler.fail(
                    message.call_no, message.error, now=now, duration_s=message.duration_s
                )
            else:
                self._scheduler.succeed(
                    message.call_no, cast("R", message.result), duration_s=message.duration_s
                )

    def _patience(self, now: float) -> float:
        wake = self._scheduler.next_wake()
        tick = self._last_tick + self._limits.tick_s
        return max((tick if wake is None else min(wake, tick)) - now, 0.0)
