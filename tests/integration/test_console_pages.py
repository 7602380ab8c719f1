"""The console's pages are true, free of PHI, and read a constant number of rows."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from observability.diagnostics.failures import FailureSource, groups
from observability.drilldown.lookup import located_models
from observability.listing.time_window import Period, Window
from observability.permissions import Role
from observability.templatetags import console
from pipeline.core.states import IncidentKind, JobStatus, Step, WorkStatus
from pipeline.models import (
    Batch,
    IncidentJob,
    Job,
    PeriodicTaskRun,
    ProviderCall,
    RecordBatch,
    ShellFile,
)
from pipeline.operations import schedule
from tests.support import records
from tests.support.incident_rows import an_incident, calls
from tests.support.large_rows import a_large_record
from tests.support.rows import a_job, an_encounter, columns
from tests.support.users import client_of

OVERVIEW_STATEMENTS = 23
"""Two statements read the alarm of the audit and the counters of all lives of Redis."""
RECORD_STATEMENTS = 24
"""Four statements read the work items of the four passes, one the reuses, and one the results of
the later passes."""
FAILURES_STATEMENTS = 9
MEMBERS_STATEMENTS = 8


@pytest.fixture
def viewer(db: None) -> Client:
    """Return a client with the right to see the console only."""
    return client_of(Role.VIEWER)


def asked(client: Client, url: str) -> tuple[Any, int]:
    """Open a page, and return the response and the number of statements."""
    with CaptureQueriesContext(connection) as captured:
        response = client.get(url)
    assert response.status_code == HTTPStatus.OK
    return response, len(captured)


def test_the_overview_asks_the_same_of_an_empty_and_of_a_full_database(viewer: Client) -> None:
    url = reverse("admin:overview")
    _, empty = asked(viewer, url)
    incident = an_incident()
    for _ in range(12):
        job = a_job(status=JobStatus.PARKED, park_reason="down", incident=incident)
        a_job(step=Step.PAGES)
        calls(job, "OK", 3, ago_s=90)
        calls(job, "API_5XX", 2, ago_s=60)
        a_job(
            status=JobStatus.PROCESSING,
            worker_id=f"worker-{job.id}",
            lease_expires_at=timezone.now() + timedelta(minutes=1),
        )

    page, full = asked(viewer, url)

    assert full <= OVERVIEW_STATEMENTS
    # The progress of running jobs needs one more statement, for any number of jobs.
    assert full <= empty + 1
    words = page.content.decode()
    assert "Incident: outage." in words
    assert len(page.content) < 100_000


def test_the_overview_does_without_redis(viewer: Client, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    page, _ = asked(viewer, reverse("admin:overview"))

    words = page.content.decode()
    assert "Redis refuses. Each process uses a small share of the quota" in words
    assert "Redis cannot be reached" in words
    assert "✓ open" not in words
    assert "All is well." not in words


def test_all_is_well_while_nothing_waits_for_a_decision(viewer: Client, settings: Any) -> None:
    settings.TIME_SCALE = 1.0
    for task in schedule.names():
        now = timezone.now()
        PeriodicTaskRun.objects.create(name=task, started_at=now, last_ok_at=now, outcome="ok")
    url = reverse("admin:overview")
    well = viewer.get(url).content.decode()

    failed = a_job(status=JobStatus.FAILED, completed_at=timezone.now())
    ill = viewer.get(url).content.decode()
    Job.objects.filter(id=failed.id).update(status=JobStatus.COMPLETED)
    retried = viewer.get(url).context["found"].verdict

    assert "All is well." in well
    assert "All is well." not in ill
    assert "1 record failed in the last 24 h and not retried." in ill
    assert retried == "All is well."


def test_a_record_of_300_batches_is_small_and_asks_a_constant_number(viewer: Client) -> None:
    small = a_large_record(encounters=1, batches=2, pages=3)
    large = a_large_record()

    _, of_small = asked(viewer, reverse("admin:record", args=[small]))
    page, of_large = asked(viewer, reverse("admin:record", args=[large]))
    unfolded, _ = asked(viewer, reverse("admin:record", args=[large]) + "?all=1")

    assert of_large == of_small <= RECORD_STATEMENTS
    assert len(page.content) < 300_000
    assert len(unfolded.content) < 600_000
    assert "encounter 12, batch 25 of 25 (page 25)" in page.content.decode()


def test_a_failed_record_opens_at_its_first_failure(viewer: Client) -> None:
    failed = records.failed_record(records.LAB)

    page, _ = asked(viewer, reverse("admin:record", args=[failed.id]))

    words = page.content.decode()
    assert page.context["node"].title == "batch 1 of 1 (page 1)"
    assert [call.facts["outcome"] for call in page.context["calls"]] == ["API_5XX"] * 3
    assert page.context["found"].record_answer in re.sub(r"&lt;", "<", words)


def test_no_page_shows_a_word_of_the_document(viewer: Client) -> None:
    record = records.completed_record(records.TRAPS)
    truth = json.loads(records.TRAPS.with_suffix(".truth.json").read_text())
    quotes = [e["quote"] for each in truth["encounters"] for e in each["entities"]]
    users = [truth["patient"]["name"], truth["patient"]["identifier"], records.TRAPS.name]
    words = {word for word in [*quotes, *users] if word and len(word) > 6}
    urls = [reverse(f"admin:{name}") for name in ("overview", "records", "failures")]
    urls.append(reverse("admin:record", args=[record.id]) + "?all=1")

    shown = "".join(asked(viewer, url)[0].content.decode() for url in urls)

    assert not [word for word in words if word in shown]


def test_pages_have_no_inline_script_style_or_handler(viewer: Client) -> None:
    large = a_large_record(encounters=2, batches=3)
    urls = [reverse(f"admin:{name}") for name in ("overview", "failures", "failure_members")]
    urls.append(reverse("admin:record", args=[large]))

    for url in urls:
        markup = asked(viewer, url)[0].content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", markup), url


def test_failures_are_grouped_with_what_was_absorbed_and_what_is_lost(db: None) -> None:
    a_large_record(encounters=1, batches=21)
    a_job(
        step=Step.PAGES,
        status=JobStatus.FAILED,
        error_code="INPUT_ENCRYPTED",
        completed_at=timezone.now() - timedelta(minutes=5),
    )

    found = groups(Period.last(Window.HOUR, timezone.now())).groups

    of_calls, of_jobs = found
    assert columns(of_calls, "source", "cause", "step") == {
        "source": FailureSource.CALL,
        "cause": "API_5XX",
        "step": Step.PASS1,
    }
    # Batches 0 and 10 succeeded in the end; the last batch, 20, failed.
    assert columns(of_calls, "calls", "works", "absorbed", "failed") == {
        "calls": 5,
        "works": 3,
        "absorbed": 2,
        "failed": 1,
    }
    assert sum(of_calls.trend) == 5
    assert (of_jobs.source, of_jobs.cause, of_jobs.failed) == (
        FailureSource.JOB,
        "INPUT_ENCRYPTED",
        1,
    )


def test_the_members_of_a_group_are_its_batches_each_once_over_all_pages(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_large_record(encounters=1, batches=95)
    monkeypatch.setattr("observability.views.failures.LISTED", 4)
    url = reverse("admin:failure_members") + "?cause=API_5XX&step=pass1"

    seen, place, statements = [], "", set()
    while True:
        page, number = asked(viewer, f"{url}&after={place.replace('+', '%2B')}")
        statements.add(number)
        seen += [call.work_item_id for call in page.context["listed"].rows]
        place = page.context["listed"].next_place
        if not place:
            break

    # Ten absorbed failures and one lost call, all written within one second.
    lost = ProviderCall.objects.filter(outcome="API_5XX").values_list("work_item_id", flat=True)
    assert len(seen) == 11
    assert set(seen) == set(lost)
    assert max(statements) <= MEMBERS_STATEMENTS


def test_typed_times_go_from_the_groups_to_the_members_to_the_retry(viewer: Client) -> None:
    ended = timezone.now() - timedelta(days=9)
    a_job(
        step=Step.PAGES, status=JobStatus.FAILED, error_code="INPUT_ENCRYPTED", completed_at=ended
    )
    times = {
        "since": f"{ended - timedelta(minutes=5):%Y-%m-%dT%H:%M}",
        "until": f"{ended + timedelta(minutes=5):%Y-%m-%dT%H:%M}",
    }

    page = viewer.get(reverse("admin:failures"), times)
    ((group, _, query),) = page.context["rows"]
    listed = viewer.get(reverse("admin:failure_members"), query)
    later = viewer.get(
        reverse("admin:failure_members"), {**query, "since": times["until"], "until": ""}
    )
    refused = viewer.get(reverse("admin:failures"), {"since": "soon"})

    assert group.failed == 1
    assert len(listed.context["listed"].rows) == 1
    assert times.items() <= dict(parse_qsl(listed.context["retry_query"])).items()
    assert not later.context["listed"].rows
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert "Give times as 2026-01-31T02:41" in refused.content.decode()


def test_failures_asks_a_constant_number(viewer: Client) -> None:
    url = reverse("admin:failures") + "?window=7d"
    _, empty = asked(viewer, url)
    a_large_record(encounters=2, batches=30)

    _, full = asked(viewer, url)

    assert full == empty <= FAILURES_STATEMENTS


def test_a_call_of_a_pass_without_batches_is_found_and_opens(viewer: Client) -> None:
    record = a_large_record(encounters=1, batches=2)
    job = Job.objects.get(shell_file_id=record)
    calls(job, "API_5XX", step=Step.PASS3)
    call = ProviderCall.objects.get(step=Step.PASS3)

    found = viewer.get(reverse("admin:search"), {"q": str(call.id)}, follow=True)

    assert found.context["node"].id == str(call.id)
    assert [node.title for node in found.context["path"]][-2:] == ["Pass 3", "call 1"]


def test_a_search_for_an_id_leads_to_its_object(viewer: Client) -> None:
    job = a_job()
    incident = an_incident()
    record = reverse("admin:record", args=[job.shell_file_id])

    found = {
        str(each): viewer.get(reverse("admin:search"), {"q": str(each)}).headers.get("Location")
        for each in (job.id, str(job.shell_file_id)[:12], incident.id)
    }
    unknown = viewer.get(reverse("admin:search"), {"q": "nothing"})

    assert list(found.values()) == [
        record,
        record,
        reverse("admin:incident", args=[incident.id]),
    ]
    assert "hexadecimal" in unknown.content.decode()


def test_the_list_of_records_shows_those_that_stand_in_one_way(viewer: Client) -> None:
    parked = a_job(
        status=JobStatus.PARKED,
        park_reason="a quota is used up",
        parked_until=timezone.now() + timedelta(hours=1),
    )
    a_job()

    page, _ = asked(viewer, reverse("admin:records") + "?is=parked")

    assert [job.id for job in page.context["listed"].rows] == [parked.id]
    assert "a quota is used up" in page.content.decode()
    assert ShellFile.objects.count() == Job.objects.count() == 2


def test_the_tile_of_what_failed_leads_to_what_failed_in_its_window(viewer: Client) -> None:
    now = timezone.now()
    recent, _ = (
        a_job(status=JobStatus.FAILED, error_code="PARSE_JSON", completed_at=now - ago)
        for ago in (timedelta(hours=2), timedelta(days=3))
    )

    overview, _ = asked(viewer, reverse("admin:overview"))
    (tile,) = re.findall(r'href="([^"]+)" id="tile-failed"', overview.content.decode())
    page, _ = asked(viewer, html.unescape(tile))
    every, _ = asked(viewer, reverse("admin:records") + "?is=failed")

    assert [job.id for job in page.context["listed"].rows] == [recent.id]
    assert "failed in the last 24 hours" in page.content.decode()
    assert 'href="?is=failed"' in page.content.decode()
    assert len(every.context["listed"].rows) == 2


def test_every_page_counts_an_incident_alike_and_currently(viewer: Client) -> None:
    incident = an_incident(evidence={"affected": {"waiting": 2, "parked": 40, "failed": 9}})
    for status in (JobStatus.PARKED, JobStatus.PARKED, JobStatus.COMPLETED):
        job = a_job(status=status, incident=incident, park_reason="down", completed_at=None)
        IncidentJob.objects.create(incident=incident, job=job, effect=IncidentJob.PARKED)
    for status in (JobStatus.FAILED, JobStatus.PENDING):
        job = a_job(status=status)
        IncidentJob.objects.create(incident=incident, job=job, effect=IncidentJob.FAILED)
    urls = [reverse(f"admin:{name}") for name in ("overview", "incidents")]
    urls.append(reverse("admin:incident", args=[incident.id]))

    for url in urls:
        words = asked(viewer, url)[0].content.decode()
        assert "2 parked now · 3 parked so far · 1 failed" in words, url


def test_a_list_of_incidents_asks_a_constant_number(viewer: Client) -> None:
    an_incident()
    _, one = asked(viewer, reverse("admin:incidents"))
    for kind in list(IncidentKind)[1:]:
        an_incident(kind)

    _, several = asked(viewer, reverse("admin:incidents"))

    assert several == one


def test_the_queues_show_the_periodic_tasks_as_the_overview_does(viewer: Client) -> None:
    pages = [asked(viewer, reverse(f"admin:{name}"))[0] for name in ("overview", "queues")]

    for page in pages:
        for task in schedule.names():
            markup = " ".join(page.content.decode().split())
            assert f"<span>{task}</span> <span> never started" in markup


def test_a_record_that_is_parked_for_its_retry_can_be_retried_at_once(db: None) -> None:
    operator = client_of(Role.OPERATOR)
    soon = timezone.now() + timedelta(minutes=5)
    parked: dict[str, Any] = {
        "status": JobStatus.PARKED,
        "park_reason": "a test",
        "parked_until": soon,
    }
    waits = a_job(error_code="API_5XX", **parked)
    held = a_job(incident=an_incident(), **parked)
    _, (batch, *_) = an_encounter(waits)
    Batch.objects.filter(id=batch.id).update(status=WorkStatus.FAILED, error_code="API_5XX")

    offered, not_offered = (
        asked(operator, reverse("admin:record", args=[job.shell_file_id]))[0].content.decode()
        for job in (waits, held)
    )
    part, _ = asked(
        operator, reverse("admin:record", args=[waits.shell_file_id]) + f"?node={batch.id}"
    )

    assert "Retry what failed" in offered
    assert "Retry what failed" not in not_offered
    # Only the preview offers a retry of a part, and there advises a retry of the record.
    assert part.context["node"].id == str(batch.id)
    assert "Retry this batch only" not in part.content.decode()


def test_a_time_that_is_not_of_today_has_its_date() -> None:
    now = timezone.now()

    assert f">{now:%H:%M:%S}<" in console.clock(now)
    assert f">{now - timedelta(days=2):%Y-%m-%d %H:%M:%S}<" in console.clock(
        now - timedelta(days=2)
    )


def test_a_worker_that_was_lost_days_ago_is_shown_with_the_date(viewer: Client) -> None:
    at = timezone.now() - timedelta(days=3)
    crash = {"event": "crashed", "worker_id": "w-1", "step": "pass1", "at": at.isoformat()}
    a_job(
        status=JobStatus.DEAD,
        error_code="WORKER_LOST",
        completed_at=at,
        error_details={"history": [crash]},
    )

    page, _ = asked(viewer, reverse("admin:stale"))

    assert f">{at:%Y-%m-%d %H:%M:%S}</time>" in page.content.decode()


def test_a_batch_of_records_is_found_and_shows_its_records(viewer: Client) -> None:
    batch = RecordBatch.objects.create()
    job = a_job(record_batch=batch)
    a_job()

    found = viewer.get(reverse("admin:search"), {"q": str(batch.id)})
    page, _ = asked(viewer, found.headers["Location"])

    assert [each.id for each in page.context["listed"].rows] == [job.id]
    assert f"Records of batch {str(batch.id)[:8]}" in page.content.decode()
    assert (
        viewer.get(reverse("admin:records"), {"batch": "x"}).status_code == HTTPStatus.BAD_REQUEST
    )


def test_the_tables_lead_to_the_console_only_where_there_is_a_page(viewer: Client) -> None:
    job = a_job()
    effect = IncidentJob.objects.create(incident=an_incident(), job=job, effect="parked")
    batch = RecordBatch.objects.create()
    job.shell_file.refresh_from_db()
    rows = [job, job.shell_file, job.shell_file.session, batch, effect, effect.incident]

    for row in rows:
        answer = viewer.get(console.console_url(row), follow=True)
        assert answer.status_code == HTTPStatus.OK
        assert "No object has the id" not in answer.content.decode()
    assert console.console_url(job.shell_file.patient) == ""
    for model in {*apps.get_app_config("pipeline").get_models()} - located_models() - {IncidentJob}:
        assert "search" not in console.console_url(model()), model


def test_attempts_of_a_batch_are_read_without_those_of_its_record(viewer: Client) -> None:
    record = a_large_record(encounters=1, batches=21)
    lost = ProviderCall.objects.filter(outcome="API_5XX").order_by("started_at").last()

    with CaptureQueriesContext(connection) as captured:
        page = viewer.get(
            reverse("admin:compare", args=[record]), {"of": str(lost.work_item_id if lost else "")}
        )

    assert len(page.context["attempts"]) == 3
    (read,) = [sql for each in captured if "ORDER BY" in (sql := each["sql"]) and "attempt" in sql]
    assert '"work_item_id" = ' in read
