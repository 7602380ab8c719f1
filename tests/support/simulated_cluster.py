"""Hosts in simulated time that share a quota, joined as in the step executor.

The rate limiter with its scripts in Redis, the admission, the policy, the fan-out, the plan and the
deadline are the real ones. Only the clock, the database and the provider are simulated. Each host
is a thread, but one runs at a time: the host with the earliest moment.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch
from uuid import UUID, uuid4

import redis
from django.conf import settings
from django.test import override_settings

from medproc.timing import scaled
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import OUTAGE_CODES, CallDetails
from pipeline.core.states import Step
from pipeline.execution import admission
from pipeline.execution.admission import StepAdmission
from pipeline.execution.attempt_budget import AttemptBudget
from pipeline.execution.failed_call import PARKED, StepPolicy
from pipeline.execution.fanout import DEADLINE, FanOut, Limits, Started, Stopped, Succeeded
from pipeline.execution.fanout.simulation import SimulatedClock, SimulatedExecutor
from pipeline.execution.split_plan import SplitPlan
from pipeline.execution.splits import Split
from pipeline.execution.step_time import slots_of, step_time_s
from pipeline.models import Batch
from pipeline.providers.base import Provider
from pipeline.ratelimit import Quota, RateLimiter, Tuning
from pipeline.ratelimit.limiter import limiter_client
from pipeline.transitions import Lease
from tests.support.limiter_simulation import BEGIN, LUA_CLOCK

SCALE = 0.05
"""A second of a mix in seconds of the clock. The rate limiter asks the hosts of a short line every
20 ms, whatever the scale, so a small scale saves asks."""


@dataclass(frozen=True, kw_only=True)
class SimulatedCall:
    """A call that succeeds."""

    estimate: int
    """Estimated input tokens."""
    tokens: int
    """Counted input tokens."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Mix:
    """A quota, and the calls of each record of each host."""

    rpm: int
    tpm: int
    rpd: int | None
    slots: int
    emptied_at: float | None
    """When Redis loses all data."""
    hosts: Sequence[tuple[float, Sequence[Sequence[SimulatedCall]]]]
    """When each host begins, and its records."""


class _RedisLoss:
    """Empties Redis at a moment; a host without records."""

    def __init__(self, client: redis.Redis, turns: Turns, number: int, moment: float) -> None:
        self.number = number
        self._client = client
        self._turns = turns
        self._moment = moment

    def run(self) -> None:
        """Wait for the moment; for a thread."""
        self._turns.await_turn(self.number)
        self._turns.sleep_until(self.number, scaled(self._moment))
        self._client.flushdb()
        self._turns.leave(self.number)


