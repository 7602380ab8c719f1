"""An action and its audit event are one transaction: both exist, or neither."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from observability.actions.bulk_kinds import KINDS
from observability.actions.holds import HOLD_ACTIONS
from observability.audit.actor import command_line
from observability.models import BulkOperation
from observability.permissions import Role
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import Batch, Job, Pause, ShellFile
from pipeline.operations.reasons import LONGEST, ReasonError, stated
from pipeline.transitions import claim
from tests.support.audit_rows import audit_events
from tests.support.databases import as_owner
from tests.support.records import LAB
from tests.support.rows import a_job, an_encounter
from tests.support.url_matrix import targets

pytestmark = pytest.mark.django_db

UNREADABLE = ["as agreed\0", "two\nlines", "\x1b[2J", "half \ud800", "x" * (LONGEST + 1)]


def an_operator(**options: Any) -> Client:
    """Return a client of an operator."""
    user = User.objects.create_user("operator", is_staff=True)
    user.groups.set(Group.objects.filter(name=Role.OPERATOR))
    client = Client(**options)
    client.force_login(user)
    return client


def refuse_audit() -> None:
    """Let the database refuse every row of the audit from here on."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no room for the audit'; END $$;"
            " CREATE TRIGGER no_room BEFORE INSERT ON audit_events"
            " FOR EACH ROW EXECUTE FUNCTION no_room()"
        )


def standing() -> list[Any]:
    """Return the state of everything that an action could change."""
    jobs = Job.objects.order_by("id")
    return [
        list(jobs.values_list("id", "status", "dispatch_no", "error_details", "updated_at")),
        list(Batch.objects.order_by("id").values_list("id", "status")),
        list(Pause.objects.order_by("id").values_list("id", "ended_at")),
        list(BulkOperation.objects.order_by("id").values_list("id", "abort_requested_at")),
    ]


def a_dead_job() -> Job:
    """Insert a dead letter."""
    return a_job(status=JobStatus.DEAD, error_code="WORKER_LOST", completed_at=timezone.now())


def a_stale_job() -> Job:
    """Insert a job whose worker died, with a batch that the worker had begun."""
    job = a_job()
    _, (batch,) = an_encounter(job)
    claim(Step.PASS1, "host-1")
    long_ago = timezone.now() - timedelta(hours=1)
    Job.objects.filter(id=job.id).update(lease_expires_at=long_ago, heartbeat_at=long_ago)
    Batch.objects.filter(id=batch.id).update(status=WorkStatus.PROCESSING, started_at=long_ago)
    return job


def a_failed_job() -> Job:
    """Insert a failed job with a failed batch."""
    job = a_job(status=JobStatus.FAILED, error_code="API_5XX", completed_at=timezone.now())
    _, (batch,) = an_encounter(job)
    Batch.objects.filter(id=batch.id).update(status=WorkStatus.FAILED, error_code="API_5XX")
    return job


def a_paused_queue() -> str:
    """Pause a queue."""
    Pause.objects.create(queue=Step.PASS1, reason="a test")
    return Step.PASS1.value


COMMANDS: dict[str, tuple[Callable[[], Any], Callable[[Any], list[str]]]] = {
    "cancel": (a_job, lambda job: ["cancel", str(job.shell_file_id)]),
    "requeue": (a_dead_job, lambda job: ["requeue", str(job.shell_file_id)]),
    "retry": (a_failed_job, lambda job: ["retry", "--record", str(job.shell_file_id)]),
    "pause": (lambda: "pass1", lambda queue: ["pause", queue]),
    "pause-provider": (lambda: "gemini:m", lambda _: ["pause", "--provider=gemini", "--model=m"]),
    "resume": (a_paused_queue, lambda queue: ["resume", queue]),
    "resume-provider": (
        lambda: Pause.objects.create(provider="gemini", reason="a test"),
        lambda _: ["resume", "--provider=gemini"],
    ),
    "reset": (a_stale_job, lambda _: ["reset_stale_batches"]),
}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> tuple[str, list[str]]:
    """Return an action, and its command with a fitting target."""
    prepare, words = COMMANDS[request.param]
    return request.param, words(prepare())


