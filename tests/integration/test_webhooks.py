"""Events reach the receivers of their own clients: signed, repeated, and without PHI."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from api.models import IdempotencyKey, WebhookDelivery, WebhookEndpoint
from api.scopes import TokenScope
from api.transitions import deliveries
from api.webhooks.endpoints import MOST_OF_A_CLIENT, endpoint_delete
from api.webhooks.events import SCOPES
from api.webhooks.send import send_due, wake_sender
from clients.python.medproc_client import SignatureError, verify_webhook
from medproc.timing import scaled
from observability.actions.retention import due_rules, prune_audited
from pipeline.core.states import IncidentKind
from pipeline.models import Job, ReviewItem, ShellFile
from pipeline.operations import operator_actions
from pipeline.transitions import close_incident, close_review, open_incident
from tests.support.api_clients import ApiProgram, a_program
from tests.support.audit_rows import audit_events
from tests.support.incident_rows import GEMINI
from tests.support.review_rows import ANNA, a_reviewed_record, claimed
from tests.support.rows import a_job
from tests.support.webhook_receiver import HOST, ToldAnswer, WebhookReceiver, receiving
from tests.support.workers import WorkerCommand, children, until

WEBHOOKS = "/api/v1/webhooks"
ALLOWED = {"WEBHOOK_ALLOWED_HOSTS": [HOST]}
StartWorker = Callable[..., WorkerCommand]


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    """Provide a receiver."""
    with receiving() as found:
        yield found


def subscribed(program: ApiProgram, url: str, *events: str) -> dict[str, Any]:
    """Create a webhook; return the answer."""
    answer = created(program, url, *events)
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def created(program: ApiProgram, url: str, *events: str) -> Any:
    """Return the answer to the creation of a webhook."""
    body = {"url": url, "events": events or ["record.cancelled"]}
    return program.post(WEBHOOKS, body, content_type="application/json")


def own_job(program: ApiProgram) -> Job:
    """Insert a record of the client with its waiting job."""
    job = a_job()
    ShellFile.objects.filter(id=job.shell_file_id).update(owner=program.owner)
    return job


def cancelled(job: Job) -> str:
    """Cancel a waiting record as an operator does; return the record's id."""
    operator_actions.job_cancel(job.shell_file_id, reason="test", by="tester")
    return str(job.shell_file_id)


def make_due() -> None:
    """Let the time of every waiting delivery come."""
    WebhookDelivery.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))


def test_a_worker_delivers_an_event_with_a_signature_that_the_client_verifies(
    cloned_db: str, redis_db: redis.Redis, start_worker: StartWorker, receiver: WebhookReceiver
) -> None:
    program = a_program()
    made = subscribed(program, receiver.url)
    record = cancelled(own_job(program))

    wake_sender()
    wake_sender()
    waiting = redis_db.llen("rq:queue:webhooks")
    worker = start_worker("nothing", "rqworker", "webhooks", "--burst", settings=ALLOWED)

    assert worker.finish() == 0, worker.printed()
    assert waiting == 1
    (got,) = receiver.got
    event = verify_webhook(got.headers, got.body, made["secret"])
    assert event["type"] == "record.cancelled"
    assert event["data"] == {
        "id": record,
        "status": "cancelled",
        "error_code": None,
        "url": f"/api/v1/records/{record}",
    }
    (row,) = WebhookDelivery.objects.all()
    assert (row.status, row.attempts, row.response_status) == ("succeeded", 1, 200)
    assert got.headers["webhook-id"] == str(row.event_id)


def test_a_killed_sender_loses_no_delivery(
    cloned_db: str, redis_db: redis.Redis, start_worker: StartWorker
) -> None:
    program = a_program()
    with receiving(ToldAnswer(hangs=True)) as receiver:
        subscribed(program, receiver.url)
        cancelled(own_job(program))
        wake_sender()
        worker = start_worker("nothing", "rqworker", "webhooks", settings=ALLOWED)
        until(lambda: receiver.got)
        (horse,) = children(worker.pid)
        worker.stop(signal.SIGKILL)
        os.kill(horse, signal.SIGKILL)
        before = WebhookDelivery.objects.get()

        until(deliveries.has_due)
        send_due()

        after = WebhookDelivery.objects.get()
    assert (before.status, before.attempts) == ("pending", 1)
    assert (after.status, after.attempts) == ("succeeded", 2)
    assert len({each.headers["webhook-id"] for each in receiver.got}) == 1


