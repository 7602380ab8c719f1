"""Calls to the provider; for a raw reply, only its existence and its retention time."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from observability.admin.base import ReadOnlyAdmin
from pipeline.core.states import Step
from pipeline.models import ProviderCall, ProviderPayload
from pipeline.models.work_tables import WORK_TABLES


@admin.register(ProviderCall)
class ProviderCallAdmin(ReadOnlyAdmin):
    """Each call with its outcome."""

    list_display = (
        "id", "step", "outcome", "accepted", "attempt", "split", "http_status", "model",
        "queue_wait_ms", "duration_ms", "input_tokens", "output_tokens", "cost_usd", "created_at",
    )  # fmt: skip
    list_filter = ("step",)
    id_fields = ("pk", "work_item_id", "processing_session_id")
    search_help_text = "The exact id of a call, a work item (a batch or a chunk) or a session"
    ordering = ("-created_at", "-id")

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """Return the columns of the table, with a link in the place of the work item's id."""
        names = super().get_fields(request, obj)
        return ["work_item" if name == "work_item_id" else name for name in names]

    @admin.display(description="work item")
    def work_item(self, call: ProviderCall) -> SafeString | str:
        """Return a link to the row of the work item."""
        table = WORK_TABLES.get(Step(call.step))
        if call.work_item_id is None or table is None:
            return "–"
        name = f"admin:pipeline_{table.model._meta.model_name}_change"
        return format_html(
            '<a href="{}">{} {}</a>',
            reverse(name, args=[call.work_item_id]),
            table.noun,
            call.work_item_id,
        )


@admin.register(ProviderPayload)
class ProviderPayloadAdmin(ReadOnlyAdmin):
    """The replies that are still stored."""

    phi = ("reply",)
    list_display = ("call_id", "page_range_start", "page_range_end", "prompt_sha256", "created_at")
    id_fields = ("pk",)
    ordering = ("-created_at",)
