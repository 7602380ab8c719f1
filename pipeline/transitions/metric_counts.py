"""The counters of the metrics, added in the transaction that records what they count.

A counter is the sum of its rows in `metric_counts`. Every writer inserts, so no transaction waits
for another. A transaction that rolls back counts nothing, and a repeated one counts once. Pruned
rows stay counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

from django.db import connection

from pipeline.models.sla import class_sql, target_sql, targets_s

DURATION_S = (15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 86_400)
"""Upper bounds of the buckets of a record's seconds; 900 s, 4 h and 24 h are targets of the SLA."""
CALL_S = (0.5, 1, 2, 4, 8, 15, 30, 60, 120)
"""Upper bounds of the buckets of a call's seconds; CALL_DEADLINE_S is 120."""
CONFIDENCE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1)
"""Upper bounds of the buckets of a record's confidence (0 to 1)."""


@dataclass(frozen=True, kw_only=True)
class CounterPart:
    """An addition to one counter."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    value: int | Decimal = 1


def bucket_sql(value: str, bounds: Sequence[float]) -> str:
    """Return the SQL of the label `le`: the least upper bound that is not below the value."""
    cases = " ".join(f"WHEN {value} <= {bound} THEN '{float(bound)}'" for bound in bounds)
    return f"CASE {cases} ELSE '+Inf' END"


def add_counts_sql(rows: str, parts: str, where: str = "true") -> str:
    """Return an INSERT of the sums of `parts`, a VALUES list of (name, labels, value) per row.

    `rows` is a FROM item. A part with the value 0 or NULL adds nothing.
    """
    return (
        "INSERT INTO metric_counts (name, labels, value)"  # noqa: S608 - constants of ours
        f" SELECT p.name, p.labels, sum(p.value) FROM {rows},"
        f" LATERAL (VALUES {parts}) AS p (name, labels, value)"
        f" WHERE {where} AND p.value > 0 GROUP BY p.name, p.labels"
    )


_MODEL = "'provider', c.provider, 'model', c.model"
_SECONDS = "c.duration_ms / 1000.0"
_CALLED = f"""
('calls', jsonb_build_object({_MODEL}, 'step', c.step, 'outcome', c.outcome), 1),
('reply_mismatches', '{{}}'::jsonb, (c.outcome = 'REPLY_MISMATCH')::int),
('accepted_calls', jsonb_build_object({_MODEL}), c.accepted::int),
('accepted_input_tokens', jsonb_build_object({_MODEL}), c.input_tokens * c.accepted::int),
('tokens', jsonb_build_object({_MODEL}, 'kind', 'input'), c.input_tokens),
('tokens', jsonb_build_object({_MODEL}, 'kind', 'output'), c.output_tokens),
('tokens', jsonb_build_object({_MODEL}, 'kind', 'thinking'), c.thinking_tokens),
('tokens', jsonb_build_object({_MODEL}, 'kind', 'cached'), c.cached_tokens),
('cost', jsonb_build_object({_MODEL}), c.cost_usd),
('call_seconds_bucket', jsonb_build_object({_MODEL}, 'le', {bucket_sql(_SECONDS, CALL_S)}), 1),
('call_seconds_sum', jsonb_build_object({_MODEL}), {_SECONDS})
"""
COUNTS_OF_CALLS = add_counts_sql("called c", _CALLED)
"""Counts the rows of `called`, which are new rows of `provider_calls`."""
CALL_COLUMNS = (
    "provider, model, step, outcome, accepted, input_tokens, output_tokens, thinking_tokens,"
    " cached_tokens, cost_usd, duration_ms"
)


def counts_of_flags_sql(step: str, column: str) -> str:
    """Return the INSERT that counts the flags of `found`, which are new rows of results.

    The label is the class of the flag: `disputed:dose` counts as `disputed`.
    """
    flag = "split_part(f.flag, ':', 1)"
    return add_counts_sql(
        f"found r, LATERAL jsonb_array_elements_text(r.{column}) AS f (flag)",
        f"('review_flags', jsonb_build_object('step', '{step}', 'flag', {flag}), 1)",
    )


# One row per job that has ended. `m.confidence` is NULL for a record without an accepted entity.
_ENDED = f"""job_queue j
  JOIN shell_files s ON s.id = j.shell_file_id
  JOIN ai_processing_summary r ON r.shell_file_id = s.id
  LEFT JOIN pass1_entity_metrics m ON m.shell_file_id = s.id
  CROSS JOIN LATERAL (SELECT r.total_processing_time_ms / 1000.0 AS ran_s,
    extract(epoch FROM clock_timestamp() - j.created_at) AS took_s,
    (j.status = 'completed')::int AS is_done,
    {class_sql("j.priority")} AS priority) f"""  # noqa: S608 - constants of ours
_IS_IN_TIME = f"(f.is_done = 1 AND f.took_s <= {target_sql('f.priority')})"
_PARTS = f"""
('documents_processed', jsonb_build_object('status', j.status), 1),
('sla_records', jsonb_build_object('priority', f.priority,
  'result', CASE WHEN {_IS_IN_TIME} THEN 'met' ELSE 'missed' END), (j.status <> 'cancelled')::int),
