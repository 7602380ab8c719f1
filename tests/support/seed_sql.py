"""The SQL queries of the source documents, sections 7.1 to 9.3. The statements are the contract."""

from __future__ import annotations

SUMMARY = """
SELECT
  processing_status,
  failure_stage,
  error_code,
  overall_success
FROM ai_processing_summary
WHERE shell_file_id = %s;
"""

FAILED_ENCOUNTERS = """
SELECT
  healthcare_encounter_id,
  status,
  batches_total,
  batches_succeeded,
  batches_failed,
  failure_batch_index,
  error_code,
  error_summary
FROM pass1_encounter_results
WHERE shell_file_id = %s AND status = 'failed';
"""

FAILED_BATCHES = """
SELECT
  batch_index,
  page_range_start,
  page_range_end,
  attempt_count,
  error_code,
  error_message,
  error_context
FROM pass1_batch_results
WHERE healthcare_encounter_id = %s AND status = 'failed';
"""

FULL_PATH = """
SELECT
  'shell_file' as level,
  s.id::text as id,
  aps.processing_status as status,
  aps.failure_stage as detail,
  aps.error_code
FROM shell_files s
JOIN ai_processing_summary aps ON aps.shell_file_id = s.id
WHERE s.id = %s

UNION ALL

SELECT
  'encounter' as level,
  per.healthcare_encounter_id::text as id,
  per.status,
  format('batches: %%s/%%s succeeded', per.batches_succeeded, per.batches_total) as detail,
  per.error_code
FROM pass1_encounter_results per
WHERE per.shell_file_id = %s

UNION ALL

SELECT
  'batch' as level,
  format('batch_%%s', pbr.batch_index) as id,
  pbr.status,
  format('pages %%s-%%s, %%s attempts', pbr.page_range_start, pbr.page_range_end, pbr.attempt_count) as detail,
  pbr.error_code
FROM pass1_batch_results pbr
JOIN pass1_encounter_results per ON per.id = pbr.pass1_encounter_result_id
WHERE per.shell_file_id = %s

ORDER BY level, id;
"""  # noqa: E501 - as the source has it

TRANSIENT = """
SELECT
  healthcare_encounter_id,
  batch_index,
  attempt_count,
  transient_error_history
FROM pass1_batch_results
WHERE had_transient_failure = TRUE
  AND status = 'succeeded';
"""

STALE_WHERE = """status = 'processing'
  AND started_at < NOW() - INTERVAL '10 minutes'"""

STALE_CANDIDATES = f"""
SELECT id, healthcare_encounter_id, batch_index
FROM pass1_batch_results
WHERE {STALE_WHERE};
"""  # noqa: S608 - a constant

STALE_RESET = f"""
UPDATE pass1_batch_results
SET
  status = 'pending',
  attempt_count = attempt_count  -- Don't reset attempt count
WHERE {STALE_WHERE}
RETURNING id, healthcare_encounter_id, batch_index;
"""  # noqa: S608 - a constant

OUTAGE = """
WITH batch_errors AS (
  SELECT
    error_context->>'final_underlying_error' as root_cause,
    COUNT(*) as failed_count
  FROM pass1_batch_results pbr
  JOIN pass1_encounter_results per ON per.id = pbr.pass1_encounter_result_id
  WHERE per.shell_file_id = %s
    AND pbr.status = 'failed'
  GROUP BY error_context->>'final_underlying_error'
)
SELECT
  root_cause,
  failed_count,
  CASE
    WHEN failed_count > 5 AND root_cause IN ('API_5XX', 'API_TIMEOUT', 'RATE_LIMIT')
    THEN 'LIKELY_OUTAGE'
    ELSE 'INDIVIDUAL_FAILURES'
  END as assessment
FROM batch_errors;
"""
