"""The reconciler repairs due work without a wake-up, and duplicates nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis.backoff import NoBackoff
from redis.retry import Retry

from pipeline.core.errors import LeaseLostError
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import Batch, EncounterResult, Job, Session, Summary
from pipeline.operations import operator_actions
from pipeline.queueing import queues, reconciler, rq_registries
from pipeline.queueing.queues import entry_id, push
from pipeline.transitions import Lease, claim, complete_step, fenced, renew_lease
from tests.support.rows import a_job, an_encounter, columns, crashes_of

QUEUE = "rq:queue:pass1"


def in_line(redis_db: Any, queue: str = QUEUE) -> list[str]:
    """Return the ids of the waiting wake-ups, first to last."""
    return [entry.decode() for entry in redis_db.lrange(queue, 0, -1)]


def a_waiting_job(**columns: Any) -> Job:
    """Insert a job that has waited longer than a wake-up can be in transit."""
    long_ago = timezone.now() - timedelta(minutes=1)
    job = a_job(**{"available_at": long_ago, **columns})
    Job.objects.filter(id=job.id).update(updated_at=long_ago)
    return job


def woken(job: Job) -> str:
    """Return the expected id of a job's wake-up."""
    job.refresh_from_db()
    return entry_id(job.id, job.current_step, job.dispatch_no)


def noted(job: Job, key: str) -> list[dict[str, Any]]:
    """Return a list out of a job's error details."""
    assert job.error_details is not None
    return list(job.error_details[key])


def crashed(worker: str = "w1") -> Lease:
    """Claim the best job, and let its lease expire."""
    lease = claim(Step.PASS1, worker)
    assert lease is not None
    Job.objects.filter(id=lease.job_id).update(
        lease_expires_at=timezone.now() - timedelta(seconds=1)
    )
    return lease


