"""The list of records: its filter, which is in the URL, and the reason shown for each row.

Indexes answer status, patient, batch and time of receipt. Pass and cause have no index and are
checked on a limited number of rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.utils import timezone

from observability.listing.pagination import ListPage, keyset_page, neighbours, sifted_page
from observability.listing.time_window import Window, moment
from pipeline.core.errors import ErrorCode, UserError, UserErrorCode
from pipeline.core.labels import StatusWord, counted
from pipeline.core.states import JobStatus, Step
from pipeline.models import (
    OUTCOME_LATE,
    OUTCOME_OK,
    Job,
    Patient,
    ProviderCall,
    RecordBatch,
    ShellFile,
)

LISTED = 50
READ = 10_000
"""Number of rows that are examined for a pass or a cause."""
FIELDS = ("is", "window", "step", "cause", "patient", "since", "until", "batch")
STATES: dict[StatusWord, JobStatus] = {
    StatusWord.RUNNING: JobStatus.PROCESSING,
    StatusWord.WAITING: JobStatus.PENDING,
    StatusWord.PARKED: JobStatus.PARKED,
    StatusWord.FAILED: JobStatus.FAILED,
    StatusWord.DEAD: JobStatus.DEAD,
    StatusWord.DONE: JobStatus.COMPLETED,
    StatusWord.CANCELLED: JobStatus.CANCELLED,
}


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The filter of the list."""

    status: JobStatus | None = None
    step: Step | None = None
    cause: str = ""
    patient_id: UUID | None = None
    batch_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    window: Window | None = None
    """For failed records: the maximum time since the failure."""

    @property
    def column(self) -> str:
        """The sort column: the time of the failure in failed states, else the time of receipt."""
        ended = self.status in {JobStatus.FAILED, JobStatus.DEAD}
        return "completed_at" if ended and not (self.since or self.until) else "created_at"

    @property
    def _rows(self) -> QuerySet[Job, Job]:
        asked: dict[str, Any] = {
            "status": self.status,
            "shell_file__patient_id": self.patient_id,
            "record_batch_id": self.batch_id,
            "created_at__gte": self.since,
            "created_at__lt": self.until,
            "completed_at__gte": timezone.now() - self.window.length if self.window else None,
        }
        return Job.objects.filter(**{name: of for name, of in asked.items() if of is not None})

    def _sifted(self, rows: QuerySet[Job, Job]) -> QuerySet[Job, Job]:
        if self.step is not None:
            rows = rows.filter(current_step=self.step)
        if self.cause:
            rows = rows.annotate(under=KT("error_details__underlying_error")).filter(
                Q(error_code=self.cause) | Q(error_code__isnull=False, under=self.cause)
            )
        return rows

    @property
    def is_sifted(self) -> bool:
        """Whether the filter has a part that no index supports."""
        return bool(self.step or self.cause)

    def page(self, place: str) -> ListPage[Job]:
        """Return the rows after a place, with the columns that the list shows."""
        shown = self._rows.select_related("shell_file__patient", "shell_file__summary").only(
            "status", "current_step", "error_code", "last_error", "park_reason", "parked_until",
            "created_at", "completed_at", "updated_at", "step_started_at", "retry_count",
            "max_retries", "incident", "pause",
            "shell_file__page_count", "shell_file__patient__pseudonym",
            "shell_file__summary__manual_review_required",
            "shell_file__summary__entities_extracted_total",
        ).annotate(cause=root_cause())  # fmt: skip
        if not self.is_sifted:
            return keyset_page(shown, self.column, place, LISTED)
        return sifted_page(shown, self._sifted, self.column, place, LISTED, READ)

    def beside(self, place: str) -> tuple[Job | None, Job | None]:
        """Return the rows before and after a place; None if no such row is near."""
        rows = self._rows.only("shell_file_id", "created_at", "completed_at")
        if not self.is_sifted:
            return neighbours(rows, self.column, place)
        page = sifted_page(rows, self._sifted, self.column, place, 1, READ)
        return None, page.rows[0] if page.rows else None


def root_cause() -> Coalesce:
    """Return a column of jobs with the error code that a person must act on."""
    return Coalesce(KT("error_details__underlying_error"), "error_code")


