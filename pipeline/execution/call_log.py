"""Each call as a row of `provider_calls`, its payload, and its effect on the work item.

The module collects rows and writes nothing itself. There is one row per call, whatever the pass.
Messages are written by us and free of PHI; raw replies go to `provider_payloads` alone.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID, uuid4

from django.utils import timezone

from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.execution import fanout
from pipeline.execution.splits import Split, SplitKey
from pipeline.execution.step_work import AcceptedReply
from pipeline.models import OUTCOME_LATE, OUTCOME_OK
from pipeline.models.fields import counted, storable
from pipeline.models.work_item import FailureEntry, WorkItem
from pipeline.providers.base import Provider, Request
from pipeline.providers.pricing import cost_usd
from pipeline.providers.schemas import SCHEMA_VERSION
from pipeline.transitions import Flush, Lease

USAGE_UNKNOWN = "the token counts of the reply were unusable, so the usage is unknown"


@dataclass(frozen=True, kw_only=True)
class LoggedCall:
    """One call as it is written."""

    split: Split[WorkItem]
    call_no: int
    duration_s: float
    details: CallDetails
    outcome: str
    """OK, LATE, or a code of the error taxonomy."""
    accepted: bool = False
    message: str | None = None
    attempt: int | None = None
    """The 1-based number of the row's call; None: the next number."""


@dataclass(frozen=True)
class _SentPrompt:
    version: str
    sha256: str


@dataclass
class CallLog:
    """Turns the events of one step into rows of calls."""

    lease: Lease
    provider: Provider
    _prompts: dict[SplitKey, _SentPrompt] = field(default_factory=dict)
    _waits_ms: dict[int, int] = field(default_factory=dict)
    _began: dict[int, float] = field(default_factory=dict)
    """When each call that is in flight began, by `time.monotonic`."""
    _written_off: dict[int, int] = field(default_factory=dict)
    """Number of the attempt that a written-off call was, for its late reply."""
    _answered: dict[UUID, int] = field(default_factory=dict)
    """Answered splits of a row: calls that its history does not name."""

    def note_prompt(self, key: SplitKey, request: Request) -> None:
        """Note which prompt a call carries. Runs in a call thread."""
        digest = sha256(request.prompt.encode()).hexdigest()
        self._prompts[key] = _SentPrompt(request.prompt_version, digest)

    def started(self, event: fanout.Started[SplitKey]) -> None:
        """Note how long a call waited for its slot."""
        self._waits_ms[event.call_no] = counted(event.queue_wait_s * 1000)
        self._began[event.call_no] = time.monotonic()

    def succeeded(
        self,
        split: Split[WorkItem],
        event: fanout.Succeeded[SplitKey, AcceptedReply],
        flush: Flush,
        *,
        accepted: bool,
    ) -> None:
        """Record the reply that a row, or a split of it, is built from."""
        self._add(
            LoggedCall(
                split=split,
                call_no=event.call_no,
                duration_s=event.duration_s,
                details=event.result.details,
                outcome=OUTCOME_OK,
                accepted=accepted,
            ),
            flush,
        )

    def failed(
        self,
        split: Split[WorkItem],
        event: fanout.AttemptFailed[SplitKey],
        error: CallError,
        flush: Flush,
    ) -> int:
        """Record a failed call; return its position in the row's history."""
        number = self._next_number(split.row)
        self._add(
            LoggedCall(
                split=split,
                call_no=event.call_no,
                duration_s=event.duration_s,
                details=error.details,
                outcome=error.code,
                message=error.message,
            ),
            flush,
        )
        if isinstance(event.error, fanout.CallTimedOut):
            self._written_off[event.call_no] = number
        delay_s = event.retry_in_s
        entry = FailureEntry(
            attempt=number,
            error_code=error.code,
            error_message=error.message,
            timestamp=timezone.now().isoformat(),
            retry_delay_ms=None if delay_s is None else counted(delay_s * 1000),
        )
        if split.name:
            entry["split"] = split.name
        return split.row.record_failure(entry)

    def cut(self, split: Split[WorkItem], call_no: int, flush: Flush) -> None:
        """Record a call that was given up with its step; the provider may still answer it."""
        began = self._began.get(call_no, time.monotonic())
        self._add(
            LoggedCall(
                split=split,
                call_no=call_no,
                duration_s=time.monotonic() - began,
                details=CallDetails(),
                outcome=ErrorCode.CANCELLED,
                message="given up when the step stopped",
            ),
            flush,
        )

    def late(
        self,
        split: Split[WorkItem],
        event: fanout.LateReply[SplitKey, AcceptedReply],
        flush: Flush,
    ) -> None:
        """Record the tokens of a reply that came after its call was written off."""
        if event.result is not None:
            details = event.result.details
        elif isinstance(event.error, CallError):
            details = event.error.details
        else:
            return
        self._add(
            LoggedCall(
                split=split,
                call_no=event.call_no,
                duration_s=event.duration_s,
                details=details,
                outcome=OUTCOME_LATE,
                message="came too late",
                attempt=self._written_off.pop(event.call_no, None),
            ),
            flush,
        )

    def _add(self, call: LoggedCall, flush: Flush) -> None:
        details = storable_details(call.details)
        row = call.split.row
        prompt = self._prompts.get(call.split.key)
        call_id = str(uuid4())
        flush.calls.append(self._call_row(call, call_id, details, prompt))
        if details.raw_reply:
            flush.payloads.append(_payload_row(call, call_id, details.raw_reply, prompt))
        self._began.pop(call.call_no, None)
        self._answered[row.id] = self._answered.get(row.id, 0) + (call.outcome == OUTCOME_OK)
        row.record_call(
            details.model_version or self.provider.model,
            input_tokens=details.input_tokens,
            output_tokens=details.output_tokens,
        )

    def _call_row(
        self, call: LoggedCall, call_id: str, details: CallDetails, prompt: _SentPrompt | None
    ) -> dict[str, object]:
        row = call.split.row
        first, last = call.split.page_range
        return {
            **call_row(self.lease, self.provider, details, duration_s=call.duration_s),
            "id": call_id,
            "work_item_id": str(row.id),
            "split": call.split.name,
            "page_range_start": first,
            "page_range_end": last,
            "attempt": call.attempt or self._next_number(row),
            "outcome": call.outcome,
            "accepted": call.accepted,
            "message": _message(call),
            "prompt_version": prompt.version if prompt else "",
            "schema_version": SCHEMA_VERSION,
            "queue_wait_ms": self._waits_ms.pop(call.call_no, 0),
            "cost_usd": str(cost_usd(self.provider.name, details)),
        }

    def _next_number(self, row: WorkItem) -> int:
        """Return the 1-based number of the row's next call, limited calls included."""
        history = len(row.failure_history) + self._answered.get(row.id, 0)
        return int(max(history, row.attempt_count + row.rate_limit_waits)) + 1


