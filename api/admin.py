"""The tables of the API in the admin: read-only, without digests."""

from __future__ import annotations

from django.contrib import admin

from api.models import ApiClient, ApiToken, IdempotencyKey, WebhookDelivery, WebhookEndpoint
from observability.admin.base import ReadOnlyAdmin


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
    """The log of deliveries: why the last attempt failed, and when the next one comes."""

    list_display = (
        "id", "endpoint_id", "event_type", "subject_id", "status", "attempts", "failure",
        "response_status", "next_attempt_at", "created_at",
    )  # fmt: skip
    list_filter = ("status",)
    id_fields = ("pk", "endpoint_id", "subject_id")
    search_help_text = "The exact id of a delivery, a webhook, a record or an incident"
    ordering = ("-created_at", "-id")
