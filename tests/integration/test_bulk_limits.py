"""A bulk operation survives its edge cases: errors, late additions, and selections too large."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from observability.actions.bulk_kinds import KINDS
from observability.actions.bulk_runner import TRIES, advance
from observability.actions.holds import HOLD_ACTIONS
from observability.models import BulkItem, BulkOperation
from observability.permissions import Role
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job, Session
from tests.support.databases import as_owner
from tests.support.incident_rows import an_incident
from tests.support.large_rows import a_large_record
from tests.support.rows import a_job, a_stale_job
from tests.support.url_matrix import PAGES, targets
from tests.support.users import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Client:
    """Return a client of an operator."""
    return client_of(Role.OPERATOR)


def form_of(client: Client, action: str, **query: Any) -> dict[str, Any]:
    """Preview an action, and return the form of the preview."""
    page = client.get(reverse("admin:bulk_preview", args=[action]), query)
    assert page.status_code == HTTPStatus.OK, page.context["problem"]
    return {**page.context["fields"], "token": uuid4(), "reason": "as agreed"}


def start(client: Client, action: str, form: dict[str, Any]) -> BulkOperation:
    """Start the operation of a form."""
    response = client.post(reverse("admin:bulk_start", args=[action]), form)
    assert response.status_code == HTTPStatus.FOUND, response.context["problem"]
    return BulkOperation.objects.get(token=form["token"])


def refused_by_the_database(job: Job, sqlstate: str) -> None:
    """Let PostgreSQL refuse every change of a job."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'a test' USING ERRCODE = '{sqlstate}'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE ON job_queue FOR EACH ROW"
            f" WHEN (OLD.id = '{job.id}') EXECUTE FUNCTION pg_temp.refuse()"
        )


def test_an_item_that_breaks_fails_alone_and_holds_up_no_other(operator: Client) -> None:
    broken, whole, later = a_job(), a_job(), a_job(status=JobStatus.DEAD)
    first = start(operator, "cancel", form_of(operator, "cancel"))
    second = start(operator, "requeue", form_of(operator, "requeue"))
    with as_owner():
        Session.objects.filter(shell_file_id=broken.shell_file_id).delete()

    advance()

    assert dict(first.items.values_list("job_id", "state")) == {
        broken.id: BulkItem.FAILED,
        whole.id: BulkItem.DONE,
    }
    assert first.items.get(job_id=broken.id).message == "DoesNotExist"
    assert second.items.get(job_id=later.id).state == BulkItem.DONE
    assert not BulkOperation.objects.filter(finished_at=None).exclude(id=second.id).exists()


def test_an_item_that_the_database_refuses_waits_some_ticks_and_then_fails(
    operator: Client,
) -> None:
    stuck, free = a_job(), a_job()
    operation = start(operator, "cancel", form_of(operator, "cancel"))
    refused_by_the_database(stuck, "40P01")

    seen = []
    for _ in range(TRIES):
        advance()
        seen.append(operation.items.get(job_id=stuck.id).state)

    assert operation.items.get(job_id=free.id).state == BulkItem.DONE
    assert seen == [BulkItem.WAITING] * (TRIES - 1) + [BulkItem.FAILED]
    operation.refresh_from_db()
    assert operation.finished_at is not None


def test_a_job_that_joined_the_filter_after_the_preview_is_skipped_and_reported(
    operator: Client,
) -> None:
    seen, gone = a_job(), a_job()
    sleeper = a_job(status=JobStatus.DEAD)
    form = form_of(operator, "cancel")
    Job.objects.filter(id=sleeper.id).update(status=JobStatus.PENDING)
    Job.objects.filter(id=gone.id).update(status=JobStatus.COMPLETED)

    operation = start(operator, "cancel", form)

    assert [item.job_id for item in operation.items.all()] == [seen.id]
    page = operator.get(reverse("admin:bulk_operation", args=[operation.id])).content.decode()
    assert operation.expected["jobs"] == 1
    assert operation.expected["ineligible"] == {
        "the job was not in the preview": 1,
        "the job changed after the preview": 1,
    }
    assert "the job was not in the preview <b>1</b>" in page


