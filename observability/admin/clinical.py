"""Passes 1.5 to 3: candidates, zones, attributes, lists, narratives and totals; texts are PHI."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import (
    ClinicalMetrics,
    CodeCandidate,
    EnrichedEntity,
    NarrativeMetrics,
    NarrativeResult,
    NarrativeSentence,
    RecordListItem,
    ZoneResult,
)


@admin.register(CodeCandidate)
class CodeCandidateAdmin(ReadOnlyAdmin):
    """The shortlist of each entity. A code tells a diagnosis, so codes are PHI."""

    phi = ("code", "display", "term", "reason")
    list_display = ("id", "entity_id", "rank", "system", "system_version", "score")
    id_fields = ("entity_id", "healthcare_encounter_id", "shell_file_id")
    search_help_text = "The exact id of an entity, an encounter or a record"
    ordering = ("-id",)


@admin.register(ZoneResult)
class ZoneResultAdmin(ReadOnlyAdmin):
    """Zones, each enriched with one call, or with several calls after a split."""

    phi = ("output",)
    heavy = ("spans", "entity_ids", "error_context", "transient_error_history")
    list_display = (
        "id", "status", "zone_index", "zone_type", "attempt_count", "entities_enriched",
        "duration_ms", "error_code",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "healthcare_encounter_id", "processing_session_id")
    ordering = ("-created_at",)


@admin.register(EnrichedEntity)
class EnrichedEntityAdmin(ReadOnlyAdmin):
    """The structured attributes of each entity, without their values."""

    phi = ("attributes", "code", "code_display", "second_reading")
    heavy = ("flags",)
    list_display = ("id", "entity_id", "category", "code_system", "engine")
    id_fields = ("pk", "entity_id", "healthcare_encounter_id", "shell_file_id")
    search_help_text = "The exact id of an entity, an encounter or a record"
    ordering = ("-created_at",)


@admin.register(RecordListItem)
class RecordListItemAdmin(ReadOnlyAdmin):
    """Problems, medications, allergies and lab series of records, without their texts."""

    phi = ("name", "code", "summary", "contradictions")
    heavy = ("entity_ids", "encounter_ids")
    list_display = ("id", "shell_file_id", "kind", "item_index", "code_system")
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)


@admin.register(NarrativeResult)
class NarrativeResultAdmin(ReadOnlyAdmin):
    """Narratives, each written with one call."""

    phi = ("output",)
    heavy = ("entity_ids", "error_context", "transient_error_history")
    list_display = (
        "id", "status", "narrative_index", "attempt_count", "sentences_supported",
        "sentences_unsupported", "duration_ms", "error_code",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "healthcare_encounter_id", "processing_session_id")
    ordering = ("-created_at",)


@admin.register(NarrativeSentence)
class NarrativeSentenceAdmin(ReadOnlyAdmin):
    """Sentences of narratives, without their texts."""

    phi = ("text", "reasons")
    heavy = ("entity_ids",)
    list_display = ("id", "narrative_id", "sentence_index", "supported")
    list_filter = ("supported",)
    id_fields = ("pk", "narrative_id", "shell_file_id")
    ordering = ("-created_at",)


@admin.register(ClinicalMetrics)
class ClinicalMetricsAdmin(ReadOnlyAdmin):
    """Totals of Pass 2."""

    list_display = (
        "shell_file_id",
        "entities_enriched",
        "entities_coded",
        "entities_flagged",
        "zones_succeeded",
        "zones_total",
        "error_code",
    )
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)


@admin.register(NarrativeMetrics)
class NarrativeMetricsAdmin(ReadOnlyAdmin):
    """Totals of Pass 3."""

    list_display = (
        "shell_file_id",
        "narratives_written",
        "sentences_supported",
        "sentences_unsupported",
        "encounters_succeeded",
        "error_code",
    )
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)
