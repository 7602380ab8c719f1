"""An emptied Redis gets its window back from the database, from the step, and from bounds."""

from __future__ import annotations

import random
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from django.utils import timezone

from pipeline.core.errors import CallDetails, ErrorCode
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.execution.admission import StepAdmission
from pipeline.execution.recent_calls import UNWRITTEN
from pipeline.models import Batch, Job
from pipeline.ratelimit import (
    Outcome,
    PastCall,
    PastCalls,
    Quota,
    RateLimiter,
    RateLimiterState,
    Standing,
    Why,
)
from pipeline.transitions import claim
from pipeline.transitions.recovery import take_expired
from tests.support.emulator import gemini
from tests.support.incident_rows import GEMINI, OTHER_MODEL, calls
from tests.support.limiter_simulation import (
    BEGIN,
    SimulatedProvider,
    SimulatedWorker,
    Simulation,
    busiest,
    refused,
)
from tests.support.rows import a_job, an_encounter
from tests.support.workers import until

SLOTS = 7


@pytest.fixture(autouse=True)
def _quota(settings: Any) -> None:
    settings.GEMINI_RPM, settings.GEMINI_TPM = 300, 1_000_000
    settings.PASS1_CONCURRENCY_LIMIT = SLOTS


def a_step() -> StepAdmission:
    a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    return StepAdmission(lease, gemini("http://127.0.0.1:9"))


def started(step: StepAdmission, most: int = 400) -> list[tuple[UUID, str]]:
    """Return the calls that start at once."""
    keys: list[tuple[UUID, str]] = []
    while len(keys) < most and step.ask(key := (uuid4(), ""), 100, "1") is None:
        keys.append(key)
    return keys


def armed(step: StepAdmission) -> RateLimiterState:
    """Ask until the rate limiter is armed; return its state before a call started."""
    until(lambda: (wait := step.ask((uuid4(), ""), 10**7, "1")) is None or wait.why is not Why.NEW)
    return state()


def state() -> RateLimiterState:
    return RateLimiter.for_("gemini", GEMINI.model).state()


@pytest.mark.django_db
def test_a_new_installation_starts_the_whole_quota_at_once(redis_db: redis.Redis) -> None:
    assert len(started(a_step())) == 300


@pytest.mark.django_db
def test_the_calls_of_the_last_minute_count_from_their_starts(redis_db: redis.Redis) -> None:
    job = a_job(status=JobStatus.COMPLETED)
    calls(job, "OK", 100, ago_s=20, duration_ms=30_000, input_tokens=900)
    calls(job, "OK", 50, ago_s=3, input_tokens=1_000)
    calls(job, "OK", 70, ago_s=61, duration_ms=30_000)
    calls(job, "OK", 70, ago_s=1, of=OTHER_MODEL)
    step = a_step()

    begun = started(step)
    held = refused(RateLimiter.for_("gemini", GEMINI.model))

    assert len(begun) == 150
    assert state().tokens_used == 100 * 900 + 50 * 1_000 + 150 * 100
    assert held.why is Why.REQUESTS
    assert 8 < held.seconds < 10.3


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", [ErrorCode.API_5XX, ErrorCode.RATE_LIMIT])
def test_a_provider_whose_last_calls_failed_gets_a_ramp(
    outcome: ErrorCode, redis_db: redis.Redis
) -> None:
    calls(a_job(status=JobStatus.COMPLETED), outcome, 2, ago_s=10)

    # The first of the five starts of the first second.
    assert len(started(a_step())) == 1


@pytest.mark.django_db
def test_the_steps_own_calls_count_once_in_flight_and_once_when_they_are_written(
    redis_db: redis.Redis,
) -> None:
    step = a_step()
    ended, in_flight = started(step, 20), started(step, 30)
    for key in ended:
        step.succeeded(key, CallDetails(input_tokens=250))
    # Half of the ended calls are written already.
    calls(Job.objects.get(), "OK", 10, ago_s=0, input_tokens=250)

    redis_db.flushdb()
    seen = armed(step)

    assert (len(ended), len(in_flight), step._lease.gen) == (20, 30, 1)
    assert (seen.requests_used, seen.tokens_used) == (50, 20 * 250 + 30 * 100)


