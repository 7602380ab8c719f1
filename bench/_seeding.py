"""Seed the console's database by SQL with a quarter of a million finished, waiting and failed
records.

Times, shares and sizes are those of a clinic's archive with a bad night at its end. No document is
read, and every id is derived from a number.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

from medproc.embedded.places import SUPERUSER

RECORD_BATCHES = 20
"""Four batches in each of five encounters."""
TABLES = (
    "user_profiles", "shell_files", "ai_processing_sessions", "ai_processing_summary", "job_queue",
    "pass05_progressive_sessions", "pass05_chunk_results", "healthcare_encounters",
    "pass1_encounter_results", "pass1_batch_results", "pass1_entity_detections", "provider_calls",
    "shell_file_pages", "incidents", "incident_jobs", "audit_events", "bulk_operations",
    "bulk_operation_items", "review_items",
)  # fmt: skip

_RECORDS = """
CREATE TABLE bench_records AS
SELECT r, md5('record' || r)::uuid AS id, md5('patient' || r)::uuid AS patient,
  md5('session' || r)::uuid AS session, md5('job' || r)::uuid AS job, at, status,
  CASE WHEN status = 'pending' THEN (ARRAY['pages', 'pages', 'pass05', 'pass1'])[1 + r %% 4]
    ELSE 'pass1' END AS step,
  CASE WHEN status = 'failed'
    THEN (ARRAY['API_5XX', 'API_5XX', 'API_TIMEOUT', 'PARSE_JSON', 'INPUT_ENCRYPTED'])
      [1 + r / 85 %% 5] END AS cause
FROM (
  SELECT r,
    now() - CASE
      -- The last hour used the whole quota of 300 calls a minute; the 90 days before did not.
      WHEN r > ended THEN interval '1 minute' * (1 + r %% 360)
      WHEN r > ended - busy THEN interval '1 hour' * ((ended - r + 0.5) / busy)
      ELSE interval '1 hour' + interval '90 days' * ((ended - busy - r + 0.5) / (ended - busy))
    END AS at,
    CASE
      WHEN r > planned THEN 'pending'
      WHEN r > planned - running THEN 'processing'
      WHEN r > ended THEN 'parked'
      WHEN r %% 85 = 0 THEN 'failed'
      WHEN r %% 499 = 0 THEN 'dead'
      WHEN r %% 401 = 0 THEN 'cancelled'
      ELSE 'completed'
    END AS status
  FROM (
    SELECT generate_series(1, %(records)s * 105 / 100) AS r, %(records)s AS planned, 6 AS running,
      %(records)s * 98 / 100 AS ended, least(900, %(records)s / 10) AS busy
  ) numbers
) records;
CREATE UNIQUE INDEX ON bench_records (r);
ANALYZE bench_records
"""

_ROWS: dict[str, str] = {
    "patients": """
INSERT INTO user_profiles (id, pseudonym, created_at)
SELECT patient, 'P-' || upper(substr(md5('p' || r), 1, 10)), at FROM bench_records
""",
    "records": """
INSERT INTO shell_files (id, patient_id, status, sha256, size_bytes, media_type, storage_key,
  page_count, pages_read, created_at, updated_at)
SELECT id, patient, CASE status WHEN 'completed' THEN 'pass1_complete' WHEN 'pending' THEN
  'uploaded' ELSE 'pass05_complete' END, md5('a' || r) || md5('b' || r), 400000 + r,
  'application/pdf', 'records/' || id, CASE WHEN status <> 'pending' THEN 100 END,
  CASE WHEN status <> 'pending' THEN 100 ELSE 0 END, at - interval '9 minutes', at
FROM bench_records
""",
    "sessions": """
INSERT INTO ai_processing_sessions (id, patient_id, shell_file_id, session_status, failure_pass,
  error_code, processing_started_at, created_at, updated_at)
SELECT session, patient, id, CASE status WHEN 'completed' THEN 'completed' WHEN 'pending' THEN
  'initiated' WHEN 'failed' THEN 'failed' WHEN 'dead' THEN 'failed'
  WHEN 'cancelled' THEN 'cancelled' ELSE 'processing' END,
  CASE WHEN status = 'failed' THEN 'pass1' END, cause, at, at, at
FROM bench_records
""",
    "report cards": """
INSERT INTO ai_processing_summary (id, profile_id, shell_file_id, processing_status, failure_stage,
  error_code, total_tokens_used, created_at)
SELECT md5('summary' || r)::uuid, patient, id, CASE status WHEN 'completed' THEN 'pass1_only' WHEN
  'failed' THEN 'failed' ELSE 'initialized' END, CASE WHEN status = 'failed' THEN 'pass1' END,
  cause, 150000, at
