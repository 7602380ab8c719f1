"""The tables of the HTTP API: clients, their tokens, and the keys of repeated requests.

A token itself is never stored: the row has the token's public prefix and a digest. The tables of
webhooks are in `webhooks.models`.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from api.scopes import TokenScope
from api.webhooks.models import WebhookDelivery, WebhookEndpoint
from pipeline.models import fields

__all__ = ["ApiClient", "ApiToken", "IdempotencyKey", "WebhookDelivery", "WebhookEndpoint"]


class ApiClient(models.Model):
    """A program that uses the API. It owns its records through a user of its own."""

    id = fields.uuid_pk()
    name = models.TextField(unique=True)
    """Lower-case letters, digits and dashes; part of the references of the client's patients."""
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="api_client"
    )
    """A user without a password: ownership, reuse and audit work as for people."""
    created_at = fields.created_at()
    created_by = models.TextField()

    class Meta:
        db_table = "api_clients"
        db_table_comment = "Programs that use the HTTP API, each with a user of its own. No PHI."
        default_permissions = ()
        verbose_name = "API client"
        constraints = [
            models.CheckConstraint(
                name="api_clients_name_check",
                condition=models.Q(name__regex=r"^[a-z0-9][a-z0-9-]{0,39}$"),
            ),
        ]

    def __str__(self) -> str:
        return f"API client {self.name}"


class ApiToken(models.Model):
    """A token of a client. A client can have several valid tokens, so that it can change them."""

    id = fields.uuid_pk()
    client = models.ForeignKey(ApiClient, on_delete=models.CASCADE, related_name="tokens")
    prefix = models.TextField(unique=True)
    """The public part of the token, by which people recognize it."""
    digest = models.CharField(max_length=64)
    """SHA-256 of the whole token. The secret part has 256 random bits, so no salt is needed."""
    scopes = ArrayField(models.TextField(choices=[(each.value, each.value) for each in TokenScope]))
    created_at = fields.created_at()
    created_by = models.TextField()
    expires_at = fields.optional_time()
    revoked_at = fields.optional_time()
    revoked_by = fields.text(null=True)
    last_used_at = fields.optional_time()
    """To ten minutes: a request of the same ten minutes writes nothing."""

    class Meta:
        db_table = "api_tokens"
        db_table_comment = "Tokens of API clients: public prefix, digest, scopes. No PHI."
        default_permissions = ()
        verbose_name = "API token"
        constraints = [
            models.CheckConstraint(
                name="api_tokens_scopes_check",
                condition=models.Q(scopes__len__gt=0)
                & models.Q(scopes__contained_by=[each.value for each in TokenScope]),
            ),
            models.CheckConstraint(
                name="api_tokens_digest_check", condition=models.Q(digest__regex="^[0-9a-f]{64}$")
            ),
        ]

    def __str__(self) -> str:
        return f"API token {self.prefix}"


class IdempotencyKey(models.Model):
    """A request that a client has marked with a key, and the answer that each repetition gets."""

    id = fields.uuid_pk()
    client = models.ForeignKey(
        ApiClient, on_delete=models.CASCADE, related_name="idempotency_keys", db_index=False
    )
    key_digest = models.CharField(max_length=64)
    """SHA-256 of the key: a client could put a patient's number into the key."""
    fingerprint = models.CharField(max_length=64)
    """SHA-256 of the request with its body; another request cannot use the key."""
    http_status = models.SmallIntegerField(null=True, blank=True)
    """NULL only within the transaction of the request."""
    response_body = models.JSONField(default=dict, db_default={})
    """Ids and states; no PHI."""
    created_at = fields.created_at()

    class Meta:
        db_table = "api_idempotency_keys"
        db_table_comment = "Requests of API clients by idempotency key, with their answers. No PHI."
        default_permissions = ()
        verbose_name = "idempotency key"
        constraints = [
            models.UniqueConstraint(
                fields=["client", "key_digest"], name="idx_api_idempotency_keys_once"
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="idx_api_idempotency_recent"),
        ]

    def __str__(self) -> str:
        return f"idempotency key {self.id}"