class Turns:
    """The time of all hosts. One host runs at a time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._wakes: dict[int, float] = {}
        self._turns: dict[int, threading.Semaphore] = {}

    def join(self, host: int) -> None:
        """Add a host before any of them runs."""
        self._wakes[host] = 0.0
        self._turns[host] = threading.Semaphore(0)

    def begin(self) -> None:
        """Give the first host its turn."""
        self._turns[self._next()].release()

    def await_turn(self, host: int) -> None:
        """Wait for the first turn."""
        self._turns[host].acquire()

    def sleep_until(self, host: int, moment: float) -> None:
        """Let the other hosts run until a moment of the clock."""
        self._wakes[host] = max(moment, self.now)
        following = self._next()
        if following != host:
            self._turns[following].release()
            self._turns[host].acquire()
        self.now = max(self.now, self._wakes[host])

    def leave(self, host: int) -> None:
        """End a host."""
        del self._wakes[host]
        if self._wakes:
            self._turns[self._next()].release()

    def _next(self) -> int:
        return min(self._wakes, key=lambda host: (self._wakes[host], host))


class HostClock(SimulatedClock):
    """The clock of one host; to set it lets the other hosts run."""

    def __init__(self, turns: Turns, host: int) -> None:
        self._turns = turns
        self._host = host

    if not TYPE_CHECKING:

        @property
        def now(self) -> float:
            """The time of all hosts."""
            return self._turns.now

        @now.setter
        def now(self, moment: float) -> None:
            if moment > self._turns.now:
                self._turns.sleep_until(self._host, moment)


class _Work:
    """The batches of one record as the policy needs them."""

    known: Sequence[Batch] = ()
    groups: Sequence[Hashable] = ()

    def __init__(self, calls: Mapping[UUID, SimulatedCall]) -> None:
        self._calls = calls
        self.rows = [
            Batch(id=row, page_range_start=1, page_range_end=1, max_attempts=3) for row in calls
        ]

    def group_of(self, row: Batch) -> Hashable:
        return cast(Hashable, row.id)

    def pages_of(self, row: Batch) -> Sequence[int]:
        return (1,)

    def size_of(self, split: Split[Batch]) -> int:
        return self._calls[split.row.id].estimate


@dataclass
class SimulatedHost:
    """One worker process, which runs its records one after the other."""

    number: int
    records: Sequence[Sequence[SimulatedCall]]
    turns: Turns
    limiter: RateLimiter
    running: set[int]
    """The hosts that have begun."""
    starts_at: float
    completed: int = 0
    requeued: int = 0
    """Steps that were out of time and had progressed."""
    failed: list[str] = field(default_factory=list)
    parked: int = 0
    error: BaseException | None = None

    def run(self) -> None:
        """Run all records; for a thread."""
        self.turns.await_turn(self.number)
        try:
            self.turns.sleep_until(self.number, scaled(self.starts_at))
            for calls in self.records:
                self._run_record(calls)
        except BaseException as error:  # noqa: BLE001 - the test's thread raises it again
            self.error = error
        finally:
            self.turns.leave(self.number)

    def _run_record(self, calls: Sequence[SimulatedCall]) -> None:
        self.running.add(self.number)
        left = {uuid4(): call for call in calls}
        job_id = uuid4()
        while left:
            ending = self._claim(job_id, left)
            if ending is not None:
                self.failed.append(ending)
                return
        self.completed += 1

    def _claim(self, job_id: UUID, left: dict[UUID, SimulatedCall]) -> str | None:
        """Run the step once, as the executor does; return why it failed, if it did."""
        clock = HostClock(self.turns, self.number)
        lease = cast(Lease, SimpleNamespace(job_id=job_id, step=Step.PASS1, log_context=dict))
        provider = cast(
            Provider,
            SimpleNamespace(name="gemini", model="m", max_calls=None, limiter=self.limiter),
        )
        work = cast(Any, _Work(dict(left)))
        splits: SplitPlan[Batch] = SplitPlan(work)
        gate = StepAdmission(lease, provider)
        sizes = [work.size_of(split) for split in splits.open]
        time_s = step_time_s(sizes, provider, jobs=len(self.running))
        deadline = StepDeadline(time_s, now=clock.now)
        budget = AttemptBudget(work.rows, OUTAGE_CODES)
        policy = StepPolicy(lease, work, splits, budget, gate, deadline, lambda row: None)
        reason = None
        with FanOut(
            [policy.item(split) for split in splits.open],
            call=lambda item, attempt, cancel: gate.noting_sent(item.key)(),
            decide=policy.decide,
            admit_many=policy.admit_many,
            limits=Limits(
                calls=slots_of(provider),
                call_deadline_s=scaled(settings.CALL_DEADLINE_S),
                tick_s=1e9,
            ),
            deadline=deadline,
            clock=clock,
            executor=partial(
                SimulatedExecutor, latency=lambda item, attempt: scaled(left[item.key[0]].seconds)
            ),
        ) as run:
            for event in run.events():
                if isinstance(event, Started):
                    policy.waits.begin_call(clock.now)
                elif isinstance(event, Succeeded):
                    policy.waits.end_call(clock.now)
                    call = left.pop(event.key[0])
                    gate.succeeded(event.key, CallDetails(input_tokens=call.tokens))
                    deadline.note_progress()
                elif isinstance(event, Stopped):
                    reason = event.reason
        gate.close()
        return self._end(reason, gate, deadline, policy.waits.in_words(clock.now), time_s)

    def _end(
        self, reason: str | None, gate: StepAdmission, deadline: StepDeadline, waits: str, s: float
    ) -> str | None:
        if reason == DEADLINE and not deadline.has_progressed:
            return f"out of {s:.0f} s; {waits}"
        self.requeued += reason == DEADLINE
        parking = gate.open_and_park()
        if reason == PARKED and parking is not None and parking.until is not None:
            self.parked += 1
            self.turns.sleep_until(self.number, parking.until.timestamp() - BEGIN)
        return None


def play(mix: Mix) -> list[SimulatedHost]:
    """Run all records of all hosts to their end."""
    client = limiter_client(settings.REDIS_URL)
    client.flushdb()
    turns = Turns()
    running: set[int] = set()
    quota = Quota(requests=mix.rpm, tokens=mix.tpm, per_day=mix.rpd, window_s=60.0 * SCALE)
    hosts = [
        SimulatedHost(
            number=number,
            records=records,
            turns=turns,
            running=running,
            starts_at=starts_at,
            limiter=RateLimiter(
                "gemini",
                "m",
                client=client,
                quota=quota,
                tuning=Tuning(),
                clock=lambda: turns.now,
                wall=lambda: BEGIN + turns.now,
                lua_clock=LUA_CLOCK,
            ),
        )
        for number, (starts_at, records) in enumerate(mix.hosts)
    ]
    actors: list[SimulatedHost | _RedisLoss] = list(hosts)
    if mix.emptied_at is not None:
        actors.append(_RedisLoss(client, turns, len(hosts), mix.emptied_at))
    with _simulated(mix, turns):
        threads = [threading.Thread(target=actor.run, daemon=True) for actor in actors]
        for actor in actors:
            turns.join(actor.number)
        for thread in threads:
            thread.start()
        turns.begin()
        for thread in threads:
            thread.join()
    # Each rate limiter keeps a connection, and thousands of them are made.
    client.connection_pool.disconnect()
    for host in hosts:
        if host.error is not None:
            raise host.error
    return hosts


@contextmanager
def _simulated(mix: Mix, turns: Turns) -> Any:
    moments = SimpleNamespace(monotonic=lambda: turns.now)
    dates = SimpleNamespace(now=lambda: datetime.fromtimestamp(BEGIN + turns.now, UTC))
    with ExitStack() as stack:
        stack.enter_context(
            override_settings(
                TIME_SCALE=SCALE,
                GEMINI_RPM=mix.rpm,
                GEMINI_TPM=mix.tpm,
                GEMINI_RPD=mix.rpd,
                GATE_WINDOW_S=60.0 * SCALE,
                PASS1_CONCURRENCY_LIMIT=mix.slots,
            )
        )
        for name, value in {
            "limiter_of": lambda provider: provider.limiter,
            "time": moments,
            "timezone": dates,
        }.items():
            stack.enter_context(patch.object(admission, name, value))
        yield
