"""The tables of the API in the admin: without digests, and read-only but for *Send again*."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from api.models import ApiClient, ApiToken, IdempotencyKey, WebhookDelivery, WebhookEndpoint
from api.webhooks.endpoints import KIND, REPLAY, replay
from observability.admin.base import ReadOnlyAdmin
from observability.audit import log
from observability.permissions import Right
from pipeline.core.errors import UserError


@admin.register(ApiClient)
class ApiClientAdmin(ReadOnlyAdmin):
    """The clients; `manage.py api_client` creates them."""

    list_display = ("id", "name", "user", "created_by", "created_at")
    list_select_related = ("user",)
    ordering = ("-created_at", "-id")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """The tokens of clients, by their public prefixes."""

    phi = ("digest",)
    list_display = (
        "prefix", "client", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at",
    )  # fmt: skip
    list_select_related = ("client",)
    id_fields = ("pk", "client_id")
    search_help_text = "The exact id of a token or of a client"
    ordering = ("-created_at", "-id")


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    """The requests with a key, and the states of their answers."""

    phi = ("key_digest", "fingerprint", "response_body")
    list_display = ("id", "client", "http_status", "created_at")
    list_select_related = ("client",)
    id_fields = ("pk", "client_id")
    search_help_text = "The exact id of a key or of a client"
    ordering = ("-created_at", "-id")


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnlyAdmin):
    """The webhooks of clients. An address can hold a key of the receiver, so it is not shown."""

    phi = ("url", "seed", "secret_digest", "previous_seed")
    list_display = (
        "id", "client", "events", "failing_since", "disabled_at", "disabled_reason", "created_at",
    )  # fmt: skip
    list_filter = ("disabled_reason",)
    list_select_related = ("client",)
    id_fields = ("pk", "client_id")
    search_help_text = "The exact id of a webhook or of a client"
    ordering = ("-created_at", "-id")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """The log of deliveries: why the last attempt failed, and when the next one comes.

    The page of a failed delivery has the button *Send again*.
    """

    list_display = (
        "id", "endpoint_id", "event_type", "subject_id", "status", "attempts", "failure",
        "response_status", "next_attempt_at", "created_at",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "endpoint_id", "subject_id")
    search_help_text = "The exact id of a delivery, a webhook, a record or an incident"
    ordering = ("-created_at", "-id")

    def get_urls(self) -> list[URLPattern]:
        """Add the address of *Send again*."""
        view = self.admin_site.admin_view(self.replay_view)
        again = path("<uuid:delivery_id>/replay/", view, name="api_webhookdelivery_replay")
        return [again, *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a delivery. Operators get the button if the delivery has failed."""
        may = request.user.has_perm(Right.RETRY.permission)
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), "may_replay": may}
        )

    def replay_view(self, request: HttpRequest, delivery_id: UUID) -> HttpResponse:
        """Send an ended delivery again, as the operation `replay` of the API does."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.has_perm(Right.RETRY.permission):
            log.record(
                request.user,
                REPLAY,
                target_kind=KIND,
                result=log.AuditResult.REFUSED,
                facts={"message": "without the right", "delivery": str(delivery_id)},
            )
            raise PermissionDenied
        rows = WebhookDelivery.objects.select_related("endpoint")
        delivery = get_object_or_404(rows, id=delivery_id)
        try:
            replay(delivery, request.user)
        except UserError as error:
            messages.error(request, f"{error.message[0].upper()}{error.message[1:]}.")
        else:
            messages.success(request, "The delivery is sent again within seconds.")
        return redirect("admin:api_webhookdelivery_change", delivery_id)