def test_only_the_figures_of_what_is_started_are_kept(operator: Client, settings: Any) -> None:
    settings.MEDPROC_PROVIDER, settings.GEMINI_API_KEY = "gemini", "none"
    a_large_record(encounters=1, batches=2)
    asked = {"error_code": "API_5XX", "window": "1h"}
    shown = operator.get(reverse("admin:retry"), asked).context["found"]
    form = form_of(operator, "retry", **asked)
    late = a_large_record(encounters=1, batches=2)
    Job.objects.filter(shell_file_id=late).update(completed_at=form["until"])

    operation = start(operator, "retry", form)

    kept = operation.expected
    assert (kept["calls"], kept["pages"], kept["input_tokens"]) == (
        shown.calls,
        shown.pages,
        shown.input_tokens,
    )
    assert kept["cost_usd"] == str(shown.cost_usd) != "0"
    assert kept["ineligible"] == {"the job was not in the preview": 1}


def test_the_items_of_an_operation_are_listed_by_what_came_of_them(operator: Client) -> None:
    jobs = [a_job(status=JobStatus.DEAD) for _ in range(3)]
    operation = start(operator, "requeue", form_of(operator, "requeue"))
    Job.objects.filter(id=jobs[0].id).update(status=JobStatus.COMPLETED)
    advance()
    Job.objects.filter(id=jobs[1].id).update(
        status=JobStatus.FAILED, error_code="API_5XX", completed_at=timezone.now()
    )
    url = reverse("admin:bulk_operation", args=[operation.id])

    listed = {
        state: [item.job_id for item in operator.get(url, {"state": state}).context["items"]]
        for state in ("skipped", "done", "failed", "failed again", "waiting")
    }

    assert listed == {
        "skipped": [jobs[0].id],
        "done": [jobs[1].id, jobs[2].id],
        "failed": [],
        "failed again": [jobs[1].id],
        "waiting": [],
    }
    markup = " ".join(operator.get(url).content.decode().split())
    assert 'href="?state=failed"> failed 0<' in markup
    assert 'href="?state=failed%20again"> failed again 1<' in markup


def test_an_action_whose_jobs_failed_again_is_not_green_and_leads_to_their_retry(
    operator: Client,
) -> None:
    again = a_large_record(encounters=1, batches=2)
    form = form_of(operator, "retry", error_code="API_5XX", window="1h")
    other = a_large_record(encounters=1, batches=2)
    operation = start(operator, "retry", form)
    advance()
    advance()
    Job.objects.filter(shell_file_id=again).update(
        status=JobStatus.FAILED, completed_at=timezone.now()
    )

    page = operator.get(reverse("admin:bulk_operation", args=[operation.id]))
    retry = f"{reverse('admin:retry')}?operation={operation.id}"
    preview = operator.get(retry)

    assert 'class="c-verdict is-failed"' in page.content.decode()
    assert retry in page.content.decode()
    assert [each.shell_file_id for each in preview.context["found"].eligible] == [again]
    assert preview.context["home"] == reverse("admin:bulk_operation", args=[operation.id])
    second = start(operator, "retry", form_of(operator, "retry", operation=operation.id))
    assert [item.shell_file_id for item in second.items.all()] == [again]
    assert Job.objects.get(shell_file_id=other).status == JobStatus.FAILED


COLUMNS: dict[JobStatus, dict[str, Any]] = {
    JobStatus.PARKED: {"park_reason": "a quota", "parked_until": timezone.now()},
    JobStatus.PROCESSING: {"worker_id": "worker-1", "lease_expires_at": timezone.now()},
}
"""The columns that a job of this status must have."""


@pytest.mark.parametrize("action", ["cancel", "release", "requeue"])
def test_the_page_of_a_record_leads_to_the_preview_of_an_action_where_it_applies(
    operator: Client, action: str
) -> None:
    for status in JobStatus:
        job = a_job(status=status, **COLUMNS.get(status, {}))
        preview = f"{reverse('admin:bulk_preview', args=[action])}?job={job.id}"
        shown = operator.get(reverse("admin:record", args=[job.shell_file_id])).content.decode()
        found = operator.get(preview).context["found"]

        is_open = status in KINDS[action].open_to
        assert (preview in shown) == is_open == bool(found.eligible), status


