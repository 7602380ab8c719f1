"""What waits and who works, as the console asks for it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
import redis
from django.utils import timezone

from pipeline import queues
from pipeline.core.states import JobStatus, Step
from pipeline.crew import SILENT_S, queue_states, worker_states
from pipeline.liveness import StepAges
from pipeline.queues import StepEntry, entry_id
from pipeline.transitions import claim
from tests.rows import a_job
from tests.workers import WorkerCommand, until


@pytest.mark.django_db
def test_each_pass_tells_what_waits_since_when_and_what_runs(redis_db: redis.Redis) -> None:
    a_job(step=Step.PASS1)
    claim(Step.PASS1, "w")
    waiting = a_job(step=Step.PASS1, available_at=timezone.now() - timedelta(minutes=5))
    a_job(step=Step.PASS1)
    a_job(status=JobStatus.PARKED, park_reason="a test", parked_until=timezone.now())
    queues.push("pass1", entry_id(waiting.id, "pass1", 0))

    states = {state.step: state for state in queue_states()}

    ages = states[Step.PASS1].ages
    assert (ages.waiting, ages.running, ages.parked) == (2, 1, 1)
    assert states[Step.PASS1].wake_ups == 1
    assert ages.oldest_waiting_s is not None
    assert ages.oldest_waiting_s >= 300
    assert ages.oldest_running_s is not None
    assert list(states) == list(Step)
    assert states[Step.PASS3].ages == StepAges()


@pytest.mark.usefixtures("cloned_db")
def test_a_worker_is_idle_then_busy_and_in_error_when_it_is_not_heard_of(
    start_worker: Callable[..., WorkerCommand],
    redis_db: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.fixtures_jobs.run_step")
    worker = start_worker("drain", "rqworker", "pass1", "pass05")
    until(lambda: [state.condition for state in worker_states()] == ["idle"])
    (idle,) = worker_states()
    queues.push("pass1", entry_id(uuid4(), "pass1", 0))

    worker.wait_for("began")

    until(lambda: [state.condition for state in worker_states()] == ["busy"])
    assert idle.queues == ("pass1", "pass05")
    assert idle.heartbeat_s is not None
    worker.stop(signal.SIGKILL)
    (key,) = redis_db.smembers("rq:workers")
    redis_db.hset(
        key, "last_heartbeat", (timezone.now() - timedelta(seconds=2 * SILENT_S)).isoformat()
    )
    assert [state.condition for state in worker_states()] == ["error"]
    redis_db.delete(key)
    assert [state.condition for state in worker_states()] == ["error"]