@pytest.mark.parametrize("action", HOLD_ACTIONS)
def test_an_action_whose_row_cannot_be_written_is_not_done(
    action: str, django_capture_on_commit_callbacks: Any
) -> None:
    known, client = targets(), an_operator(raise_request_exception=False)
    refuse_audit()
    before = standing()

    with django_capture_on_commit_callbacks() as woken:
        response = client.post(
            reverse("admin:perform", args=[action]),
            {"target": known[action], "reason": "as agreed"},
        )

    assert response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert (standing(), woken) == (before, [])


def test_a_bulk_operation_whose_row_cannot_be_written_is_neither_begun_nor_stopped(
    django_capture_on_commit_callbacks: Any,
) -> None:
    known, client = targets(), an_operator(raise_request_exception=False)
    refuse_audit()
    before = standing()
    form = {name: known[name] for name in ("record", "token", "seen")} | {"reason": "as agreed"}

    with django_capture_on_commit_callbacks() as woken:
        statuses = {
            client.post(reverse("admin:bulk_start", args=["retry"]), form).status_code,
            client.post(reverse("admin:bulk_abort", args=[known["operation"]])).status_code,
        }

    assert statuses == {HTTPStatus.INTERNAL_SERVER_ERROR}
    assert (standing(), woken) == (before, [])


def test_a_file_whose_row_cannot_be_written_becomes_no_record(
    django_capture_on_commit_callbacks: Any,
) -> None:
    client = an_operator(raise_request_exception=False)
    refuse_audit()
    form = {"token": uuid4(), "files": SimpleUploadedFile("a.pdf", LAB.read_bytes())}

    with django_capture_on_commit_callbacks() as woken:
        response = client.post(reverse("admin:upload_files"), form)

    assert response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert (ShellFile.objects.count(), woken) == (0, [])


def test_a_command_whose_row_cannot_be_written_does_nothing(
    command: tuple[str, list[str]], django_capture_on_commit_callbacks: Any
) -> None:
    refuse_audit()
    before = standing()

    with (
        django_capture_on_commit_callbacks() as woken,
        pytest.raises(DatabaseError, match="no room"),
    ):
        call_command(*command[1], "--reason", "as agreed")

    assert (standing(), woken) == (before, [])


def test_a_command_writes_down_who_did_what_to_what_and_why(
    command: tuple[str, list[str]],
) -> None:
    action, words = command

    call_command(*words, "--reason", "as agreed")

    (row,) = audit_events()
    assert (row.actor, row.actor_id) == (command_line(), None)
    assert (row.action, row.result, row.reason) == (action, "done", "as agreed")
    assert row.target_id in {*words, "gemini:m", "gemini", ""}
    assert row.facts


@pytest.mark.parametrize("words", [["cancel"], ["requeue"], ["retry", "--record"]])
def test_a_command_that_is_refused_is_written_down_as_refused(words: list[str]) -> None:
    job = a_job(status=JobStatus.COMPLETED, completed_at=timezone.now())

    with pytest.raises(CommandError):
        call_command(*words, str(job.shell_file_id), "--reason", "as agreed")

    assert [(each.action, each.result) for each in audit_events()] == [(words[0], "refused")]


@pytest.mark.parametrize("reason", UNREADABLE)
def test_a_reason_that_cannot_be_kept_is_refused_in_words(reason: str) -> None:
    with pytest.raises(ReasonError, match="give a reason of"):
        stated(reason)


def test_a_command_refuses_a_reason_that_cannot_be_kept_in_one_line(
    command: tuple[str, list[str]],
) -> None:
    before = standing()

    with pytest.raises(CommandError, match="give a reason of one line") as refused:
        call_command(*command[1], "--reason", "half \ud800")

    assert refused.value.returncode == 2
    assert "\n" not in str(refused.value)
    assert standing() == before


@pytest.mark.parametrize(
    ("url", "name"),
    [("perform", action) for action in HOLD_ACTIONS] + [("bulk_start", kind) for kind in KINDS],
)
def test_the_console_refuses_a_reason_that_cannot_be_kept(url: str, name: str) -> None:
    known, client = targets(), an_operator()
    before = standing()
    form = {"target": known.get(name, ""), "record": known["record"], "token": uuid4()}

    response = client.post(
        reverse(f"admin:{url}", args=[name]), {**form, "reason": "as agreed\x1b"}
    )

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.context["problem"] == "give a reason of one line, without control characters"
    assert standing() == before
    assert [(each.action, each.result, each.reason) for each in audit_events()] == [
        (name, "refused", "")
    ]