FROM bench_records
""",
    "jobs": """
INSERT INTO job_queue (id, shell_file_id, status, current_step, available_at, lease_gen,
  lease_expires_at, heartbeat_at, worker_id, park_reason, incident_id, step_started_at, retry_count,
  last_error, error_code, error_details, created_at, started_at, completed_at, updated_at)
SELECT job, id, status, step, at, 3, CASE WHEN status = 'processing' THEN now() + interval '1 hour'
  END, CASE WHEN status = 'processing' THEN now() END,
  CASE WHEN status = 'processing' THEN 'worker-' || r END,
  CASE WHEN status = 'parked' THEN 'the provider is down' END,
  CASE WHEN status = 'parked' THEN md5('incident1')::uuid END, at,
  CASE WHEN status = 'failed' THEN 3 ELSE 0 END,
  CASE status WHEN 'failed' THEN '1 of 20 batches failed.'
    WHEN 'dead' THEN 'The worker died three times.' END,
  CASE WHEN status = 'dead' THEN 'WORKER_LOST' WHEN cause IN ('INPUT_ENCRYPTED') THEN cause
    WHEN status = 'failed' THEN 'MAX_RETRIES_EXCEEDED' END,
  CASE WHEN status = 'failed' THEN jsonb_build_object('stage', 'pass1', 'error_code',
    'MAX_RETRIES_EXCEEDED', 'underlying_error', cause) END,
  at - interval '9 minutes', at - interval '8 minutes', CASE WHEN status IN ('completed', 'failed',
  'dead', 'cancelled') THEN at END, at
FROM bench_records
""",
    "discoveries": """
INSERT INTO pass05_progressive_sessions (id, shell_file_id, processing_session_id, status,
  total_pages, total_chunks, chunks_succeeded, encounters_found, created_at)
SELECT md5('discovery' || r)::uuid, id, session, 'completed', 100, 2, 2, 5, at
FROM bench_records WHERE status <> 'pending'
""",
    "chunks": """
INSERT INTO pass05_chunk_results (id, discovery_session_id, processing_session_id, chunk_index,
  page_range_start, page_range_end, status, attempt_count, completed_at, created_at)
SELECT md5('chunk' || r || '.' || n)::uuid, md5('discovery' || r)::uuid, session, n, n * 50 + 1,
  n * 50 + 50, 'succeeded', 1, at, at
FROM bench_records, generate_series(0, 1) n WHERE status <> 'pending'
""",
    "encounters": """
INSERT INTO healthcare_encounters (id, shell_file_id, patient_id, encounter_index, encounter_type,
  page_start, page_end, page_count, character_count, entities_published_at, created_at)
SELECT md5('encounter' || r || '.' || n)::uuid, id, patient, n + 1, 'office_visit', n * 20 + 1,
  n * 20 + 20, 20, 40000, CASE WHEN status = 'completed' OR status = 'failed' AND n < 4 THEN at END,
  at
FROM bench_records, generate_series(0, 4) n WHERE status <> 'pending'
""",
    "encounter results": """
INSERT INTO pass1_encounter_results (id, shell_file_id, healthcare_encounter_id,
  processing_session_id, patient_id, page_count, batching_used, batches_total, status,
  batches_succeeded, batches_failed, failure_batch_index, error_code, created_at, updated_at)
SELECT md5('result' || r || '.' || n)::uuid, id, md5('encounter' || r || '.' || n)::uuid, session,
  patient, 20, true, 4, state, CASE state WHEN 'succeeded' THEN 4 WHEN 'failed' THEN 3 ELSE 0 END,
  (state = 'failed')::integer, CASE state WHEN 'failed' THEN 3 END,
  CASE state WHEN 'failed' THEN cause END, at, at
FROM bench_records, generate_series(0, 4) n, LATERAL (SELECT CASE
  WHEN status IN ('parked', 'processing') THEN 'pending'
  WHEN status = 'failed' AND n = 4 THEN 'failed' ELSE 'succeeded' END AS state) states
WHERE status <> 'pending'
""",
    "batches": """
INSERT INTO pass1_batch_results (id, healthcare_encounter_id, pass1_encounter_result_id,
  processing_session_id, batch_index, page_range_start, page_range_end, spans,
  estimated_input_tokens, status, attempt_count, started_at, completed_at, duration_ms,
  input_tokens, output_tokens, entities_detected, error_code, error_message, error_context,
  had_transient_failure, transient_error_history, created_at)
