"""Many waiting or parked jobs, by one INSERT."""

from __future__ import annotations

from typing import Any

from django.db import connection

_JOBS = """
WITH patients AS (
  INSERT INTO user_profiles (id, pseudonym)
  SELECT gen_random_uuid(), gen_random_uuid()::text RETURNING id
), records AS (
  INSERT INTO shell_files (id, patient_id, sha256, size_bytes, media_type, storage_key)
  SELECT gen_random_uuid(), patients.id, repeat('0', 64), 1, 'application/pdf', 'records/none'
  FROM patients, generate_series(1, %(number)s) RETURNING id, patient_id
), sessions AS (
  INSERT INTO ai_processing_sessions (id, shell_file_id, patient_id)
  SELECT gen_random_uuid(), id, patient_id FROM records
)
INSERT INTO job_queue (id, shell_file_id, status, current_step, size_class, available_at,
  updated_at, incident_id, pause_id, parked_until, park_reason)
SELECT gen_random_uuid(), id, %(status)s, 'pass1', row_number() OVER () %% 3,
  now() - interval '1 hour', now() - interval '1 hour', %(incident)s, %(pause)s, %(until)s, 'a test'
FROM records
"""


def many_jobs(number: int, status: str = "pending", **columns: Any) -> None:
    """Insert jobs of Pass 1 that were due an hour ago; `columns` say what parked jobs wait for."""
    given = {"incident": None, "pause": None, "until": None, **columns}
    with connection.cursor() as cursor:
        cursor.execute(_JOBS, {"number": number, "status": status, **given})
