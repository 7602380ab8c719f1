"""The sender: wakes a worker while deliveries are due, and posts them.

The table is the truth, and the entry of the queue is a wake-up. A delivery whose wake-up is lost,
or whose sender is killed, stays due, and the periodic task wakes another worker. The threads only
post; the main thread alone reads and writes rows.
"""

from __future__ import annotations

import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http import HTTPStatus

from django.utils import timezone

from api.transitions.deliveries import (
    CLAIMED_AT_ONCE,
    ClaimedDelivery,
    DeliveryResult,
    claim,
    has_due,
    note_result,
)
from api.webhooks import signing
from api.webhooks.endpoints import disable, disable_if_failing
from api.webhooks.events import payload
from api.webhooks.models import DeliveryFailure, DisabledReason
from api.webhooks.receiver import NotDeliveredError, post
from pipeline.execution.shutdown import stop_requested
from pipeline.queueing.queues import WEBHOOKS, wake_if_idle

logger = logging.getLogger(__name__)

RUN_S = 60.0
"""Seconds after which a run claims no more deliveries; the periodic task begins the next run."""
OLD_SECRET_H = 24
"""Hours for which the secret before a rotation still signs too."""


def wake_sender() -> str:
    """Wake a worker if a delivery is due (periodic task)."""
    if has_due():
        wake_if_idle(WEBHOOKS)
    return ""


def send_due() -> None:
    """Post the due deliveries until none is left, a stop is asked for, or the time is over."""
    ends_at = time.monotonic() + RUN_S
    with ThreadPoolExecutor(CLAIMED_AT_ONCE, thread_name_prefix="webhook") as pool:
        while time.monotonic() < ends_at and not stop_requested():
            claimed = [each for each in claim() if _has_its_secret(each)]
            if not claimed:
                return
            for each, result in zip(claimed, pool.map(attempt, claimed), strict=True):
                _settle(each, result)


def attempt(claimed: ClaimedDelivery) -> DeliveryResult:
    """Post one delivery; touches no row."""
    began = time.monotonic()
    status, retry_after_s, failure = None, None, None
    body = json.dumps(
        payload(
            claimed.event_type,
            claimed.occurred_at.isoformat(),
            claimed.subject_id,
            claimed.subject_status,
            claimed.subject_code,
        )
    ).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "medproc",
        **signing.signed(claimed.event_id, int(time.time()), body, _secrets(claimed)),
    }
    try:
        answer = post(claimed.url, body, headers)
    except NotDeliveredError as error:
        failure = error.failure
    else:
        status, retry_after_s = answer.status, answer.retry_after_s
        failure = None if answer.is_ok else DeliveryFailure.STATUS_REFUSED
    return DeliveryResult(
        failure=failure,
        response_status=status,
        retry_after_s=retry_after_s,
        duration_ms=int((time.monotonic() - began) * 1000),
    )


def _secrets(claimed: ClaimedDelivery) -> list[bytes]:
    seeds = [claimed.seed]
    since = timezone.now() - timedelta(hours=OLD_SECRET_H)
    if claimed.previous_seed and claimed.rotated_at is not None and claimed.rotated_at > since:
        seeds.append(claimed.previous_seed)
    return [signing.secret_of(claimed.endpoint_id, seed) for seed in seeds]


def _has_its_secret(claimed: ClaimedDelivery) -> bool:
    """Return whether SECRET_KEY is the one of the secret; otherwise disable the endpoint."""
    secret = signing.secret_of(claimed.endpoint_id, claimed.seed)
    if signing.digest_of(secret) == claimed.secret_digest:
        return True
    disable(claimed.endpoint_id, DisabledReason.SECRET_CHANGED)
    return False


def _settle(claimed: ClaimedDelivery, result: DeliveryResult) -> None:
    note_result(claimed, result)
    logger.info(
        "webhook delivery %s attempt %s: %s",
        claimed.id,
        claimed.attempts,
        result.failure or "succeeded",
        extra={"action": "webhook_delivery", "status": result.response_status},
    )
    if result.response_status == HTTPStatus.GONE:
        disable(claimed.endpoint_id, DisabledReason.GONE)
    elif result.failure is not None:
        disable_if_failing(claimed.endpoint_id)