SELECT md5('batch' || r || '.' || n)::uuid, md5('encounter' || r || '.' || n / 4)::uuid,
  md5('result' || r || '.' || n / 4)::uuid, session, n % 4, n * 5 + 1, n * 5 + 5,
  jsonb_build_array(jsonb_build_array(n * 5 + 1, 0, 2100), jsonb_build_array(n * 5 + 5, 0, 900)),
  7000 + n, state, CASE state WHEN 'pending' THEN 0 WHEN 'failed' THEN 3 ELSE 1 + limps END,
  CASE WHEN state <> 'pending' THEN at END, CASE WHEN state <> 'pending' THEN at END,
  4000 + n * 37, 7000, 900, CASE state WHEN 'succeeded' THEN 11 END,
  CASE state WHEN 'failed' THEN 'MAX_RETRIES_EXCEEDED' END,
  CASE state WHEN 'failed' THEN 'all 3 attempts are used up' END,
  CASE state WHEN 'failed' THEN jsonb_build_object('final_underlying_error', cause) END,
  state <> 'pending' AND limps = 1,
  CASE WHEN state <> 'pending' AND limps = 1 THEN '[{"attempt": 1, "error_code": "API_5XX"}]'::jsonb
  END, at
FROM bench_records, generate_series(0, 19) n, LATERAL (SELECT (r * 20 + n) % 16 / 15 AS limps, CASE
  WHEN status IN ('parked', 'processing') THEN 'pending'
  WHEN status = 'failed' AND n = 19 THEN 'failed' ELSE 'succeeded' END AS state) states
WHERE status <> 'pending'
""",
    "calls": """
INSERT INTO provider_calls (id, processing_session_id, step, work_item_id, page_range_start,
  page_range_end, attempt, outcome, accepted, provider, model, prompt_version, schema_version,
  http_status, queue_wait_ms, duration_ms, input_tokens, output_tokens, cost_usd, lease_gen,
  started_at, created_at)
SELECT md5('call' || r || '.' || n || '.' || a)::uuid, session, 'pass1',
  md5('batch' || r || '.' || n)::uuid, n * 5 + 1, n * 5 + 5, a,
  CASE WHEN is_ok THEN 'OK' WHEN lost THEN coalesce(nullif(cause, 'INPUT_ENCRYPTED'), 'API_5XX')
    ELSE (ARRAY['API_5XX', 'RATE_LIMIT', 'API_TIMEOUT', 'RATE_LIMIT'])[1 + (r + n) % 4] END,
  is_ok, 'gemini', 'gemini-3.5-flash-lite', '1', '1', CASE WHEN is_ok THEN 200 ELSE 503 END, 80,
  4000 + n * 37, 7000, CASE WHEN is_ok THEN 900 ELSE 0 END, 0.0011, 1,
  at - interval '1 second' * (40 - n - a), at - interval '1 second' * (20 - n)
FROM bench_records, generate_series(0, 19) n,
  LATERAL (SELECT status = 'failed' AND n = 19 AS lost, (r * 20 + n) % 16 / 15 AS limps) fates,
  generate_series(1, CASE WHEN lost THEN 3 ELSE 1 + limps END) a,
  LATERAL (SELECT NOT lost AND a = 1 + limps AS is_ok) ended
WHERE status NOT IN ('pending', 'parked', 'processing')
""",
    "entities": """
INSERT INTO pass1_entity_detections (id, shell_file_id, healthcare_encounter_id,
  processing_session_id, patient_id, entity_index, category, name, page_number, char_start,
  char_end, quote, alignment, accepted, engine, engine_confidence, confidence, review_flags,
  created_at)
SELECT md5('entity' || r || '.' || n)::uuid, id, md5('encounter' || r || '.' || n / 4)::uuid,
  session, patient, n % 4, 'lab_result', 'made up', n * 5 + 1, 10, 20, 'made up', 'exact', true,
  'gemini', 1, 0.9, CASE WHEN n = 7 THEN '["low_ocr_confidence"]'::jsonb ELSE '[]'::jsonb END, at
FROM bench_records, generate_series(0, 19) n
WHERE status = 'completed' AND r % 5 = 0
""",
    "reviews": """
INSERT INTO review_items (id, shell_file_id, reason, status, created_at, opened_at, due_at,
  confidence, complexity, value, base, lane, order_key, closed_by, closed_at)
