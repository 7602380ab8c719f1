"""The console reads what changed and what it shows, however many rows exist beside that.

`bench/console.py` and `bench/growth.py` measure the durations. These tests count statements,
rows, and calls of Python functions.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from django.db.models.signals import post_init
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from medproc.reading import reading
from observability.diagnostics import failures
from observability.listing.time_window import Period, Window
from observability.metrics.throughput import rates
from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import OUTCOME_LATE, Batch, Encounter, Job, ProviderCall, Summary
from pipeline.operations.preview import Selection, preview
from pipeline.operations.preview.bulk_selection import BulkSelection, bulk_preview
from pipeline.operations.preview.record_work import work_of
from pipeline.operations.preview.selection import SelectedJob, in_short
from pipeline.transitions import Scope
from tests.support.incident_rows import calls
from tests.support.large_rows import a_large_record
from tests.support.plans import analyzed, plan_of, rows_read
from tests.support.python_calls import python_calls
from tests.support.rows import a_job, an_encounter
from tests.support.waiting_rows import many_jobs

pytestmark = pytest.mark.django_db

CALLS_PER_NODE = 110
"""Python calls for each work item and each call of a record: 90 today."""
CALLS_PER_JOB = 27
"""Python calls for each job of a preview: 22 today."""


def test_a_list_reads_the_encounters_of_the_records_that_it_shows() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("everyone"))
    old = [a_job() for _ in range(60)]
    Encounter.objects.bulk_create(
        Encounter(
            shell_file_id=job.shell_file_id,
            patient_id=job.shell_file.patient_id,
            encounter_index=number,
            encounter_type="office_visit",
            page_start=1,
            page_end=1,
            page_count=1,
            character_count=1,
        )
        for job in old
        for number in range(1, 41)
    )
    shown = [a_job() for _ in range(60)]
    for job in shown[-3:]:
        an_encounter(job)
    analyzed("healthcare_encounters", "ai_processing_summary")

    with CaptureQueriesContext(connection) as asked:
        page = client.get(reverse("admin:pipeline_summary_changelist"))

    assert len(page.context["cl"].result_list) == 50
    (listing,) = [q["sql"] for q in asked if "healthcare_encounters" in q["sql"]]
    assert Summary.objects.count() == 120
    assert rows_read(listing)["healthcare_encounters"] <= 50


def test_the_rates_read_a_final_minute_once_and_add_up_to_the_percentiles_of_the_hour() -> None:
    now = timezone.now().replace(second=30)
    job = a_job()
    for minutes in (50, 30, 10, 1):
        calls(job, "API_5XX", 2, ago_s=60 * minutes, duration_ms=1)
        for number in range(7):
            calls(job, "OK", ago_s=60 * minutes, duration_ms=minutes * 100 + number**3)
    first = rates(now)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms)"
            " FROM provider_calls WHERE outcome = 'OK'"
        )
        (percentiles,) = cursor.fetchone()

    calls(job, "OK", ago_s=60 * 30, duration_ms=1)
    calls(job, "OK", ago_s=60, duration_ms=1)
    with CaptureQueriesContext(connection) as asked:
        second = rates(now)

    assert (first.calls, second.calls) == (36, 37)
    assert [first.p50_ms, first.p95_ms] == pytest.approx(percentiles)
    oldest_open_minute = now - timedelta(minutes=2)
    assert f"{oldest_open_minute:%Y-%m-%d %H:%M:00}" in asked[0]["sql"]


def test_the_failures_of_a_period_are_grouped_from_the_index_alone() -> None:
    job = a_job()
    calls(job, "OK", 3_000, ago_s=60)
    calls(job, "API_5XX", 300, ago_s=60)
    now = timezone.now()
    parameters: dict[str, Any] = {
        "since": now - timedelta(hours=1), "until": now, "cap": 100, "bars": failures.BARS,
        "low": now.timestamp() - 3600, "high": now.timestamp(), "late": OUTCOME_LATE,
    }  # fmt: skip
    analyzed("provider_calls")

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {failures._calls_sql()}", parameters)
        plan = "\n".join(row[0] for row in cursor.fetchall())

    assert "Index Only Scan Backward using idx_provider_calls_failed" in plan
    assert rows_read(failures._calls_sql(), parameters)["provider_calls"] == 100


def test_the_states_of_failed_items_are_looked_up_once_and_only_in_the_table_of_their_pass() -> (
    None
):
    job = a_job()
    _, batches = an_encounter(job, batches=30)
    for batch in batches:
        calls(job, "API_5XX", 3, ago_s=60, work_item_id=batch.id)
    Batch.objects.filter(id__in=[batch.id for batch in batches[:4]]).update(
        status=WorkStatus.FAILED
    )
    Batch.objects.filter(id__in=[batch.id for batch in batches[4:9]]).update(
        status=WorkStatus.SUCCEEDED, completed_at=timezone.now()
    )
    now = timezone.now()
    period = Period.last(Window.HOUR, now)
    analyzed("provider_calls", "pass1_batch_results")

    with CaptureQueriesContext(connection) as asked:
        (group,) = failures.groups(period).groups
    with connection.cursor() as cursor:
        # 30 rows are so few that a scan of the table would be cheaper than a look-up by key.
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = plan_of(asked[0]["sql"])

    assert (group.calls, group.records, group.works) == (90, 1, 30)
    assert (group.failed, group.absorbed) == (4, 5)
    assert sum(group.trend) == 90
    assert rows_read(asked[0]["sql"])["pass1_batch_results"] == 30
    # Each part runs once: no item runs through the tables of all passes.
    assert {node["Actual Loops"] for node in plan if node["Node Type"] == "Append"} == {1}


def test_a_record_builds_no_model_for_a_work_item_or_a_call() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("everyone"))
    small, large = a_large_record(encounters=1, batches=2, pages=3), a_large_record()
    built: Counter[str] = Counter()

    def count(sender: type[Model], **_: Any) -> None:
        built[sender.__name__] += 1

    def opened(record: UUID) -> Any:
        return client.get(reverse("admin:record", args=[record]))

    post_init.connect(count)
    try:
        page = opened(large)
    finally:
        post_init.disconnect(count)
    few, many = (python_calls(partial(opened, record)) for record in (small, large))

    assert page.context["rows"].items[Step.PASS1][0].pk
    assert (built["Batch"], built["ProviderCall"]) == (0, 0)
    number = Batch.objects.count() + ProviderCall.objects.count()
    assert (many - few) / number < CALLS_PER_NODE


def test_no_statement_of_a_page_is_compiled() -> None:
    with reading(), connection.cursor() as cursor:
        cursor.execute("SHOW jit")
        assert cursor.fetchone() == ("off",)


class _Fetched:
    """Counts the rows that statements return to the process."""

    def __init__(self) -> None:
        self.rows = self.statements = 0

    def __call__(self, execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        result = execute(sql, parameters, many, context)
        cursor: CursorWrapper = context["cursor"]
        self.statements += 1
        self.rows += max(0, cursor.rowcount)
        return result


def test_a_preview_fetches_one_row_for_each_job_however_many_batches_the_jobs_have() -> None:
    def fetched(jobs: int, batches: int) -> _Fetched:
        for _ in range(jobs):
            an_encounter(a_job(), batches=batches)
        counted = _Fetched()
        with connection.execute_wrapper(counted):
            found = bulk_preview(BulkSelection(action="cancel"))
        assert (len(found.eligible), found.calls) == (jobs, jobs * batches)
        Job.objects.update(status=JobStatus.COMPLETED)
        return counted

    few, many = fetched(2, 3), fetched(6, 40)

    assert few.statements == many.statements
    # The jobs, and their work; no call was made before.
    assert (few.rows, many.rows) == (2 * 2, 2 * 6)


def test_a_preview_of_many_jobs_needs_few_python_calls_for_each() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("everyone"))
    url = reverse("admin:bulk_preview", args=["cancel"])

    many_jobs(20)
    few = python_calls(lambda: client.get(url))
    many_jobs(400)
    many = python_calls(lambda: client.get(url))

    assert client.get(url).context["looked_at"] == 420
    assert (many - few) / 400 < CALLS_PER_JOB


def test_a_preview_by_cause_looks_no_waiting_job_up() -> None:
    many_jobs(3_000)
    failed = a_job(
        status=JobStatus.FAILED,
        error_code="API_5XX",
        error_details={"error_code": "API_5XX"},
        completed_at=timezone.now(),
    )
    waiting = a_job(
        status=JobStatus.PARKED,
        park_reason="retry 1 of 3",
        parked_until=timezone.now(),
        error_code="API_5XX",
        error_details={"error_code": "API_5XX"},
    )
    analyzed("job_queue")
    now = timezone.now()
    by_cause = Selection(error_code=ErrorCode.API_5XX, since=now - timedelta(hours=24), until=now)

    with CaptureQueriesContext(connection) as asked:
        found = preview(by_cause)

    assert {each.job_id for each in found.eligible} == {failed.id, waiting.id}
    # Each waiting job is passed over once, and none is looked up again by its key.
    assert rows_read(asked[0]["sql"])["job_queue"] < 3_100


def test_the_work_of_a_scope_is_the_same_as_that_of_its_items_one_by_one() -> None:
    jobs = []
    for number, status in product(range(2), WorkStatus):
        job = a_job(status=JobStatus.FAILED)
        for index in (1, 2):
            _, batches = an_encounter(job, batches=5, index=index)
            for batch in batches[number:3]:
                batch.estimated_input_tokens = 100 * index + batch.batch_index
                batch.error_code = "API_5XX" if batch.batch_index else "CONTENT_BLOCKED"
                batch.completed_at = timezone.now()
                batch.save(update_fields=["estimated_input_tokens", "error_code", "completed_at"])
            Batch.objects.filter(id__in=[b.id for b in batches[number:3]]).update(status=status)
        jobs.append(job)

    def scopes(job: Job) -> list[Scope]:
        of = list(Batch.objects.filter(processing_session__shell_file_id=job.shell_file_id))
        encounter: UUID = of[0].healthcare_encounter_id
        some = (of[1].id, of[-4].id)
        return [
            Scope(), Scope(encounters=(encounter,)), Scope(items=some), Scope(encounters=()),
            Scope(encounters=(encounter,), items=some),
        ]  # fmt: skip

    short = {job.id: job for job in in_short(Job.objects.all(), 100)}
    for chosen in zip(*map(scopes, jobs), strict=True):
        selected = [
            SelectedJob(job=short[job.id], scope=scope)
            for job, scope in zip(jobs, chosen, strict=True)
        ]
        for each, work in zip(selected, work_of(selected), strict=True):
            of = Batch.objects.filter(processing_session__shell_file_id=each.job.shell_file_id)
            meant = [
                batch
                for batch in of
                if batch.status in {WorkStatus.PENDING, WorkStatus.PROCESSING}
                or (batch.status == WorkStatus.FAILED and each.scope.holds(batch))
            ]
            failed = [batch for batch in meant if batch.status == WorkStatus.FAILED]
            assert work.calls == len(meant)
            assert work.pages == len({batch.page_range_start for batch in meant})
            assert work.text_tokens == sum(batch.estimated_input_tokens for batch in meant)
            assert set(work.causes) == {batch.error_code for batch in failed}
            assert work.failed_encounters == len({b.healthcare_encounter_id for b in failed})
