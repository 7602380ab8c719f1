"""Index what the lists of the admin are ordered and filtered by: newest first, and rare states."""

from __future__ import annotations

from django.db import migrations

NEWEST_FIRST = (
    "user_profiles", "processed_documents", "ai_processing_sessions", "ai_processing_summary",
    "record_batches", "pass05_progressive_sessions", "pass05_chunk_results",
    "pass05_pending_encounters", "pass05_cascade_chains", "pass05_reconciliation_log",
    "pass05_encounter_metrics", "healthcare_encounters", "pass1_encounter_results",
    "pass1_batch_results", "pass1_entity_detections", "pass1_entity_metrics",
    "pass2_zone_results", "pass2_clinical_metrics", "pass3_narrative_metrics", "incident_jobs",
)  # fmt: skip
"""Tables that had no index on the time of insertion. Rows come in its order, and it never changes:
an entry is added at the right end, and no update of a row touches it."""

FILTERED = {
    "shell_files": "status",
    "ai_processing_sessions": "session_status",
    "ai_processing_summary": "processing_status",
    "pass05_progressive_sessions": "status",
    "provider_calls": "step",
}
"""Tables and the column whose values a list is filtered by."""

RARE = {
    "job_queue": ("status", "status <> 'completed'"),
    "pass1_encounter_results": ("status", "status <> 'succeeded'"),
    "pass1_batch_results": ("status", "status <> 'succeeded'"),
    "pass05_chunk_results": ("status", "status <> 'succeeded'"),
    "pass05_pending_encounters": ("status", "status <> 'published'"),
    "pass2_zone_results": ("status", "status <> 'succeeded'"),
    "pass1_entity_detections": ("alignment", "alignment <> 'exact'"),
    "audit_events": ("result", "result <> 'done'"),
}
"""The same where nearly all rows have one value: a scan of the newest finds that one soon enough."""

_FORWARD = [
    *(
        f"CREATE INDEX idx_{table}_newest ON {table} (created_at DESC, id DESC)"
        for table in NEWEST_FIRST
    ),
    *(
        f"CREATE INDEX idx_{table}_by_{column} ON {table} ({column}, created_at DESC, id DESC)"
        for table, column in FILTERED.items()
    ),
    *(
        f"CREATE INDEX idx_{table}_rare ON {table} ({column}, created_at DESC, id DESC)"
        f" WHERE {condition}"
        for table, (column, condition) in RARE.items()
    ),
    "CREATE INDEX idx_shell_file_pages_rare ON shell_file_pages (source, id DESC)"
    " WHERE source <> 'text_layer'",
    "CREATE INDEX idx_ai_processing_summary_review ON ai_processing_summary"
    " (created_at DESC, id DESC) WHERE manual_review_required",
    # Read by the overview: how many are parked in each pass, and since when the oldest. A heartbeat
    # does not write the time, so it stays a HOT update.
    "CREATE INDEX idx_job_queue_parked_in ON job_queue (current_step, updated_at)"
    " WHERE status = 'parked'",
    # Read by the preview of a retry by cause: what ended, or has not ended, since then.
    "CREATE INDEX idx_job_queue_completed ON job_queue (completed_at)",
]
_BACKWARD = [f"DROP INDEX {statement.split()[2]}" for statement in reversed(_FORWARD)]


class Migration(migrations.Migration):
    dependencies = [
        ("observability", "0005_bulk_operations"),
        ("pipeline", "0009_cancel_requested"),
    ]

    operations = [migrations.RunSQL(_FORWARD, _BACKWARD)]
