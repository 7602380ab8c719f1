"""What the report card of a record adds up to after each step: time, tokens, cost, milestones.

Imports models and selectors. Called inside the step's fence, so that the figures are those of the
rows that are committed with them.
"""

from __future__ import annotations

from django.db import connection

from pipeline import selectors
from pipeline.transitions.leases import Lease

_ADD_UP = """
UPDATE ai_processing_summary SET
  total_tokens_used = %(tokens)s, total_cost_usd = %(cost)s,
  total_processing_time_ms = least(2147483647, coalesce(
    (extract(epoch FROM clock_timestamp() - processing_started_at) * 1000)::bigint, 0)),
  business_events = business_events || jsonb_build_array(
    jsonb_build_object('event', %(event)s::text, 'at', clock_timestamp()))
WHERE shell_file_id = %(shell_file)s
"""


def add_up(lease: Lease, event: str) -> None:
    """Bring the totals of a record up to date and note a milestone, as `pass1_completed`.

    Tokens are input, output and thinking of every call, late and failed ones included.
    """
    totals = selectors.call_totals(lease.session_id)
    with connection.cursor() as cursor:
        cursor.execute(
            _ADD_UP,
            {
                "tokens": totals["input_tokens"]
                + totals["output_tokens"]
                + totals["thinking_tokens"],
                "cost": totals["cost_usd"],
                "event": event,
                "shell_file": lease.shell_file_id,
            },
        )
