"""The list of records filters, and links to its records and back."""

from __future__ import annotations

import re
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from observability.drilldown.explain import drill_down
from observability.models import BulkItem, BulkOperation
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import (
    Batch,
    EncounterResult,
    Job,
    Page,
    PageSource,
    RecordBatch,
    ShellFile,
    Summary,
)
from tests.support.incident_rows import an_incident, calls
from tests.support.large_rows import a_large_record
from tests.support.rows import a_job, an_encounter
from tests.support.users import client_of

pytestmark = pytest.mark.django_db
RECORDS = "admin:records"


@pytest.fixture
def client() -> Client:
    """Return a client of an operator."""
    return client_of("operator")


def ended(code: str, under: str | None = None, *, ago_min: int = 5, **columns: Any) -> Job:
    """Insert a record that has failed."""
    details = {"underlying_error": under} if under else None
    return a_job(
        status=JobStatus.FAILED,
        error_code=code,
        error_details=details,
        completed_at=timezone.now() - timedelta(minutes=ago_min),
        **columns,
    )


def listed(client: Client, **query: str) -> list[Job]:
    """Return the jobs that the list shows with a filter."""
    page = client.get(reverse(RECORDS), query)
    assert page.status_code == HTTPStatus.OK
    return list(page.context["listed"].rows)


