"""What each call was and what it did to its row: `provider_calls`, payloads, histories.

Imports `fanout` events, models' constants and the provider's values; writes nothing itself. One
row per call, whatever the pass; messages are ours and free of PHI, raw replies go to
`provider_payloads` alone.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from pipeline.core.errors import CallDetails, CallError, ErrorCode, PipelineError
from pipeline.execution import fanout
from pipeline.execution.splits import Key, Piece
from pipeline.models import OUTCOME_LATE, OUTCOME_OK
from pipeline.models.fields import counted, storable
from pipeline.providers.base import Provider, Request
from pipeline.providers.pricing import cost_usd
from pipeline.providers.schemas import SCHEMA_VERSION
from pipeline.transitions import Flush, Lease


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a call thread hands to the owner: the checked output and the details of the call."""

    output: dict[str, Any] = field(repr=False)
    counts: dict[str, int]
    details: CallDetails


@dataclass(frozen=True)
class _Asked:
    prompt_version: str
    prompt_sha256: str


@dataclass
class Ledger:
    """Turns the events of one step into rows of calls."""

    lease: Lease
    provider: Provider
    _asked: dict[Key, _Asked] = field(default_factory=dict)
    _waits_ms: dict[int, int] = field(default_factory=dict)
    _began: dict[int, float] = field(default_factory=dict)
    """When each call that is in flight began, by `time.monotonic`."""
    _written_off: dict[int, int] = field(default_factory=dict)
    """Number of the attempt that a written-off call was, for its late reply."""
    _answered: dict[UUID, int] = field(default_factory=dict)
    """Parts of a row that were answered: calls that its history does not name."""

    def asked(self, key: Key, request: Request) -> None:
        """Note which prompt a call carries. Runs in a call thread."""
        digest = sha256(request.prompt.encode()).hexdigest()
        self._asked[key] = _Asked(request.prompt_version, digest)

    def started(self, event: fanout.Started[Key]) -> None:
        """Note how long a call waited for its slot."""
        self._waits_ms[event.call_no] = counted(event.queue_wait_s * 1000)
        self._began[event.call_no] = time.monotonic()

    def succeeded(
        self,
        piece: Piece,
        event: fanout.Succeeded[Key, Answer],
        flush: Flush,
        *,
        accepted: bool = True,
    ) -> None:
        """Record the reply that a row, or a part of it, is built from."""
        self._add(
            piece,
            event.call_no,
            event.duration_s,
            event.result.details,
            flush,
            outcome=OUTCOME_OK,
            accepted=accepted,
        )

    def failed(
        self, piece: Piece, event: fanout.AttemptFailed[Key], error: CallError, flush: Flush
    ) -> dict[str, Any]:
        """Record a failed call, add it to the row's history, and return what that says of it."""
        row = piece.row
        number = self._number(row)
        self._add(
            piece,
            event.call_no,
            event.duration_s,
            error.details,
            flush,
            outcome=error.code,
            message=error.message,
        )
        if isinstance(event.error, fanout.CallTimedOut):
            self._written_off[event.call_no] = number
        entry: dict[str, Any] = {
            "attempt": number,
            "error_code": error.code,
            "error_message": error.message,
            "timestamp": timezone.now().isoformat(),
            "retry_delay_ms": None
            if event.retry_in_s is None
            else counted(event.retry_in_s * 1000),
        }
        if piece.name:
            entry["part"] = piece.name
        row.transient_error_history = [*(row.transient_error_history or []), entry]
        return entry

    def gave_up(self, row: Any, error: BaseException, part: str = "") -> None:
        """Fill the error columns of a row that has failed for good (`spec.md` point 20)."""
        history = row.transient_error_history or []
        own = [entry for entry in history if entry.get("part", "") == part]
        last = own[-1] if own else {}
        if isinstance(error, fanout.DeadlineExceeded):
            row.error_code = ErrorCode.DEADLINE_EXCEEDED
            row.error_message = (
                f"the next retry was due in {error.delay_s:.1f} s,"
                f" but the step had {error.remaining_s:.1f} s left"
            )
        elif isinstance(error, PipelineError):
            row.error_code, row.error_message = error.code, error.message
        else:
            row.error_code = ErrorCode.INTERNAL_ERROR
            row.error_message = f"unexpected {type(error).__name__}"
        row.error_context = {
            "final_underlying_error": last.get("error_code", row.error_code),
            "final_underlying_message": last.get("error_message", row.error_message),
            "attempt_history": history,
        }
        if hasattr(row, "error_details"):
            row.error_details = row.error_context
        row.had_transient_failure = len(history) > 1

    def cut(self, piece: Piece, call_no: int, flush: Flush) -> None:
        """Record a call that was given up when its step stopped; the provider may answer it yet."""
        began = self._began.get(call_no, time.monotonic())
        self._add(
            piece,
            call_no,
            time.monotonic() - began,
            CallDetails(),
            flush,
            outcome=ErrorCode.CANCELLED,
            message="given up when the step stopped",
        )

    def late(self, piece: Piece, event: fanout.LateReply[Key, Answer], flush: Flush) -> None:
        """Record the tokens of a reply that came after its call was written off."""
        if event.result is not None:
            details = event.result.details
        elif isinstance(event.error, CallError):
            details = event.error.details
        else:
            return
        self._add(
            piece,
            event.call_no,
            event.duration_s,
            details,
            flush,
            outcome=OUTCOME_LATE,
            message="came too late",
            number=self._written_off.pop(event.call_no, None),
        )

    def _add(
        self,
        piece: Piece,
        call_no: int,
        duration_s: float,
        details: CallDetails,
        flush: Flush,
        *,
        outcome: str,
        accepted: bool = False,
        message: str | None = None,
        number: int | None = None,
    ) -> None:
        details = _storable(details)
        self._began.pop(call_no, None)
        call_id = uuid4()
        row = piece.row
        first, last = piece.page_range
        asked = self._asked.get(piece.key)
        flush.calls.append(
            {
                "id": str(call_id),
                "processing_session_id": str(self.lease.session_id),
                "step": self.lease.step.value,
                "work_item_id": str(row.id),
                "part": piece.name,
                "page_range_start": first,
                "page_range_end": last,
                "attempt": number or self._number(row),
                "outcome": outcome,
                "accepted": accepted,
                "message": message,
                "provider": self.provider.name,
                "model": self.provider.model,
                "model_version": details.model_version or None,
                "response_id": details.response_id or None,
                "prompt_version": asked.prompt_version if asked else "",
                "schema_version": SCHEMA_VERSION,
                "http_status": details.http_status,
                "finish_reason": details.finish_reason or None,
                "quota_id": details.quota_id or None,
                "retry_after_ms": _ms(details.retry_after_s),
                "queue_wait_ms": self._waits_ms.pop(call_no, 0),
                "duration_ms": counted(duration_s * 1000),
                "input_tokens": details.input_tokens,
                "output_tokens": details.output_tokens,
                "thinking_tokens": details.thinking_tokens,
                "cached_tokens": details.cached_tokens,
                "cost_usd": str(cost_usd(self.provider.name, details)),
                "lease_gen": self.lease.gen,
                "started_at": _before(duration_s).isoformat(),
            }
        )
        self._answered[row.id] = self._answered.get(row.id, 0) + (outcome == OUTCOME_OK)
        row.ai_model_used = details.model_version or self.provider.model
        row.input_tokens = counted((row.input_tokens or 0) + details.input_tokens)
        row.output_tokens = counted((row.output_tokens or 0) + details.output_tokens)
        if details.raw_reply:
            flush.payloads.append(
                {
                    "call_id": str(call_id),
                    "page_range_start": first,
                    "page_range_end": last,
                    "prompt_sha256": asked.prompt_sha256 if asked else "",
                    "reply": "\\x"
                    + zlib.compress(details.raw_reply.encode("utf-8", "replace")).hex(),
                }
            )

    def _number(self, row: Any) -> int:
        """Return the 1-based number of the row's next call, limited calls included."""
        history = len(row.transient_error_history or ()) + self._answered.get(row.id, 0)
        return int(max(history, row.attempt_count + row.rate_limit_waits)) + 1


def _storable(details: CallDetails) -> CallDetails:
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


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else counted(seconds * 1000)


def _before(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)
