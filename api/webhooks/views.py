"""The operations on webhooks: create, list, delete, rotate, enable, test, and the deliveries."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import P, QueryEx, Router

from api.access import BearerToken, client_of_request, missing_scope, token_of_request
from api.idempotency import Answer, once
from api.openapi import ANSWERS, IDEMPOTENT
from api.pagination import DEFAULT, Cursor, Limit, cursor_of, place_of_rows
from api.schemas import (
    Deleted,
    DeliveriesPage,
    DeliveryNow,
    NewWebhook,
    Webhook,
    WebhooksPage,
    WebhookWithSecret,
)
from api.scopes import TokenScope
from api.webhooks import endpoints
from api.webhooks.events import SCOPES, WebhookEvent
from api.webhooks.models import DeliveryStatus, WebhookDelivery, WebhookEndpoint
from medproc.reading import reading
from observability.listing.pagination import keyset_page
from pipeline.core.errors import UserError, UserErrorCode

router = Router(tags=["webhooks"])
_MANAGE = BearerToken(TokenScope.WEBHOOKS)


@router.post(
    "",
    auth=_MANAGE,
    response={201: WebhookWithSecret, **ANSWERS.created},
    operation_id="create_webhook",
    summary="Create a webhook",
)
def create(request: HttpRequest, body: NewWebhook) -> HttpResponse:
    """Create a webhook. The secret is shown only in this answer.

    The token needs the scope of each event: `records:read`, `reviews:read` or `incidents:read`.
    409 if the client has a webhook with this address: so a repeated request makes no second one.
    """
    _require_scopes(request, body.events)
    made, secret = endpoints.endpoint_create(
        client_of_request(request), body.url, body.events, request.user
    )
    answer = WebhookWithSecret(webhook=_webhook(made), secret=secret)
    return JsonResponse(answer.model_dump(mode="json"), status=HTTPStatus.CREATED)


@router.get(
    "",
    auth=_MANAGE,
    response={200: WebhooksPage, **ANSWERS.listed},
    operation_id="list_webhooks",
    summary="List the webhooks of the client",
)
def listed(request: HttpRequest, limit: Limit = DEFAULT, cursor: Cursor = None) -> WebhooksPage:
    """Return the client's webhooks, newest first."""
    place = place_of_rows(cursor)
    own = WebhookEndpoint.objects.filter(client=client_of_request(request))
    with reading():
        page = keyset_page(own, "created_at", place, limit)
    return WebhooksPage(
        items=list(map(_webhook, page.rows)), next_cursor=cursor_of(page.next_place)
    )


@router.get(
    "/{uuid:webhook_id}",
    auth=_MANAGE,
    response={200: Webhook, **ANSWERS.one},
    operation_id="get_webhook",
    summary="Read a webhook",
)
def one(request: HttpRequest, webhook_id: UUID) -> Webhook:
    """Return a webhook: whether it is disabled and why, and since when attempts fail."""
    with reading():
        return _webhook(_own(request, webhook_id))


@router.delete(
    "/{uuid:webhook_id}",
    auth=_MANAGE,
    response={200: Deleted, **ANSWERS.one},
    operation_id="delete_webhook",
    summary="Delete a webhook",
)
def delete(request: HttpRequest, webhook_id: UUID) -> Deleted:
    """Delete a webhook with its deliveries."""
    endpoints.endpoint_delete(_own(request, webhook_id), request.user)
    return Deleted(id=webhook_id)


@router.post(
    "/{uuid:webhook_id}/secret",
    auth=_MANAGE,
    response={200: WebhookWithSecret, **ANSWERS.one},
    operation_id="rotate_webhook_secret",
    summary="Change the secret of a webhook",
)
def rotate(request: HttpRequest, webhook_id: UUID) -> WebhookWithSecret:
    """Change the secret. For 24 hours, deliveries have a signature of the old secret too."""
    secret = endpoints.rotate_secret(_own(request, webhook_id), request.user)
    return WebhookWithSecret(webhook=_webhook(_own(request, webhook_id)), secret=secret)


@router.post(
    "/{uuid:webhook_id}/enable",
    auth=_MANAGE,
    response={200: Webhook, **ANSWERS.conflicting},
    operation_id="enable_webhook",
    summary="Enable a disabled webhook",
)
def enable(request: HttpRequest, webhook_id: UUID) -> Webhook:
    """Enable a webhook; its waiting deliveries go on. Events of the time in between are lost."""
    endpoints.enable(_own(request, webhook_id), request.user)
    return _webhook(_own(request, webhook_id))