def test_an_action_takes_the_oldest_up_to_its_cap_and_a_second_one_the_rest(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.operations.preview.selection.JOBS_LIMIT", 2)
    jobs = [a_job(status=JobStatus.DEAD) for _ in range(3)]

    page = operator.get(reverse("admin:bulk_preview", args=["requeue"]))
    first = start(operator, "requeue", form_of(operator, "requeue"))
    advance()
    rest = form_of(operator, "requeue")
    second = start(operator, "requeue", rest)

    assert "This preview covers the oldest 2 jobs only" in page.content.decode()
    assert first.expected["is_capped"]
    assert [item.job_id for item in first.items.order_by("position")] == [jobs[0].id, jobs[1].id]
    assert [item.job_id for item in second.items.all()] == [jobs[2].id]


def test_a_job_that_cannot_be_retried_takes_no_place_of_a_job_that_can(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.operations.preview.selection.JOBS_LIMIT", 2)
    incident = an_incident()
    for status in (JobStatus.COMPLETED, JobStatus.COMPLETED, JobStatus.FAILED):
        job = a_job(status=status)
        incident.effects.create(job=job, effect="failed")

    found = operator.get(reverse("admin:retry"), {"incident": incident.id}).context["found"]

    assert [each.job_id for each in found.eligible] == [job.id]
    assert found.is_capped


def test_a_preview_asks_a_constant_number_however_many_chunks_there_are(operator: Client) -> None:
    url = reverse("admin:bulk_preview", args=["cancel"])
    a_job(step=Step.PASS05)
    with CaptureQueriesContext(connection) as few:
        operator.get(url)
    for _ in range(5):
        a_job(step=Step.PASS05)
    with CaptureQueriesContext(connection) as many:
        operator.get(url)

    assert len(many) == len(few)
    assert not [query for query in many if '"error_details",' in query["sql"]]


@pytest.fixture
def locked() -> Iterator[str]:
    """Lock a table that a page reads, from another connection, and provide the table's name."""
    own = connection.get_connection_params()
    known = {
        name: own[name] for name in ("dbname", "user", "password", "host", "port") if own.get(name)
    }
    with psycopg.connect(**known) as other:
        other.execute("LOCK TABLE bulk_operations IN ACCESS EXCLUSIVE MODE NOWAIT")
        yield "bulk_operations"
        other.rollback()


def test_a_page_that_is_stopped_by_its_time_limit_says_so(
    operator: Client, locked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medproc.reading.PAGE_DEADLINE_MS", 20)

    page = operator.get(reverse(f"admin:{locked}"))

    assert page.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "This request took too long and was stopped." in page.content.decode()


@pytest.mark.parametrize("older", ["inf", "nan", "-inf", "1e300", "-1", "2592001", "x", "9" * 5000])
def test_an_age_that_is_none_is_refused_with_a_line(operator: Client, older: str) -> None:
    page = operator.get(reverse("admin:bulk_preview", args=["reset"]), {"older": older})

    assert page.status_code == HTTPStatus.BAD_REQUEST
    assert page.context["problem"]


HOSTILE = {
    "text": "none",
    "a NUL": "\0",
    "a NUL within": "API_5XX\0",
    "a huge number": "9" * 40,
    "ten thousand digits": "9" * 10_000,
    "ten kB": "x" * 10_000,
    "infinity": "inf",
    "a float": "1e300",
    "negative": "-1",
    "other digits": "²",
    "an id of nothing": str(uuid4()),
    "half an id": "0b02ca07-dce8",
    "a place": f"0001-01-01T00:00:00+14:00~{uuid4()}",
    "the last place": f"9999-12-31T23:59:59-14:00~{uuid4()}",
    "a year": "0001-01-01T00:00",
    "a lone surrogate": "\\ud800",
    "the last year": "9999-12-31T23:59:59-14:00",
}
PERIOD = ("window", "since", "until")
PARAMETERS = {
    "search": ("q",),
    "records": ("is", "after"),
    "record": ("node", "all"),
    "record_pages": ("page",),
    "compare": ("of", "a", "b"),
    "failures": PERIOD,
    "failure_members": (*PERIOD, "source", "cause", "step", "model", "state", "after"),
    "retry": ("record", "job", "encounter", "item", "incident", "operation", "error_code", "next"),
    "incidents": ("is", "after"),
    "incident": ("after",),
    "stale": ("older", "after"),
    "audit": ("actor", "action", "target", "result", "after"),
    "bulk_operations": ("after",),
    "bulk_operation": ("state", "from"),
}
OF_SELECTIONS = ("job", "incident", "is", "step", "error_code", "older", "until", "next")


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_no_parameter_breaks_a_page(admin_client: Client, value: str) -> None:
    known = targets()
    checked_urls = {
        (checked_url.name, checked_url.args)
        for checked_url in PAGES
        if checked_url.name in PARAMETERS
    }
    asked = [
        (reverse(f"admin:{name}", args=[known.get(arg, arg) for arg in args]), parameter)
        for name, args in sorted(checked_urls)
        for parameter in PARAMETERS[name]
    ]
    asked += [
        (reverse("admin:bulk_preview", args=["reset"]), parameter) for parameter in OF_SELECTIONS
    ]
    asked += [(reverse("admin:confirm", args=[action]), "target") for action in HOLD_ACTIONS]
    retry = f"{reverse('admin:retry')}?error_code=API_5XX&"

    broken = [
        url
        for url in (
            *(f"{page}?{parameter}={quote(value)}" for page, parameter in asked),
            *(f"{retry}{parameter}={quote(value)}" for parameter in (*PERIOD, "step")),
        )
        if admin_client.get(url).status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
    ]

    assert broken == []


@pytest.mark.parametrize(
    ("action", "query", "home"),
    [
        ("retry", {"error_code": "API_5XX", "step": "pass1"}, "/admin/failures/members/"),
        ("reset", {"older": "600"}, "/admin/stale/?older=600"),
        ("requeue", {}, "/admin/stale/"),
        ("cancel", {"is": "waiting"}, "/admin/records/?is=waiting"),
        ("cancel", {"step": "pass1", "is": "waiting"}, "/admin/queues/"),
        ("release", {}, "/admin/records/?is=parked"),
        ("release", {"next": "/admin/queues/"}, "/admin/queues/"),
        ("release", {"next": "https://elsewhere.example/"}, "/admin/records/?is=parked"),
        ("release", {"next": "//elsewhere.example/admin/"}, "/admin/records/?is=parked"),
    ],
)
def test_leaving_a_preview_leads_back_to_where_it_was_opened(
    operator: Client, action: str, query: dict[str, str], home: str
) -> None:
    page = operator.get(reverse("admin:bulk_preview", args=[action]), query)

    assert page.context["home"].startswith(home)


def test_a_preview_of_one_thing_leads_back_to_its_page(operator: Client) -> None:
    job, incident = a_job(), an_incident()

    homes = [
        operator.get(reverse("admin:bulk_preview", args=[action]), query).context["home"]
        for action, query in (
            ("cancel", {"job": str(job.id)}),
            ("retry", {"record": str(job.shell_file_id)}),
            ("release", {"incident": str(incident.id)}),
        )
    ]

    record = reverse("admin:record", args=[job.shell_file_id])
    assert operator.get(homes[0]).headers["Location"] == record
    assert homes[1:] == [record, reverse("admin:incident", args=[incident.id])]


def test_the_page_of_stale_work_says_where_it_stops(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("observability.diagnostics.stale_work.JOBS_LIMIT", 2)
    a_stale_job()
    a_stale_job()
    whole = operator.get(reverse("admin:stale")).content.decode()
    a_stale_job()

    page = operator.get(reverse("admin:stale"))
    preview = operator.get(reverse("admin:bulk_preview", args=["reset"]), {"older": "600"})

    assert "This list shows the oldest" not in whole
    assert "This list shows the oldest 2 only" in page.content.decode()
    assert len(page.context["found"].stale) == 2
    assert len(preview.context["found"].eligible) == 3


def test_a_reset_of_more_than_its_cap_says_so(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.operations.preview.bulk_selection.JOBS_LIMIT", 2)
    for _ in range(3):
        a_stale_job()

    page = operator.get(reverse("admin:bulk_preview", args=["reset"]), {"older": "600"})

    assert "This preview covers the oldest 2 jobs only" in page.content.decode()
    assert (len(page.context["found"].eligible), page.context["found"].calls) == (2, 4)