def test_an_event_commits_with_its_deliveries_and_needs_no_wake_up(
    cloned_db: str, redis_db: redis.Redis, receiver: WebhookReceiver
) -> None:
    program = a_program()
    subscribed(program, receiver.url)
    job = own_job(program)

    with transaction.atomic():
        cancelled(job)
        transaction.set_rollback(True)
    rolled_back = WebhookDelivery.objects.count()
    cancelled(job)

    assert rolled_back == 0
    assert deliveries.has_due()
    assert redis_db.llen("rq:queue:webhooks") == 0


def test_two_senders_claim_each_delivery_once_and_a_deletion_waits_for_an_event(
    cloned_db: str, redis_db: redis.Redis, receiver: WebhookReceiver
) -> None:
    program = a_program()
    subscribed(program, receiver.url)
    job = own_job(program)
    cancelled(own_job(program))

    def in_another_session(act: Callable[[], Any]) -> Any:
        try:
            return act()
        finally:
            connection.close()

    def delete() -> None:
        endpoint_delete(WebhookEndpoint.objects.get(), "a test")

    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            mine = deliveries.claim()
            theirs = other.submit(in_another_session, deliveries.claim).result()
        with transaction.atomic():
            cancelled(job)
            deleting = other.submit(in_another_session, delete)
            until(_waits_for_a_lock)
        deleting.result()

    assert (len(mine), theirs) == (1, [])
    assert not WebhookDelivery.objects.exists()
    assert Job.objects.get(id=job.id).status == "cancelled"


def _waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db
def test_each_event_goes_to_its_own_client_alone(receiver: WebhookReceiver) -> None:
    mercy, other = a_program(), a_program("other")
    every = [each.value for each in SCOPES]
    subscribed(mercy, receiver.url, *every)
    subscribed(other, f"{receiver.url}&of=other", "record.completed", "incident.closed")
    for status in ("completed", "failed", "dead", "cancelled"):
        Job.objects.filter(id=own_job(mercy).id).update(status=status, error_code="API_5XX")
    item = claimed(a_reviewed_record())
    ShellFile.objects.filter(id=item.shell_file_id).update(owner=mercy.owner)
    assert close_review(item.id, ANNA)
    incident, _ = open_incident(
        IncidentKind.OUTAGE, GEMINI, first_failure_at=timezone.now(), evidence={}
    )
    open_incident(IncidentKind.OUTAGE, GEMINI, first_failure_at=timezone.now(), evidence={})
    close_incident(incident, {})
    # A record of the console has no client.
    Job.objects.filter(id=a_job().id).update(status="completed")

    send_due()

    by_client: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for each in receiver.got:
        by_client["of=other" in each.path].append(each.event)
    assert sorted(each["type"] for each in by_client[False]) == sorted(every)
    assert [each["type"] for each in by_client[True]] == ["incident.closed"]
    codes = {each["type"]: each["data"].get("error_code") for each in by_client[False]}
    assert codes["record.failed"] == codes["record.dead"] == "API_5XX"
    assert codes["record.completed"] is codes["record.cancelled"] is None
    (closed,) = [each for each in by_client[False] if each["type"] == "review.closed"]
    assert closed["data"] == {"record_id": str(item.shell_file_id), "status": "closed"}
    assert by_client[True][0]["data"] == {
        "id": str(incident), "status": "closed", "kind": "outage",
    }  # fmt: skip
    assert ReviewItem.objects.get(id=item.id).status == "closed"


