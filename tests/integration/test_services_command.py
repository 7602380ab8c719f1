"""`manage.py services` reports its servers, and other commands explain a missing server."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from medproc import embedded, startup
from medproc.embedded import places
from medproc.env import PROJECT_ROOT, VARIABLES

Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def own_environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Provide the environment of a newcomer: nothing set but a data folder of its own."""
    names = {*VARIABLES, "DJANGO_SETTINGS_MODULE"}
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment["MEDPROC_DATA_DIR"] = str(tmp_path / "var")
    yield environment
    found = places.places_of(tmp_path / "var")
    embedded.down(found)
    shutil.rmtree(found.base, ignore_errors=True)


@pytest.fixture
def manage(own_environment: dict[str, str]) -> Manage:
    """Return a function that runs a management command in that environment."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(PROJECT_ROOT / "manage.py"), *arguments],
            env={**own_environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture
def services(settings: Settings) -> Iterator[Callable[..., str]]:
    """Provide `services` in this process, with a separate pair of servers."""
    settings.EMBEDDED = embedded.throw_away_places()
    settings.EMBEDDED_POSTGRES = settings.EMBEDDED_VALKEY = True

    def run(*arguments: str) -> str:
        output = io.StringIO()
        call_command("services", *arguments, stdout=output)
        return output.getvalue()

    yield run
    embedded.throw_away(settings.EMBEDDED)


def test_up_starts_what_status_shows_and_down_stops(services: Callable[..., str]) -> None:
    up = services("up")
    again = json.loads(services("up", "--json"))
    running = services("status")
    down = json.loads(services("down", "--json"))

    assert [row["running"] for row in again] == [True, True]
    assert all(f"process {row['pid']}" in up for row in again)
    assert running == up
    assert [row["running"] for row in down] == [False, False]


def test_status_exits_1_unless_every_server_runs(services: Callable[..., str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        services("status")


def test_two_ups_at_once_both_succeed(manage: Manage, own_environment: dict[str, str]) -> None:
    command = [sys.executable, str(PROJECT_ROOT / "manage.py"), "services", "up", "--json"]
    both = [
        subprocess.Popen(command, env=own_environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    outputs = [process.communicate(timeout=120)[0] for process in both]

    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]


def test_a_command_without_its_database_says_one_line(manage: Manage) -> None:
    result = manage("showmigrations")

    assert result.returncode == 1
    assert result.stderr == (
        "PostgreSQL is not running (POSTGRES_AWAY). Start it with `manage.py services up`.\n"
    )


def test_a_database_that_is_not_ours_is_named_without_its_password(manage: Manage) -> None:
    url = "postgresql://root:hunter2@127.0.0.1:1/records"

    result = manage("showmigrations", DATABASE_URL=url, SECRET_KEY="x" * 50)
    status = manage("services", "status", DATABASE_URL=url, SECRET_KEY="x" * 50)

    assert result.stderr == (
        "PostgreSQL cannot be reached at 127.0.0.1:1 (DATABASE_URL) (POSTGRES_AWAY)."
        " Start PostgreSQL, or check DATABASE_URL and the network.\n"
    )
    assert "not ours" in status.stdout
    assert "hunter2" not in result.stdout + status.stdout + status.stderr


def test_a_wrong_variable_stops_the_start_and_starts_nothing(
    manage: Manage, tmp_path: Path
) -> None:
    result = manage("services", "up", LEASE_S="hunter2", PASS_INPUT="hunter2")

    assert result.returncode == 1
    assert "(medproc.E030) LEASE_S: " in result.stderr
    assert "(medproc.E027) PASS_INPUT: " in result.stderr
    assert len(result.stderr.splitlines()) == 2
    assert "Traceback" not in result.stderr
    assert "hunter2" not in result.stderr
    started = embedded.status(places.places_of(tmp_path / "var"))
    assert [server.pid for server in started] == [None, None]


def test_a_data_folder_that_cannot_be_made_stops_the_start(manage: Manage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    (tmp_path / "temporary").mkdir()

    result = manage(
        "services",
        "up",
        MEDPROC_DATA_DIR=str(tmp_path / "file" / "var"),
        TMPDIR=str(tmp_path / "temporary"),
    )

    assert result.returncode == 1
    assert result.stderr.startswith("(medproc.E007) MEDPROC_DATA_DIR: ")
    assert result.stderr.count("\n") == 1
    # No secret key is left behind.
    assert list((tmp_path / "temporary").iterdir()) == []


PRODUCTION = {
    "SECRET_KEY": "".join(chr(48 + number) for number in range(64)),
    "DATABASE_URL": "postgresql://medproc_app@db.internal/medproc",
    "DATABASE_OWNER_URL": "postgresql://medproc_owner@db.internal/medproc",
    "REDIS_URL": "rediss://redis.internal:6379/0",
    "ALLOWED_HOSTS": "medproc.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://medproc.example.org",
    "TRUSTED_PROXIES": "10.0.0.1",
}


def test_the_deploy_check_is_clean_as_production_and_strict(manage: Manage) -> None:
    result = manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)

    assert (result.returncode, result.stderr) == (0, "")


def test_a_public_host_without_a_trusted_proxy_is_warned_about(manage: Manage) -> None:
    result = manage("check", **{**PRODUCTION, "TRUSTED_PROXIES": ""})

    assert result.returncode == 0
    assert "(medproc.W003) TRUSTED_PROXIES: names no proxy, but ALLOWED_HOSTS" in result.stderr


def test_the_web_server_refuses_a_wrong_environment(own_environment: dict[str, str]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", "import medproc.wsgi"],
        env={**own_environment, "GEMINI_RPM": "hunter2"},
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    (line,) = result.stderr.splitlines()
    assert result.returncode == startup.WEB_SERVER_GIVES_UP
    assert line.startswith("(medproc.E012) GEMINI_RPM: is not a whole number. Expected: ")


def test_django_rqs_pages_are_not_mounted() -> None:
    from django.urls import NoReverseMatch, reverse

    with pytest.raises(NoReverseMatch):
        reverse("rq_home")