def words(response: Any) -> str:
    """Return the words of a page, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_each_part_of_the_filter_keeps_what_it_names(client: Client) -> None:
    batch = RecordBatch.objects.create()
    failed = ended("MAX_RETRIES_EXCEEDED", "API_5XX", record_batch=batch)
    refused = ended("INPUT_ENCRYPTED", step=Step.PAGES)
    waiting = a_job()
    old = a_job()
    long_ago = timezone.now() - timedelta(days=9)
    Job.objects.filter(id=old.id).update(created_at=long_ago)

    assert listed(client, **{"is": "waiting"}) == [waiting, old]
    assert listed(client, step="pages") == [refused]
    assert listed(client, cause="API_5XX") == [failed]
    assert listed(client, cause="MAX_RETRIES_EXCEEDED") == [failed]
    assert listed(client, patient=waiting.shell_file.patient.pseudonym) == [waiting]
    assert listed(client, until=f"{long_ago + timedelta(hours=1):%Y-%m-%dT%H:%M}") == [old]
    assert listed(client, batch=str(batch.id)) == [failed]
    assert listed(client, step="pages", cause="API_5XX") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("is", "lost"),
        ("step", "pass9"),
        ("cause", "NONE"),
        ("patient", "P-0000000000"),
        ("since", "soon"),
        ("batch", "1234"),
        ("batch", "0b02ca07-dce8-4ca2-9850-8a2edbe5b7e8"),
    ],
)
def test_a_value_that_nothing_can_have_is_refused_in_one_line(
    client: Client, name: str, value: str
) -> None:
    a_job()

    page = client.get(reverse(RECORDS), {name: value})

    assert page.status_code == HTTPStatus.BAD_REQUEST
    assert page.context["problem"]
    assert not page.context["listed"].rows


def test_a_cause_is_looked_for_in_so_many_rows_at_a_time_and_none_is_lost(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("observability.listing.records.READ", 3)
    wanted = [ended("INPUT_ENCRYPTED"), *[a_job() for _ in range(7)], ended("INPUT_ENCRYPTED")]

    found, place, number = [], "", 0
    while number == 0 or place:
        page = client.get(reverse(RECORDS), {"cause": "INPUT_ENCRYPTED", "after": place})
        found += list(page.context["listed"].rows)
        place, number = page.context["listed"].next_place, number + 1

    assert found == [wanted[-1], wanted[0]]
    assert number >= 3


def test_the_list_says_the_root_cause_and_what_is_wrong_with_what_runs_or_is_held(
    client: Client,
) -> None:
    ended("MAX_RETRIES_EXCEEDED", "API_5XX", last_error="encounter 2 (pages 6–10): API_5XX ×3")
    running = a_job(
        status=JobStatus.PROCESSING,
        worker_id="w",
        lease_expires_at=timezone.now() + timedelta(minutes=1),
    )
    calls(running, "OK", 2)
    calls(running, "API_5XX", 21)
    held = a_job(status=JobStatus.COMPLETED, completed_at=timezone.now())
    ShellFile.objects.filter(id=held.shell_file_id).update(
        warnings=[{"code": "PATIENT_MISMATCH", "message": "", "pages": list(range(1, 73))}]
    )
    Summary.objects.filter(shell_file_id=held.shell_file_id).update(manual_review_required=True)

    with CaptureQueriesContext(connection) as few:
        said = words(client.get(reverse(RECORDS)))
    for _ in range(5):
        calls(
            a_job(
                status=JobStatus.PROCESSING,
                worker_id=str(uuid4()),
                lease_expires_at=timezone.now() + timedelta(minutes=1),
            ),
            "API_5XX",
            2,
        )
    with CaptureQueriesContext(connection) as many:
        client.get(reverse(RECORDS))

    assert "API_5XX encounter 2 (pages 6–10): API_5XX ×3" in said
    assert "21 of 23 calls failed (API_5XX)" in said
    assert "nothing published" in said
    assert "72 pages held for review (PATIENT_MISMATCH)" in said
    assert len(many) == len(few)


def test_a_record_leads_to_the_next_of_its_list_and_back(client: Client) -> None:
    made = [ended("INPUT_ENCRYPTED", step=Step.PAGES, ago_min=n) for n in (1, 2, 3)]
    others = ended("INPUT_INVALID", step=Step.PAGES, ago_min=2)
    query = {"source": "job", "window": "1h", "cause": "INPUT_ENCRYPTED", "step": "pages"}

    members = client.get(reverse("admin:failure_members"), query)
    links = re.findall(r'<th scope="row">\s*<a href="([^"]+)"', members.content.decode())
    middle = client.get(links[1].replace("&amp;", "&")).context["list_navigation"]
    last = client.get(middle.after).context["list_navigation"]

    assert middle.title == "Failures: INPUT_ENCRYPTED in Pages"
    assert str(made[0].shell_file_id) in middle.before
    assert str(made[2].shell_file_id) in middle.after
    assert not last.after
    back = client.get(last.url).context["listed"].rows
    assert list(back) == made
    assert others not in back


def test_a_failed_call_leads_to_the_next_call_of_its_group(client: Client) -> None:
    a_large_record(encounters=1, batches=30)

    page = client.get(reverse("admin:failure_members"), {"cause": "API_5XX", "step": "pass1"})
    first, second = re.findall(r'<th scope="row">\s*<a href="([^"]+)"', page.content.decode())[:2]
    opened = client.get(first.replace("&amp;", "&"))
    after = client.get(opened.context["list_navigation"].after)

    assert after.context["node"].id in second
    assert "API_5XX in Pass 1" in words(opened)


def test_records_of_a_filtered_list_lead_to_each_other(client: Client) -> None:
    made = [a_job() for _ in range(3)]

    page = client.get(reverse(RECORDS), {"is": "waiting"})
    link = re.findall(r'<th scope="row">\s*<a href="([^"]+)"', page.content.decode())[1]
    found = client.get(link.replace("&amp;", "&")).context["list_navigation"]

    assert str(made[2].shell_file_id) in found.before
    assert str(made[0].shell_file_id) in found.after
    assert found.url == f"{reverse(RECORDS)}?is=waiting"


@pytest.mark.parametrize("inside", ["https://example.org/", "list=elsewhere", "list=records&is=x"])
def test_a_list_that_is_none_is_no_way_back(client: Client, inside: str) -> None:
    url = reverse("admin:record", args=[a_job().shell_file_id])

    page = client.get(url, {"in": inside, "at": "x"})

    assert page.status_code == HTTPStatus.OK
    assert page.context["list_navigation"] is None


def test_a_search_finds_a_patient_and_a_batch_and_an_address_may_be_short(client: Client) -> None:
    job = a_job()
    batch = RecordBatch.objects.create()
    pseudonym = job.shell_file.patient.pseudonym
    search = reverse("admin:search")

    assert client.get(search, {"q": pseudonym.lower()}).headers["Location"] == (
        f"{reverse(RECORDS)}?patient={pseudonym}"
    )
    assert client.get(search, {"q": str(batch.id)[:12]}).headers["Location"] == (
        f"{reverse(RECORDS)}?batch={batch.id}"
    )
    assert "No patient here" in words(client.get(search, {"q": "P-0000000000"}))
    short = client.get(f"{reverse(RECORDS)}{str(job.shell_file_id)[:8]}/", follow=True)
    assert short.context["rows"].job == job


def a_running_record() -> Job:
    """Insert a record with a failed, a running (after failed calls) and a pending encounter."""
    job = a_job(
        status=JobStatus.PROCESSING,
        worker_id="w",
        step_started_at=timezone.now() - timedelta(minutes=4),
        lease_expires_at=timezone.now() + timedelta(minutes=1),
    )
    for index, status in enumerate(
        (WorkStatus.PROCESSING, WorkStatus.FAILED, WorkStatus.PENDING), 1
    ):
        result, (batch,) = an_encounter(job, index=index)
        code = {"error_code": "MAX_RETRIES_EXCEEDED"} if status == WorkStatus.FAILED else {}
        for row in (result, batch):
            type(row).objects.filter(id=row.id).update(status=status, **code)
        if status != WorkStatus.PENDING:
            calls(job, "API_5XX", 3, work_item_id=batch.id, ago_s=30 if code else 10)
    return job


def test_a_running_record_says_what_goes_wrong_and_opens_at_what_is_lost(client: Client) -> None:
    job = a_running_record()
    operation = BulkOperation.objects.create(
        token=uuid4(), action="retry", selection={}, reason="again", requested_by="demo"
    )
    BulkItem.objects.create(
        operation=operation,
        position=0,
        job_id=job.id,
        shell_file_id=job.shell_file_id,
        step=Step.PASS1,
        scope={},
    )
    an_incident()

    page = client.get(reverse("admin:record", args=[job.shell_file_id]))

    said = words(page)
    assert "but 6 of 6 calls failed (API_5XX) and encounter 2 is lost: 0 of 3 batches done." in said
    assert [node.status for node in page.context["path"]][-1] == "failed"
    assert "demo requested a retry" in said
    assert "An incident is open: outage" in said
    assert 'data-poll="5"' in page.content.decode()


def test_a_record_that_is_over_does_not_renew_itself_and_says_what_was_not_published(
    client: Client,
) -> None:
    job = a_job(status=JobStatus.COMPLETED, completed_at=timezone.now())
    ShellFile.objects.filter(id=job.shell_file_id).update(
        page_count=72,
        warnings=[{"code": "PATIENT_MISMATCH", "message": "", "pages": [1, 2]}],
    )

    page = client.get(reverse("admin:record", args=[job.shell_file_id]))

    assert "data-poll" not in page.content.decode()
    assert page.context["found"].record_answer.startswith("Done, but nothing was published: ")
    assert page.context["tone"] == "waiting"
    assert "nothing published" in words(page)
    assert " cost " not in words(page)


def test_a_parked_record_says_until_when_and_which_try_comes() -> None:
    job = a_job(
        status=JobStatus.PARKED,
        error_code="MAX_RETRIES_EXCEEDED",
        last_error="encounter 1 (page 1): API_5XX ×3; 1 of 1 encounter failed",
        park_reason="retry 1 of 3 after API_5XX",
        parked_until=timezone.now() + timedelta(seconds=48),
        retry_count=1,
        max_retries=3,
    )

    answer = drill_down(str(job.shell_file_id)).record_answer

    assert re.match(r"Parked until \S+ ?\S* UTC \(in 4\d s\) for retry 1 of 3\.", answer)


def test_a_dead_record_opens_at_what_was_at_work_and_says_dead_everywhere(client: Client) -> None:
    crash = {
        "event": "crashed", "worker_id": "vm-1-4711-ab12cd34", "step": "pass1",
        "at": "2026-11-28T07:39:15.123456+00:00",
    }  # fmt: skip
    job = a_job(
        status=JobStatus.DEAD,
        error_code="WORKER_LOST",
        last_error="the process that ran this step was lost 3 times",
        error_details={"history": [crash] * 3},
        completed_at=timezone.now(),
    )
    for index in range(1, 30):
        result, (batch,) = an_encounter(job, index=index)
        status = WorkStatus.PROCESSING if index == 29 else WorkStatus.SUCCEEDED
        done = (
            {"completed_at": timezone.now(), "attempt_count": 1, "output": {}} if index < 29 else {}
        )
        Batch.objects.filter(id=batch.id).update(status=status, started_at=timezone.now(), **done)
        EncounterResult.objects.filter(id=result.id).update(
            status=status, batches_succeeded=int(index < 29)
        )

    page = client.get(reverse("admin:record", args=[job.shell_file_id]))
    stale = words(client.get(reverse("admin:stale")))

    said = words(page)
    assert page.context["path"][1].title.startswith("encounter 29")
    assert {node.id: node.status for node in page.context["passes"]}["pass1"] == "dead"
    assert "28 encounters done" in said
    assert "was lost in Pass 1 at 07:39:15 UTC on 2026-11-28" in said
    assert "then requeue the record" in said
    assert "the worker was lost:" in stale


def test_a_worker_that_lives_has_lost_its_work_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from observability.diagnostics.stale_work import deaths
    from observability.metrics.workers import WorkerFleet, WorkerView

    name = "vm-1-4711-ab12cd34"
    job = Job(
        id=uuid4(),
        error_details={
            "history": [{"event": "crashed", "worker_id": name, "at": "2026-11-28T07:39:15+00:00"}]
        },
    )
    worker_fleet = WorkerFleet(
        workers=[WorkerView(name=name, state="idle", host="elsewhere", pid=4711)],
        is_redis_away=False,
    )

    (loss,) = deaths([job], worker_fleet)[job.id].crashes

    assert loss.words == "its work process was lost; the worker itself lives: registered, idle"


def test_the_page_of_a_record_does_not_repeat_the_message_as_advice(client: Client) -> None:
    message = "The file needs a password; remove the password and upload it again."
    job = ended("INPUT_ENCRYPTED", step=Step.PAGES, last_error=message)

    page = client.get(reverse("admin:record", args=[job.shell_file_id]))

    assert page.context["found"].record_answer.count("password") == 2
    assert "Advice" not in words(page)


def test_the_facts_of_a_record_are_in_words(client: Client) -> None:
    entry = {"event": "retried", "by": "demo", "reason": "again", "at": "2026-11-28T07:39:15+00:00"}
    job = a_job(
        status=JobStatus.CANCELLED, error_details={"history": [entry]}, completed_at=timezone.now()
    )
    Summary.objects.filter(shell_file_id=job.shell_file_id).update(manual_review_required=True)

    page = client.get(reverse("admin:record", args=[job.shell_file_id]))

    said = words(page)
    assert "manual review required yes" in said
    assert "2026-11-28 07:39:15 UTC retried by demo: again" in said
    assert "[{" not in said
    assert "Retry what failed" not in said
    assert "not reached" in said


def test_the_map_of_pages_links_to_them_for_those_who_may_read_them(client: Client) -> None:
    job = a_job()
    Page.objects.create(
        shell_file_id=job.shell_file_id,
        page_number=1,
        source=PageSource.TEXT_LAYER,
        width=1,
        height=1,
    )
    url = reverse("admin:record", args=[job.shell_file_id])
    link = reverse("admin:record_page", args=[job.shell_file_id, 1])

    assert f'href="{link}"' not in client.get(url).content.decode()
    assert f'href="{link}"' in client_of("reviewer").get(url).content.decode()


def test_the_list_of_keys_names_all_that_the_pages_declare() -> None:
    templates = Path(settings.BASE_DIR) / "templates"
    markup = {path.name: path.read_text() for path in templates.rglob("*.html")}
    declared = {name: set(re.findall(r'data-(?:turn|key)="(.)"', m)) for name, m in markup.items()}
    pages = re.findall(r'key="(.)"', markup["nav.html"])
    # The page of a review has a list of its own.
    review = {name for name in markup if re.match(r"review(?!s|_learning)[_.]", name)}

    assert any(declared[name] for name in review)
    for own, keys in ((review, "review_keys.html"), (markup.keys() - review, "keys.html")):
        named = re.findall(r'(?:first|second)="(.)"', markup[keys])
        assert set().union(*(declared[name] for name in own)) <= set(named)
    assert len(pages) == markup["nav.html"].count("nav_link.html")
    for go in pages:
        assert f'first="g" second="{go}"' in markup["keys.html"]
