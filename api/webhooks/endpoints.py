"""The actions on endpoints and deliveries; each writes a row of the audit."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from api.models import ApiClient
from api.transitions.deliveries import begin_again
from api.webhooks import signing
from api.webhooks.events import WebhookEvent
from api.webhooks.models import DisabledReason, WebhookDelivery, WebhookEndpoint
from api.webhooks.receiver import check_url
from medproc.timing import scaled
from observability.audit import log
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models.fields import ClockTimestamp
from pipeline.queueing.queues import WEBHOOKS, wake

KIND = "webhook"
"""The audit's name for an endpoint as a target."""
REPLAY = "replay_webhook"
"""The audit's name for a delivery that is sent again."""
SENDER = "webhook sender"
"""The audit's name for the worker that disables an endpoint."""
MOST_OF_A_CLIENT = 20
FAILING_DAYS = 5
"""Days without a success after which an endpoint is disabled, as Svix does
(https://docs.svix.com/retries)."""


def endpoint_create(
    client: ApiClient, url: str, events: Collection[WebhookEvent], actor: log.Actor
) -> tuple[WebhookEndpoint, str]:
    """Create an endpoint; return the endpoint and its secret. Raises UserError."""
    made = WebhookEndpoint(client=client, url=url, events=sorted(set(events)))
    with log.audited(actor, "create_webhook", target_kind=KIND, target_id=made.id) as facts:
        check_url(url)
        # Two requests of a client take turns, so that neither exceeds the number.
        ApiClient.objects.select_for_update().get(id=client.id)
        own = WebhookEndpoint.objects.filter(client=client)
        if own.filter(url=url).exists():
            raise _conflict("this client has a webhook with this address already")
        if own.count() >= MOST_OF_A_CLIENT:
            raise _conflict(f"a client has at most {MOST_OF_A_CLIENT} webhooks; delete one first")
        secret = _new_secret(made)
        made.save(force_insert=True)
        facts |= {"client": client.name, "events": made.events}
    made.refresh_from_db()
    return made, secret


def endpoint_delete(endpoint: WebhookEndpoint, actor: log.Actor) -> None:
    """Delete an endpoint with its deliveries."""
    with log.audited(actor, "delete_webhook", target_kind=KIND, target_id=endpoint.id) as facts:
        # An event that is being noted for the endpoint commits first.
        WebhookEndpoint.objects.select_for_update().filter(id=endpoint.id).first()
        facts["deliveries"] = endpoint.deliveries.count()
        WebhookEndpoint.objects.filter(id=endpoint.id).delete()


def rotate_secret(endpoint: WebhookEndpoint, actor: log.Actor) -> str:
    """Give an endpoint another secret, and return the secret; the old one signs for a day too."""
    with log.audited(actor, "rotate_webhook_secret", target_kind=KIND, target_id=endpoint.id):
        locked = WebhookEndpoint.objects.select_for_update().get(id=endpoint.id)
        locked.previous_seed, locked.rotated_at = locked.seed, timezone.now()
        secret = _new_secret(locked)
        locked.save(update_fields=["seed", "secret_digest", "previous_seed", "rotated_at"])
    return secret


def enable(endpoint: WebhookEndpoint, actor: log.Actor) -> None:
    """Let deliveries to a disabled endpoint go on. Raises UserError STATE_CONFLICT."""
    with log.audited(actor, "enable_webhook", target_kind=KIND, target_id=endpoint.id):
        secret = signing.secret_of(endpoint.id, endpoint.seed)
        if signing.digest_of(secret) != endpoint.secret_digest:
            raise _conflict("the secret of this webhook has changed; rotate the secret first")
        WebhookEndpoint.objects.filter(id=endpoint.id).update(
            disabled_at=None, disabled_reason=None, failing_since=None
        )
        wake(WEBHOOKS)


def ping(endpoint: WebhookEndpoint, actor: log.Actor) -> WebhookDelivery:
    """Send a test event. Raises UserError STATE_CONFLICT for a disabled endpoint."""
    with log.audited(actor, "ping_webhook", target_kind=KIND, target_id=endpoint.id):
        _require_enabled(endpoint)
        made = WebhookDelivery.objects.create(
            endpoint=endpoint,
            event_id=uuid4(),
            event_type=WebhookEvent.PING,
            subject_id=endpoint.id,
            subject_status="enabled",
            occurred_at=timezone.now(),
        )
        wake(WEBHOOKS)
    made.refresh_from_db()
    return made


def replay(delivery: WebhookDelivery, actor: log.Actor) -> None:
    """Send an ended delivery again, with the same webhook-id. Raises UserError STATE_CONFLICT."""
    with log.audited(actor, REPLAY, target_kind=KIND, target_id=delivery.endpoint_id) as facts:
        facts["delivery"] = str(delivery.id)
        _require_enabled(delivery.endpoint)
        if not begin_again(delivery.id):
            raise _conflict("the delivery has not ended; its next attempt comes by itself")
        wake(WEBHOOKS)


def disable_if_failing(endpoint_id: UUID) -> bool:
    """Disable an endpoint that has had no success for days."""
    since = timezone.now() - timedelta(seconds=scaled(FAILING_DAYS * 86_400.0))
    is_failing = WebhookEndpoint.objects.filter(id=endpoint_id, failing_since__lt=since).exists()
    return is_failing and disable(endpoint_id, DisabledReason.FAILING)


def disable(endpoint_id: UUID, reason: DisabledReason) -> bool:
    """Disable an endpoint; return False if it is disabled already."""
    with transaction.atomic():
        changed = WebhookEndpoint.objects.filter(id=endpoint_id, disabled_at__isnull=True).update(
            disabled_at=ClockTimestamp(), disabled_reason=reason
        )
        if changed:
            log.record(
                SENDER,
                "disable_webhook",
                target_kind=KIND,
                target_id=endpoint_id,
                facts={"reason": reason.value},
            )
    return bool(changed)


def _new_secret(endpoint: WebhookEndpoint) -> str:
    endpoint.seed = signing.new_seed()
    secret = signing.secret_of(endpoint.id, endpoint.seed)
    endpoint.secret_digest = signing.digest_of(secret)
    return signing.shown(secret)


def _require_enabled(endpoint: WebhookEndpoint) -> None:
    if endpoint.disabled_at is not None:
        raise _conflict("the webhook is disabled; enable it first")


def _conflict(says: str) -> UserError:
    return UserError(says, code=UserErrorCode.STATE_CONFLICT)
