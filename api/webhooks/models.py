"""The tables of webhooks: the endpoints of clients, and one delivery per endpoint and event.

No secret is stored: `signing` derives each secret from SECRET_KEY and the seed of the endpoint.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from api.webhooks.events import SCOPES, WebhookEvent
from pipeline.models import fields


class DisabledReason(models.TextChoices):
    """Why an endpoint gets no deliveries."""

    GONE = "gone"
    """The receiver answered 410."""
    FAILING = "failing"
    """Every attempt of the last days failed."""
    SECRET_CHANGED = "secret_changed", "secret changed"
    """SECRET_KEY has changed, so the receiver would refuse every signature."""


class DeliveryStatus(models.TextChoices):
    """The state of a delivery."""

    PENDING = "pending"
    """Waits for its next attempt."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """No attempt of the schedule succeeded; a replay begins again."""


class DeliveryFailure(models.TextChoices):
    """Why an attempt failed."""

    ADDRESS_REFUSED = "ADDRESS_REFUSED"
    """The host has an address that is not public, and WEBHOOK_ALLOWED_HOSTS does not name it."""
    NAME_UNKNOWN = "NAME_UNKNOWN"
    CONNECTION_FAILED = "CONNECTION_FAILED"
    TLS_FAILED = "TLS_FAILED"
    TIMEOUT = "TIMEOUT"
    RESPONSE_INVALID = "RESPONSE_INVALID"
    """What came back is no answer in HTTP."""
    STATUS_REFUSED = "STATUS_REFUSED"
    """The status of the answer is not 200 to 299; a redirect is not followed."""


class WebhookEndpoint(models.Model):
    """An address of a client to which events are posted."""

    id = fields.uuid_pk()
    client = models.ForeignKey(
        "api.ApiClient", on_delete=models.CASCADE, related_name="webhooks", db_index=False
    )
    url = models.TextField()
    """The path can hold a key of the receiver, so only the client sees the whole address."""
    events = ArrayField(models.TextField(choices=[(each.value, each.value) for each in SCOPES]))
    seed = models.CharField(max_length=32)
    """A random number; with SECRET_KEY it gives the secret."""
    secret_digest = models.CharField(max_length=64)
    """SHA-256 of the secret, which shows whether SECRET_KEY is still the same."""
    previous_seed = models.CharField(max_length=32, default="", db_default="", blank=True)
    """The seed before the last rotation, with which deliveries are signed too for a day."""
    rotated_at = fields.optional_time()
    failing_since = fields.optional_time()
    """The first failed attempt after the last success."""
    disabled_at = fields.optional_time()
    disabled_reason = fields.text(null=True, choices=DisabledReason.choices)
    created_at = fields.created_at()

    class Meta:
        db_table = "api_webhook_endpoints"
        db_table_comment = (
            "Addresses of API clients to which events are posted. Holds no secret: seeds and "
            "digests. No PHI."
        )
        default_permissions = ()
        verbose_name = "webhook"
        constraints = [
            models.UniqueConstraint(
                fields=["client", "url"], name="idx_api_webhook_endpoints_once"
            ),
            models.CheckConstraint(
                name="api_webhook_endpoints_events_check",
                condition=Q(events__len__gt=0)
                & Q(events__contained_by=[each.value for each in SCOPES]),
            ),
            models.CheckConstraint(
                name="api_webhook_endpoints_disabled_check",
                condition=Q(disabled_at__isnull=True, disabled_reason__isnull=True)
                | Q(disabled_at__isnull=False, disabled_reason__in=DisabledReason.values),
            ),
        ]

    def __str__(self) -> str:
        return f"webhook {self.id}"


class WebhookDelivery(models.Model):
    """An event for one endpoint, with the result of its last attempt.

    A trigger inserts the row in the transaction of the event. Afterwards only `deliveries` writes
    its status.
    """

    id = fields.uuid_pk()
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    event_id = models.UUIDField()
    """The header webhook-id: the same for all endpoints, attempts and replays."""
    event_type = models.TextField(choices=WebhookEvent.choices)
    subject_id = models.UUIDField()
    """The record, the incident, or for a ping the endpoint."""
    subject_status = models.TextField()
    subject_code = fields.text(null=True)
    """The error code of a record, or the kind of an incident."""
    occurred_at = models.DateTimeField()
    status = fields.status(DeliveryStatus, DeliveryStatus.PENDING)
    attempts = fields.count()
    """All attempts; the result of an attempt is written only while the number is the same."""
    retry_no = fields.count()
    """Failed attempts since the event or the last replay: the place in the schedule."""
    next_attempt_at = models.DateTimeField(db_default=models.functions.Now())
    """While an attempt runs: when another sender may repeat it, because the sender has died."""
    response_status = models.SmallIntegerField(null=True, blank=True)
    failure = fields.text(null=True, choices=DeliveryFailure.choices)
    duration_ms = fields.optional_count()
    finished_at = fields.optional_time()
    created_at = fields.created_at()

    class Meta:
        db_table = "api_webhook_deliveries"
        db_table_comment = (
            "One row per event and endpoint: the outbox of the webhooks, and their log. Ids, "
            "codes and times only. No PHI."
        )
        default_permissions = ()
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "event_id"], name="idx_api_webhook_deliveries_once"
            ),
            fields.one_of("api_webhook_deliveries_status_check", "status", DeliveryStatus),
            fields.one_of("api_webhook_deliveries_event_check", "event_type", WebhookEvent),
            fields.one_of("api_webhook_deliveries_failure_check", "failure", DeliveryFailure),
            models.CheckConstraint(
                name="api_webhook_deliveries_finished_check",
                condition=Q(status=DeliveryStatus.PENDING, finished_at__isnull=True)
                | Q(
                    status__in=[DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED],
                    finished_at__isnull=False,
                ),
            ),
            fields.not_negative(
                "api_webhook_deliveries_counts_check", "attempts", "retry_no", "duration_ms"
            ),
        ]
        indexes = [
            # For the sender: the due deliveries of each endpoint.
            models.Index(
                fields=["endpoint", "next_attempt_at"],
                name="idx_api_webhook_due",
                condition=Q(status=DeliveryStatus.PENDING),
            ),
            # For the log of an endpoint.
            models.Index(
                fields=["endpoint", "-created_at", "-id"], name="idx_api_webhook_of_endpoint"
            ),
            # For the admin: the deliveries about a record or an incident.
            models.Index(fields=["subject_id"], name="idx_api_webhook_subject"),
            # For the admin and for the retention.
            models.Index(fields=["-created_at", "-id"], name="idx_api_webhook_recent"),
        ]

    def __str__(self) -> str:
        return f"webhook delivery {self.id}"