@pytest.mark.django_db
def test_a_failed_attempt_is_repeated_with_the_same_id_until_it_succeeds() -> None:
    program = a_program()
    answers = [ToldAnswer(status=500), ToldAnswer(status=302, headers={"Location": "/elsewhere"})]
    with receiving(*answers) as receiver:
        made = subscribed(program, receiver.url)
        cancelled(own_job(program))
        seen = []
        for _ in range(3):
            send_due()
            row = WebhookDelivery.objects.get()
            seen.append((row.status, row.attempts, row.response_status, row.failure))
            make_due()
    assert seen == [
        ("pending", 1, 500, "STATUS_REFUSED"),
        ("pending", 2, 302, "STATUS_REFUSED"),
        ("succeeded", 3, 200, None),
    ]
    assert [each.path for each in receiver.got] == ["/hook?key=k"] * 3
    assert len({each.headers["webhook-id"] for each in receiver.got}) == 1
    assert all(verify_webhook(each.headers, each.body, made["secret"]) for each in receiver.got)
    assert WebhookEndpoint.objects.get().failing_since is None


@pytest.mark.django_db
def test_a_delivery_fails_after_the_schedule_and_a_replay_begins_again() -> None:
    program = a_program()
    with receiving(*[ToldAnswer(status=503)] * 10) as receiver:
        made = subscribed(program, receiver.url)
        cancelled(own_job(program))
        waits_s = []
        for _ in range(12):
            began = timezone.now()
            send_due()
            row = WebhookDelivery.objects.get()
            waits_s.append((row.next_attempt_at - began).total_seconds())
            make_due()
        attempts = len(receiver.got)
        base = f"{WEBHOOKS}/{made['webhook']['id']}/deliveries"
        (listed,) = program.get(f"{base}?status=failed").json()["items"]
        replayed = program.post(f"{base}/{row.id}/replay")
        again = program.post(f"{base}/{row.id}/replay")
        send_due()

    assert attempts == len(deliveries.DELAYS_S) + 1 == 10
    for delay_s, waited_s in zip(deliveries.DELAYS_S, waits_s, strict=False):
        assert waited_s >= scaled(delay_s)
    assert (listed["failure"], listed["response_status"]) == ("STATUS_REFUSED", 503)
    assert listed["next_attempt_at"] is None
    assert (replayed.status_code, replayed.json()["status"]) == (200, "pending")
    assert (again.status_code, again.json()["code"]) == (409, "STATE_CONFLICT")
    assert WebhookDelivery.objects.get().status == "succeeded"
    assert len({each.headers["webhook-id"] for each in receiver.got}) == 1
    assert audit_events().filter(action="replay_webhook", result="done").count() == 1


@pytest.mark.django_db
def test_a_receiver_can_ask_for_a_later_repetition() -> None:
    program = a_program()
    with receiving(ToldAnswer(status=429, headers={"Retry-After": "7200"})) as receiver:
        subscribed(program, receiver.url)
        cancelled(own_job(program))
        began = timezone.now()
        send_due()

    waits_s = (WebhookDelivery.objects.get().next_attempt_at - began).total_seconds()
    assert waits_s >= scaled(7200)


@pytest.mark.django_db
def test_a_receiver_that_is_gone_or_fails_for_days_is_disabled_and_can_be_enabled() -> None:
    program = a_program()
    with receiving(ToldAnswer(status=410), ToldAnswer(status=500)) as receiver:
        made = subscribed(program, receiver.url)["webhook"]
        address = f"{WEBHOOKS}/{made['id']}"
        cancelled(own_job(program))
        send_due()
        gone = program.get(address).json()
        cancelled(own_job(program))
        make_due()
        send_due()
        refused = program.post(f"{address}/ping")
        enabled = program.post(f"{address}/enable").json()
        WebhookEndpoint.objects.update(failing_since=timezone.now() - timedelta(days=6))
        send_due()
        failing = program.get(address).json()

    assert len(receiver.got) == 2
    assert WebhookDelivery.objects.count() == 1
    assert gone["disabled_reason"] == "gone"
    assert (refused.status_code, refused.json()["code"]) == (409, "STATE_CONFLICT")
    assert enabled["disabled_at"] is enabled["disabled_reason"] is None
    assert failing["disabled_reason"] == "failing"
    told = [each.facts["reason"] for each in audit_events().filter(action="disable_webhook")]
    assert sorted(told) == ["failing", "gone"]


