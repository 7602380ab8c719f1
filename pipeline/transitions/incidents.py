"""The rows of incidents: opened once, updated, closed once, and linked to the jobs they affected.

`pipeline.incidents` decides; each function here is one conditional statement. A new incident is
counted for the metrics.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection

from pipeline.core.states import IncidentKind
from pipeline.core.types import ProviderModel
from pipeline.transitions.metric_counts import CounterPart, add_counts

# The partial unique index allows one open incident per provider, model and kind. So of two workers
# that open an incident at once, the second updates the first one's row. `xmax = 0` is true only
# for an inserted row.
_OPEN = """
INSERT INTO incidents (id, kind, provider, model, first_failure_at, resumes_at, evidence)
VALUES (gen_random_uuid(), %(kind)s, %(provider)s, %(model)s,
  least(%(first)s::timestamptz, clock_timestamp()), %(resumes)s, %(evidence)s::jsonb)
ON CONFLICT (provider, model, kind) WHERE state = 'open' DO UPDATE SET
  first_failure_at = least(incidents.first_failure_at, excluded.first_failure_at),
  resumes_at = greatest(incidents.resumes_at, excluded.resumes_at)
RETURNING id, (xmax = 0)
"""

# DISTINCT ON, because a job can have many failed calls. `outcome <> 'OK'` repeats the condition of
# the partial index on failed calls; without it the planner scans all calls.
_LINK_FAILED = """
INSERT INTO incident_jobs (id, incident_id, job_id, effect)
SELECT DISTINCT ON (i.id, j.id) gen_random_uuid(), i.id, j.id, 'failed'
FROM incidents i
JOIN provider_calls c ON c.provider = i.provider AND c.model = i.model
  AND c.outcome <> 'OK' AND c.outcome = ANY(%(codes)s) AND c.created_at >= i.first_failure_at
JOIN ai_processing_sessions s ON s.id = c.processing_session_id
JOIN job_queue j ON j.shell_file_id = s.shell_file_id
WHERE i.id = %(incident)s AND j.status IN ('failed', 'dead')
  AND j.completed_at >= i.first_failure_at
  AND coalesce(j.error_details->>'underlying_error', j.error_code) = ANY(%(codes)s)
ON CONFLICT DO NOTHING
"""


def open_incident(
    kind: IncidentKind,
    provider_model: ProviderModel,
    *,
    first_failure_at: datetime,
    resumes_at: datetime | None = None,
    evidence: Mapping[str, Any],
) -> tuple[UUID, bool]:
    """Open an incident; return its id, and whether it is new.

    An incident that is open already keeps its evidence; its first failure can only move to an
    earlier time, and its reset only to a later time.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _OPEN,
            {
                "kind": kind.value,
                "provider": provider_model.provider,
                "model": provider_model.model,
                "first": first_failure_at,
                "resumes": resumes_at,
                "evidence": _json(evidence),
            },
        )
        incident_id, is_new = cursor.fetchone()
    if is_new:
        add_counts([CounterPart(name="incidents", labels={"kind": kind.value})])
    return incident_id, is_new


def note_incident(incident_id: UUID, evidence: Mapping[str, Any]) -> None:
    """Add to the evidence of an open incident; existing keys are replaced."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE incidents SET evidence = evidence || %s::jsonb"
            " WHERE id = %s AND state = 'open'",
            [_json(evidence), incident_id],
        )


def close_incident(incident_id: UUID, evidence: Mapping[str, Any]) -> bool:
    """Close an incident; return False if it is closed already."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE incidents SET state = 'closed', closed_at = clock_timestamp(),"
            " evidence = evidence || %s::jsonb WHERE id = %s AND state = 'open'",
            [_json(evidence), incident_id],
        )
        return bool(cursor.rowcount == 1)


def link_failed_jobs(incident_id: UUID, codes: Collection[str]) -> int:
    """Link the jobs that have failed with these codes since the incident's first failure."""
    with connection.cursor() as cursor:
        cursor.execute(_LINK_FAILED, {"incident": incident_id, "codes": sorted(codes)})
        return int(cursor.rowcount)


def _json(evidence: Mapping[str, Any]) -> str:
    return json.dumps(dict(evidence), cls=DjangoJSONEncoder)
