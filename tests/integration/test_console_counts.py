"""Each count of the console says where it stops, and counts only the right rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import redis
from django.utils import timezone
from rq.worker_registration import REDIS_WORKER_KEYS

from observability.diagnostics.failures import groups
from observability.diagnostics.overview import outlook, overview
from observability.listing.time_window import Period, Window
from observability.metrics import forecast, queue_depths, workers
from observability.metrics.forecast import outstanding
from observability.metrics.workers import worker_fleet
from pipeline.core.labels import StatusWord
from pipeline.core.states import JobStatus, Step
from pipeline.models import OUTCOME_LATE, Batch, Job
from tests.support.incident_rows import calls
from tests.support.rows import a_job, an_encounter

pytestmark = pytest.mark.django_db


def test_items_of_cancelled_and_failed_records_hide_no_waiting_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forecast, "WORK_READ", 4)
    for status in (JobStatus.CANCELLED, JobStatus.FAILED):
        an_encounter(a_job(status=status, completed_at=timezone.now()), batches=5)
    an_encounter(a_job(), batches=2)
    Batch.objects.update(estimated_input_tokens=1_000)

    left = outstanding(None)

    assert (left.calls, left.tokens, left.is_capped) == (2, 2_000, False)


def test_records_that_are_planned_hide_none_that_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "JOBS_READ", 2)
    for _ in range(3):
        a_job(step=Step.PASS2)
    a_job(step=Step.PAGES)

    left = outstanding(None)
    for _ in range(2):
        a_job(step=Step.PAGES)
    more = outstanding(None)

    assert (left.pages, left.jobs, left.is_capped) == (1, 1, False)
    assert (more.pages, more.jobs, more.is_capped) == (2, 2, True)


def test_every_page_shows_the_same_outstanding_work() -> None:
    calls(
        a_job(status=JobStatus.COMPLETED, completed_at=timezone.now()),
        "OK",
        accepted=True,
        input_tokens=5_000,
        page_range_start=1,
        page_range_end=10,
    )
    a_job(step=Step.PAGES)

    left, _ = outlook()

    # The calls of the last hour have 500 tokens per page, which replaces the default estimate.
    assert left.tokens == 500
    assert overview().outstanding == left


def test_late_replies_count_towards_the_cap_of_the_failures() -> None:
    job = a_job()
    calls(job, OUTCOME_LATE, 3)
    calls(job, "API_5XX", 1)

    found = groups(Period.last(Window.HOUR, timezone.now() + timedelta(seconds=1)), cap=4)
    whole = groups(Period.last(Window.HOUR, timezone.now() + timedelta(seconds=1)), cap=5)

    assert [group.cause for group in found.groups] == ["API_5XX"]
    assert found.is_capped
    assert not whole.is_capped


def test_a_capped_count_says_so_in_every_pass_and_its_oldest_is_the_oldest_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_depths, "COUNTED", 2)
    now = timezone.now()
    for hours in (1, 3, 2):
        at = now - timedelta(hours=hours)
        parked = a_job(status=JobStatus.PARKED, park_reason="a test", parked_until=now)
        Job.objects.filter(id=parked.id).update(updated_at=at)
        a_job(status=JobStatus.DEAD, completed_at=at)
    a_job(status=JobStatus.DEAD, step=Step.PAGES, completed_at=now)
    a_job()

    found = queue_depths.queue()

    pass1 = found.by_pass[Step.PASS1]
    assert {word.value: str(depth) for word, depth in pass1.items()} == {
        "waiting": "1",
        "parked": "2+",
        "dead": "2+",
    }
    oldest = {pass1[word].oldest for word in (StatusWord.PARKED, StatusWord.DEAD)}
    assert oldest == {now - timedelta(hours=3)}


def test_workers_beyond_the_cap_are_reported_and_two_jobs_of_a_worker_are_two_rows(
    redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LEASES_READ", 3)
    later = timezone.now() + timedelta(minutes=1)
    for name in ("twin", "twin", "unknown", "far"):
        a_job(status=JobStatus.PROCESSING, worker_id=name, lease_expires_at=later)
    _in_redis(redis_db, "far", "busy")

    found = worker_fleet()

    assert found.is_capped
    assert sum(worker.held is not None for worker in found.workers) == 3
    assert {worker.state for worker in found.workers} == {"busy"}


def test_a_worker_without_heartbeat_or_lease_is_in_error_and_an_unknown_one_is_gone(
    redis_db: redis.Redis,
) -> None:
    earlier = timezone.now() - timedelta(minutes=5)
    for name in ("expired", "lost"):
        a_job(status=JobStatus.PROCESSING, worker_id=name, lease_expires_at=earlier)
    for name in ("expired", "idle"):
        _in_redis(redis_db, name, "idle")
    _in_redis(redis_db, "silent", "busy", ago_s=300)

    found = {worker.name: worker.state for worker in worker_fleet().workers}

    assert found == {"expired": "error", "lost": "gone", "idle": "idle", "silent": "error"}


def _in_redis(client: redis.Redis, name: str, state: str, *, ago_s: float = 0.0) -> None:
    """Register a worker with a heartbeat of so many seconds ago."""
    beat = timezone.now() - timedelta(seconds=ago_s)
    facts: dict[Any, Any] = {
        "state": state,
        "last_heartbeat": beat.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    client.sadd(REDIS_WORKER_KEYS, f"rq:worker:{name}")
    client.hset(f"rq:worker:{name}", mapping=facts)
