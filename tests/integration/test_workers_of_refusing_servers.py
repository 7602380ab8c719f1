"""Workers outlive a PostgreSQL or Redis that refuses: no crash is counted, and work continues."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from pipeline.core.server_faults import ServerFault
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job
from pipeline.operations import operator_actions
from pipeline.queueing.queues import StepEntry, entry_id, push
from tests.support.refusing_servers import refusing
from tests.support.rows import a_job
from tests.support.workers import WorkerCommand, until

pytestmark = pytest.mark.slow(reason="real workers wait for servers that refuse: 40 s")
StartWorker = Callable[..., WorkerCommand]
REFUSING = (ServerFault.POSTGRES_READ_ONLY, ServerFault.POSTGRES_LOGIN)


@pytest.fixture(autouse=True)
def _steps_are_fixtures(redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")


def a_running_step(start_worker: StartWorker, **settings: float) -> tuple[Job, WorkerCommand]:
    job = a_job()
    push("pass1", entry_id(job.id, "pass1", 0))
    worker = start_worker("renew", "rqworker", "pass1", settings=settings)
    worker.wait_for("renewing")
    return job, worker


@pytest.mark.parametrize("fault", REFUSING)
def test_a_step_outlives_a_refusal_that_is_shorter_than_its_lease(
    fault: ServerFault, cloned_db: str, start_worker: StartWorker
) -> None:
    job, worker = a_running_step(start_worker, HEARTBEAT_S=2, LEASE_S=4000)

    with refusing(fault):
        until(lambda: f"({fault})" in worker.printed())

    beat = Job.objects.get(id=job.id).heartbeat_at
    assert beat is not None
    until(lambda: Job.objects.filter(id=job.id, heartbeat_at__gt=beat).exists())
    job.refresh_from_db()
    assert (job.status, job.lease_gen, job.crash_count) == (JobStatus.PROCESSING, 1, 0)


@pytest.mark.parametrize("fault", REFUSING)
def test_a_step_that_loses_its_lease_to_a_refusal_is_requeued_without_a_crash(
    fault: ServerFault, cloned_db: str, start_worker: StartWorker
) -> None:
    job, worker = a_running_step(start_worker, HEARTBEAT_S=2, LEASE_S=80)

    with refusing(fault):
        until(lambda: "lease_lost" in worker.printed())
        until(lambda: worker.printed().count(f"({fault})") > 1)
    until(lambda: Job.objects.filter(id=job.id, status=JobStatus.PENDING).exists())

    job.refresh_from_db()
    assert (job.crash_count, job.retry_count, job.dispatch_no) == (0, 0, 1)
    assert not worker.has_ended
    assert "Traceback" not in worker.printed()
    push("pass1", entry_id(job.id, "pass1", 1))
    assert worker.wait_for("renewing", 2)[1]["gen"] > 1


def test_a_wake_up_that_meets_a_refusal_costs_nothing_and_the_worker_goes_on(
    cloned_db: str, start_worker: StartWorker
) -> None:
    job = a_job()
    worker = start_worker("renew", "rqworker", "pass1")

    with refusing(ServerFault.POSTGRES_READ_ONLY):
        push("pass1", entry_id(job.id, "pass1", 0))
        until(lambda: "(POSTGRES_READ_ONLY)" in worker.printed())
    push("pass1", entry_id(job.id, "pass1", 1))

    worker.wait_for("renewing")
    assert "Traceback" not in worker.printed()
    assert Job.objects.get(id=job.id).crash_count == 0


@pytest.mark.parametrize(
    "fault",
    [ServerFault.REDIS_FULL, ServerFault.REDIS_READ_ONLY, ServerFault.REDIS_NO_REPLICAS],
)
def test_a_pool_waits_for_a_redis_that_refuses_writes_and_says_so_once(
    fault: ServerFault, cloned_db: str, start_worker: StartWorker
) -> None:
    with refusing(fault):
        pool = start_worker("nothing", "rqworker-pool", "--queues", "pass1", "--workers", "1")
        until(lambda: f"({fault})" in pool.printed())

    push("pass1", entry_id(a_job().id, "pass1", 0))
    pool.wait_for("began")

    assert pool.printed().count(f"({fault})") == 1
    assert "died" not in pool.printed()
    assert "Traceback" not in pool.printed()


def test_an_idle_worker_outlives_a_full_redis(cloned_db: str, start_worker: StartWorker) -> None:
    worker = start_worker("nothing", "rqworker", "pass1")
    until(lambda: "waits for pass1" in worker.printed())

    with refusing(ServerFault.REDIS_FULL):
        until(lambda: "(REDIS_FULL)" in worker.printed())
    push("pass1", entry_id(a_job().id, "pass1", 0))

    worker.wait_for("began")
    assert not worker.has_ended


def test_the_reconciler_leaves_expired_leases_to_live_workers_after_a_refusal(
    cloned_db: str,
) -> None:
    from django.utils import timezone

    job = a_job(step=Step.PASS1)
    Job.objects.filter(id=job.id).update(
        status=JobStatus.PROCESSING, worker_id="w", lease_expires_at=timezone.now()
    )

    spared = operator_actions.jobs_reconcile(spares_expired=True)
    taken = operator_actions.jobs_reconcile()

    assert (spared.recovered, taken.recovered) == (0, 1)
