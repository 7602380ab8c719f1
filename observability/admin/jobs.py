"""Jobs, sessions and summaries: the queue, the progress of each record, and the failures."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from observability.admin.incomplete import StatesIncompleteRecord
from pipeline.models import Job, RecordBatch, Session, Summary


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """The queue in the database."""

    heavy = ("error_details", "step_run_ms")
    list_display = (
        "id", "status", "current_step", "error_code", "priority", "retry_count", "crash_count",
        "heartbeat_at", "created_at",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "shell_file_id", "record_batch_id")
    search_help_text = "The exact id of a job, of a record, or of the batch it came with"
    ordering = ("-created_at",)


@admin.register(RecordBatch)
class RecordBatchAdmin(ReadOnlyAdmin):
    """Records that were submitted together."""

    list_display = (
        "id", "status", "records_total", "records_completed", "records_failed",
        "records_cancelled", "pages_total", "encounters_total", "entities_total",
        "total_cost_usd", "created_at", "completed_at",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk",)
    search_help_text = "The exact id of a batch"
    ordering = ("-created_at",)


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """The processing session of each record, with the status of each pass."""

    heavy = ("error_context", "model_config")
    list_display = (
        "id", "shell_file_id", "session_status", "pass05_status", "pass1_status",
        "pass1_5_status", "pass2_status", "pass3_status", "failure_pass", "error_code",
    )  # fmt: skip
    list_filter = ("session_status",)
    id_fields = ("pk", "shell_file_id")
    search_help_text = "The exact id of a session or of a record"
    ordering = ("-created_at",)


@admin.register(Summary)
class SummaryAdmin(StatesIncompleteRecord, ReadOnlyAdmin):
    """The summary of each record."""

    heavy = ("error_drill_down", "business_events")
    list_display = (
        "shell_file_id", "processing_status", "failure_stage", "error_code",
        "entities_extracted_total", "total_tokens_used", "total_cost_usd",
        "total_processing_time_ms", "manual_review_required",
    )  # fmt: skip
    list_filter = ("processing_status", "manual_review_required")
    id_fields = ("pk", "shell_file_id")
    search_help_text = "The exact id of a summary or of a record"
    ordering = ("-created_at",)