SELECT md5('review' || r)::uuid, id, CASE WHEN status <> 'completed' THEN 'failed'
  WHEN r % 3 = 0 THEN 'flagged' ELSE 'completed' END,
  CASE WHEN is_open THEN 'open' ELSE 'closed' END, at, at, at + interval '1 day', r % 100 / 100.0,
  r % 10 / 10.0, r % 7 / 7.0, r % 1000 / 1000.0,
  CASE WHEN at < now() - interval '1 day' THEN 'overdue' ELSE 'normal' END, r % 1000 / 1000.0,
  CASE WHEN NOT is_open THEN 'user:1' END, CASE WHEN NOT is_open THEN at END
FROM bench_records, LATERAL (SELECT r % 4 = 0 AS is_open) open
WHERE status IN ('completed', 'failed')
""",
    "pages": """
INSERT INTO shell_file_pages (shell_file_id, page_number, text, source, width, height, created_at)
SELECT id, n, repeat('made up ', 200), 'text_layer', 612, 792, at
FROM bench_records, generate_series(1, 100) n WHERE status <> 'pending' AND r % 50 = 0
""",
    "incidents": """
INSERT INTO incidents (id, kind, provider, model, state, opened_at, first_failure_at, closed_at,
  evidence)
SELECT md5('incident' || n)::uuid, 'outage', 'gemini', 'gemini-3.5-flash-lite',
  CASE n WHEN 1 THEN 'open' ELSE 'closed' END, now() - interval '20 minutes' - interval '1 day' *
  (n - 1), now() - interval '21 minutes' - interval '1 day' * (n - 1),
  CASE WHEN n > 1 THEN now() - interval '1 day' * (n - 1) END,
  '{"affected": {"parked": 5000, "failed": 1}}'
FROM generate_series(1, 90) n;
INSERT INTO incident_jobs (id, incident_id, job_id, effect)
SELECT md5('effect' || r)::uuid, md5('incident1')::uuid, job, 'parked'
FROM bench_records WHERE status = 'parked'
""",
    "audit and bulk operations": """
INSERT INTO audit_events (id, created_at, actor, action, target_kind, target_id, reason)
SELECT md5('audit' || r)::uuid, at, 'operator', 'retry', 'record', id::text, 'the provider is back'
FROM bench_records WHERE r % 3 = 0;
INSERT INTO bulk_operations (id, created_at, token, action, selection, expected, reason,
requested_by,
  started_at, finished_at)
SELECT md5('operation' || n)::uuid, now() - interval '1 hour' * n, md5('token' || n)::uuid, 'retry',
  '{"error_code": "API_5XX"}',
  '{"jobs": 3, "is_capped": false, "calls": 3, "pages": 9, "input_tokens": 21000,
    "cost_usd": "0.003", "quota_minutes": 0.1}', 'the provider is back',
  'operator', now(), now()
FROM generate_series(1, 1000) n;
INSERT INTO bulk_operation_items (id, operation_id, position, job_id, shell_file_id, step, scope,
  state)
SELECT md5('item' || r)::uuid, md5('operation' || (1 + r / 85 % 1000))::uuid, r, job, id, 'pass1',
  '{}', 'done'
FROM bench_records WHERE status = 'failed'
""",
}
"""Name of the rows → statement that inserts them, in order."""


def seed(batches: int, log: Callable[[str], None]) -> int:
    """Insert about `batches` batches and the rows around them; return the number of batches.

    Logs in as the superuser of a throw-away database: foreign keys and the audit's triggers are off
    during the inserts, and the indexes are built at the end.
    """
    began = time.perf_counter()
    role, connection.settings_dict["USER"] = connection.settings_dict["USER"], SUPERUSER
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        cursor.execute("SET maintenance_work_mem = '512MB'; SET work_mem = '64MB'")
        cursor.execute(_RECORDS, {"records": max(1, batches // RECORD_BATCHES)})
        cursor.execute(
            "UPDATE pg_index SET indisready = false WHERE indrelid = ANY (%s::regclass[])",
            [list(TABLES)],
        )
        for what, statement in _ROWS.items():
            started = time.perf_counter()
            cursor.execute(statement)
            log(f"  {what:24} {time.perf_counter() - started:6.1f} s")
        started = time.perf_counter()
        for table in TABLES:
            cursor.execute(f"REINDEX TABLE {table}")
            cursor.execute(f"VACUUM (ANALYZE) {table}")
        log(f"  {'indexes, statistics':24} {time.perf_counter() - started:6.1f} s")
        cursor.execute("DROP TABLE bench_records; RESET ALL")
        cursor.execute("SELECT count(*) FROM pass1_batch_results")
        (number,) = cursor.fetchone()
    connection.settings_dict["USER"] = role
    connection.close()
    log(f"{number:,} batches in {time.perf_counter() - began:.0f} s")
    return int(number)
