"""The figures from which the totals of a record are made: one statement for all passes.

A step of a small record ends within milliseconds, so two dozen statements of the ORM cost more than
the figures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from pipeline.core.states import Step
from pipeline.models.fields import counted

_ITEMS = """(
  SELECT json_build_object('total', count(*),
    'succeeded', count(*) FILTER (WHERE status = 'succeeded'),
    'failed', count(*) FILTER (WHERE status = 'failed'),
    'retries', coalesce(sum(attempt_count - 1) FILTER (WHERE attempt_count > 1), 0),
    'models', json_agg(DISTINCT ai_model_used) FILTER (WHERE ai_model_used IS NOT NULL))
  FROM {table} WHERE processing_session_id = s.id
)"""
"""The counts, retries and models of the work items of one pass."""

# An encounter fails with one of its items. An encounter with all its replies, but without its
# results, has failed too: its publication was refused.
_ENCOUNTERS = """(
  SELECT json_build_object('encounters_total', count(*),
    'encounters_succeeded', count(*) FILTER (WHERE items = done AND kept = 0),
    'encounters_failed', count(*) FILTER (WHERE lost > 0 OR items = done AND kept > 0))
  FROM (
    SELECT count(*) AS items, count(*) FILTER (WHERE status = 'succeeded') AS done,
      count(*) FILTER (WHERE status = 'failed') AS lost,
      count(*) FILTER (WHERE status = 'succeeded' AND output IS NOT NULL) AS kept
    FROM {table}
    WHERE processing_session_id = s.id AND healthcare_encounter_id IS NOT NULL
    GROUP BY healthcare_encounter_id
  ) of_encounter
)"""

_FIGURES = f"""
SELECT json_build_object(
  'profile_id', r.profile_id, 'user_agent', r.user_agent, 'ip_address', host(r.ip_address),
  'error_drill_down', r.error_drill_down,
  'metrics', json_build_object('pass05', r.pass05_metrics_id, 'pass1', r.pass1_metrics_id,
    'pass2', r.pass2_metrics_id, 'pass3', r.pass3_metrics_id),
  'failure_pass', s.failure_pass, 'error_code', s.error_code, 'error_message', s.error_message,
  'failure_encounter_id', s.failure_encounter_id,
  'has_ended', s.processing_completed_at IS NOT NULL,
  'ran', (SELECT json_agg(step_run_ms) FROM job_queue WHERE shell_file_id = r.shell_file_id),
  'calls', (
    SELECT json_agg(of_step) FROM (
      SELECT step, coalesce(sum(input_tokens), 0) AS input,
        coalesce(sum(output_tokens), 0) AS output, coalesce(sum(thinking_tokens), 0) AS thinking,
        coalesce(sum(cost_usd), 0)::text AS cost
      FROM provider_calls WHERE processing_session_id = s.id GROUP BY step
    ) of_step
  ),
  'ocr_pages', (
    SELECT count(*) FROM shell_file_pages
    WHERE shell_file_id = r.shell_file_id AND source IN ('ocr', 'mixed')
  ),
  'discovered', EXISTS (
    SELECT FROM pass05_progressive_sessions WHERE shell_file_id = r.shell_file_id
  ),
  'held', (
    SELECT json_agg(json_build_array(p.spans, p.error_code)
      ORDER BY c.chunk_index, p.local_index)
    FROM pass05_progressive_sessions d
    JOIN pass05_pending_encounters p ON p.discovery_session_id = d.id
    JOIN pass05_chunk_results c ON c.id = p.chunk_id
    WHERE d.shell_file_id = r.shell_file_id AND p.status = 'held'
  ),
  'encounters', (
    SELECT json_build_object('encounters_total', count(*),
      'encounters_succeeded', count(*) FILTER (WHERE status = 'succeeded'),
      'encounters_failed', count(*) FILTER (WHERE status = 'failed'),
      'rows_not_understood', coalesce(
        sum(total_rows_not_understood) FILTER (WHERE status = 'succeeded'), 0))
    FROM pass1_encounter_results WHERE shell_file_id = r.shell_file_id
  ),
  'entities', (
    SELECT json_build_object('count', count(*) FILTER (WHERE accepted),
      'confidence', avg(confidence) FILTER (WHERE accepted),
      'categories', json_agg(DISTINCT category) FILTER (WHERE accepted),
      'unnamed', count(*) FILTER (WHERE pass1_metrics_id IS NULL))
    FROM pass1_entity_detections WHERE shell_file_id = r.shell_file_id
  ),
  'pass1', {_ITEMS.format(table="pass1_batch_results")},
  'pass2', {_ITEMS.format(table="pass2_zone_results")},
  'pass3', {_ITEMS.format(table="pass3_narrative_results")},
  'pass2_encounters', {_ENCOUNTERS.format(table="pass2_zone_results")},
  'pass3_encounters', {_ENCOUNTERS.format(table="pass3_narrative_results")},
  'pass2_results', (
    SELECT json_build_object('entities_enriched', count(*),
      'entities_coded', count(*) FILTER (WHERE code IS NOT NULL),
      'entities_flagged', count(*) FILTER (WHERE flags <> '[]'))
    FROM pass2_enriched_entities WHERE shell_file_id = r.shell_file_id
  ),
  'pass3_results', (
    SELECT json_build_object('sentences_supported', count(*) FILTER (WHERE supported),
      'sentences_unsupported', count(*) FILTER (WHERE NOT supported))
    FROM pass3_narrative_sentences WHERE shell_file_id = r.shell_file_id
  )
)::text
FROM ai_processing_summary r, ai_processing_sessions s
WHERE r.shell_file_id = %(shell_file)s AND s.id = %(session)s
"""  # noqa: S608 - the tables are named above


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The tokens of some calls, each within the limits of its column."""

    input: int
    output: int
    total: int


