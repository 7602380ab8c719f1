"""The time in which workers ran the steps of a job: `job_queue.step_run_ms`, by step.

The statement that takes a job from its worker adds the time. Waiting, parking and the time before
the first claim never count.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Func, JSONField

_ADDED = (
    "jsonb_set(step_run_ms, ARRAY[current_step], to_jsonb("
    "coalesce((step_run_ms ->> current_step)::bigint, 0)"
    " + greatest(0, coalesce(extract(epoch FROM {until} - step_started_at) * 1000, 0))::bigint))"
)
RUN_UNTIL_NOW = f"step_run_ms = {_ADDED.format(until='clock_timestamp()')}"
"""SQL assignment for the end of a step by its own worker."""
RUN_UNTIL_LOST = (
    "step_run_ms = CASE WHEN status = 'processing' THEN "
    + _ADDED.format(until="least(heartbeat_at, clock_timestamp())")
    + " ELSE step_run_ms END, step_started_at = NULL"
)
"""SQL assignments for a job that is taken from a lost worker: time counts until its heartbeat.

The start is cleared, so that the end of a dead job does not count the same time again."""


class RunUntilNow(Func):
    """The new value of `step_run_ms` at the end of a step."""

    template = _ADDED.format(until="clock_timestamp()")
    arity = 0
    output_field: Any = JSONField()
