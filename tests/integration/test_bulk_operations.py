"""A bulk retry has a preview, starts once, and runs item by item on the scheduler."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from observability.actions.bulk_runner import advance
from observability.models import BulkItem, BulkOperation
from observability.permissions import Role
from pipeline.core.states import JobStatus
from pipeline.models import Job, ProviderCall
from tests.support import records
from tests.support.audit_rows import audit_events
from tests.support.databases import rewriting
from tests.support.large_rows import a_large_record
from tests.support.users import client_of

pytestmark = pytest.mark.django_db


def started(client: Client, **fields: Any) -> BulkOperation:
    """Start a retry with the form of its preview, and return the operation."""
    shown = client.get(reverse("admin:retry"), fields).context["fields"]
    form = {"token": uuid4(), "reason": "it is back", **shown, **fields}
    response = client.post(reverse("admin:retry_start"), form)
    assert response.status_code == HTTPStatus.FOUND, response.context["problem"]
    operation_id = response.headers["Location"].rstrip("/").rsplit("/", 1)[-1]
    return BulkOperation.objects.get(id=operation_id)


def test_a_preview_says_what_will_happen_and_changes_nothing() -> None:
    failed = records.failed_record(records.LAB)
    before = list(Job.objects.values_list("id", "status", "dispatch_no"))

    page = client_of(Role.OPERATOR).get(reverse("admin:retry"), {"record": failed.id})

    found = page.context["found"]
    assert (len(found.eligible), found.calls, found.encounters) == (1, 7, 7)
    assert "do not name a patient" in page.content.decode()
    assert list(Job.objects.values_list("id", "status", "dispatch_no")) == before
    assert not BulkOperation.objects.exists()


def test_a_retry_is_run_by_the_scheduler_and_asks_for_nothing_twice() -> None:
    failed = records.failed_record(records.LAB)
    accepted = set(ProviderCall.objects.filter(accepted=True).values_list("id", flat=True))
    client = client_of(Role.OPERATOR)

    operation = started(client, record=failed.id)
    said = advance()
    records.run_again(failed.id)
    page = client.get(reverse("admin:bulk_operation", args=[operation.id]))

    record = Job.objects.get(shell_file=failed)
    assert (said, record.status) == ("settled 1", JobStatus.COMPLETED)
    assert page.context["states"] == {"waiting": 0, "done": 1, "skipped": 0, "failed": 0}
    assert accepted <= set(ProviderCall.objects.filter(accepted=True).values_list("id", flat=True))
    (event,) = audit_events()
    assert (event.actor, event.action, event.reason) == ("operator", "retry", "it is back")
    assert event.facts["calls"] == 7


def test_a_double_click_starts_one_operation_with_one_item_for_a_job() -> None:
    record = a_large_record(encounters=2, batches=3)
    client, token = client_of(Role.OPERATOR), uuid4()

    first = started(client, record=record, token=token)
    second = started(client, record=record, token=token)
    of_one_form = [
        rows.count() for rows in (BulkOperation.objects, BulkItem.objects, audit_events())
    ]
    other_form = started(client, record=record)
    advance()

    assert first == second != other_form
    assert of_one_form == [1, 1, 1]
    assert BulkOperation.objects.count() == BulkItem.objects.count() == 2
    results = dict(BulkItem.objects.values_list("operation_id", "state"))
    # The second operation finds the job in the queue already, and skips the job.
    assert results == {first.id: BulkItem.DONE, other_form.id: BulkItem.SKIPPED}


def test_a_token_of_another_action_or_user_starts_and_shows_nothing() -> None:
    record = a_large_record(encounters=1, batches=3)
    client, token = client_of(Role.OPERATOR), uuid4()
    started(client, record=record, token=token)
    form = {"record": record, "token": token, "reason": "it is back"}

    another = client_of(Role.OPERATOR, "another").post(reverse("admin:retry_start"), form)
    other_action = client.post(reverse("admin:bulk_start", args=["cancel"]), form)

    for page in (another, other_action):
        assert "this form has already started another operation" in page.context["problem"]
    assert BulkOperation.objects.count() == 1
    assert [each.result for each in audit_events()] == ["done", "refused", "refused"]


def test_all_that_failed_with_a_code_is_retried_and_nothing_that_failed_later() -> None:
    within = a_large_record(encounters=1, batches=3)
    client = client_of(Role.OPERATOR)
    preview = client.get(reverse("admin:retry"), {"error_code": "API_5XX", "window": "1h"})
    fields = preview.context["fields"]
    later = a_large_record(encounters=1, batches=3)
    Job.objects.filter(shell_file_id=later).update(
        completed_at=timezone.now() + timedelta(seconds=5)
    )

    operation = started(client, **fields)

    assert [item.shell_file_id for item in operation.items.all()] == [within]


def test_retry_these_takes_what_the_list_of_failures_shows() -> None:
    """The selection uses the model and the time of the calls, not the end of the job."""
    shown = a_large_record(encounters=1, batches=3)
    of_other_model = a_large_record(encounters=1, batches=3)
    called_earlier = a_large_record(encounters=1, batches=3)
    calls = ProviderCall.objects
    with rewriting():
        calls.filter(processing_session__shell_file=of_other_model).update(model="other")
        calls.filter(processing_session__shell_file=called_earlier).update(
            created_at=timezone.now() - timedelta(hours=2)
        )
    model = ProviderCall.objects.exclude(model="other").values_list("model", flat=True)[0]
    client = client_of(Role.OPERATOR)

    members = client.get(
        reverse("admin:failure_members"),
        {"cause": "API_5XX", "window": "1h", "model": model, "step": "pass1"},
    )
    preview = client.get(f"{reverse('admin:retry')}?{members.context['retry_query']}")
    absorbed = client.get(
        reverse("admin:failure_members"), {"cause": "API_5XX", "state": "absorbed"}
    )

    assert {call.record_id for call in members.context["listed"].rows} == {shown}
    assert [each.shell_file_id for each in preview.context["found"].eligible] == [shown]
    assert absorbed.context["retry_query"] == ""


def test_an_aborted_operation_leaves_what_it_has_not_come_to() -> None:
    for _ in range(3):
        a_large_record(encounters=1, batches=2)
    client = client_of(Role.OPERATOR)
    operation = started(client, error_code="API_5XX", window="1h")

    client.post(reverse("admin:bulk_abort", args=[operation.id]))
    advance()

    operation.refresh_from_db()
    assert operation.finished_at is not None
    assert set(operation.items.values_list("state", "message")) == {(BulkItem.SKIPPED, "aborted")}
    assert set(Job.objects.values_list("status", flat=True)) == {JobStatus.FAILED}
    assert list(audit_events().values_list("action", flat=True)) == [
        "retry",
        "abort",
    ]


@pytest.mark.parametrize(
    ("fields", "said", "status"),
    [
        ({"reason": " "}, "give a reason", HTTPStatus.BAD_REQUEST),
        ({"seen": ""}, "no job of your preview is left", HTTPStatus.OK),
        ({"record": "00000000-0000-0000-0000-000000000000"}, "", HTTPStatus.BAD_REQUEST),
        ({"record": "none"}, "names nothing that can be retried", HTTPStatus.BAD_REQUEST),
    ],
)
def test_a_refused_start_shows_the_preview_again_with_the_reason(
    fields: dict[str, str], said: str, status: HTTPStatus
) -> None:
    record = a_large_record(encounters=1, batches=1)
    client = client_of(Role.OPERATOR)
    form = {"record": record, "reason": "it is back", "token": uuid4(), **fields}

    page = client.post(reverse("admin:retry_start"), form)

    assert page.status_code == status
    assert [(each.action, each.result) for each in audit_events()] == [("retry", "refused")]
    assert said in page.context["problem"]
    assert page.context["problem"]
    assert not BulkOperation.objects.exists()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
def test_a_user_without_the_retry_right_neither_previews_nor_starts_nor_aborts(role: Role) -> None:
    operation = started(client_of(Role.OPERATOR), record=a_large_record(encounters=1, batches=2))
    client = client_of(role)
    url = reverse("admin:bulk_abort", args=[operation.id])

    statuses = {
        client.get(reverse("admin:retry")).status_code,
        client.post(reverse("admin:retry_start"), {"token": uuid4()}).status_code,
        client.post(url).status_code,
    }

    assert statuses == {HTTPStatus.FORBIDDEN}


def test_a_start_without_the_token_of_csrf_is_refused() -> None:
    user = User.objects.create_superuser("root")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)

    response = client.post(reverse("admin:retry_start"), {"token": uuid4(), "reason": "x"})

    assert response.status_code == HTTPStatus.FORBIDDEN
