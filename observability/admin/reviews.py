"""Reviews of records, the decisions of reviewers, and the fields that the decisions lock."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import LockedField, ReviewDecision, ReviewItem


@admin.register(ReviewItem)
class ReviewItemAdmin(ReadOnlyAdmin):
    """The reviews of records, with their places in the queue."""

    heavy = ("figures",)

    list_display = (
        "id", "shell_file_id", "reason", "status", "lane", "base", "round", "claimed_by",
        "claimed_until", "created_at",
    )  # fmt: skip
    id_fields = ("pk", "shell_file_id")
    search_help_text = "The exact id of a record"
    ordering = ("-created_at", "-id")


@admin.register(ReviewDecision)
class ReviewDecisionAdmin(ReadOnlyAdmin):
    """The decisions of reviewers, without the values."""

    phi = ("old_value", "new_value", "reason")
    list_display = (
        "id", "shell_file_id", "entity_id", "action", "field", "category", "decided_by", "round",
        "created_at",
    )  # fmt: skip
    id_fields = ("pk", "shell_file_id", "entity_id")
    search_help_text = "The exact id of a decision, record or entity"
    ordering = ("-created_at", "-id")


@admin.register(LockedField)
class LockedFieldAdmin(ReadOnlyAdmin):
    """The fields that a person decided; the newest first."""

    list_display = (
        "id", "shell_file_id", "entity_id", "field", "category", "page_number", "unmatched_at",
    )  # fmt: skip
    id_fields = ("shell_file_id", "entity_id")
    search_help_text = "The exact id of a record or of an entity"
    ordering = ("-id",)