@pytest.mark.django_db
def test_a_rotated_secret_signs_beside_the_old_one_for_a_day(receiver: WebhookReceiver) -> None:
    program = a_program()
    made = subscribed(program, receiver.url)
    address = f"{WEBHOOKS}/{made['webhook']['id']}"
    new = program.post(f"{address}/secret").json()["secret"]
    program.post(f"{address}/ping")
    send_due()
    WebhookEndpoint.objects.update(rotated_at=timezone.now() - timedelta(hours=25))
    program.post(f"{address}/ping")
    send_due()

    during, after = receiver.got
    assert new != made["secret"]
    assert verify_webhook(during.headers, during.body, new)["type"] == "ping"
    assert verify_webhook(during.headers, during.body, made["secret"])["type"] == "ping"
    assert verify_webhook(after.headers, after.body, new)
    with pytest.raises(SignatureError):
        verify_webhook(after.headers, after.body, made["secret"])
    kept = json.dumps(list(WebhookEndpoint.objects.values()), default=str)
    told = json.dumps([each.facts for each in audit_events()])
    assert not any(secret in kept + told for secret in (new, made["secret"]))


@pytest.mark.django_db
def test_a_changed_secret_key_stops_the_webhook_until_its_secret_is_rotated(
    receiver: WebhookReceiver,
) -> None:
    program = a_program()
    made = subscribed(program, receiver.url)
    address = f"{WEBHOOKS}/{made['webhook']['id']}"
    cancelled(own_job(program))
    with override_settings(SECRET_KEY="another-key-" + "0" * 40):
        send_due()
        stopped = program.get(address).json()["disabled_reason"], len(receiver.got)
        too_early = program.post(f"{address}/enable").status_code
        new = program.post(f"{address}/secret").json()["secret"]
        program.post(f"{address}/enable")
        make_due()
        send_due()

    assert stopped == ("secret_changed", 0)
    assert too_early == 409
    (got,) = receiver.got
    assert verify_webhook(got.headers, got.body, new)["type"] == "record.cancelled"