def test_an_expired_lease_puts_its_job_back_and_counts_the_crash(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    job = a_job()
    result, batches = an_encounter(job, batches=2)
    lease = crashed("host-1")
    EncounterResult.objects.filter(id=result.id).update(status=WorkStatus.PROCESSING)
    Batch.objects.filter(id=batches[0].id).update(status=WorkStatus.PROCESSING, attempt_count=2)

    tick = operator_actions.jobs_reconcile()

    job.refresh_from_db()
    assert (tick.recovered, tick.dead_lettered) == (1, 0)
    assert columns(job, "status", "worker_id", "lease_expires_at") == {
        "status": JobStatus.PENDING,
        "worker_id": None,
        "lease_expires_at": None,
    }
    assert columns(job, "crash_count", "retry_count", "lease_gen", "dispatch_no") == {
        "crash_count": 1,
        "retry_count": 0,
        "lease_gen": 2,
        "dispatch_no": 1,
    }
    (crash,) = crashes_of(job)
    assert (crash["step"], crash["worker_id"], crash["lease_gen"]) == ("pass1", "host-1", 1)
    assert crash["at"]
    assert EncounterResult.objects.get(id=result.id).status == WorkStatus.PENDING
    assert set(Batch.objects.values_list("status", flat=True)) == {WorkStatus.PENDING}
    assert Batch.objects.get(id=batches[0].id).attempt_count == 2
    assert in_line(redis_db) == [woken(job)]
    with pytest.raises(LeaseLostError), fenced(lease):
        pass


def test_a_lease_that_lives_is_left_alone(cloned_db: str, redis_db: redis.Redis) -> None:
    a_job()
    lease = claim(Step.PASS1, "w1")
    assert lease is not None

    tick = operator_actions.jobs_reconcile()

    assert not tick.changed
    renew_lease(lease, 60.0)


def test_three_crashes_of_one_step_end_in_the_dead_letters_with_their_history(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    job = a_job()
    for worker in ("w1", "w2", "w3"):
        crashed(worker)
        tick = operator_actions.jobs_reconcile()

    job.refresh_from_db()
    assert (tick.recovered, tick.dead_lettered) == (0, 1)
    assert (job.status, job.error_code, job.crash_count) == (JobStatus.DEAD, "WORKER_LOST", 3)
    assert (job.retry_count, job.worker_id) == (0, None)
    assert job.dead_letter_at is not None
    assert [crash["worker_id"] for crash in crashes_of(job)] == ["w1", "w2", "w3"]
    history = noted(job, "attempt_history")
    assert [entry["error_code"] for entry in history] == ["WORKER_LOST"] * 3
    session = Session.objects.get(shell_file_id=job.shell_file_id)
    assert (session.session_status, session.failure_pass) == ("failed", "pass1")
    assert (session.pass1_status, session.error_code) == ("failed", "WORKER_LOST")
    summary = Summary.objects.get(shell_file_id=job.shell_file_id)
    assert (summary.processing_status, summary.failure_stage) == ("failed", "pass1")
    assert summary.business_events[-1]["event"] == "pass1: dead after 3 crashes"
    assert not operator_actions.jobs_reconcile().changed


def test_crashes_are_counted_for_each_step_separately(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    job = a_job()
    for _ in range(2):
        crashed()
        operator_actions.jobs_reconcile()
    lease = claim(Step.PASS1, "w")
    assert lease is not None

    with fenced(lease):
        complete_step(lease, Step.PASS1_5)

    job.refresh_from_db()
    assert (job.current_step, job.crash_count) == ("pass1_5", 0)
    assert len(crashes_of(job)) == 2


def test_a_wake_up_that_was_lost_is_sent_again_under_a_new_id(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    job = a_waiting_job()
    first = woken(job)

    tick = operator_actions.jobs_reconcile()

    assert tick.woken == 1
    assert in_line(redis_db) == [woken(job)] != [first]


def test_a_waiting_row_gets_no_further_wake_up(cloned_db: str, redis_db: redis.Redis) -> None:
    """A wake-up names no job, so the wake-up of another row may have started this job."""
    jobs = [a_waiting_job() for _ in range(5)]
    push("pass1", *(woken(job) for job in jobs))
    claimed = claim(Step.PASS1, "w1")
    assert claimed is not None
    redis_db.lpop(QUEUE, 2)
    push("pass1", entry_id(jobs[0].id, "pass1", 7))
    before = in_line(redis_db)

    ticks = [operator_actions.jobs_reconcile() for _ in range(5)]

    assert not any(tick.changed for tick in ticks)
    assert in_line(redis_db) == before


def test_a_queue_that_is_paused_for_hours_keeps_one_wake_up_for_each_row(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    operator_actions.queue_pause(Step.PASS1, reason="a test")
    jobs = [a_waiting_job(available_at=timezone.now() - timedelta(hours=2)) for _ in range(3)]
    push("pass1", *(woken(job) for job in jobs))

    ticks = [operator_actions.jobs_reconcile() for _ in range(10)]

    assert not any(tick.changed for tick in ticks)
    assert in_line(redis_db) == [woken(job) for job in jobs]


def test_a_row_whose_wake_up_is_in_transit_gets_no_second_wake_up(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    a_job(available_at=timezone.now() + timedelta(milliseconds=100))
    a_job(available_at=timezone.now() + timedelta(hours=1))

    tick = operator_actions.jobs_reconcile()

    assert not tick.changed


def test_entries_that_stand_for_nothing_are_removed(cloned_db: str, redis_db: redis.Redis) -> None:
    job, ended = a_waiting_job(), a_job(status=JobStatus.COMPLETED)
    push("pass1", woken(ended), woken(job))
    push("pass05", woken(ended).replace("pass1", "pass05"))
    redis_db.rpush(QUEUE, "an-id-whose-entry-is-gone")

    tick = operator_actions.jobs_reconcile()

    assert tick.removed == 3
    assert (in_line(redis_db), in_line(redis_db, "rq:queue:pass05")) == ([woken(job)], [])


def test_an_entry_that_redis_has_evicted_is_replaced(cloned_db: str, redis_db: redis.Redis) -> None:
    job = a_waiting_job()
    push("pass1", woken(job))
    redis_db.delete(f"rq:job:{woken(job)}")

    tick = operator_actions.jobs_reconcile()

    assert (tick.removed, tick.woken) == (1, 1)
    assert in_line(redis_db) == [woken(job)]
    assert redis_db.exists(f"rq:job:{woken(job)}")


def test_a_tick_without_redis_frees_the_rows_and_the_next_one_wakes(
    cloned_db: str, redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, parked = (
        a_job(),
        a_job(status=JobStatus.PARKED, park_reason="a test", parked_until=timezone.now()),
    )
    crashed()
    nowhere = redis.Redis(unix_socket_path="/nonexistent", retry=Retry(NoBackoff(), 0))
    with monkeypatch.context() as patch:
        for module in (queues, rq_registries):
            patch.setattr(module, "producer", lambda: nowhere)
        away = operator_actions.jobs_reconcile()

    long_ago = timezone.now() - timedelta(minutes=1)
    Job.objects.update(available_at=long_ago, updated_at=long_ago)
    back = operator_actions.jobs_reconcile()

    assert (away.recovered, away.released, away.redis_away) == (1, 1, True)
    assert (back.woken, back.redis_away) == (2, False)
    assert sorted(in_line(redis_db)) == sorted([woken(lost), woken(parked)])


def test_a_tick_takes_the_same_statements_for_many_rows_as_for_few(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    def statements(jobs: int) -> int:
        for _ in range(jobs):
            a_waiting_job()
        for _ in range(jobs):
            crashed()
        for _ in range(jobs):
            a_waiting_job()
        with CaptureQueriesContext(
            connection,
        ) as captured:
            tick = operator_actions.jobs_reconcile()
        assert (tick.recovered, tick.woken) == (jobs, jobs)
        Job.objects.update(status=JobStatus.CANCELLED)
        redis_db.flushdb()
        return len(captured)

    assert statements(40) == statements(2)


def test_reconcilers_at_once_do_each_thing_once(
    cloned_db: str, redis_db: redis.Redis, settings: Any
) -> None:
    settings.TIME_SCALE = 1.0
    lost = [a_job() for _ in range(30)]
    for _ in lost:
        crashed()
    waiting = [a_waiting_job() for _ in range(30)]

    def reconcile(_: int) -> reconciler.ReconcilerTick:
        try:
            return operator_actions.jobs_reconcile()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        ticks = list(threads.map(reconcile, range(12)))

    assert sum(tick.recovered for tick in ticks) == 30
    assert sum(tick.woken for tick in ticks) == 30
    assert {job.crash_count for job in Job.objects.filter(id__in=[j.id for j in lost])} == {1}
    assert sorted(in_line(redis_db)) == sorted(woken(job) for job in (*lost, *waiting))


def test_the_command_says_what_it_did(
    cloned_db: str, redis_db: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    a_job()
    crashed()

    call_command("reconcile", "--json")
    call_command("reconcile")

    first, second = capsys.readouterr().out.splitlines()
    assert json.loads(first)["recovered"] == 1
    assert second == "0 recovered, 0 dead, 0 released, 0 woken, 0 entries removed"
