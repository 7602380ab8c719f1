"""The parts that all passes with provider calls share: requests, failure entries, totals.

The functions only read. Call `pass_totals` and `ocr_totals` inside the fence that ends the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from pydantic import BaseModel

from medproc.timing import scaled
from pipeline.core.states import Step
from pipeline.execution.attachments import Shown
from pipeline.models import Summary, selectors
from pipeline.models.fields import milliseconds
from pipeline.models.work_item import WorkItem
from pipeline.providers.base import Request
from pipeline.providers.prompts import PROMPT_VERSION, estimate_tokens
from pipeline.transitions import Lease


def call_request(
    token: str, prompt: str, shown: Shown, *, schema: type[BaseModel], max_output_tokens: int
) -> Request:
    """Return the request of one call, with the deadline and the versions of this installation."""
    return Request(
        item_token=token,
        prompt=prompt,
        schema=schema,
        max_output_tokens=max_output_tokens,
        deadline_s=scaled(settings.CALL_DEADLINE_S),
        prompt_version=PROMPT_VERSION,
        estimated_input_tokens=estimate_tokens(prompt) + shown.input_tokens,
        attachments=shown.attachments,
    )


def failure_entry(item: WorkItem) -> dict[str, Any]:
    """Return the entry of a failed work item in the drill-down, without the item's number."""
    return {
        "pages": [item.page_range_start, item.page_range_end],
        "error_code": item.error_code,
        "underlying_error": (item.error_context or {}).get("final_underlying_error"),
        "attempts": item.attempt_count,
    }


def ocr_totals(shell_file_id: UUID) -> dict[str, Any]:
    """Return the columns about OCR that the metrics rows of Pass 0.5 and Pass 1 have."""
    ocr_pages = selectors.ocr_page_count(shell_file_id)
    return {
        "ocr_model_used": selectors.OCR_MODEL if ocr_pages else None,
        "ocr_pages_processed": ocr_pages,
    }


def pass_totals(
    lease: Lease,
    step: Step,
    summary: Summary,
    items: Sequence[WorkItem],
    starts: Iterable[datetime | None],
) -> dict[str, Any]:
    """Return the columns of `PassMetrics` for a pass's metrics row.

    `items` are the pass's work items. The processing time runs from the earliest of
    `starts` until now. Tokens are those of the call log, so that late replies count too.
    """
    started = [start for start in starts if start]
    took = timezone.now() - min(started) if started else timedelta()
    calls = selectors.call_totals(lease.session_id, step)
    return {
        "profile_id": summary.profile_id,
        "processing_session_id": lease.session_id,
        "processing_time_ms": milliseconds(took),
        "ai_model_used": next((i.ai_model_used for i in items if i.ai_model_used), None),
        "total_retries_used": sum(max(0, i.attempt_count - 1) for i in items),
        "input_tokens": calls["input_tokens"],
        "output_tokens": calls["output_tokens"],
        "total_tokens": calls["total_tokens"],
        "user_agent": summary.user_agent,
        "ip_address": summary.ip_address,
    }
