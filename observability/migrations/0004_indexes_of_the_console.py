"""Index what the console reads of the pipeline's tables, and nothing else does."""

from __future__ import annotations

from django.db import migrations

FORWARD = """
CREATE INDEX idx_job_queue_ended_badly ON job_queue (completed_at DESC, id DESC)
  WHERE status IN ('failed', 'dead');
CREATE INDEX idx_provider_calls_cause ON provider_calls (outcome, created_at DESC, id DESC)
  WHERE outcome <> 'OK';
CREATE INDEX idx_job_queue_recent ON job_queue (created_at DESC, id DESC);
CREATE INDEX idx_job_queue_dead ON job_queue (completed_at) WHERE status = 'dead';
"""
BACKWARD = """
DROP INDEX idx_job_queue_dead;
DROP INDEX idx_job_queue_recent;
DROP INDEX idx_provider_calls_cause;
DROP INDEX idx_job_queue_ended_badly;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("observability", "0003_roles"),
        ("pipeline", "0006_parts_of_split_batches"),
    ]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
