"""A step waits for the rate limiter: limits, an outage, and a used-up daily quota."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from pipeline.core import deadline
from pipeline.execution import admission, executor
from pipeline.models import Batch, Incident, Job, ProviderCall
from pipeline.ratelimit import RateLimiter
from pipeline.stages.intake import Received
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("executor-admission")]

VISITS = 10
Fault = Mapping[str, Any]


@pytest.fixture(autouse=True)
def _patient(settings: Any) -> None:
    settings.LEASE_S, settings.CALL_DEADLINE_S = 2400, 2400.0


def discovered(folder: Path, visits: int = VISITS) -> Received:
    received = records.submit(short_record(folder / "record.pdf", visits))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    return received


def detect(faults: list[Fault]) -> None:
    with records.through_emulator(faults):
        run_step.run_step("pass1")


def batches(received: Received) -> list[Any]:
    rows = Batch.objects.filter(pass1_encounter_result__shell_file_id=received.shell_file_id)
    return list(rows.order_by("page_range_start"))


def limiter() -> RateLimiter:
    return RateLimiter.for_("gemini", django_settings.GEMINI_MODEL)


def test_a_storm_of_limits_costs_no_attempt_and_leaves_no_call_waiting(
    tmp_path: Path, settings: Any
) -> None:
    settings.GATE_COOLDOWN_BASE_S, settings.GATE_COOLDOWN_CAP_S = 1.0, 4.0
    received = discovered(tmp_path)

    detect([{"fault": "429", "retry_after_s": 0.1, "times": 25}])

    rows = batches(received)
    assert {(b.status, b.attempt_count) for b in rows} == {("succeeded", 1)}
    assert sum(b.rate_limit_waits for b in rows) == 25
    state = limiter().state()
    counters = state.counters
    assert counters.rate_limited_items_stored == counters.rate_limited_items_redistributed > 0
    assert (state.in_flight, state.limited_items) == (0, 0)
    assert 1 <= counters.rate_limit_generations <= 25


def test_an_outage_fails_nothing_gives_attempts_back_and_completes_by_itself(
    tmp_path: Path,
) -> None:
    received = discovered(tmp_path)

    detect([{"fault": "503", "window": (0.0, 2.0)}])

    rows = batches(received)
    assert Job.objects.get(id=received.job_id).status == "completed"
    assert {(b.status, b.attempt_count) for b in rows} == {("succeeded", 1)}
    history = [entry for b in rows for entry in b.transient_error_history or ()]
    assert len(history) >= 5
    assert all(entry["error_code"] == "API_5XX" and entry["refunded"] for entry in history)
    assert any(b.had_transient_failure for b in rows)
    # The circuit breaker admitted only probes.
    assert ProviderCall.objects.filter(outcome="API_5XX").count() < 4 * VISITS
    assert limiter().state().counters.breaker_trips >= 1


def test_a_failure_of_one_batch_alone_is_no_outage_and_spends_its_attempts(tmp_path: Path) -> None:
    received = discovered(tmp_path)

    detect([{"fault": "503", "page": 1}])

    failed, *others = batches(received)
    assert (failed.status, failed.attempt_count) == ("failed", 3)
    assert not any("refunded" in entry for entry in failed.transient_error_history)
    assert {b.status for b in others} == {"succeeded"}


def test_an_outage_that_lasts_gives_the_worker_back_and_waits_for_the_incident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "PARK_AFTER_S", 10.0)
    received = discovered(tmp_path)

    detect([{"fault": "503"}])

    job = Job.objects.select_related("incident").get(id=received.job_id)
    assert (job.status, job.error_code) == ("parked", None)
    assert job.incident is not None
    assert job.incident.kind == "outage"
    rows = batches(received)
    assert {(b.status, b.attempt_count) for b in rows} == {("pending", 0)}
    assert all(e["refunded"] for b in rows for e in b.transient_error_history or ())
    assert limiter().state().in_flight == 0


def test_a_used_up_day_parks_the_job_until_its_reset(tmp_path: Path) -> None:
    received = discovered(tmp_path)

    detect([{"fault": "429-day"}])

    job = Job.objects.get(id=received.job_id)
    incident = Incident.objects.get()
    assert job.status == "parked"
    assert job.parked_until == incident.resumes_at is not None
    assert {(b.status, b.attempt_count, b.rate_limit_waits) for b in batches(received)} == {
        ("pending", 0, 0)
    }
    closed_until = limiter().state().closed_until
    assert closed_until is not None
    assert abs(closed_until - job.parked_until.timestamp()) < 2


def test_a_used_up_day_that_the_last_calls_of_a_step_show_parks_the_job_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = discovered(tmp_path, visits=2)
    # The step begins nothing after 0.5 s, and its calls are answered after that.
    monkeypatch.setattr(executor, "step_time_s", lambda *_, **__: 10.0)
    monkeypatch.setattr(deadline, "SOFT_SHARE", 0.05)

    detect([{"fault": "429-day", "delay_s": 1.0}])

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == ("parked", None)


def test_a_job_that_meets_a_limiter_closed_for_no_incident_opens_it_and_completes(
    tmp_path: Path,
) -> None:
    discovered(tmp_path)
    detect([{"fault": "429-day"}])
    (tmp_path / "other").mkdir()
    Incident.objects.update(state="closed", closed_at=Incident.objects.get().opened_at)
    other = discovered(tmp_path / "other", visits=2)

    detect([])

    assert Job.objects.get(id=other.job_id).status == "completed"
    assert limiter().state().closed_until is None


def test_a_pause_that_the_database_knows_nothing_of_is_lifted_by_the_first_to_meet_it(
    tmp_path: Path,
) -> None:
    received = discovered(tmp_path, visits=2)
    limiter().pause()

    detect([])

    assert Job.objects.get(id=received.job_id).status == "completed"
    assert not limiter().state().is_paused


def test_a_cooldown_longer_than_a_minute_gives_the_worker_back_until_it_is_over(
    tmp_path: Path, settings: Any
) -> None:
    settings.PASS1_CONCURRENCY_LIMIT = 1
    received = discovered(tmp_path, visits=2)

    detect([{"fault": "429", "retry_after_s": 600, "times": 1}])

    job = Job.objects.get(id=received.job_id)
    state = limiter().state()
    assert (job.status, job.incident_id) == ("parked", None)
    assert job.park_reason == f"the provider gemini {django_settings.GEMINI_MODEL} limits its calls"
    assert job.parked_until is not None
    assert state.cooldown_until is not None
    assert abs(job.parked_until.timestamp() - state.cooldown_until) < 2
    assert (state.in_flight, state.limited_items) == (0, 0)


def test_the_local_engine_asks_no_limiter(tmp_path: Path) -> None:
    received = discovered(tmp_path, visits=2)
    limiter().pause()

    run_step.run_step("pass1")

    assert Job.objects.get(id=received.job_id).status == "completed"
