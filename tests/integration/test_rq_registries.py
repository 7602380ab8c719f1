"""RQ's registries are repaired from the rows after a crash, never the reverse."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.utils import timezone
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq.executions import Execution
from rq.registry import FailedJobRegistry, StartedJobRegistry

from pipeline.core.states import JobStatus, Step
from pipeline.models import Job
from pipeline.models.fields import ClockTimestamp
from pipeline.operations import operator_actions
from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry, StepQueue, entry_id, producer, push
from pipeline.transitions import claim
from tests.support import records
from tests.support.rows import a_job
from tests.support.short_records import short_record

QUEUE = "rq:queue:pass1"
WIP = "rq:wip:pass1"
FAILED = "rq:failed:pass1"


def an_execution(entry: str, *, heard_s_ago: float = 0.0, ttl: int = 90) -> Execution:
    """Insert an entry in execution by a worker whose last heartbeat is so long ago."""
    push("pass1", entry)
    client = producer()
    client.lrem(QUEUE, 1, entry)
    with client.pipeline() as pipe:
        execution = Execution.create(
            StepEntry.fetch(entry, connection=client), ttl, pipe, worker_name="w1"
        )
        pipe.hset(execution.key, "last_heartbeat", time.time() - heard_s_ago)
        pipe.execute()
    return execution


def test_a_job_whose_worker_died_and_its_execution_agree_after_one_tick(
    cloned_db: str, redis_db: Any
) -> None:
    job = a_job()
    execution = an_execution(entry_id(job.id, "pass1", 0), heard_s_ago=60)
    assert claim(Step.PASS1, "w1") is not None
    Job.objects.update(lease_expires_at=ClockTimestamp() - timedelta(seconds=1))

    tick = operator_actions.jobs_reconcile()

    assert (tick.recovered, tick.cleaned) == (1, 1)
    assert redis_db.zcard(WIP) == 0
    assert not redis_db.exists(execution.key)
    assert redis_db.lrange(QUEUE, 0, -1) == [entry_id(job.id, "pass1", 1).encode()]


def test_an_execution_whose_worker_lives_is_left_alone(cloned_db: str, redis_db: Any) -> None:
    job = a_job()
    execution = an_execution(entry_id(job.id, "pass1", 0))
    claim(Step.PASS1, "w1")

    tick = operator_actions.jobs_reconcile()

    assert not tick.changed
    assert redis_db.zrange(WIP, 0, -1) == [execution.composite_key.encode()]


def test_executions_whose_entry_is_gone_do_not_stop_the_clean_up(
    cloned_db: str, redis_db: Any
) -> None:
    living = an_execution(entry_id(a_job().id, "pass1", 0))
    an_execution(entry_id(a_job().id, "pass1", 0), heard_s_ago=60)
    gone = an_execution(entry_id(a_job().id, "pass1", 0))
    redis_db.delete(f"rq:job:{gone.job_id}")
    redis_db.zadd(WIP, {"no-such-entry:no-such-execution": time.time() + 900})
    redis_db.zadd(FAILED, {"no-such-entry": time.time() + 900})

    tick = operator_actions.jobs_reconcile()

    assert tick.cleaned == 4
    assert redis_db.zrange(WIP, 0, -1) == [living.composite_key.encode()]
    assert redis_db.zcard(FAILED) == 0


def test_an_execution_that_rq_abandons_later_stays_completed(cloned_db: str, redis_db: Any) -> None:
    job = a_job(status=JobStatus.COMPLETED)
    execution = an_execution(entry_id(job.id, "pass1", 0))
    redis_db.hset(f"rq:job:{execution.job_id}", "status", "started")
    redis_db.zadd(WIP, {execution.composite_key: time.time() - 1})
    queue = StepQueue("pass1", connection=producer())

    StartedJobRegistry(queue=queue, job_class=StepEntry).cleanup()
    operator_actions.jobs_reconcile()

    job.refresh_from_db()
    assert (job.status, job.crash_count, job.error_code) == (JobStatus.COMPLETED, 0, None)
    assert redis_db.zcard(WIP) == 0
    assert FailedJobRegistry(queue=queue).get_job_ids() == [execution.job_id]


def test_records_submitted_while_redis_is_away_run_when_it_is_back(
    cloned_db: str, redis_db: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = short_record(tmp_path / "record.pdf", 1)
    nowhere = redis.Redis(unix_socket_path="/nonexistent", retry=Retry(NoBackoff(), 0))
    with monkeypatch.context() as patch:
        patch.setattr(queues, "producer", lambda: nowhere)
        received = [records.submit(path, idempotency_key=f"upload {n}") for n in range(20)]
    long_ago = timezone.now() - timedelta(minutes=1)
    Job.objects.update(available_at=long_ago, updated_at=long_ago)

    operator_actions.jobs_reconcile()
    again = records.submit(path, idempotency_key="upload 0")

    waiting = {entry.decode()[:36] for entry in redis_db.lrange("rq:queue:pages", 0, -1)}
    assert waiting == {str(each.job_id) for each in received}
    assert (again.shell_file_id, again.job_id) == (received[0].shell_file_id, received[0].job_id)
    assert Job.objects.count() == 20