def call_row(
    lease: Lease, provider: Provider, details: CallDetails, *, duration_s: float
) -> dict[str, object]:
    """Return the columns of a call about a whole record; a call about an item replaces some.

    `details` are storable. `outcome`, `attempt` and `cost_usd` are missing.
    """
    return {
        "id": str(uuid4()),
        "processing_session_id": str(lease.session_id),
        "step": lease.step.value,
        "work_item_id": None,
        "split": "",
        "page_range_start": None,
        "page_range_end": None,
        "accepted": False,
        "message": None,
        "provider": provider.name,
        "model": provider.model,
        "model_version": details.model_version or None,
        "response_id": details.response_id or None,
        "prompt_version": "",
        "schema_version": "",
        "http_status": details.http_status,
        "finish_reason": details.finish_reason or None,
        "quota_id": details.quota_id or None,
        "retry_after_ms": _ms(details.retry_after_s),
        "queue_wait_ms": 0,
        "duration_ms": counted(duration_s * 1000),
        "input_tokens": details.input_tokens,
        "output_tokens": details.output_tokens,
        "thinking_tokens": details.thinking_tokens,
        "cached_tokens": details.cached_tokens,
        "lease_gen": lease.gen,
        "started_at": _before(duration_s).isoformat(),
    }


def storable_details(details: CallDetails) -> CallDetails:
    """Return the details as a row can hold them, and token counts as a price can."""
    return replace(
        details,
        finish_reason=storable(details.finish_reason),
        quota_id=storable(details.quota_id),
        model_version=storable(details.model_version),
        response_id=storable(details.response_id),
        input_tokens=counted(details.input_tokens),
        output_tokens=counted(details.output_tokens),
        thinking_tokens=counted(details.thinking_tokens),
        cached_tokens=counted(details.cached_tokens),
    )


def _message(call: LoggedCall) -> str | None:
    if not call.details.is_usage_unknown:
        return call.message
    return f"{call.message}; {USAGE_UNKNOWN}" if call.message else USAGE_UNKNOWN


def _payload_row(
    call: LoggedCall, call_id: str, raw_reply: str, prompt: _SentPrompt | None
) -> dict[str, object]:
    first, last = call.split.page_range
    return {
        "call_id": call_id,
        "page_range_start": first,
        "page_range_end": last,
        "prompt_sha256": prompt.sha256 if prompt else "",
        "reply": "\\x" + zlib.compress(raw_reply.encode("utf-8", "replace")).hex(),
    }


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else counted(seconds * 1000)


def _before(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)