@dataclass(frozen=True, kw_only=True)
class RecordFigures:
    """The figures of one record, as `_FIGURES` names them."""

    shell_file_id: UUID
    session_id: UUID
    read: Mapping[str, Any]

    @property
    def ran(self) -> Mapping[Step, int]:
        """The milliseconds for which workers ran each step, over all jobs of the record."""
        ran: dict[Step, int] = {}
        for by_step in self.read["ran"] or ():
            for step, ms in by_step.items():
                ran[Step(step)] = ran.get(Step(step), 0) + int(ms)
        return ran

    @property
    def cost_usd(self) -> Decimal:
        """The cost of all calls."""
        return sum((Decimal(each["cost"]) for each in self.read["calls"] or ()), Decimal(0))

    def tokens(self, step: Step | None = None) -> Tokens:
        """Return the tokens of the calls of one pass, or of all passes."""
        calls = [each for each in self.read["calls"] or () if step in (None, each["step"])]
        read, written, thought = (
            sum(each[kind] for each in calls) for kind in ("input", "output", "thinking")
        )
        return Tokens(
            input=counted(read), output=counted(written), total=counted(read + written + thought)
        )

    def items(self, step: Step) -> dict[str, Any]:
        """Return the counts, retries and models of the work items of a pass after Pass 0.5."""
        items = self.read[step]
        models = ",".join(sorted(items["models"] or ())) or None
        return {**items, "retries": counted(items["retries"]), "models": models}

    def metrics_id(self, step: Step) -> UUID | None:
        """Return the id of the metrics row of a pass, if the summary names one."""
        found = self.read["metrics"][step]
        return UUID(found) if found else None

    def failure(self, step: Step) -> dict[str, Any]:
        """Return the failure columns of a pass's metrics row, from the session."""
        is_here = self.read["failure_pass"] == step
        return {
            "error_code": self.read["error_code"] if is_here else None,
            "error_summary": self.read["error_message"] if is_here else None,
        }

    def failed_encounter(self, step: Step) -> UUID | None:
        """Return the encounter that the session names for the failure of a pass."""
        encounter = self.read["failure_encounter_id"]
        return UUID(encounter) if encounter and self.read["failure_pass"] == step else None


def figures_of(shell_file_id: UUID, session_id: UUID) -> RecordFigures:
    """Read the figures of a record."""
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, {"shell_file": shell_file_id, "session": session_id})
        (row,) = cursor.fetchall()
    return RecordFigures(
        shell_file_id=shell_file_id, session_id=session_id, read=json.loads(row[0])
    )
