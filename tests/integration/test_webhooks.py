"""Events reach the receivers of their own clients: signed, repeated, and without PHI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from api.models import WebhookDelivery
from api.webhooks.send import wake_sender
from clients.python.medproc_client import verify_webhook
from pipeline.models import Job, ShellFile
from pipeline.operations import operator_actions
from tests.support.api_clients import ApiProgram, a_program
from tests.support.rows import a_job
from tests.support.webhook_receiver import HOST, WebhookReceiver, receiving
from tests.support.workers import WorkerCommand

WEBHOOKS = "/api/v1/webhooks"
StartWorker = Callable[..., WorkerCommand]


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    """Provide a receiver."""
    with receiving() as found:
        yield found


def subscribed(program: ApiProgram, url: str, *events: str) -> dict[str, Any]:
    """Create a webhook; return the answer."""
    answer = program.post(
        WEBHOOKS,
        {"url": url, "events": events or ["record.cancelled"]},
        content_type="application/json",
    )
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def own_job(program: ApiProgram) -> Job:
    """Insert a record of the client with its waiting job."""
    job = a_job()
    ShellFile.objects.filter(id=job.shell_file_id).update(owner=program.owner)
    return job


def cancelled(job: Job) -> str:
    """Cancel a waiting record as an operator does; return the record's id."""
    operator_actions.job_cancel(job.shell_file_id, reason="test", by="tester")
    return str(job.shell_file_id)


def test_a_worker_delivers_an_event_with_a_signature_that_the_client_verifies(
    cloned_db: str, redis_db: redis.Redis, start_worker: StartWorker, receiver: WebhookReceiver
) -> None:
    program = a_program()
    made = subscribed(program, receiver.url)
    record = cancelled(own_job(program))

    wake_sender()
    worker = start_worker(
        "nothing", "rqworker", "webhooks", "--burst", settings={"WEBHOOK_ALLOWED_HOSTS": [HOST]}
    )

    assert worker.finish() == 0, worker.printed()
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
