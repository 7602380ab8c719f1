"""The only writer of a delivery's status: each change is one conditional UPDATE.

A sender claims due deliveries, and several senders never claim the same one. A sender that dies
leaves its deliveries pending, and they are due again after `CLAIM_S`. So a delivery can arrive
twice, and never gets lost; the receiver knows a repetition by its webhook-id.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from api.webhooks.models import DeliveryFailure, DeliveryStatus, WebhookDelivery, WebhookEndpoint
from medproc.timing import scaled
from pipeline.models.fields import ClockTimestamp
from pipeline.transitions.metric_counts import CounterPart, add_counts

DELAYS_S = (
    5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0,
)  # fmt: skip
"""Seconds before each repetition, ten attempts in 76 hours: the example of Standard Webhooks."""
JITTER = 0.1
"""Part of a delay that chance adds, so that a receiver that returns does not get all at once."""
LONGEST_RETRY_AFTER_S = 86_400.0
"""The longest wait that a receiver can ask for with Retry-After."""
CLAIM_S = 60.0
"""Seconds after which a claimed delivery without a result is due again."""
CLAIMED_AT_ONCE, OF_ONE_ENDPOINT = 32, 4
"""Deliveries of one claim: a slow receiver takes a part of them."""

_IS_SERVED = """e.disabled_at IS NULL AND EXISTS (SELECT FROM api_clients c
  JOIN auth_user u ON u.id = c.user_id WHERE c.id = e.client_id AND u.is_active)"""
_IS_DUE = "d.status = 'pending' AND d.next_attempt_at <= clock_timestamp()"
_HAS_DUE = f"""
SELECT EXISTS (SELECT FROM api_webhook_endpoints e WHERE {_IS_SERVED} AND EXISTS (
  SELECT FROM api_webhook_deliveries d WHERE d.endpoint_id = e.id AND {_IS_DUE}))
"""  # noqa: S608 - only constants of this module are joined
_CLAIM = f"""
WITH chosen AS (
  SELECT due.id FROM api_webhook_endpoints e CROSS JOIN LATERAL (
    SELECT d.id, d.next_attempt_at FROM api_webhook_deliveries d
    WHERE d.endpoint_id = e.id AND {_IS_DUE}
    ORDER BY d.next_attempt_at LIMIT %(of_one)s FOR UPDATE SKIP LOCKED) due
  WHERE {_IS_SERVED} ORDER BY due.next_attempt_at LIMIT %(at_once)s
)
UPDATE api_webhook_deliveries d SET attempts = d.attempts + 1,
  next_attempt_at = clock_timestamp() + make_interval(secs => %(claim_s)s)
FROM chosen, api_webhook_endpoints e WHERE d.id = chosen.id AND e.id = d.endpoint_id
RETURNING d.id, d.endpoint_id, e.url, e.seed, e.secret_digest, e.previous_seed, e.rotated_at,
  d.event_id, d.event_type, d.subject_id, d.subject_status, d.subject_code, d.occurred_at,
  d.attempts, d.retry_no
"""  # noqa: S608 - only constants of this module are joined


@dataclass(frozen=True, kw_only=True)
class ClaimedDelivery:
    """A delivery whose attempt may begin now."""

    id: UUID
    endpoint_id: UUID
    url: str
    seed: str
    secret_digest: str
    previous_seed: str
    rotated_at: datetime | None
    event_id: UUID
    event_type: str
    subject_id: UUID
    subject_status: str
    subject_code: str | None
    occurred_at: datetime
    attempts: int
    retry_no: int


@dataclass(frozen=True, kw_only=True)
class DeliveryResult:
    """The result of an attempt."""

    failure: DeliveryFailure | None
    response_status: int | None
    retry_after_s: float | None
    duration_ms: int


def has_due() -> bool:
    """Return whether any delivery is due."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_DUE)
        return bool(cursor.fetchone()[0])


def claim() -> list[ClaimedDelivery]:
    """Claim due deliveries, the oldest first, and few of each endpoint."""
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM,
            {
                "of_one": OF_ONE_ENDPOINT,
                "at_once": CLAIMED_AT_ONCE,
                "claim_s": scaled(CLAIM_S),
            },
        )
        names = [column.name for column in cursor.description]
        return [ClaimedDelivery(**dict(zip(names, row, strict=True))) for row in cursor]


def note_result(claimed: ClaimedDelivery, result: DeliveryResult) -> None:
    """Write and count the result of an attempt, unless its claim has expired and another began."""
    written: dict[str, Any] = {
        "response_status": result.response_status,
        "failure": result.failure,
        "duration_ms": result.duration_ms,
    }
    endpoint = WebhookEndpoint.objects.filter(id=claimed.endpoint_id)
    with transaction.atomic():
        if result.failure is None:
            written |= {"status": DeliveryStatus.SUCCEEDED, "finished_at": ClockTimestamp()}
            endpoint.filter(failing_since__isnull=False).update(failing_since=None)
        else:
            written |= _after_failure(claimed, result)
            endpoint.filter(failing_since__isnull=True).update(failing_since=ClockTimestamp())
        rows = WebhookDelivery.objects.filter(
            id=claimed.id, status=DeliveryStatus.PENDING, attempts=claimed.attempts
        )
        if rows.update(**written):
            add_counts(_counts(result, written.get("status")))


def _counts(result: DeliveryResult, ended_as: DeliveryStatus | None) -> Iterator[CounterPart]:
    outcome = result.failure.value if result.failure else "OK"
    yield CounterPart(name="webhook_attempts", labels={"outcome": outcome})
    if ended_as is not None:
        yield CounterPart(name="webhook_deliveries", labels={"status": ended_as.value})


def begin_again(delivery_id: UUID) -> bool:
    """Make an ended delivery due; return False if the delivery has not ended."""
    return (
        WebhookDelivery.objects.filter(
            id=delivery_id, status__in=[DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED]
        ).update(
            status=DeliveryStatus.PENDING,
            finished_at=None,
            retry_no=0,
            next_attempt_at=ClockTimestamp(),
        )
        == 1
    )


def _after_failure(claimed: ClaimedDelivery, result: DeliveryResult) -> dict[str, Any]:
    if claimed.retry_no >= len(DELAYS_S):
        return {"status": DeliveryStatus.FAILED, "finished_at": ClockTimestamp()}
    asked_s = min(result.retry_after_s or 0.0, LONGEST_RETRY_AFTER_S)
    delay_s = max(DELAYS_S[claimed.retry_no], asked_s) * (1 + JITTER * random.random())
    return {
        "retry_no": claimed.retry_no + 1,
        "next_attempt_at": ClockTimestamp() + timedelta(seconds=scaled(delay_s)),
    }
