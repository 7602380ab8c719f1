"""A PostgreSQL or Redis that refuses is named by health, commands and console, with advice."""

from __future__ import annotations

import json
import runpy
import sys
from http import HTTPStatus
from typing import Any

import psycopg
import pytest
import redis
from django.contrib.auth.models import User
from django.db import InternalError, OperationalError
from django.test import Client, RequestFactory
from django.urls import reverse
from redis import exceptions as redis_errors

from medproc.env import PROJECT_ROOT
from observability.entry.refusals import server_error
from pipeline.core.server_faults import FAULTS, FaultLog, ServerFault, fault_of, line_of
from pipeline.core.states import JobStatus
from pipeline.models import Job
from pipeline.operations.server_check import server_faults
from tests.support import records
from tests.support.refusing_servers import POSTGRES_FAULTS, REDIS_FAULTS, refusing
from tests.support.rows import a_job

MAIN = runpy.run_path(str(PROJECT_ROOT / "manage.py"), run_name="not_main")["main"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run `manage.py` in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["manage.py", *map(str, arguments)])
    try:
        return int(MAIN())
    except SystemExit as end:
        return int(end.code or 0)


@pytest.fixture
def client(cloned_db: str, redis_db: redis.Redis) -> Client:
    """Return a logged-in client that receives the server's error pages."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("operator"))
    return client


@pytest.mark.parametrize("fault", [*POSTGRES_FAULTS, *REDIS_FAULTS])
def test_health_names_the_fault_its_code_and_the_remedy_alone(
    fault: ServerFault,
    cloned_db: str,
    redis_db: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with refusing(fault):
        expected = line_of(fault)
        code = run(monkeypatch, "health", "--json")

    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert (code, found["faults"], printed.err) == (1, [fault], "")
    assert found["problems"][0] == expected
    consequences = "scheduler" if fault.is_of_postgres else "worker"
    assert not [each for each in found["problems"] if consequences in each]
    assert server_faults() == ()


@pytest.mark.parametrize("fault", POSTGRES_FAULTS)
@pytest.mark.parametrize("command", ["process", "cancel", "retry", "reconcile", "explain"])
def test_a_command_names_the_fault_in_one_line_and_fails(
    fault: ServerFault,
    command: str,
    cloned_db: str,
    redis_db: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = str(a_job(status=JobStatus.PENDING).id)
    arguments: dict[str, list[object]] = {
        "process": [records.LAB, records.LAB, "--no-wait"],
        "cancel": [job, "--reason", "a test"],
        "retry": ["--job", job, "--reason", "a test"],
        "reconcile": [],
        "explain": [job],
    }
    # The job has not failed, so `retry` only reads.
    reads_only = fault.answers and command in {"explain", "retry"}

    with refusing(fault):
        line = line_of(fault)
        code = run(monkeypatch, command, *arguments[command])

    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    if not reads_only:
        assert code == 1
        assert printed.err.count(line) == 1


@pytest.mark.parametrize("fault", REDIS_FAULTS)
def test_an_action_is_carried_out_without_redis_and_the_fault_is_named(
    fault: ServerFault, cloned_db: str, redis_db: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    with refusing(fault):
        received = records.submit(records.LAB)
        line = line_of(fault)

    assert Job.objects.get(id=received.job_id).status == JobStatus.PENDING
    (record,) = [each for each in caplog.records if "was not sent" in each.getMessage()]
    assert record.getMessage().endswith(line)


@pytest.mark.parametrize("fault", POSTGRES_FAULTS)
def test_a_page_answers_503_with_the_fault_and_a_form_is_not_carried_out(
    fault: ServerFault, client: Client
) -> None:
    job = a_job(status=JobStatus.PENDING)
    record = reverse("admin:record", args=[job.shell_file_id])
    log_in = {"username": "operator", "password": "for-tests-only-0000"}

    with refusing(fault):
        shown = client.get(reverse("admin:overview"))
        posted = client.post(reverse("admin:login"), log_in)
        asked = client.post(reverse("admin:logout"))

    pages = [asked] if fault.answers else [shown, posted, asked]
    for page in pages:
        words = " ".join(page.content.decode().split())
        assert page.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert fault in words
        assert FAULTS[fault].advice in words
        assert page.headers["Retry-After"] == "30"
        # A page that needs no log-in names no address.
        assert "127.0.0.1" not in words
    if fault.answers:
        assert FAULTS[fault].message in shown.content.decode()
    assert client.get(record).status_code == HTTPStatus.OK


def test_an_error_outside_a_view_is_answered_with_the_fault_too() -> None:
    request = RequestFactory().get("/")
    try:
        raise OperationalError from psycopg.errors.CannotConnectNow("starting up")
    except OperationalError:
        page = server_error(request)
    try:
        raise KeyError("a mistake of ours")
    except KeyError:
        other = server_error(request)

    assert (page.status_code, other.status_code) == (503, 500)
    assert "POSTGRES_STARTING" in page.content.decode()


def test_a_write_in_a_page_that_only_reads_is_a_mistake_of_ours_and_no_fault(
    client: Client,
) -> None:
    try:
        raise InternalError from psycopg.errors.ReadOnlySqlTransaction("read-only")
    except InternalError:
        page = server_error(RequestFactory().get("/"))

    assert page.status_code == HTTPStatus.INTERNAL_SERVER_ERROR


@pytest.mark.parametrize("fault", REDIS_FAULTS)
def test_the_overview_names_the_fault_of_redis_on_top(fault: ServerFault, client: Client) -> None:
    with refusing(fault):
        words = client.get(reverse("admin:overview")).content.decode()

    assert FAULTS[fault].message in words
    assert f"<b>{fault}</b>" in words
    assert "All is well" not in words
    assert "No worker is alive, and work is waiting" not in words
    assert FAULTS[fault].message not in client.get(reverse("admin:overview")).content.decode()


def test_process_waits_for_postgresql_for_a_limited_time_and_then_names_it(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    from pipeline.management import progress

    received = records.submit(records.LAB)
    said: list[str] = []

    class UnreadableView:
        def update(self, found: Any) -> None:
            raise AssertionError("nothing can be read")

        def say(self, line: str) -> None:
            said.append(line)

    with refusing(ServerFault.POSTGRES_AWAY), pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "SERVER_PATIENCE_S", 1.0)
        with pytest.raises(progress.FollowingEndedError) as ended:
            progress.follow([received.shell_file_id], UnreadableView())

    assert "(POSTGRES_AWAY)" in str(ended.value)
    assert said[0].startswith(str(ended.value))


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (redis_errors.BusyLoadingError("Redis is loading the dataset"), "REDIS_LOADING"),
        (redis_errors.ResponseError("MISCONF Redis is configured to save"), "REDIS_DISK_FULL"),
        (redis_errors.ConnectionError("max number of clients reached"), "REDIS_CONNECTIONS"),
        (redis_errors.ResponseError("WRONGTYPE Operation against a key"), None),
        (redis_errors.AuthenticationError("invalid username-password pair"), "REDIS_LOGIN"),
        (psycopg.errors.DiskFull("could not extend file"), "POSTGRES_DISK_FULL"),
        (psycopg.errors.CannotConnectNow("starting up"), "POSTGRES_STARTING"),
        (psycopg.errors.OutOfMemory("out of memory"), "POSTGRES_FAILING"),
        (psycopg.errors.DeadlockDetected("deadlock"), None),
        (psycopg.errors.QueryCanceled("timeout"), None),
        (psycopg.errors.UniqueViolation("duplicate"), None),
        (
            psycopg.OperationalError("FATAL:  sorry, too many clients already"),
            "POSTGRES_CONNECTIONS",
        ),
        (
            psycopg.OperationalError("FATAL:  the database system is starting up"),
            "POSTGRES_STARTING",
        ),
        (psycopg.OperationalError("FATAL:  password authentication failed"), "POSTGRES_LOGIN"),
        (psycopg.OperationalError("the connection is lost"), "POSTGRES_AWAY"),
        (ValueError("no server"), None),
    ],
)
def test_each_error_of_a_server_has_one_fault(error: Exception, fault: str | None) -> None:
    assert fault_of(error) == fault


def test_a_process_logs_the_same_fault_once_a_minute() -> None:
    log = FaultLog()
    full = redis_errors.OutOfMemoryError("command not allowed")

    lines = [log.line_if_due(full) for _ in range(3)]
    log.forget()

    assert lines == [line_of(ServerFault.REDIS_FULL), None, None]
    assert log.line_if_due(full) is not None


def test_each_fault_has_a_message_advice_and_an_entry_of_the_runbook() -> None:
    runbook = (PROJECT_ROOT / "docs" / "runbook.md").read_text("utf-8")

    assert set(FAULTS) == set(ServerFault)
    assert [fault for fault in ServerFault if f"`{fault}`" not in runbook] == []
