"""The spans of a step, made from what the executor has written: record, pass, work item, call.

Only the thread that writes makes spans, after the write, so a trace holds nothing that the database
does not. Spans carry ids, codes, counts and times. They carry no text, and nothing of a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from medproc.telemetry import traces
from medproc.telemetry.spans import ROOT, TraceSpan
from pipeline.core.db_errors import unless_away
from pipeline.core.errors import ErrorCode
from pipeline.core.states import JOB_TERMINAL, Step, WorkStatus
from pipeline.models import OUTCOME_LATE, OUTCOME_OK, Job
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES
from pipeline.transitions import Lease, Recovered

COMPLETED = "completed"
_AGAIN = frozenset({"retried", "requeued"})
"""Events of a job's history after which the job runs again, although it had ended."""


class StepTrace:
    """Sends the spans of the work items and calls of one step."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._noun = WORK_TABLES[lease.step].noun if lease.step in WORK_TABLES else ""

    @classmethod
    def of(cls, lease: Lease) -> StepTrace | None:
        """Return the trace of a step; None if no spans are wanted."""
        return cls(lease) if traces.is_on() else None

    def written(self, calls: Iterable[Mapping[str, Any]], items: Iterable[WorkItem] = ()) -> None:
        """Send the spans of calls, and of the work items that have no open call."""
        traces.send([*map(self._call, calls), *self._items(items)])

    def _items(self, items: Iterable[WorkItem]) -> Iterator[TraceSpan]:
        now = timezone.now()
        for row in items:
            if row.status == WorkStatus.PROCESSING or row.started_at is None:
                continue
            has_failed = row.status == WorkStatus.FAILED
            outcome = "interrupted"
            if row.status == WorkStatus.SUCCEEDED:
                outcome = COMPLETED
            elif has_failed:
                outcome = str(row.error_code)
            yield TraceSpan(
                record_id=self._lease.shell_file_id,
                key=_item_key(self._lease, str(row.id)),
                parent=_pass_key(self._lease.job_id, self._lease.gen),
                name=self._noun,
                began_at=row.started_at,
                ended_at=(None if outcome == "interrupted" else row.completed_at) or now,
                attributes={
                    "medproc.work_item": str(row.id),
                    "medproc.pass": self._lease.step.value,
                    "medproc.outcome": outcome,
                    "medproc.attempts": row.attempt_count,
                    "medproc.rate_limit_waits": row.rate_limit_waits,
                    "gen_ai.usage.input_tokens": row.input_tokens or 0,
                    "gen_ai.usage.output_tokens": row.output_tokens or 0,
                },
                has_failed=has_failed,
            )

    def _call(self, row: Mapping[str, Any]) -> TraceSpan:
        item, began_at = row["work_item_id"], datetime.fromisoformat(row["started_at"])
        attributes = {
            "medproc.call": row["id"],
            "medproc.pass": row["step"],
            "medproc.outcome": row["outcome"],
            "medproc.attempt": row["attempt"],
            "medproc.split": row["split"],
            "medproc.wait_ms": row["queue_wait_ms"],
            "gen_ai.provider.name": row["provider"],
            "gen_ai.request.model": row["model"],
            "gen_ai.usage.input_tokens": row["input_tokens"],
            "gen_ai.usage.output_tokens": row["output_tokens"],
        }
        if row["http_status"] is not None:
            attributes["http.response.status_code"] = row["http_status"]
        of_item = _item_key(self._lease, item) if item else None
        return TraceSpan(
            record_id=self._lease.shell_file_id,
            key=f"call {row['id']}",
            parent=of_item or _pass_key(self._lease.job_id, self._lease.gen),
            name="call",
            began_at=began_at,
            ended_at=began_at + timedelta(milliseconds=row["duration_ms"]),
            attributes=attributes,
            has_failed=row["outcome"] not in (OUTCOME_OK, OUTCOME_LATE),
        )


def trace_pass(lease: Lease, began_at: datetime, outcome: str, *, has_failed: bool) -> None:
    """Send the span of a pass that has ended, and the span of the record if its job has ended."""
    if not traces.is_on():
        return
    traces.send([_pass(lease, lease.gen, began_at, timezone.now(), outcome, has_failed=has_failed)])
    with unless_away():
        trace_end_of(lease.job_id)


def trace_lost_pass(lost: Recovered) -> None:
    """Send the span of a pass whose worker died, and the span of the record if its job is dead."""
    if not traces.is_on():
        return
    # The recovery has taken the next generation. The last sign of life was the last heartbeat.
    gen, ended_at = lost.lease.gen - 1, lost.heartbeat_at or timezone.now()
    began_at = lost.step_started_at or ended_at
    traces.send(
        [_pass(lost.lease, gen, began_at, ended_at, ErrorCode.WORKER_LOST, has_failed=True)]
    )
    with unless_away():
        trace_end_of(lost.lease.job_id)


def trace_end_of(job_id: UUID) -> None:
    """Send the span of a record if its job has ended; a job that ran again has one more span."""
    job = Job.objects.filter(id=job_id, status__in=JOB_TERMINAL).first()
    if job is None:
        return
    history = (job.error_details or {}).get("history", ())
    again = [entry["at"] for entry in history if entry.get("event") in _AGAIN and "at" in entry]
    began_at = datetime.fromisoformat(again[-1]) if again else job.created_at
    traces.send(
        [
            TraceSpan(
                record_id=job.shell_file_id,
                key=f"run {job.id} {len(again)}" if again else ROOT,
                name="another run" if again else ROOT,
                began_at=began_at,
                ended_at=job.completed_at or timezone.now(),
                attributes={
                    "medproc.record": str(job.shell_file_id),
                    "medproc.job": str(job.id),
                    "medproc.outcome": job.error_code or job.status,
                    "medproc.crashes": job.crash_count,
                },
                has_failed=job.error_code is not None,
            )
        ]
    )


def _pass(
    lease: Lease,
    gen: int,
    began_at: datetime,
    ended_at: datetime,
    outcome: str,
    *,
    has_failed: bool,
) -> TraceSpan:
    return TraceSpan(
        record_id=lease.shell_file_id,
        key=_pass_key(lease.job_id, gen),
        name=Step(lease.step).value,
        began_at=began_at,
        ended_at=ended_at,
        attributes={
            "medproc.record": str(lease.shell_file_id),
            "medproc.job": str(lease.job_id),
            "medproc.pass": lease.step.value,
            "medproc.attempt": gen,
            "medproc.worker": lease.worker_id,
            "medproc.outcome": outcome,
        },
        has_failed=has_failed,
    )


def _pass_key(job_id: UUID, gen: int) -> str:
    return f"pass {job_id} {gen}"


def _item_key(lease: Lease, item_id: str) -> str:
    # The same item in a later attempt of the pass is another span, below that attempt.
    return f"item {item_id} {lease.gen}"