@pytest.mark.django_db
def test_what_another_step_may_have_in_flight_counts_as_started_now(redis_db: redis.Redis) -> None:
    step = a_step()
    other = a_job(status=JobStatus.PROCESSING, lease_expires_at=timezone.now(), worker_id="v")
    an_encounter(other, batches=2)
    Batch.objects.update(status=WorkStatus.PROCESSING)

    first = step.ask((uuid4(), ""), 100, "1")
    seen = armed(step)

    # First the other step writes the calls that have ended.
    assert first is not None
    assert first.why is Why.NEW
    assert seen.requests_used == UNWRITTEN * SLOTS
    # As large as the call that is asked for, up to the quota.
    assert seen.tokens_used == 1_000_000
    assert seen.is_ramping


@pytest.mark.django_db
def test_another_step_without_a_call_in_flight_takes_nothing(redis_db: redis.Redis) -> None:
    step = a_step()
    other = a_job(status=JobStatus.PROCESSING, lease_expires_at=timezone.now(), worker_id="v")
    an_encounter(other, batches=2)

    until(lambda: step.ask((uuid4(), ""), 100, "1") is None)

    assert len(started(step)) == 299


@pytest.mark.usefixtures("cloned_db")
def test_the_calls_of_a_crashed_step_count_as_started_now(redis_db: redis.Redis) -> None:
    a_job()
    crashed = claim(Step.PASS1, "v")
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    taken = take_expired()
    Job.objects.update(status=JobStatus.COMPLETED)

    begun = started(a_step())

    assert crashed is not None
    assert len(taken) == 1
    # The first start of a ramp, because the state of the provider is unknown.
    assert len(begun) == 1
    assert state().requests_used == UNWRITTEN * SLOTS + 1


class Ledger:
    """What the database would know: calls that have ended, and the steps that run."""

    def __init__(self, simulation: Simulation, provider: SimulatedProvider) -> None:
        self._simulation = simulation
        self._provider = provider
        self.workers: list[SimulatedWorker] = []

    def answer(self, moment: float, tokens: int) -> Outcome:
        return self._provider.answer(moment, tokens)

    def standing(self, number: int) -> Standing:
        """Return the calls that have ended, the worker's own, and a bound for the others."""
        now, own = self._simulation.now, self.workers[number]
        known = [
            PastCall(now - start.moment, None)
            for worker in self.workers
            for start in worker.starts
            if now - start.moment < 65 and (worker is own or start.item in worker.succeeded)
        ]
        callers = [worker for worker in self.workers if worker is not own and worker.in_flight]
        return Standing(
            past=PastCalls(known=tuple(known), possible=sum(each.slots for each in callers))
        )


@pytest.mark.parametrize("seed", range(12))
def test_a_loss_of_redis_amid_bursts_draws_no_429_and_loses_little_time(
    seed: int, redis_db: redis.Redis
) -> None:
    draw = random.Random(seed)
    simulation = Simulation(redis_db, Quota(requests=60, tokens=300_000))
    provider = SimulatedProvider(requests=60, tokens=300_000)
    ledger = Ledger(simulation, provider)
    for number in range(draw.choice([1, 3])):
        worker = SimulatedWorker(
            simulation,
            f"job-{number}",
            ((f"{number}-{i}", draw.choice([500, 4_000])) for i in range(1000)),
            ledger.answer,
            slots=draw.choice([10, 30]),
            latency_s=draw.choice([0.5, 8.0]),
            seed=seed + number,
            standing=partial(ledger.standing, number),
        )
        ledger.workers.append(worker)
    for _ in range(3):
        simulation.at(BEGIN + draw.uniform(5, 300), simulation.flush)

    simulation.run(until=BEGIN + 420)

    starts = [start.moment for worker in ledger.workers for start in worker.starts]
    assert provider.refusals == []
    assert busiest(starts, 60.0) <= 60
    assert len(starts) >= 0.85 * 420
