"""The console's process has a pool of 2 to 10 connections; a worker and its horses have none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
import redis
from django.db import OperationalError, connection

from medproc.env import PROJECT_ROOT
from pipeline.core.server_faults import ServerFault, fault_of
from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry
from tests.support.databases import no_connections
from tests.support.web_server import WebServer, serving
from tests.support.workers import WorkerCommand, until

JOBS = 6


@pytest.fixture
def _steps_are_fixtures(redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")


@pytest.mark.usefixtures("cloned_db", "_steps_are_fixtures")
@pytest.mark.parametrize("command", ["rqworker", "rqworker-pool"])
def test_each_horse_has_a_backend_of_its_own_though_the_settings_have_a_pool(
    command: str, start_worker: Callable[..., WorkerCommand]
) -> None:
    for number in range(JOBS):
        queues.push("pass1", f"entry-{number}")
    queue = ["pass1"] if command == "rqworker" else ["--queues", "pass1", "--workers", "2"]

    worker = start_worker(
        "report_connections",
        command,
        *queue,
        "--burst",
        "--skip-checks",
        pool=True,
        parent_queries=True,
    )

    assert worker.finish() == 0
    backends = [report["backend"] for report in worker.seen("parent") + worker.seen("database")]
    assert len(backends) == len(set(backends)) == 1 + JOBS
    assert {report["pools"] for report in worker.seen("database")} == {0}


@pytest.mark.usefixtures("cloned_db", "_steps_are_fixtures")
def test_a_worker_with_a_pool_in_its_settings_does_not_start(
    start_worker: Callable[..., WorkerCommand],
) -> None:
    worker = start_worker("nothing", "rqworker", "pass1", "--burst", pool=True)

    assert worker.finish() == 1
    assert '(medproc.E102) The database default sets OPTIONS["pool"]' in worker.printed()


@pytest.mark.parametrize("command", ["check", "rqworker", "rqcron", "health"])
def test_a_pool_in_the_address_is_refused_in_one_line(command: str) -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=PROJECT_ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "medproc.settings",
            "DATABASE_URL": "postgresql://medproc:hunter2@localhost/x?pool=true",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert "DATABASE_URL: sets a pool; the console has one by itself" in line
    assert "hunter2" not in line


def backends(name: str) -> set[int]:
    """Return the backends of this database, but for that of the test."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            [name],
        )
        return {pid for (pid,) in cursor.fetchall()}


@pytest.fixture
def console(cloned_db: str, tmp_path: Path) -> Iterator[WebServer]:
    """Run the console as `make up` does."""
    with serving(cloned_db, tmp_path / "console.log") as running:
        yield running


def asked(console: WebServer) -> int:
    """Ask for a page that looks a session up in the database; return the status."""
    return console.get("/admin/", Cookie=f"sessionid={'x' * 32}").status


def test_the_console_serves_many_requests_with_two_to_ten_connections(console: WebServer) -> None:
    name = str(connection.settings_dict["NAME"])
    most = 0

    with ThreadPoolExecutor(30) as browsers:
        answers = [browsers.submit(asked, console) for _ in range(120)]
        while not all(answer.done() for answer in answers):
            most = max(most, len(backends(name)))

    assert {answer.result() for answer in answers} == {302}
    kept = backends(name)
    assert 2 <= len(kept) <= 10
    assert most <= 10
    assert {asked(console) for _ in range(5)} == {302}
    assert backends(name) == kept

    # A connection that PostgreSQL has ended is replaced, and no request sees its end.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) pid", [sorted(kept)])
    until(lambda: not backends(name) & kept)
    assert {asked(console) for _ in range(5)} == {302}


@pytest.mark.usefixtures("cloned_db")
def test_a_pool_without_a_connection_says_why_postgresql_refuses() -> None:
    error = OperationalError("couldn't get a connection after 5.00 sec")
    error.__cause__ = import_module("psycopg_pool").PoolTimeout(*error.args)

    busy = fault_of(error)
    with no_connections():
        refused = fault_of(error)

    assert (busy, refused) == (ServerFault.POSTGRES_CONNECTIONS, ServerFault.POSTGRES_LOGIN)
