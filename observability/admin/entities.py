"""The tables of Pass 1: encounters, batches, entities, totals. The texts of entities are PHI."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from observability.admin.incomplete import StatesIncompleteRecord
from pipeline.models import Batch, EncounterResult, Entity, EntityMetrics


@admin.register(EncounterResult)
class EncounterResultAdmin(StatesIncompleteRecord, ReadOnlyAdmin):
    """Pass 1 of each encounter."""

    phi = ("no_known_allergies",)
    heavy = ("zones", "warnings")
    list_display = (
        "healthcare_encounter_id", "status", "batches_succeeded", "batches_failed",
        "batches_total", "total_retries_used", "total_entities_detected",
        "total_rows_not_understood", "total_duration_ms", "error_code",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "shell_file_id", "healthcare_encounter_id")
    search_help_text = "The exact id of a record, an encounter or its result"
    ordering = ("-created_at",)


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    """Batches: page ranges, each sent with one call, or with several calls after a split."""

    phi = ("output",)
    heavy = ("spans", "error_context", "transient_error_history")
    list_display = (
        "id", "status", "batch_index", "page_range_start", "page_range_end", "attempt_count",
        "rate_limit_waits", "entities_detected", "duration_ms", "error_code",
    )  # fmt: skip
    list_filter = ("status", "had_transient_failure")
    id_fields = ("pk", "healthcare_encounter_id", "processing_session_id")
    search_help_text = "The exact id of a batch, an encounter or a session"
    ordering = ("-created_at",)


@admin.register(Entity)
class EntityAdmin(StatesIncompleteRecord, ReadOnlyAdmin):
    """The place and the confidence of each entity, without its text."""

    phi = (
        "name", "quote", "value", "unit", "reference_range", "abnormal_flag", "strength", "dose",
        "previous_dose", "route", "frequency", "status", "step", "reaction", "entity_date",
        "negated", "temporality", "historical", "certainty", "experiencer", "second_reading",
    )  # fmt: skip
    list_display = (
        "id", "category", "page_number", "alignment", "accepted", "confidence", "ocr_confidence",
        "rule", "review_flags",
    )  # fmt: skip
    list_filter = ("alignment",)
    id_fields = ("pk", "healthcare_encounter_id", "shell_file_id")
    search_help_text = "The exact id of an entity, an encounter or a record"
    ordering = ("-created_at",)


@admin.register(EntityMetrics)
class EntityMetricsAdmin(StatesIncompleteRecord, ReadOnlyAdmin):
    """Totals of Pass 1."""

    list_display = (
        "shell_file_id", "entities_detected", "rows_not_understood", "encounters_succeeded",
        "encounters_failed", "batches_succeeded", "batches_total", "total_retries_used",
        "total_tokens", "confidence", "error_code",
    )  # fmt: skip
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)