def chosen(asked: Mapping[str, str]) -> Chosen:
    """Parse a filter. Raises UserError that names an invalid value and the valid ones."""
    word, step, cause = asked.get("is", ""), asked.get("step", ""), asked.get("cause", "")
    if word and word not in STATES:
        raise UserError(
            f"no record has the status {word!r}; a status is one of {', '.join(STATES)}",
            code=UserErrorCode.VALUE_INVALID,
        )
    if step and step not in Step.values:
        raise UserError(
            f"there is no pass {step!r}; a pass is one of {', '.join(Step.values)}",
            code=UserErrorCode.VALUE_INVALID,
        )
    if cause and cause not in ErrorCode._value2member_map_:
        raise UserError(
            f"there is no cause {cause!r}; causes are codes, such as API_5XX",
            code=UserErrorCode.VALUE_INVALID,
        )
    window = asked.get("window", "")
    if window and window not in Window._value2member_map_:
        raise UserError(f"window is one of {', '.join(Window)}", code=UserErrorCode.VALUE_INVALID)
    ended = word in {StatusWord.FAILED, StatusWord.DEAD}
    return Chosen(
        window=Window(window) if window and ended else None,
        status=STATES[StatusWord(word)] if word else None,
        step=Step(step) if step else None,
        cause=cause,
        patient_id=_patient(asked.get("patient", "").strip()),
        batch_id=_batch(asked.get("batch", "").strip()),
        since=moment(asked["since"]) if asked.get("since") else None,
        until=moment(asked["until"]) if asked.get("until") else None,
    )


def _patient(pseudonym: str) -> UUID | None:
    if not pseudonym:
        return None
    found = patient_of(pseudonym)
    if found is None:
        raise UserError(f"no patient has the pseudonym {pseudonym!r}", code=UserErrorCode.NOT_FOUND)
    return UUID(str(found.id))


def patient_of(pseudonym: str) -> Patient | None:
    """Return the patient of a pseudonym such as `P-70E164160E`; None if it is unknown."""
    if not re.fullmatch(r"P-[0-9A-Z]{1,40}", pseudonym.upper()):
        return None
    return Patient.objects.filter(pseudonym=pseudonym.upper()).only("pseudonym").first()


def _batch(text: str) -> UUID | None:
    if not text:
        return None
    try:
        batch_id = UUID(text)
    except ValueError:
        raise UserError(
            "a batch of records is named by its whole id", code=UserErrorCode.VALUE_INVALID
        ) from None
    if not RecordBatch.objects.filter(id=batch_id).exists():
        raise UserError(f"no batch of records has the id {text}", code=UserErrorCode.NOT_FOUND)
    return batch_id


def whys(jobs: Sequence[Job]) -> dict[UUID, str]:
    """Return the reason for each listed record's state; at most two statements."""
    running = {job.shell_file_id: job for job in jobs if job.status == JobStatus.PROCESSING}
    held = [
        job.shell_file_id
        for job in jobs
        if job.status == JobStatus.COMPLETED and job.shell_file.summary.manual_review_required
    ]
    said = _failing(running) if running else {}
    if held:
        kept = ShellFile.objects.filter(id__in=held).values_list("id", "warnings")
        said |= {record_id: to_look_at(warnings) for record_id, warnings in kept}
    return said


def _failing(running: Mapping[UUID, Job]) -> dict[UUID, str]:
    rows = (
        ProviderCall.objects.filter(processing_session__shell_file_id__in=running)
        .exclude(outcome=OUTCOME_LATE)
        .order_by()
        .values_list("processing_session__shell_file_id", "step", "outcome")
        .annotate(number=Count("id"))
    )
    met: dict[UUID, Counter[str]] = {record_id: Counter() for record_id in running}
    for record_id, step, outcome, number in rows:
        if step == running[record_id].current_step:
            met[record_id][outcome] += number
    found = {}
    for record_id, outcomes in met.items():
        total = outcomes.total()
        failed = total - outcomes.pop(OUTCOME_OK, 0)
        if failed:
            codes = ", ".join(code for code, _ in outcomes.most_common(2))
            found[record_id] = f"{failed} of {counted(total, 'call')} failed ({codes})"
    return found


def to_look_at(warnings: Sequence[Mapping[str, Any]]) -> str:
    """Return the warnings in words, such as `72 pages held for review (PATIENT_MISMATCH)`."""
    pages: dict[str, set[int]] = {}
    for warning in warnings:
        pages.setdefault(warning["code"], set()).update(warning.get("pages") or ())
    return "; ".join(
        f"{counted(len(numbers), 'page')} held for review ({code})"
        if numbers and code == ErrorCode.PATIENT_MISMATCH
        else f"look at {counted(len(numbers), 'page')} ({code})"
        if numbers
        else f"look at it ({code})"
        for code, numbers in pages.items()
    )
