"""*Send again* in the console, and the counters of deliveries."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from api.models import WebhookDelivery, WebhookEndpoint
from api.transitions import deliveries
from api.webhooks.models import DeliveryFailure
from api.webhooks.send import send_due
from observability.actions.retention import prune_audited
from observability.metrics.prometheus.catalogue import WEBHOOK_OUTCOMES
from observability.permissions import Role
from pipeline.transitions.metric_counts import fold_counts
from tests.integration.test_webhooks import cancelled, make_due, own_job, subscribed
from tests.support.api_clients import a_program
from tests.support.audit_rows import audit_events
from tests.support.prometheus import scrape, value
from tests.support.url_matrix import a_failed_delivery
from tests.support.users import client_of
from tests.support.webhook_receiver import ToldAnswer, receiving

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]


def address(name: str, row: WebhookDelivery) -> str:
    return reverse(f"admin:api_webhookdelivery_{name}", args=[row.id])


def given_up() -> WebhookDelivery:
    """Let all ten attempts of a new delivery fail."""
    for _ in range(len(deliveries.DELAYS_S) + 1):
        make_due()
        send_due()
    return WebhookDelivery.objects.get()


def test_an_operator_sends_a_failed_delivery_again_and_the_receiver_gets_it() -> None:
    operator, program = client_of(Role.OPERATOR), a_program()
    with receiving(*[ToldAnswer(status=500)] * 10) as receiver:
        subscribed(program, receiver.url)
        cancelled(own_job(program))
        row = given_up()
        page = operator.get(address("change", row)).content.decode()
        sent = operator.post(address("replay", row), follow=True).content.decode()
        twice = operator.post(address("replay", row), follow=True).content.decode()
        send_due()

    row.refresh_from_db()
    assert "Send again" in page
    assert "The delivery is sent again within seconds." in sent
    assert "Send again" not in sent
    assert "The delivery has not ended; its next attempt comes by itself." in twice
    assert (row.status, row.response_status) == ("succeeded", 200)
    assert len({each.headers["webhook-id"] for each in receiver.got}) == 1
    told = audit_events().filter(action="replay_webhook", actor="operator")
    assert sorted(each.result for each in told) == ["done", "refused"]


def test_only_a_post_with_the_right_and_the_token_of_the_form_sends_again() -> None:
    row = a_failed_delivery()
    viewer, strict = client_of(Role.VIEWER), Client(enforce_csrf_checks=True)
    client_of(Role.OPERATOR)
    strict.force_login(User.objects.get(username=Role.OPERATOR))
    before = audit_events().filter(action="replay_webhook").count()

    page = viewer.get(address("change", row)).content.decode()
    refused = viewer.post(address("replay", row)).status_code
    got = viewer.get(address("replay", row)).status_code
    without_token = strict.post(address("replay", row)).status_code
    stranger = Client().post(address("replay", row))

    row.refresh_from_db()
    assert "Send again" not in page
    assert (refused, without_token) == (HTTPStatus.FORBIDDEN, HTTPStatus.FORBIDDEN)
    assert got == HTTPStatus.METHOD_NOT_ALLOWED
    assert stranger.headers["Location"].startswith(reverse("admin:login"))
    assert row.status == "failed"
    refusals = audit_events().filter(action="replay_webhook", result="refused")
    assert refusals.count() == before + 1


def test_a_delivery_to_a_disabled_webhook_is_not_sent_again() -> None:
    row = a_failed_delivery()
    WebhookEndpoint.objects.update(disabled_at=row.finished_at, disabled_reason="gone")

    answer = client_of(Role.OPERATOR).post(address("replay", row), follow=True)

    assert "The webhook is disabled; enable it first." in answer.content.decode()
    row.refresh_from_db()
    assert row.status == "failed"


def test_results_are_counted_once_and_stay_counted_after_pruning() -> None:
    program = a_program()
    with receiving(*[ToldAnswer(status=500)] * 10) as receiver:
        subscribed(program, receiver.url)
        cancelled(own_job(program))
        row = given_up()
        late = deliveries.ClaimedDelivery(
            **{name: getattr(row, name) for name in (
                "id", "endpoint_id", "event_id", "event_type", "subject_id", "subject_status",
                "subject_code", "occurred_at", "attempts", "retry_no",
            )},
            url="", seed="", secret_digest="", previous_seed="", rotated_at=None,
        )  # fmt: skip
        # The result of a sender whose claim has expired is neither written nor counted.
        deliveries.note_result(
            late,
            deliveries.DeliveryResult(
                failure=None, response_status=200, retry_after_s=None, duration_ms=1
            ),
        )
        cancelled(own_job(program))
        make_due()
        send_due()
    before = scrape()
    prune_audited("scheduler", {"api_webhook_deliveries": 0})
    fold_counts()
    after = scrape()

    assert not WebhookDelivery.objects.exists()
    for found in (before, after):
        attempts, ended = "medproc_webhook_attempts_total", "medproc_webhook_deliveries_total"
        assert value(found, attempts, outcome="STATUS_REFUSED") == 10
        assert value(found, attempts, outcome="OK") == 1
        assert value(found, attempts, outcome="TIMEOUT") == 0
        assert value(found, ended, status="failed") == 1
        assert value(found, ended, status="succeeded") == 1


def test_the_metric_knows_each_outcome() -> None:
    assert set(WEBHOOK_OUTCOMES) == {"OK", *DeliveryFailure.values}
