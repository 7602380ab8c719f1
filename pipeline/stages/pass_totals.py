"""The columns that the totals of every pass share, read from the database and the work items.

Call `pass_totals` inside the fence that ends the step; the function itself only reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from pipeline import selectors
from pipeline.core.states import Step
from pipeline.models import Batch, Chunk, Summary
from pipeline.models.fields import milliseconds
from pipeline.transitions import Lease


def pass_totals(
    lease: Lease,
    step: Step,
    summary: Summary,
    items: Sequence[Batch] | Sequence[Chunk],
    starts: Iterable[datetime | None],
) -> dict[str, Any]:
    """Return the shared columns of a pass's metrics row.

    `items` are the pass's batches or chunks. The processing time runs from the earliest of
    `starts` until now. Tokens are those of the call log, so that late replies count too.
    """
    started = [start for start in starts if start]
    took = timezone.now() - min(started) if started else timedelta()
    ocr_pages = selectors.ocr_page_count(lease.shell_file_id)
    calls = selectors.call_totals(lease.session_id, step)
    return {
        "profile_id": summary.profile_id,
        "processing_session_id": lease.session_id,
        "processing_time_ms": milliseconds(took),
        "ai_model_used": next((i.ai_model_used for i in items if i.ai_model_used), None),
        "ocr_model_used": selectors.OCR_MODEL if ocr_pages else None,
        "ocr_pages_processed": ocr_pages,
        "total_retries_used": sum(max(0, i.attempt_count - 1) for i in items),
        "input_tokens": calls["input_tokens"],
        "output_tokens": calls["output_tokens"],
        "total_tokens": calls["total_tokens"],
        "user_agent": summary.user_agent,
        "ip_address": summary.ip_address,
    }
