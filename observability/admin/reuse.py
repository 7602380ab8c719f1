"""Reused results, replies that are kept for a reuse, and running extractions."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import ExtractionFlight, KeptReply, Reuse


@admin.register(KeptReply)
class KeptReplyAdmin(ReadOnlyAdmin):
    """Replies that later records can reuse, without the replies themselves."""

    phi = ("reply",)
    list_display = ("work_item_id", "shell_file_id", "step", "model_version", "created_at")
    id_fields = ("pk", "shell_file_id")
    search_help_text = "The exact id of a work item or of a record"
    ordering = ("-created_at", "-work_item_id")


@admin.register(Reuse)
class ReuseAdmin(ReadOnlyAdmin):
    """What each pass of a record reused, and what the reuse saved."""

    list_display = (
        "shell_file_id", "step", "source_id", "items", "calls_saved", "tokens_saved",
        "cost_saved_usd", "created_at",
    )  # fmt: skip
    id_fields = ("pk", "shell_file_id")
    search_help_text = "The exact id of a record"
    ordering = ("-created_at", "-id")


@admin.register(ExtractionFlight)
class ExtractionFlightAdmin(ReadOnlyAdmin):
    """The jobs for which other records with the same bytes wait."""

    list_display = ("id", "job_id", "owner", "document_hash", "renewed_at")
    id_fields = ("pk", "job_id")
    search_help_text = "The exact id of a job"
    ordering = ("-renewed_at",)
