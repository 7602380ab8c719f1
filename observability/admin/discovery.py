"""The tables of Pass 0.5: session, chunks, sightings, decisions and encounters.

The admin does not show facilities, clinicians, dates and identifiers of encounters, which are PHI.
"""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import (
    CascadeChain,
    Chunk,
    DiscoveryMetrics,
    DiscoverySession,
    Encounter,
    PageAssignment,
    PendingEncounter,
    ReconciliationEntry,
)

_ENCOUNTER_PHI = (
    "facility_name", "clinician_name", "encounter_date_start", "encounter_date_end",
)  # fmt: skip


@admin.register(DiscoverySession)
class DiscoverySessionAdmin(ReadOnlyAdmin):
    """Pass 0.5 of each record."""

    list_display = (
        "id", "shell_file_id", "status", "total_pages", "total_chunks", "chunks_failed",
        "encounters_found", "encounters_held", "error_code",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    """Chunks: page ranges, each searched with one call."""

    phi = ("output",)
    heavy = ("error_context", "error_details", "transient_error_history")
    list_display = (
        "id", "status", "chunk_index", "page_range_start", "page_range_end", "attempt_count",
        "rate_limit_waits", "duration_ms", "error_code",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "discovery_session_id", "processing_session_id")
    ordering = ("-created_at",)


@admin.register(PendingEncounter)
class PendingEncounterAdmin(ReadOnlyAdmin):
    """The result of each sighting of an encounter."""

    phi = (*_ENCOUNTER_PHI, "patient_name", "patient_birth_date", "patient_identifier")
    heavy = ("spans",)
    list_display = (
        "id", "status", "encounter_type", "chunk_id", "local_index", "open_at_start",
        "open_at_end", "split_rule", "error_code",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "chunk_id", "healthcare_encounter_id")
    ordering = ("-created_at",)


@admin.register(CascadeChain)
class CascadeChainAdmin(ReadOnlyAdmin):
    """Encounters that span several chunks."""

    heavy = ("links",)
    list_display = ("id", "healthcare_encounter_id", "chunk_first", "chunk_last", "created_at")
    id_fields = ("pk", "healthcare_encounter_id", "discovery_session_id")
    ordering = ("-created_at",)


@admin.register(PageAssignment)
class PageAssignmentAdmin(ReadOnlyAdmin):
    """The encounter of each text range."""

    list_display = (
        "id", "healthcare_encounter_id", "page_number", "start_offset", "end_offset", "reason",
    )  # fmt: skip
    id_fields = ("healthcare_encounter_id", "discovery_session_id")
    search_help_text = "The exact id of an encounter"
    ordering = ("-id",)


@admin.register(ReconciliationEntry)
class ReconciliationEntryAdmin(ReadOnlyAdmin):
    """The decisions about sightings, in order."""

    heavy = ("subjects",)
    list_display = ("id", "discovery_session_id", "decision_index", "rule", "outcome", "reason")
    id_fields = ("pk", "discovery_session_id")
    ordering = ("-created_at",)


@admin.register(DiscoveryMetrics)
class DiscoveryMetricsAdmin(ReadOnlyAdmin):
    """Totals of Pass 0.5."""

    heavy = ("encounter_types_found",)
    list_display = (
        "shell_file_id", "encounters_detected", "encounters_held", "pages_total",
        "pages_unassigned", "chunks_succeeded", "chunks_total", "total_tokens", "error_code",
    )  # fmt: skip
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)


@admin.register(Encounter)
class EncounterAdmin(ReadOnlyAdmin):
    """Published encounters, without identifying data."""

    phi = _ENCOUNTER_PHI
    list_display = (
        "id", "shell_file_id", "encounter_index", "encounter_type", "page_start", "page_end",
        "character_count", "entities_published_at",
    )  # fmt: skip
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)
