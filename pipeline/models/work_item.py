"""The shapes that passes share: a work item, and the totals of a pass.

A work item is one run of pages, the subject of one call, or of several calls after a split: a
batch, a chunk, later a zone. All passes share its columns, so that fan-out, flush and drill-down
treat all passes alike. Each verb of `WorkItem` is the only writer of the fields that the verb sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NotRequired, TypedDict
from uuid import UUID

from django.db import models

from pipeline.core.errors import ErrorCode
from pipeline.core.states import WORK_MOVES, WorkStatus
from pipeline.models import fields
from pipeline.models.documents import Patient
from pipeline.models.packed_output import PackedOutput
from pipeline.models.sessions import Session


class FailureEntry(TypedDict):
    """One failed call in the history of a work item; free of PHI."""

    attempt: int
    error_code: str
    error_message: str
    timestamp: str
    """ISO 8601, by the clock of the worker's host."""
    retry_delay_ms: int | None
    split: NotRequired[str]
    """Name of the split that the call was about; absent for the whole work item."""
    refunded: NotRequired[bool]
    """True where the attempt does not count, because the call failed in an outage."""


class WorkItem(models.Model):
    """Status, attempts, timing, tokens, errors and stored output of one unit of work.

    The verbs change the object in memory only; `transitions.flush` writes the row.
    """

    id = fields.uuid_pk()
    processing_session = models.ForeignKey(
        Session, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    """Each pass states its own rule; all code reaches the session of an item by this name."""
    page_range_start = models.IntegerField()
    page_range_end = models.IntegerField()
    status = fields.status(WorkStatus, WorkStatus.PENDING)
    attempt_count = fields.count()
    max_attempts = fields.count(3)
    rate_limit_waits = fields.count()
    """Calls that met a rate limit; they spend no attempt."""
    started_at = fields.optional_time()
    completed_at = fields.optional_time()
    duration_ms = fields.optional_count()
    ai_model_used = fields.text(null=True)
    input_tokens = fields.optional_count()
    output_tokens = fields.optional_count()
    error_code = fields.text(null=True)
    error_message = fields.text(null=True)
    error_context = models.JSONField(null=True, blank=True)
    """{final_underlying_error, final_underlying_message, attempt_history}; no PHI."""
    had_transient_failure = fields.flag()
    transient_error_history = models.JSONField(null=True, blank=True)
    """List of `FailureEntry`."""
    output = models.JSONField(null=True, blank=True)
    """The validated reply, from its success until it is published. PHI."""
    created_at = fields.created_at()

    class Meta:
        abstract = True

    @property
    def failure_history(self) -> list[FailureEntry]:
        """The failed calls of this item, oldest first; of earlier runs too."""
        history: list[FailureEntry] | None = self.transient_error_history
        return history or []

    @property
    def encounter_id(self) -> UUID | None:
        """The encounter that a failure of this item names, where the pass knows one."""
        return None

    @property
    def number_in_encounter(self) -> int | None:
        """The 0-based number that a failure of this item names, where the pass knows one."""
        return None

    def begin(self, at: datetime) -> None:
        """Start the item; of a failure in an earlier run only the history stays."""
        self._move_to(WorkStatus.PROCESSING)
        self.started_at = at
        self.completed_at = self.duration_ms = None
        self._clear_error()

    def interrupt(self) -> None:
        """Put an unfinished item back to `pending`; an interruption costs no attempt."""
        self._move_to(WorkStatus.PENDING)

    def record_call(self, model: str, *, input_tokens: int, output_tokens: int) -> None:
        """Add the tokens of one call, and note the model that answered."""
        self.ai_model_used = model
        self.input_tokens = fields.counted((self.input_tokens or 0) + input_tokens)
        self.output_tokens = fields.counted((self.output_tokens or 0) + output_tokens)

    def record_failure(self, entry: FailureEntry) -> int:
        """Append a failed call to the history; return its position there."""
        self.transient_error_history = [*self.failure_history, entry]
        return len(self.failure_history) - 1

    def refund_failure(self, position: int) -> None:
        """Mark a failed call of the history as free, so that the call costs no attempt."""
        # In place: the error context of an item that has failed shares these entries.
        self.failure_history[position]["refunded"] = True

    def show_attempts(self, attempts: int) -> None:
        """Set the attempts that the item has spent: the highest count of its splits."""
        self.attempt_count = attempts

    def count_limited_call(self) -> None:
        """Count one call that met a rate limit."""
        self.rate_limit_waits += 1

    def succeed(self, output: Mapping[str, Any], counts: Mapping[str, int], at: datetime) -> None:
        """End the item with its accepted output and the counts of what was detected."""
        self._end(WorkStatus.SUCCEEDED, at)
        self.had_transient_failure = bool(self.failure_history)
        self.error_code = self.error_message = self.error_context = None
        self.output = output
        self.pack_output()
        self._set_counts(counts)

    def fail(self, code: ErrorCode, message: str, at: datetime, *, split: str = "") -> None:
        """End the item as failed for good.

        The context names the last failed call of `split` as the underlying error (requirement 20).
        """
        self._end(WorkStatus.FAILED, at)
        history = self.failure_history
        own = [entry for entry in history if entry.get("split", "") == split]
        self.error_code, self.error_message = code, message
        self.error_context = {
            "final_underlying_error": own[-1]["error_code"] if own else code,
            "final_underlying_message": own[-1]["error_message"] if own else message,
            "attempt_history": history,
        }
        self.had_transient_failure = len(history) > 1

    def pack_output(self) -> None:
        """Compress the output in memory until it is published."""
        if self.output is not None and not isinstance(self.output, PackedOutput):
            self.output = PackedOutput(self.output)

    @property
    def unpacked_output(self) -> dict[str, Any]:
        """The stored output; empty without one."""
        output: Mapping[str, Any] | None = self.output
        return output.unpacked() if isinstance(output, PackedOutput) else dict(output or {})

    def publish(self) -> None:
        """Clear the stored output: what was built from it is visible now."""
        self.output = None

    def _set_counts(self, counts: Mapping[str, int]) -> None:
        """Set the pass's own counters of what was detected."""
        raise NotImplementedError

    def _clear_error(self) -> None:
        self.error_code = self.error_message = self.error_context = None

    def _end(self, status: WorkStatus, at: datetime) -> None:
        self._move_to(status)
        self.completed_at = at
        self.duration_ms = fields.milliseconds(at - (self.started_at or at))

    def _move_to(self, status: WorkStatus) -> None:
        before = WorkStatus(self.status)
        if before is not status and (before, status) not in WORK_MOVES:
            raise ValueError(f"a work item never moves from {before} to {status}")
        self.status = status


class PassMetrics(models.Model):
    """What one pass cost for one record; the columns that every pass has."""

    id = fields.uuid_pk()
    profile = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="+")
    processing_session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    processing_time_ms = fields.count()
    processing_time_minutes = models.GeneratedField(
        expression=models.F("processing_time_ms") / models.Value(60000.0),
        output_field=models.FloatField(),
        db_persist=True,
    )
    ai_model_used = fields.text(null=True)
    total_retries_used = fields.count()
    input_tokens = fields.count()
    output_tokens = fields.count()
    total_tokens = fields.count()
    error_code = fields.text(null=True)
    error_summary = fields.text(null=True)
    user_agent = fields.text(null=True)
    ip_address = models.GenericIPAddressField(null=True, blank=True)
    created_at = fields.created_at()

    class Meta:
        abstract = True
