"""The state of records as the API shows it, read with a constant number of statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Prefetch, QuerySet

from api.schemas import Parked, PassState, RecordFailure, RecordState, RecordWarning, ReviewState
from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.states import JOB_TERMINAL, JobStatus, PassStatus, Step
from pipeline.models import Job, ReviewItem, ReviewReason, ReviewStatus, ShellFile
from pipeline.models.selectors import Progress, progress


def shown_rows() -> QuerySet[ShellFile, ShellFile]:
    """Return records with what their state needs; the name of the file is not read."""
    jobs = Job.objects.only("shell_file_id", "priority", "created_at").order_by("-created_at")
    return (
        ShellFile.objects.select_related("session", "review_item")
        .defer("original_filename")
        .prefetch_related(Prefetch("jobs", queryset=jobs))
    )


def states(records: Sequence[ShellFile]) -> list[RecordState]:
    """Return the states of records, in their order."""
    found = progress([record.id for record in records]) if records else {}
    return [_state(record, found[record.id]) for record in records]


def review_state(item: ReviewItem) -> ReviewState:
    """Return the state of a review, without the names of reviewers."""
    return ReviewState(
        record_id=item.shell_file_id,
        status=ReviewStatus(item.status),
        reason=ReviewReason(item.reason),
        opened_at=item.opened_at,
        due_at=item.due_at,
        round=item.round,
        confidence=item.confidence,
        closed_at=item.closed_at,
    )


def _state(record: ShellFile, now: Progress) -> RecordState:
    review = getattr(record, "review_item", None)
    return RecordState(
        id=record.id,
        status=now.status,
        step=now.step,
        completed=record.status,
        priority=record.jobs.all()[0].priority,
        created_at=record.created_at,
        started_at=now.started_at,
        completed_at=now.completed_at if now.is_terminal else None,
        media_type=record.media_type,
        size_bytes=record.size_bytes,
        page_count=record.page_count,
        pages_read=record.pages_read,
        passes=[_pass(record, now, step) for step in Step],
        encounters=now.encounters,
        entities=now.entities,
        incomplete=now.encounters_missing > 0,
        rows_not_understood=now.rows_not_understood,
        warnings=[RecordWarning(**_known(each)) for each in record.warnings],
        failure=_failure(now),
        parked=Parked(reason=now.park_reason or "", until=now.parked_until)
        if now.status == JobStatus.PARKED
        else None,
        review=review and review_state(review),
    )


def _pass(record: ShellFile, now: Progress, step: Step) -> PassState:
    work = now.work.get(step)
    if step is Step.PAGES:
        return PassState(
            name=step,
            status=_pages_status(now),
            done=record.pages_read,
            total=record.page_count or 0,
        )
    return PassState(
        name=step,
        status=getattr(record.session, f"{step}_status"),
        done=work.done if work else 0,
        total=work.total if work else 0,
    )


def _pages_status(now: Progress) -> PassStatus:
    """Return the state of the pages, which have no column of their own."""
    if now.step is not Step.PAGES:
        return PassStatus.COMPLETED
    if now.status in JOB_TERMINAL:
        return PassStatus.COMPLETED if now.status == JobStatus.COMPLETED else PassStatus.FAILED
    return PassStatus.PROCESSING if now.started_at else PassStatus.PENDING


def _failure(now: Progress) -> RecordFailure | None:
    if not now.error_code:
        return None
    code = now.underlying_error or now.error_code
    known = code in ErrorCode._value2member_map_
    return RecordFailure(
        code=now.error_code,
        underlying_code=now.underlying_error,
        message=now.last_error or "",
        advice=ERRORS[ErrorCode(code)].advice if known else "",
        step=now.step,
    )


def _known(warning: dict[str, Any]) -> dict[str, Any]:
    return {name: warning[name] for name in RecordWarning.model_fields if name in warning}
