"""An incident runs from its first failed call to the release of the last parked job."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import redis
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models.fields.json import KT
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pipeline.core.errors import CallDetails, ErrorCode
from pipeline.core.states import IncidentKind, IncidentState, JobStatus, Step, WorkStatus
from pipeline.incidents import call_window, detector, lifecycle
from pipeline.incidents.assessment import Assessment, assess
from pipeline.incidents.rules import Thresholds
from pipeline.models import Batch, Incident, IncidentJob, Job, Pause, ProviderCall
from pipeline.operations import operator_actions
from pipeline.ratelimit.quota_reset import day_ends_at
from pipeline.transitions import Failure, claim, close_incident, fail_step, fenced, park
from tests.support import records
from tests.support.databases import as_owner, rewriting
from tests.support.incident_rows import GEMINI, OTHER_MODEL, an_incident, calls
from tests.support.rows import a_job
from tests.support.workers import until


@pytest.fixture(autouse=True)
def real_time(settings: Any) -> None:
    """Use the documented durations of windows and probes, because no test here waits for them."""
    settings.TIME_SCALE = 1.0


def _look() -> detector.DetectorTick:
    return operator_actions.incidents_detect()


def _open() -> list[tuple[str, str]]:
    found = Incident.objects.filter(state=IncidentState.OPEN).order_by("kind", "model")
    return list(found.values_list("kind", "model"))


@pytest.mark.django_db
def test_an_outage_opens_from_the_calls_of_one_model_alone() -> None:
    job = a_job()
    calls(job, "API_5XX", 5, ago_s=4, retry_after_ms=39_000)
    calls(job, "OK", 5, ago_s=3, of=OTHER_MODEL)

    tick = _look()

    incident = Incident.objects.get(id=tick.opened[0])
    assert _open() == [("outage", GEMINI.model)]
    assert incident.first_failure_at < incident.opened_at
    opened_by = incident.evidence["opened_by"]
    assert opened_by["by_code"] == {"API_5XX": 5}
    assert opened_by["last_hint_s"] == 39.0
    assert _look().opened == []


@pytest.mark.django_db
def test_a_look_at_a_healthy_provider_costs_a_constant_few_statements() -> None:
    job = a_job()
    counts = []
    for _ in range(2):
        calls(job, "OK", 200, ago_s=3)
        with CaptureQueriesContext(connection) as asked:
            _look()
        counts.append(sum(not q["sql"].startswith(("SAVEPOINT", "RELEASE")) for q in asked))

    assert counts == [5, 5]


@pytest.mark.django_db
def test_the_window_reads_failures_from_their_partial_index() -> None:
    job = a_job()
    calls(job, "OK", 9_000, ago_s=3_600)
    # Without these calls, the index of all recent calls would cost the same.
    calls(job, "OK", 900, ago_s=3)
    calls(job, "API_5XX", 3, ago_s=3)
    limits = Thresholds.of_settings()
    with connection.cursor() as cursor:
        with as_owner():
            cursor.execute("ANALYZE provider_calls")
        cursor.execute(f"EXPLAIN {call_window._WINDOW}", {"since": timezone.now() - limits.window})
        plan = "\n".join(row[0] for row in cursor.fetchall())

    assert "idx_provider_calls_failed" in plan
    assert "Seq Scan on provider_calls" not in plan


@pytest.mark.django_db
def test_an_outage_is_probed_by_one_job_resumed_by_several_and_over_after_three_answers(
    redis_db: redis.Redis,
) -> None:
    made = [a_job() for _ in range(8)]
    calls(made[0], "API_5XX", 5, ago_s=9)
    (incident_id,) = _look().opened
    for _ in made:
        assert claim(Step.PASS1, "w", GEMINI) is None
    assert Job.objects.filter(status=JobStatus.PARKED).count() == 8

    assert _look().due == []
    # The first probe is due half a minute after the start of the incident.
    Incident.objects.filter(id=incident_id).update(opened_at=timezone.now() - timedelta(seconds=31))
    assert len(_look().due) == 1
    assert _look().due == []

    lease = claim(Step.PASS1, "w", GEMINI)
    assert lease is not None
    calls(made[0], "OK", 1)
    assert len(_look().due) == detector.RESUME_STEP
    assert _open()

    calls(made[0], "OK", 2)
    tick = _look()

    incident = Incident.objects.get(id=incident_id)
    assert tick.closed == [incident_id]
    assert incident.evidence["closed_because"] == "the provider answers again"
    assert incident.evidence["total_by_code"] == {"API_5XX": 5}
    assert incident.evidence["affected"]["parked"] == 8
    assert len(incident.evidence["probes"]) == 2
    assert not Job.objects.filter(status=JobStatus.PARKED).exists()
    assert claim(Step.PASS1, "w", GEMINI) is not None
    # The calls that opened the incident are still in the window.
    assert _look().opened == []


@pytest.mark.django_db
def test_a_probe_that_fails_is_followed_by_another_after_its_time(redis_db: redis.Redis) -> None:
    job = a_job()
    calls(job, "API_5XX", 5, ago_s=9)
    (incident_id,) = _look().opened
    claim(Step.PASS1, "w", GEMINI)
    Incident.objects.filter(id=incident_id).update(opened_at=timezone.now() - timedelta(seconds=31))
    assert len(_look().due) == 1
    lease = claim(Step.PASS1, "w", GEMINI)
    assert lease is not None
    calls(job, "API_5XX", 1)

    with fenced(lease):
        park(lease, lifecycle.open_and_park(ErrorCode.API_5XX, GEMINI))

    assert _look().due == []
    probes = [(timezone.now() - timedelta(seconds=31)).isoformat()]
    evidence = Incident.objects.get().evidence | {"probes": probes}
    Incident.objects.filter(id=incident_id).update(evidence=evidence)
    assert len(_look().due) == 1


@pytest.mark.parametrize(
    "lost",
    [
        {"status": JobStatus.PENDING, "available_at": timezone.now() - timedelta(seconds=61)},
        {
            "status": JobStatus.PROCESSING,
            "worker_id": "dead",
            "lease_expires_at": timezone.now() - timedelta(seconds=1),
        },
    ],
    ids=["its wake-up was lost", "its worker died"],
)
@pytest.mark.django_db
def test_a_probe_that_is_lost_does_not_keep_the_next_one_from_going(
    lost: dict[str, Any], redis_db: redis.Redis
) -> None:
    incident = an_incident()
    Incident.objects.filter(id=incident.id).update(opened_at=timezone.now() - timedelta(seconds=31))
    a_job(incident=incident, **lost)
    waiting = a_job(status=JobStatus.PARKED, park_reason="down", incident=incident)

    (due,) = _look().due

    assert due.job_id == waiting.id


@pytest.mark.django_db
def test_a_refused_key_opens_at_the_first_call_and_parks_the_step_that_met_it() -> None:
    job = a_job()
    lease = claim(Step.PASS1, "w", GEMINI)
    assert lease is not None

    with fenced(lease):
        park(
            lease,
            lifecycle.open_and_park(
                ErrorCode.API_AUTH, GEMINI, details=CallDetails(http_status=401)
            ),
        )

    job.refresh_from_db()
    incident = Incident.objects.get()
    assert (incident.kind, incident.evidence["opened_by"]["http_status"]) == ("credentials", 401)
    assert (job.status, job.incident_id) == (JobStatus.PARKED, incident.id)
    assert job.park_reason == "the provider gemini gemini-3.5-flash-lite refuses the key"
    assert lifecycle.ensure_open(IncidentKind.CREDENTIALS, GEMINI) == incident.id


@pytest.mark.django_db
def test_an_outage_that_a_worker_meets_began_with_the_first_failure_of_the_window() -> None:
    job = a_job()
    calls(job, "API_5XX", 2, ago_s=40)
    calls(job, "OK", ago_s=30)
    calls(job, "API_5XX", ago_s=20, of=OTHER_MODEL)
    breaker_saw = timezone.now() - timedelta(seconds=5)

    lifecycle.ensure_open(IncidentKind.OUTAGE, GEMINI, first_failure_at=breaker_saw)

    first = ProviderCall.objects.filter(outcome="API_5XX").order_by("created_at")[0]
    assert Incident.objects.get().first_failure_at == first.created_at


@pytest.mark.django_db
def test_a_days_quota_parks_until_midnight_in_california_whatever_the_hint() -> None:
    quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"

    parking = lifecycle.open_and_park(
        ErrorCode.QUOTA_EXHAUSTED, GEMINI, details=CallDetails(quota_id=quota, retry_after_s=5.0)
    )

    assert parking.until == day_ends_at(timezone.now())
    assert parking.incident_id == Incident.objects.get().id


@pytest.mark.django_db
def test_a_quota_incident_ends_at_its_reset_and_releases(redis_db: redis.Redis) -> None:
    job = a_job()
    calls(job, "QUOTA_EXHAUSTED", 1, ago_s=2, quota_id="SpendLimit", retry_after_ms=1_000)
    (incident_id,) = _look().opened
    resumes_at = Incident.objects.get().resumes_at
    failed_at = job.shell_file.session.calls.get().created_at
    assert claim(Step.PASS1, "w", GEMINI) is None
    calls(job, "OK", 5)
    assert _look().closed == []

    with rewriting():
        job.shell_file.session.calls.filter(outcome="QUOTA_EXHAUSTED").update(
            created_at=timezone.now() - timedelta(seconds=601)
        )
    Incident.objects.filter(id=incident_id).update(resumes_at=timezone.now() - timedelta(seconds=1))
    tick = _look()

    job.refresh_from_db()
    assert tick.closed == [incident_id]
    assert resumes_at == failed_at + timedelta(seconds=600)
    assert (job.status, job.dispatch_no) == (JobStatus.PENDING, 1)


@pytest.mark.django_db
def test_throttling_opens_and_ends_without_parking_anything() -> None:
    job = a_job()
    calls(job, "RATE_LIMIT", 20, ago_s=30)
    (incident_id,) = _look().opened
    assert claim(Step.PASS1, "w", GEMINI) is not None

    Incident.objects.filter(id=incident_id).update(
        first_failure_at=timezone.now() - timedelta(seconds=90)
    )
    with rewriting():
        job.shell_file.session.calls.update(created_at=timezone.now() - timedelta(seconds=61))

    assert _look().closed == [incident_id]


@pytest.mark.django_db
def test_only_failures_caused_by_an_incident_are_linked_to_the_incident() -> None:
    failed, other = a_job(), a_job()
    calls(failed, "API_5XX", 5, ago_s=4)
    calls(other, "API_5XX", 1, ago_s=4)
    _look()
    for cause in (ErrorCode.API_5XX, ErrorCode.PARSE_JSON):
        lease = claim(Step.PASS1, "w")
        assert lease is not None
        with fenced(lease):
            fail_step(
                lease,
                Failure(code=ErrorCode.MAX_RETRIES_EXCEEDED, message="no", underlying=cause),
            )

    tick = _look()

    assert tick.linked == 1
    assert IncidentJob.objects.get(effect=IncidentJob.FAILED).job_id == failed.id
    assert _look().linked == 0


@pytest.mark.django_db
def test_explain_makes_the_evidence_of_an_incident_readable() -> None:
    job = a_job()
    calls(job, "API_TIMEOUT", 5, ago_s=4, retry_after_ms=2_000)
    (incident_id,) = _look().opened

    open_words, as_json = _explained(str(incident_id)[:8]), _explained(str(incident_id), "--json")
    operator_actions.provider_resume("gemini", reason="it was us", by="ops")
    closed_words = _explained(str(incident_id))

    assert open_words.startswith("gemini gemini-3.5-flash-lite has been down for")
    assert "5 of 5 calls failed" in open_words
    assert "API_TIMEOUT 5" in open_words
    assert "last hint 2.0 s" in open_words
    assert json.loads(as_json)["evidence"]["opened_by"]["failures"] == 5
    assert closed_words.startswith("Closed: gemini gemini-3.5-flash-lite was down for")
    assert "it was us" in closed_words


@pytest.mark.django_db
def test_explain_says_until_when_and_why_a_record_is_parked() -> None:
    job = a_job()
    an_incident(IncidentKind.QUOTA, resumes_at=timezone.now() + timedelta(hours=1))
    claim(Step.PASS1, "w", GEMINI)
    job.refresh_from_db()

    words = _explained(str(job.id))

    assert job.parked_until is not None
    assert re.search(rf"until [\d -]*{job.parked_until:%H:%M} UTC \(in ", words)
    assert "a quota of gemini gemini-3.5-flash-lite is used up" in words


@pytest.mark.django_db
def test_the_commands_look_pause_and_resume(redis_db: redis.Redis) -> None:
    job = a_job()
    calls(job, "API_AUTH", 1, ago_s=1)

    looked = json.loads(_said("detect_incidents", "--json"))
    _said("pause", "pass1", "--reason", "maintenance")
    _said("pause", "--provider", "gemini", "--model", "m", "--reason", "costs")
    resumed = _said("resume", "--provider", "gemini", "--reason", "a new key")

    assert [each["kind"] for each in looked["open"]] == ["credentials"]
    assert "1 opened" not in _said("detect_incidents")
    assert resumed.strip() == "Ended 1 pause and 1 incident; released 0 jobs."
    assert Pause.objects.get(ended_at__isnull=True).queue == "pass1"
    for arguments in (
        ["pause", "--reason", "x"],
        ["pause", "pass1", "--provider", "p", "--reason", "x"],
        ["pause", "pass1", "--model", "m", "--reason", "x"],
        ["pause", "pass1", "--reason", " "],
        ["pause", "pass1", "--reason", "again"],
    ):
        with pytest.raises(CommandError):
            call_command(*arguments)


def test_the_failures_of_one_record_are_assessed_by_their_root_cause(
    db: None, redis_db: redis.Redis, settings: Any
) -> None:
    settings.TIME_SCALE = 0.05
    outage = records.failed_record()
    broken = records.failed_record(records.VISITS, records.ONE_BROKEN_BATCH)

    seven, one = _root_causes(outage.id), _root_causes(broken.id)

    assert seven == ["API_5XX"] * 7
    assert assess("API_5XX", len(seven)) is Assessment.LIKELY_OUTAGE
    assert set(one) == {"PARSE_JSON"}
    assert assess("PARSE_JSON", len(one)) is Assessment.INDIVIDUAL_FAILURES


def _root_causes(shell_file_id: UUID) -> list[str]:
    failed = Batch.objects.filter(
        pass1_encounter_result__shell_file_id=shell_file_id, status=WorkStatus.FAILED
    )
    return list(failed.values_list(KT("error_context__final_underlying_error"), flat=True))


def _explained(*arguments: str) -> str:
    return _said("explain", *arguments)


def _said(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("cloned_db")
def test_two_looks_at_once_open_one_incident_and_close_it_once(redis_db: redis.Redis) -> None:
    job = a_job()
    calls(job, "API_5XX", 5, ago_s=9)
    opened = _at_once(4, lambda: _look().opened)
    assert claim(Step.PASS1, "w", GEMINI) is None
    calls(job, "OK", 3)

    closed = _at_once(4, lambda: _look().closed)

    incident = Incident.objects.get()
    assert [found for each in opened for found in each] == [incident.id]
    assert [found for each in closed for found in each] == [incident.id]
    assert list(Job.objects.values_list("status", "dispatch_no")) == [("pending", 1)]


@pytest.mark.usefixtures("cloned_db")
def test_claims_releases_and_the_end_of_an_incident_at_once_strand_no_job(
    redis_db: redis.Redis,
) -> None:
    made = [a_job() for _ in range(30)]
    claimed: list[UUID] = []

    def work() -> None:
        for _ in range(20):
            if lease := claim(Step.PASS1, "w", GEMINI):
                claimed.append(lease.job_id)

    def trouble() -> None:
        for _ in range(10):
            found = lifecycle.ensure_open(IncidentKind.OUTAGE, GEMINI)
            close_incident(found, {})
            operator_actions.parked_release()

    _at_once(4, work, trouble)
    operator_actions.parked_release()

    left = Job.objects.exclude(id__in=claimed)
    assert len(claimed) == len(set(claimed))
    assert set(left.values_list("status", flat=True)) <= {JobStatus.PENDING}
    assert len(claimed) + left.count() == len(made)


@pytest.mark.usefixtures("cloned_db")
def test_a_resume_waits_for_a_look_under_way_which_would_open_again_what_it_ends(
    redis_db: redis.Redis,
) -> None:
    an_incident(IncidentKind.QUOTA, resumes_at=timezone.now() + timedelta(hours=3))
    may_end = threading.Event()

    def look() -> None:
        with transaction.atomic():
            detector.tick()
            may_end.wait()

    def resume() -> None:
        until(lambda: _advisory_locks(granted=True))
        operator_actions.provider_resume("gemini", reason="a test")

    together = threading.Thread(target=_at_once, args=(1, look, resume))
    together.start()
    waiting = until(lambda: _advisory_locks(granted=False))
    may_end.set()
    together.join()

    assert waiting == 1
    assert _open() == []


def _advisory_locks(*, granted: bool) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = %s"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [granted],
        )
        return int(cursor.fetchone()[0])


def _at_once(times: int, *actions: Callable[[], Any]) -> list[Any]:
    """Run each action on so many threads at once, and return the results."""
    found: list[Any] = []
    together = threading.Barrier(times * len(actions))

    def run(action: Callable[[], Any]) -> None:
        together.wait()
        found.append(action())
        connection.close()

    threads = [threading.Thread(target=run, args=(a,)) for a in actions for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(threads)
    return found
