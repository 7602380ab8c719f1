"""A provider's hold outlives an emptied Redis, and a pause reaches every process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import redis
from django.utils import timezone

from pipeline import transitions
from pipeline.core.states import IncidentKind, JobStatus, Step
from pipeline.execution.admission import KeepRunning, StepAdmission
from pipeline.models import Job, Pause
from pipeline.operations import operator_actions
from pipeline.ratelimit import Go, Later, RateLimiter, RateLimiterState, Standing, Why
from pipeline.transitions import claim, fenced, park
from tests.support.emulator import gemini
from tests.support.incident_rows import GEMINI, OTHER_MODEL, an_incident
from tests.support.limiter_simulation import BEGIN, LUA_CLOCK, UNLIMITED, Simulation, ask
from tests.support.rows import a_job
from tests.support.workers import until

KEY, OTHER_KEY = (uuid4(), ""), (uuid4(), "")


def a_step() -> StepAdmission:
    """Return the rate limiter of a running step."""
    a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    return StepAdmission(lease, gemini("http://127.0.0.1:9"))


def state(model: str = GEMINI.model) -> RateLimiterState:
    return RateLimiter.for_("gemini", model).state()


def test_an_emptied_limiter_starts_no_call_before_one_read_of_the_database(
    redis_db: redis.Redis,
) -> None:
    known: list[Standing | None] = [None, Standing(outage_since=BEGIN - 30)]
    asked: list[str] = []
    simulation = Simulation(redis_db)

    def look(name: str) -> Standing | None:
        asked.append(name)
        return known.pop(0)

    def process(name: str) -> RateLimiter:
        return RateLimiter(
            "gemini",
            "m",
            client=redis_db,
            quota=UNLIMITED,
            tuning=simulation.tuning,
            clock=lambda: simulation.now,
            wall=lambda: simulation.now,
            lua_clock=LUA_CLOCK,
            standing=lambda: look(name),
        )

    first, second = process("first"), process("second")

    unknown = first.admit(ask())
    armed = first.admit(ask())
    after = second.admit(ask())
    simulation.now += 5.001
    probe = second.admit(ask())

    assert isinstance(unknown, Later)
    assert unknown.why is Why.NEW
    for answer in (armed, after):
        assert isinstance(answer, Later)
        assert (answer.why, answer.outage_since) == (Why.BREAKER, BEGIN - 30)
    assert isinstance(probe, Go)
    assert probe.ticket.is_probe
    assert asked == ["first", "first"]


def an_outage() -> None:
    an_incident(first_failure_at=timezone.now() - timedelta(seconds=30))


def a_used_up_day() -> None:
    an_incident(IncidentKind.QUOTA, resumes_at=timezone.now() + timedelta(hours=3))


def a_pause() -> None:
    transitions.pause_provider("gemini", reason="a test")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("holds", "why"),
    [(an_outage, Why.BREAKER), (a_used_up_day, Why.QUOTA), (a_pause, Why.PAUSED)],
)
def test_a_step_that_runs_while_redis_is_emptied_is_held_by_what_the_database_knows(
    holds: Callable[[], None],
    why: Why,
    redis_db: redis.Redis,
    django_assert_num_queries: Any,
) -> None:
    step = a_step()
    until(lambda: step.ask(KEY, 1, "1") is None)
    holds()

    redis_db.flushdb()
    held = step.ask(KEY, 1, "1")

    assert held is not None
    seen = state()
    assert (seen.outage_since is not None) == (why is Why.BREAKER)
    assert (seen.closed_until is not None) == (why is Why.QUOTA)
    assert seen.is_paused == (why is Why.PAUSED)
    with django_assert_num_queries(0):
        assert step.ask(KEY, 1, "1") is not None


@pytest.mark.django_db
def test_an_ended_incident_or_pause_closes_no_limiter(redis_db: redis.Redis) -> None:
    transitions.close_incident(an_incident().id, {})
    a_pause()
    transitions.end_pauses(provider="gemini", reason="a test")
    step = a_step()

    until(lambda: step.ask(KEY, 1, "1") is None)

    assert step.stop_cause == KeepRunning()


@pytest.mark.usefixtures("cloned_db")
def test_a_pause_reaches_the_limiters_of_its_provider_and_a_resume_opens_them(
    redis_db: redis.Redis,
) -> None:
    limiters = [RateLimiter.for_("gemini", m) for m in (GEMINI.model, OTHER_MODEL.model)]
    for limiter in limiters:
        limiter.admit(ask())
    elsewhere = RateLimiter.for_("other", GEMINI.model)
    elsewhere.admit(ask())

    operator_actions.provider_pause("gemini", OTHER_MODEL.model, reason="costs")
    one = [limiter.state().is_paused for limiter in (*limiters, elsewhere)]
    operator_actions.provider_pause("gemini", reason="contract")
    both = [limiter.state().is_paused for limiter in (*limiters, elsewhere)]
    operator_actions.provider_resume("gemini", reason="signed")

    assert one == [False, True, False]
    assert both == [True, True, False]
    assert [limiter.state().is_paused for limiter in limiters] == [False, False]
    assert all(limiter.state().is_ramping for limiter in limiters)


@pytest.mark.usefixtures("cloned_db")
def test_a_step_that_runs_parks_at_once_for_its_pause_and_follows_its_end(
    redis_db: redis.Redis,
) -> None:
    step = a_step()
    until(lambda: step.ask(KEY, 1, "1") is None)
    operator_actions.provider_pause("gemini", reason="a test")

    with_a_call_in_flight = step.ask(OTHER_KEY, 1, "1"), step.open_and_park()
    step.cut(KEY)
    step.ask(OTHER_KEY, 1, "1")
    parking = step.open_and_park()

    assert with_a_call_in_flight[0] is not None
    assert with_a_call_in_flight[1] is None
    assert parking is not None
    assert (parking.pause_id, parking.until) == (Pause.objects.get().id, None)
    with fenced(step._lease):
        park(step._lease, parking)
    assert operator_actions.parked_release() == 0
    assert operator_actions.provider_resume("gemini", reason="a test").released == 1
    assert Job.objects.get().status == JobStatus.PENDING


@pytest.mark.usefixtures("cloned_db")
def test_a_resume_after_a_used_up_quota_opens_the_limiter_before_its_reset(
    redis_db: redis.Redis,
) -> None:
    a_used_up_day()
    step = a_step()
    step.ask(KEY, 1, "1")
    closed_until = state().closed_until

    operator_actions.provider_resume("gemini", reason="the quota was raised")

    assert closed_until is not None
    assert state().closed_until is None


@pytest.mark.usefixtures("cloned_db")
def test_a_limiter_that_a_quota_closed_is_opened_by_who_meets_it_where_redis_missed_the_resume(
    redis_db: redis.Redis, settings: Any
) -> None:
    a_used_up_day()
    step = a_step()
    step.ask(KEY, 1, "1")
    url, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:9/0"
    operator_actions.provider_resume("gemini", reason="the quota was raised")
    settings.REDIS_URL = url
    closed_until = state().closed_until
    later = a_step()

    met = later.ask(KEY, 1, "1")

    assert closed_until is not None
    assert met is not None
    assert later.stop_cause == KeepRunning()
    assert state().closed_until is None
    until(lambda: later.ask(KEY, 1, "1") is None)


@pytest.mark.usefixtures("cloned_db")
def test_the_days_own_count_parks_a_step_without_an_incident(
    redis_db: redis.Redis, settings: Any
) -> None:
    settings.GEMINI_RPD = 1
    step = a_step()
    until(lambda: step.ask(KEY, 1, "1") is None)
    step.cut(KEY)

    step.ask(OTHER_KEY, 1, "1")
    parking = step.open_and_park()

    assert parking is not None
    assert parking.incident_id is None
    assert parking.until is not None
    assert parking.reason.startswith("the calls of a day of gemini")


@pytest.mark.usefixtures("cloned_db")
def test_a_pause_that_did_not_reach_redis_is_reported_and_still_holds(
    redis_db: redis.Redis, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    a_job()
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    operator_actions.provider_pause("gemini", reason="a test")

    assert "running steps of gemini do not learn of this change" in caplog.text
    assert claim(Step.PASS1, "w", GEMINI) is None