@pytest.mark.django_db
def test_no_patient_reaches_a_receiver_or_the_log_of_deliveries(
    receiver: WebhookReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    program = a_program()
    subscribed(program, receiver.url, "record.failed")
    job = own_job(program)
    ShellFile.objects.filter(id=job.shell_file_id).update(original_filename="zylphira-quandt.pdf")
    job.shell_file.patient.reference = "zylphira-1001"
    job.shell_file.patient.save()
    caplog.set_level("INFO")
    Job.objects.filter(id=job.id).update(
        status="failed",
        error_code="API_4XX",
        last_error="zylphira",
        error_details={"message": "zylphira"},
    )

    send_due()

    (got,) = receiver.got
    rows = json.dumps(list(WebhookDelivery.objects.values()), default=str)
    said = " ".join(each.getMessage() for each in caplog.records)
    assert got.event["data"]["error_code"] == "API_4XX"
    assert "zylphira" not in f"{got.headers} {got.body!r} {rows} {said}"
    assert receiver.url not in said


@pytest.mark.django_db
def test_a_webhook_of_another_client_is_not_there(receiver: WebhookReceiver) -> None:
    mercy, other = a_program(), a_program("other")
    made = subscribed(mercy, receiver.url)["webhook"]
    delivery = mercy.post(f"{WEBHOOKS}/{made['id']}/ping").json()["id"]
    own = subscribed(other, receiver.url)["webhook"]
    address = f"{WEBHOOKS}/{made['id']}"

    answers = [
        other.get(address),
        other.delete(address),
        other.get(f"{address}/deliveries"),
        *(other.post(f"{address}/{act}") for act in ("secret", "enable", "ping")),
        other.post(f"{address}/deliveries/{delivery}/replay"),
        other.post(f"{WEBHOOKS}/{own['id']}/deliveries/{delivery}/replay"),
    ]

    assert {(each.status_code, each.json()["code"]) for each in answers} == {(404, "NOT_FOUND")}
    assert [each["id"] for each in other.get(WEBHOOKS).json()["items"]] == [own["id"]]
    assert mercy.delete(address).json() == {"id": made["id"], "status": "deleted"}
    assert not WebhookDelivery.objects.exists()
    assert created(other, receiver.url).status_code == 409


@pytest.mark.django_db
def test_a_client_subscribes_only_to_what_its_token_may_read(receiver: WebhookReceiver) -> None:
    program = a_program(scopes=[TokenScope.WEBHOOKS, TokenScope.READ])
    reader = a_program("reader", scopes=[TokenScope.READ])

    answers = [
        created(program, receiver.url, "incident.opened"),
        created(program, receiver.url, "review.closed"),
        created(reader, receiver.url),
        reader.get(WEBHOOKS),
    ]

    assert {(each.status_code, each.json()["code"]) for each in answers} == {(403, "SCOPE_MISSING")}
    assert created(program, receiver.url, "ping").json()["code"] == "VALUE_INVALID"
    assert not WebhookEndpoint.objects.exists()
    assert created(program, receiver.url).status_code == 201


@pytest.mark.django_db
def test_deliveries_are_listed_page_by_page(receiver: WebhookReceiver) -> None:
    program = a_program()
    address = f"{WEBHOOKS}/{subscribed(program, receiver.url)['webhook']['id']}"
    sent = [program.post(f"{address}/ping").json()["id"] for _ in range(3)]

    first = program.get(f"{address}/deliveries?limit=2").json()
    second = program.get(f"{address}/deliveries?limit=2&cursor={first['next_cursor']}").json()

    found = [each["id"] for each in (*first["items"], *second["items"])]
    assert sorted(found) == sorted(sent)
    assert second["next_cursor"] is None
    assert program.get(f"{address}/deliveries?status=failed").json()["items"] == []


@pytest.mark.django_db
def test_old_deliveries_and_keys_of_requests_are_pruned_and_younger_ones_stay(
    receiver: WebhookReceiver,
) -> None:
    program = a_program()
    address = f"{WEBHOOKS}/{subscribed(program, receiver.url)['webhook']['id']}"
    for number in range(3):
        program.post(f"{address}/ping", headers={"Idempotency-Key": f"key-{number}"})
    old = timezone.now() - timedelta(days=31)
    for table in (WebhookDelivery, IdempotencyKey):
        kept = table.objects.order_by("id")[0].id
        table.objects.exclude(id=kept).update(created_at=old)
    tables = {"api_webhook_deliveries": 30, "api_idempotency_keys": 30}

    counted = prune_audited("a test", tables, dry_run=True)
    left = WebhookDelivery.objects.count(), IdempotencyKey.objects.count()
    pruned = prune_audited("a test", tables)

    assert tables.items() <= due_rules().items()
    assert [each.removed for each in counted] == [each.removed for each in pruned] == [2, 2]
    assert left == (3, 3)
    assert (WebhookDelivery.objects.count(), IdempotencyKey.objects.count()) == (1, 1)
    done = audit_events().filter(action="prune").order_by("-created_at")[0]
    assert done.facts["removed"] == {"api_webhook_deliveries": 2, "api_idempotency_keys": 2}


@pytest.mark.django_db
def test_a_client_has_a_limited_number_of_webhooks(receiver: WebhookReceiver) -> None:
    program = a_program()
    made = [created(program, f"{receiver.url}&n={n}").status_code for n in range(MOST_OF_A_CLIENT)]

    more = created(program, receiver.url)

    assert set(made) == {201}
    assert (more.status_code, more.json()["code"]) == (409, "STATE_CONFLICT")
    assert "whsec_" not in program.get(WEBHOOKS).content.decode()
