"""The events that a webhook announces, and the scope that a client needs for each.

Triggers of the database write the deliveries of an event in the transaction of the event
(migration 0002), so the names are in both places; a test compares them.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import models

from api.scopes import TokenScope


class WebhookEvent(models.TextChoices):
    """The type of an event."""

    RECORD_COMPLETED = "record.completed"
    RECORD_FAILED = "record.failed"
    RECORD_DEAD = "record.dead"
    RECORD_CANCELLED = "record.cancelled"
    REVIEW_CLOSED = "review.closed"
    INCIDENT_OPENED = "incident.opened"
    INCIDENT_CLOSED = "incident.closed"
    PING = "ping"
    """Only on request; no endpoint subscribes to it."""


SCOPES: dict[WebhookEvent, TokenScope] = {
    WebhookEvent.RECORD_COMPLETED: TokenScope.READ,
    WebhookEvent.RECORD_FAILED: TokenScope.READ,
    WebhookEvent.RECORD_DEAD: TokenScope.READ,
    WebhookEvent.RECORD_CANCELLED: TokenScope.READ,
    WebhookEvent.REVIEW_CLOSED: TokenScope.REVIEWS,
    WebhookEvent.INCIDENT_OPENED: TokenScope.INCIDENTS,
    WebhookEvent.INCIDENT_CLOSED: TokenScope.INCIDENTS,
}
"""Each event that an endpoint can subscribe to."""


def payload(
    event: str, occurred_at: str, subject_id: UUID, status: str, code: str | None
) -> dict[str, Any]:
    """Return the body of a delivery: ids, states, codes and times, and no PHI."""
    data: dict[str, Any] = {"id": str(subject_id), "status": status}
    if event.startswith("record."):
        data |= {"error_code": code, "url": f"/api/v1/records/{subject_id}"}
    elif event.startswith("review."):
        # The API names a review by its record.
        data = {"record_id": str(subject_id), "status": status}
    elif event.startswith("incident."):
        data |= {"kind": code}
    return {"type": event, "timestamp": occurred_at, "data": data}
