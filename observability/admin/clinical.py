"""Pass 2 and Pass 3: zones and totals."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import ClinicalMetrics, NarrativeMetrics, ZoneResult


@admin.register(ZoneResult)
class ZoneResultAdmin(ReadOnlyAdmin):
    """Zones, each enriched with one call, or with several calls after a split."""

    phi = ("output",)
    heavy = ("error_context", "transient_error_history")
    list_display = (
        "id", "status", "zone_index", "zone_type", "attempt_count", "entities_enriched",
        "duration_ms", "error_code",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "healthcare_encounter_id", "processing_session_id")
    ordering = ("-created_at",)


@admin.register(ClinicalMetrics)
class ClinicalMetricsAdmin(ReadOnlyAdmin):
    """Totals of Pass 2."""

    list_display = (
        "shell_file_id",
        "entities_enriched",
        "zones_succeeded",
        "zones_total",
        "error_code",
    )
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)


@admin.register(NarrativeMetrics)
class NarrativeMetricsAdmin(ReadOnlyAdmin):
    """Totals of Pass 3."""

    list_display = ("shell_file_id", "narratives_written", "encounters_succeeded", "error_code")
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)
