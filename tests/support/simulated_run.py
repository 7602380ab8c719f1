"""A run of the fan-out on a simulated clock, for tests of its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipeline.core.deadline import StepDeadline
from pipeline.execution.fanout import (
    Admit,
    AdmitMany,
    Decision,
    Event,
    Executor,
    FanOut,
    Item,
    Limits,
    Retry,
)
from pipeline.execution.fanout.simulation import SimulatedClock, SimulatedExecutor

Step = tuple[float, BaseException | None]
"""One call: its seconds, and the error that it raises; None means success."""
Steps = Mapping[str, Sequence[Step]]


@dataclass
class SimulatedRun:
    """A simulated run: the calls of each item in order; the last call of an item repeats."""

    steps: Steps
    limits: Limits = field(default_factory=lambda: Limits(tick_s=1000))
    deadline: StepDeadline | None = None
    decide: Callable[[Item[str, str], int, BaseException, float], Decision[str, str]] = (
        lambda item, attempt, error, now: Retry(delay_s=1, spends_attempt=True)
    )
    admit: Admit[str, str] | None = None
    admit_many: AdmitMany[str, str] | None = None
    groups: Iterable[str] = ()
    sizes: Mapping[str, float] = field(default_factory=dict)
    stop_at: tuple[float, str] | None = None
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    log: list[tuple[float, Event[str, str, str]]] = field(default_factory=list)

    def play(
        self, on_event: Callable[[FanOut[str, str, str], Any], None] | None = None
    ) -> SimulatedRun:
        clock = self.clock
        begun: dict[str, int] = {}

        def step(item: Item[str, str]) -> Step:
            plan = self.steps.get(item.key, [(1.0, None)])
            return plan[min(begun.get(item.key, 0), len(plan) - 1)]

        def latency(item: Item[str, str], attempt: int) -> float:
            return step(item)[0]

        def call(item: Item[str, str], attempt: int, cancel: object) -> str:
            error = step(item)[1]
            begun[item.key] = begun.get(item.key, 0) + 1
            if error is not None:
                raise error
            return f"{item.key} on attempt {attempt}"

        made: list[SimulatedExecutor[str, str, str]] = []

        def executor(call: Any, clock: Any) -> Executor[str, str, str]:
            made.append(SimulatedExecutor(call, clock, latency=latency))
            return made[0]

        items = [Item(key=key, group=key[0], size=self.sizes.get(key, 1.0)) for key in self.steps]
        with FanOut(
            items,
            call=call,
            decide=self.decide,
            limits=self.limits,
            groups=self.groups,
            admit=self.admit,
            admit_many=self.admit_many,
            deadline=self.deadline,
            clock=clock,
            executor=executor,
        ) as run:
            if self.stop_at is not None:
                made[0].at(self.stop_at[0], partial(run.stop, self.stop_at[1]))
            for event in run.events():
                self.log.append((clock.now, event))
                if on_event is not None:
                    on_event(run, event)
        return self

    def of(self, kind: type) -> list[Any]:
        return [event for _, event in self.log if isinstance(event, kind)]

    def when(self, kind: type) -> list[tuple[float, str]]:
        return [
            (now, getattr(event, "key", "")) for now, event in self.log if isinstance(event, kind)
        ]

    @property
    def ended_at(self) -> float:
        return self.log[-1][0]


BROKEN = RuntimeError("broken")


def once(error: BaseException = BROKEN, seconds: float = 1.0) -> list[Step]:
    return [(seconds, error), (1.0, None)]
