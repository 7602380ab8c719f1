"""A parked job waits for its hold, and is released once."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from pipeline import transitions
from pipeline.core.errors import UserError
from pipeline.core.states import IncidentKind, IncidentState, JobStatus, Step, WorkStatus
from pipeline.execution.step_result import StepParked
from pipeline.models import Batch, EncounterResult, IncidentJob, Job, Session
from pipeline.operations import operator_actions
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider
from pipeline.queueing.queues import entry_id
from pipeline.transitions import Parking, claim, fenced, park
from pipeline.workers import run_step
from tests.support import records
from tests.support.incident_rows import GEMINI, OTHER_MODEL, an_incident
from tests.support.rows import a_deadline, a_job, an_encounter
from tests.support.workers import until


def _entries(client: redis.Redis) -> list[str]:
    found: list[bytes] = client.lrange("rq:queue:pass1", 0, -1)  # type: ignore[assignment]
    return [entry.decode() for entry in found]


def _parked(**columns: Any) -> Job:
    known: dict[str, Any] = {
        "park_reason": "a test",
        "parked_until": timezone.now() - timedelta(seconds=1),
    }
    return a_job(status=JobStatus.PARKED, **{**known, **columns})


@pytest.mark.django_db
def test_a_parked_step_keeps_what_succeeded_and_spends_nothing() -> None:
    job = a_job()
    result, batches = an_encounter(job, batches=3)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    EncounterResult.objects.filter(id=result.id).update(status=WorkStatus.PROCESSING)
    Batch.objects.filter(id=batches[0].id).update(
        status=WorkStatus.SUCCEEDED, attempt_count=1, completed_at=timezone.now()
    )
    Batch.objects.filter(id=batches[1].id).update(status=WorkStatus.PROCESSING, attempt_count=1)
    ends = timezone.now() + timedelta(hours=1)

    with fenced(lease):
        park(lease, Parking(reason="the day's quota is used up", until=ends))

    job.refresh_from_db()
    assert (job.status, job.parked_until) == (JobStatus.PARKED, ends)
    assert job.park_reason == "the day's quota is used up"
    assert (job.worker_id, job.lease_expires_at) == (None, None)
    assert (job.retry_count, job.crash_count, job.dispatch_no) == (0, 0, 0)
    states = list(Batch.objects.order_by("batch_index").values_list("status", "attempt_count"))
    assert states == [("succeeded", 1), ("pending", 1), ("pending", 0)]
    assert EncounterResult.objects.get().status == WorkStatus.PENDING
    assert Session.objects.get().session_status == "processing"


def test_a_parking_without_a_release_is_refused() -> None:
    with pytest.raises(ValueError, match="a time, an incident or a pause"):
        Parking(reason="no way out")


@pytest.mark.django_db
def test_the_database_refuses_a_parked_job_that_nothing_would_release() -> None:
    with pytest.raises(IntegrityError, match="job_queue_parked_check"), transaction.atomic():
        a_job(status=JobStatus.PARKED, park_reason="no way out")


@pytest.mark.usefixtures("cloned_db")
def test_a_parked_job_is_released_at_its_time_and_its_worker_woken(redis_db: redis.Redis) -> None:
    job = a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    ends = timezone.now() + timedelta(seconds=0.5)
    run_step._end(lease, a_deadline(), StepParked(parking=Parking(reason="a test", until=ends)))
    assert operator_actions.parked_release() == 0
    assert claim(Step.PASS1, "w") is None

    until(lambda: operator_actions.parked_release() == 1)

    assert timezone.now() >= ends
    job.refresh_from_db()
    assert (job.status, job.dispatch_no) == (JobStatus.PENDING, 1)
    assert (job.parked_until, job.park_reason) == (None, None)
    assert _entries(redis_db) == [entry_id(job.id, "pass1", 1)]
    assert claim(Step.PASS1, "w") is not None


@pytest.mark.usefixtures("cloned_db")
def test_two_schedulers_at_once_release_each_job_once(redis_db: redis.Redis) -> None:
    parked = [_parked() for _ in range(40)]
    released: list[int] = []
    together = threading.Barrier(4)

    def clock() -> None:
        together.wait()
        released.append(operator_actions.parked_release())
        connection.close()

    threads = [threading.Thread(target=clock) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(released) == 40
    assert set(Job.objects.values_list("status", "dispatch_no")) == {("pending", 1)}
    assert sorted(_entries(redis_db)) == sorted(entry_id(job.id, "pass1", 1) for job in parked)


@pytest.mark.django_db
def test_a_release_takes_the_oldest_and_no_more_than_its_limit() -> None:
    jobs_by_age = [_parked() for _ in range(3)]
    for age, job in enumerate(jobs_by_age):
        Job.objects.filter(id=job.id).update(created_at=timezone.now() - timedelta(hours=age))

    due = transitions.release_due(limit=2)

    assert {each.job_id for each in due} == {jobs_by_age[2].id, jobs_by_age[1].id}
    assert Job.objects.get(status=JobStatus.PARKED).id == jobs_by_age[0].id


@pytest.mark.django_db
def test_a_job_that_was_cancelled_meanwhile_is_not_released() -> None:
    job = _parked()
    Job.objects.filter(id=job.id).update(status=JobStatus.CANCELLED)

    assert transitions.release([job.id]) == []
    assert Job.objects.get().dispatch_no == 0


@pytest.mark.django_db
def test_an_operator_can_release_one_job_before_its_time(redis_db: redis.Redis) -> None:
    early = _parked(parked_until=timezone.now() + timedelta(hours=1))
    _parked(parked_until=timezone.now() + timedelta(hours=1))

    assert operator_actions.job_release([early.id]) == 1

    assert Job.objects.get(status=JobStatus.PENDING).id == early.id


@pytest.mark.django_db
def test_a_job_of_a_held_provider_is_parked_by_the_worker_that_claims_it() -> None:
    job = a_job()
    incident = an_incident()

    lease = claim(Step.PASS1, "w", GEMINI)

    job.refresh_from_db()
    assert lease is None
    assert (job.status, job.incident_id, job.lease_gen) == (JobStatus.PARKED, incident.id, 0)
    assert job.park_reason == "the provider gemini gemini-3.5-flash-lite is down"
    assert IncidentJob.objects.get().effect == IncidentJob.PARKED


@pytest.mark.django_db
def test_only_work_of_that_provider_and_model_is_parked() -> None:
    for step in (Step.PAGES, Step.PASS1_5, Step.PASS1, Step.PASS1):
        a_job(step=step)
    an_incident()

    claimed = [
        claim(Step.PAGES, "w", GEMINI),
        claim(Step.PASS1_5, "w", GEMINI),
        claim(Step.PASS1, "w", OTHER_MODEL),
    ]

    assert all(claimed)
    assert claim(Step.PASS1, "w", GEMINI) is None
    assert Job.objects.filter(status=JobStatus.PARKED).count() == 1


@pytest.mark.django_db
def test_throttling_parks_nothing_since_the_limiter_paces_the_calls() -> None:
    a_job()
    an_incident(IncidentKind.THROTTLING)

    assert claim(Step.PASS1, "w", GEMINI) is not None


@pytest.mark.django_db
def test_a_used_up_quota_parks_until_its_reset() -> None:
    job = a_job()
    resets = timezone.now() + timedelta(hours=3)
    an_incident(IncidentKind.QUOTA, resumes_at=resets)
    an_incident()

    claim(Step.PASS1, "w", GEMINI)

    job.refresh_from_db()
    assert job.parked_until == resets
    assert job.park_reason == "a quota of gemini gemini-3.5-flash-lite is used up"


@pytest.mark.usefixtures("cloned_db")
def test_the_end_of_an_incident_releases_what_it_parked_and_nothing_else(
    redis_db: redis.Redis,
) -> None:
    a_job()
    incident, other = an_incident(), an_incident(of=OTHER_MODEL)
    claim(Step.PASS1, "w", GEMINI)
    waiting = _parked(parked_until=None, incident=other)

    transitions.close_incident(incident.id, {})
    released = operator_actions.parked_release()

    assert released == 1
    assert Job.objects.get(status=JobStatus.PARKED).id == waiting.id
    assert len(_entries(redis_db)) == 1


@pytest.mark.django_db
def test_a_job_that_is_parked_for_an_incident_that_has_just_ended_is_no_prisoner() -> None:
    job = a_job()
    incident = an_incident()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    transitions.close_incident(incident.id, {})

    with fenced(lease):
        park(lease, Parking(reason="late", incident_id=incident.id))

    assert [due.job_id for due in transitions.release_due()] == [job.id]


@pytest.mark.django_db
def test_an_incident_lets_its_own_probe_through_and_no_other_job() -> None:
    probe, other = a_job(), a_job()
    incident = an_incident()
    for _ in range(2):
        claim(Step.PASS1, "w", GEMINI)
    Job.objects.filter(id=other.id).update(priority=9)
    (due,) = transitions.release_probes(incident.id, 1)
    Job.objects.filter(id=other.id).update(
        status=JobStatus.PENDING, incident=None, park_reason=None
    )

    first, second = claim(Step.PASS1, "w", GEMINI), claim(Step.PASS1, "w", GEMINI)

    assert first is not None
    assert first.job_id == due.job_id == probe.id
    assert second is None
    assert Job.objects.get(id=other.id).status == JobStatus.PARKED


@pytest.mark.django_db
def test_a_probe_that_ends_is_a_probe_no_longer() -> None:
    job = a_job(incident=an_incident())
    lease = claim(Step.PASS1, "w", GEMINI)
    assert lease is not None

    with fenced(lease):
        transitions.requeue_interrupted(lease)

    job.refresh_from_db()
    assert job.incident_id is None


@pytest.mark.usefixtures("cloned_db")
def test_a_paused_queue_is_not_claimed_until_it_is_resumed(redis_db: redis.Redis) -> None:
    job, elsewhere = a_job(), a_job(step=Step.PASS05)
    operator_actions.queue_pause(Step.PASS1, reason="maintenance", by="ops")

    assert claim(Step.PASS1, "w") is None
    assert claim(Step.PASS05, "w") is not None
    job.refresh_from_db()
    assert (job.status, job.park_reason) == (JobStatus.PARKED, "queue pass1 is paused")
    assert operator_actions.parked_release() == 0

    resumed = operator_actions.queue_resume(Step.PASS1, reason="done", by="ops")

    assert (resumed.pauses, resumed.released) == (1, 1)
    assert _entries(redis_db) == [entry_id(job.id, "pass1", 1)]
    assert claim(Step.PASS1, "w") is not None
    assert Job.objects.get(id=elsewhere.id).status == JobStatus.PROCESSING


@pytest.mark.django_db
def test_a_paused_provider_holds_one_model_or_all() -> None:
    for _ in range(3):
        a_job()
    operator_actions.provider_pause("gemini", OTHER_MODEL.model, reason="costs")

    assert claim(Step.PASS1, "w", GEMINI) is not None
    assert claim(Step.PASS1, "w", OTHER_MODEL) is None

    operator_actions.provider_pause("gemini", reason="contract")

    assert claim(Step.PASS1, "w", GEMINI) is None


@pytest.mark.django_db
def test_a_second_pause_and_a_resume_without_one_are_refused() -> None:
    operator_actions.queue_pause(Step.PASS1, reason="once")

    with pytest.raises(UserError, match="already paused"):
        operator_actions.queue_pause(Step.PASS1, reason="twice")
    with pytest.raises(UserError, match="is not paused"):
        operator_actions.queue_resume(Step.PASS2, reason="never")
    with pytest.raises(UserError, match="gemini is not on hold"):
        operator_actions.provider_resume("gemini", reason="never")
    with pytest.raises(UserError, match="there are gemini, local"):
        operator_actions.provider_pause("Gemini", reason="a slip of the pen")


@pytest.mark.django_db
def test_resuming_a_provider_ends_its_open_incidents(redis_db: redis.Redis) -> None:
    a_job()
    incident = an_incident(IncidentKind.CREDENTIALS)
    claim(Step.PASS1, "w", GEMINI)

    resumed = operator_actions.provider_resume("gemini", reason="a new key", by="ops")

    incident.refresh_from_db()
    assert (resumed.incidents, resumed.released) == (1, 1)
    assert incident.state == IncidentState.CLOSED
    assert "a new key" in incident.evidence["closed_because"]


@pytest.mark.django_db
def test_a_record_is_held_before_its_first_call_and_completes_afterwards(
    redis_db: redis.Redis,
) -> None:
    received = records.submit(records.LAB)
    incident = an_incident(of=named_provider(ProviderConfig.of_settings()))

    held = records.run_record(received)

    job = Job.objects.get(id=received.job_id)
    assert (held.status, job.status) == ("pages_complete", JobStatus.PARKED)
    assert not held.session.calls.exists()

    transitions.close_incident(incident.id, {})
    operator_actions.parked_release()
    went_on = records.run_record(received)

    assert went_on.status == "pass1_complete"
    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