@router.post(
    "/{uuid:webhook_id}/ping",
    auth=_MANAGE,
    response={200: DeliveryNow, **ANSWERS.conflicting},
    openapi_extra=IDEMPOTENT,
    operation_id="ping_webhook",
    summary="Send a test event",
)
def ping(request: HttpRequest, webhook_id: UUID) -> HttpResponse:
    """Send an event of the type `ping`, as any other event is sent. 409 for a disabled webhook."""
    endpoint = _own(request, webhook_id)

    def act() -> Answer:
        return HTTPStatus.OK, _as_json(endpoints.ping(endpoint, request.user))

    return once(request, client_of_request(request), ["ping", str(webhook_id)], act)


@router.get(
    "/{uuid:webhook_id}/deliveries",
    auth=_MANAGE,
    response={200: DeliveriesPage, **ANSWERS.one},
    operation_id="list_deliveries",
    summary="List the deliveries of a webhook",
)
def deliveries(
    request: HttpRequest,
    webhook_id: UUID,
    status: QueryEx[DeliveryStatus | None, P(description="Only deliveries in this state.")] = None,
    limit: Limit = DEFAULT,
    cursor: Cursor = None,
) -> DeliveriesPage:
    """Return deliveries, newest first, with the result of the last attempt."""
    place = place_of_rows(cursor)
    with reading():
        rows = WebhookDelivery.objects.filter(endpoint=_own(request, webhook_id))
        if status is not None:
            rows = rows.filter(status=status)
        page = keyset_page(rows, "created_at", place, limit)
    return DeliveriesPage(
        items=list(map(_delivery, page.rows)), next_cursor=cursor_of(page.next_place)
    )


@router.post(
    "/{uuid:webhook_id}/deliveries/{uuid:delivery_id}/replay",
    auth=_MANAGE,
    response={200: DeliveryNow, **ANSWERS.conflicting},
    openapi_extra=IDEMPOTENT,
    operation_id="replay_delivery",
    summary="Send a delivery again",
)
def replay(request: HttpRequest, webhook_id: UUID, delivery_id: UUID) -> HttpResponse:
    """Send an ended delivery again, with the same `webhook-id`. 409 while it has not ended."""
    rows = WebhookDelivery.objects.select_related("endpoint")
    found = rows.filter(id=delivery_id, endpoint=_own(request, webhook_id)).first()
    if found is None:
        raise _not_found()

    def act() -> Answer:
        endpoints.replay(found, request.user)
        return HTTPStatus.OK, _as_json(WebhookDelivery.objects.get(id=delivery_id))

    return once(request, client_of_request(request), ["replay", str(delivery_id)], act)


def _own(request: HttpRequest, webhook_id: UUID) -> WebhookEndpoint:
    """Return a webhook of the client; another client's is answered like an unknown one."""
    own = WebhookEndpoint.objects.filter(id=webhook_id, client=client_of_request(request))
    found = own.first()
    if found is None:
        raise _not_found()
    return found


def _require_scopes(request: HttpRequest, events: list[WebhookEvent]) -> None:
    if WebhookEvent.PING in events:
        raise UserError(
            "nothing subscribes to ping; it comes on request", code=UserErrorCode.VALUE_INVALID
        )
    own = token_of_request(request).scopes
    for scope in sorted({SCOPES[event] for event in events}):
        if scope not in own:
            raise missing_scope(scope)


def _not_found() -> UserError:
    return UserError("this client has no such webhook or delivery", code=UserErrorCode.NOT_FOUND)


def _webhook(row: WebhookEndpoint) -> Webhook:
    return Webhook(**{name: getattr(row, name) for name in Webhook.model_fields})


def _delivery(row: WebhookDelivery) -> DeliveryNow:
    named: dict[str, Any] = {
        name: getattr(row, name) for name in DeliveryNow.model_fields if name != "type"
    }
    if row.status != DeliveryStatus.PENDING:
        named["next_attempt_at"] = None
    return DeliveryNow(type=WebhookEvent(row.event_type), **named)


def _as_json(row: WebhookDelivery) -> dict[str, Any]:
    return _delivery(row).model_dump(mode="json")