('pages_processed', '{{}}'::jsonb, s.page_count * f.is_done),
('processing_duration_bucket',
  jsonb_build_object('le', {bucket_sql("f.ran_s", DURATION_S)}), f.is_done),
('processing_duration_sum', '{{}}'::jsonb, f.ran_s * f.is_done),
('turnaround_bucket', jsonb_build_object('priority', f.priority,
  'le', {bucket_sql("f.took_s", DURATION_S)}), f.is_done),
('turnaround_sum', jsonb_build_object('priority', f.priority), f.took_s * f.is_done),
('extraction_confidence_bucket',
  jsonb_build_object('le', {bucket_sql("m.confidence", CONFIDENCE)}),
  CASE WHEN m.confidence IS NOT NULL THEN f.is_done END),
('extraction_confidence_sum', '{{}}'::jsonb, m.confidence::numeric * f.is_done)
"""
_COUNT_ENDED = add_counts_sql(_ENDED, _PARTS, "j.id = ANY(%(jobs)s)")

# One statement with one snapshot: a reader sees the rows before or after, never both or neither.
# Rows that a transaction in progress has inserted are invisible here, and stay.
_FOLD = """
WITH folded AS (DELETE FROM metric_counts RETURNING name, labels, value)
INSERT INTO metric_counts (name, labels, value)
SELECT name, labels, sum(value) FROM folded GROUP BY name, labels
"""


def add_counts(counts: Iterable[CounterPart]) -> None:
    """Add to counters, in one statement, in the transaction of the caller."""
    rows = [
        {"name": each.name, "labels": dict(each.labels), "value": str(each.value)}
        for each in counts
    ]
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO metric_counts (name, labels, value) SELECT name, labels, sum(value)"
            " FROM jsonb_to_recordset(%s::jsonb) AS r (name text, labels jsonb, value numeric)"
            " GROUP BY name, labels",
            [json.dumps(rows)],
        )


def count_ended(job_ids: Sequence[UUID]) -> None:
    """Count records whose jobs have ended, with their durations and their confidence.

    Call this after the totals. A record that fails, is retried and completes counts once as failed
    and once as completed. Durations and confidence count for completed records only. A record that
    fails or dies has missed its target; a cancelled record has none.
    """
    if not job_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_ENDED, {"jobs": list(job_ids), **targets_s()})


def fold_counts() -> None:
    """Replace the rows of each counter by their sum. Only the scheduler calls this."""
    with connection.cursor() as cursor:
        cursor.execute(_FOLD)


def counted_totals() -> list[CounterPart]:
    """Return every counter with its total; one statement over the few rows since the last fold."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, labels, sum(value) FROM metric_counts GROUP BY name, labels ORDER BY 1, 2"
        )
        return [
            CounterPart(name=name, labels=_labels(labels), value=value)
            for name, labels, value in cursor.fetchall()
        ]


def _labels(value: object) -> dict[str, str]:
    found = json.loads(value) if isinstance(value, str) else value
    assert isinstance(found, dict)  # noqa: S101 - narrows the type; only this module writes it
    return found
