"""What a record has cost and taken so far, carried up to its report card. Imports models.

Called inside the fence that ends a step, by whoever ends it, so that the figures of a failed
record are as complete as those of a finished one (`spec.md` point 21).
"""

from __future__ import annotations

from django.db.models import F, Func, JSONField, Value
from django.db.models.functions import Extract, Least
from django.utils import timezone

from pipeline import selectors
from pipeline.models import Summary
from pipeline.models.fields import INTEGER_MAX, ClockTimestamp
from pipeline.transitions import Lease


def roll_up(lease: Lease, event: str) -> None:
    """Add up tokens, cost and time of all passes, and note a milestone."""
    totals = selectors.call_totals(lease.session_id)
    took = Extract(ClockTimestamp() - F("processing_started_at"), "epoch") * 1000
    took_ms = Least(took, Value(float(INTEGER_MAX)))
    milestone = {"event": event, "at": timezone.now().isoformat()}
    Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
        total_tokens_used=totals["total_tokens"],
        total_cost_usd=totals["cost_usd"],
        total_processing_time_ms=took_ms,
        business_events=Func(
            F("business_events"),
            Value([milestone], output_field=JSONField()),
            template="%(expressions)s",
            arg_joiner=" || ",
        ),
    )
