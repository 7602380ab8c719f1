"""A record with many encounters, many batches and several calls of each batch, by INSERT alone."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import Batch, Job, Page, ProviderCall, Session
from tests.support.rows import a_job, an_encounter

MODEL = "gemini-3.5-flash-lite"


def a_large_record(*, encounters: int = 12, batches: int = 25, pages: int = 1000) -> UUID:
    """Insert a record whose last batch failed three times; every tenth earlier call failed too."""
    now = timezone.now()
    job = a_job(
        step=Step.PASS1,
        status=JobStatus.FAILED,
        error_code="MAX_RETRIES_EXCEEDED",
        error_details={"underlying_error": "API_5XX"},
        last_error="1 of 300 batches failed.",
        completed_at=now,
    )
    session = Session.objects.get(shell_file_id=job.shell_file_id)
    made = [
        batch
        for index in range(1, encounters + 1)
        for batch in an_encounter(job, batches=batches, index=index)[1]
    ]
    calls = []
    for number, batch in enumerate(made):
        is_lost = number == len(made) - 1
        outcomes = ["API_5XX"] * 3 if is_lost else ["OK"] if number % 10 else ["API_5XX", "OK"]
        calls += [
            ProviderCall(
                processing_session=session,
                step=Step.PASS1,
                work_item_id=batch.id,
                attempt=attempt,
                outcome=outcome,
                accepted=outcome == "OK",
                provider="gemini",
                model=MODEL,
                prompt_version="1",
                schema_version="1",
                queue_wait_ms=80,
                duration_ms=4000 + 13 * number,
                input_tokens=7000,
                output_tokens=900,
                lease_gen=1,
                started_at=now - timedelta(seconds=600 - number - 5 * attempt),
            )
            for attempt, outcome in enumerate(outcomes, 1)
        ]
        _settle(batch, outcomes)
    ProviderCall.objects.bulk_create(calls)
    Page.objects.bulk_create(
        Page(
            shell_file_id=job.shell_file_id,
            page_number=number,
            text="",
            source="text_layer",
            width=612,
            height=792,
        )
        for number in range(1, pages + 1)
    )
    return record_of(job)


def record_of(job: Job) -> UUID:
    """Return the record of a job."""
    found: UUID = job.shell_file_id
    return found


def _settle(batch: Batch, outcomes: list[str]) -> None:
    """Set a batch to the end of its calls by a plain UPDATE; no step has run."""
    is_lost = outcomes[-1] != "OK"
    status = WorkStatus.FAILED if is_lost else WorkStatus.SUCCEEDED
    Batch.objects.filter(id=batch.id).update(
        status=status,
        attempt_count=len(outcomes),
        completed_at=timezone.now(),
        error_code="MAX_RETRIES_EXCEEDED" if is_lost else None,
        error_message="all 3 attempts are used up" if is_lost else None,
        error_context={"final_underlying_error": "API_5XX"} if is_lost else None,
        had_transient_failure=len(outcomes) > 1,
        transient_error_history=[{"error_code": "API_5XX"}] * (len(outcomes) - 1) or None,
    )
