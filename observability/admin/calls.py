"""Calls to the provider. Of a raw reply only that it is kept, and until when."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import ProviderCall, ProviderPayload


@admin.register(ProviderCall)
class ProviderCallAdmin(ReadOnlyAdmin):
    """Every call and how it ended."""

    list_display = (
        "id", "step", "outcome", "accepted", "attempt", "part", "http_status", "model",
        "queue_wait_ms", "duration_ms", "input_tokens", "output_tokens", "cost_usd", "created_at",
    )  # fmt: skip
    list_filter = ("step",)
    id_fields = ("pk", "batch_id", "chunk_id", "processing_session_id")
    search_help_text = "The exact id of a call, a batch, a chunk or a session"
    ordering = ("-created_at", "-id")


@admin.register(ProviderPayload)
class ProviderPayloadAdmin(ReadOnlyAdmin):
    """Which replies are still kept."""

    phi = ("reply",)
    list_display = ("call_id", "page_range_start", "page_range_end", "prompt_sha256", "created_at")
    id_fields = ("pk",)
    ordering = ("-created_at",)
