"""The suite's own PostgreSQL and Valkey, its environment, and the database fixtures.

Servers start when the first test asks for one and are gone at the end. A test marked `django_db`
rolls back; one that commits, or starts processes or threads, uses `cloned_db`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.core.cache import cache
from pytest_django import DjangoDbBlocker

from medproc import embedded
from medproc.embedded import Places
from medproc.env import Environment
from pipeline.core.deadline import DEADLINE
from tests.support import databases

_BASE_VARIABLE = "MEDPROC_TEST_SERVERS"
_LIVE_KEY_VARIABLE = "MEDPROC_TEST_LIVE_KEY"
_TIME_SCALE = "0.05"


def _places() -> Places:
    """Give the session's servers: made by the controller, found by its xdist workers."""
    base = os.environ.get(_BASE_VARIABLE)
    if base is None:
        places = embedded.throw_away_places()
        os.environ[_BASE_VARIABLE] = str(places.base)
        return places
    return Places(base=Path(base), sockets=Path(base) / "run")


def _isolate_environment(places: Places) -> None:
    """Set the environment that settings will read; a developer's own never reaches a test.

    It must be done here and not in a fixture: the settings read the environment once, before the
    first test module is imported.
    """
    worker = databases.worker_name()
    number = int(worker.removeprefix("gw")) + 1 if worker.startswith("gw") else 0
    real_service = os.environ.get("GEMINI_API_KEY") and not os.environ.get("GEMINI_BASE_URL")
    if real_service:
        os.environ[_LIVE_KEY_VARIABLE] = os.environ["GEMINI_API_KEY"]
    for name in Environment.model_fields:
        os.environ.pop(name, None)
    os.environ.update(
        DJANGO_SETTINGS_MODULE="medproc.settings",
        DATABASE_URL=databases.url_of(places, f"test_{worker}"),
        REDIS_URL=f"unix://{places.valkey_socket}?db={number}",
        SECRET_KEY="for-tests-only-" + "0" * 50,
        MEDPROC_DATA_DIR=str(places.base / f"var-{worker}"),
        MEDPROC_PROVIDER="local",
        # An empty Redis lets calls in at the rate of the quota alone.
        GEMINI_RPM="1000000",
        GEMINI_TPM="1000000000",
        TIME_SCALE=_TIME_SCALE,
        # A job that fails ends as failed; a test of its retries says how many there are.
        JOB_MAX_RETRIES="0",
    )


if settings.configured:
    raise pytest.UsageError("unset DJANGO_SETTINGS_MODULE: the suite sets the environment first")
_NAMED_HERE = _BASE_VARIABLE not in os.environ
_PLACES = _places()
_isolate_environment(_PLACES)


def pytest_configure(config: pytest.Config) -> None:
    """Load the settings in this environment; pytest-django then sets Django up."""
    assert settings.DATABASES
    if config.getoption("dist", "no") != "no":
        # An xdist worker that inherited it would load the settings before its own environment.
        del os.environ["DJANGO_SETTINGS_MODULE"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers when the process that named them ends: the controller, or the only one."""
    if _NAMED_HERE:
        embedded.throw_away(_PLACES)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests that would flush: TRUNCATE erases what migrations wrote."""
    for item in items:
        marker = item.get_closest_marker("django_db")
        names: set[str] = set(getattr(item, "fixturenames", ()))
        flushes = (marker and marker.kwargs.get("transaction")) or "transactional_db" in names
        clones = names & {"cloned_db", "module_db"}
        if flushes or (clones and (marker or "db" in names)):
            raise pytest.UsageError(f"{item.nodeid}: a test that commits uses cloned_db, alone")


@pytest.fixture(scope="session")
def servers() -> Places:
    """Start the session's PostgreSQL and Valkey; give where they are."""
    embedded.up(_PLACES, throw_away=True)
    return _PLACES


@pytest.fixture(scope="session")
def django_db_setup(servers: Places, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Give this worker a database of its own, cloned from the migrated template."""
    with django_db_blocker.unblock():
        databases.ensure_template(servers)
    with databases.clone(servers, f"test_{databases.worker_name()}"):
        yield


@pytest.fixture
def cloned_db(
    servers: Places, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Give one test a database to commit to, its URL in the environment of child processes."""
    with django_db_blocker.unblock(), databases.clone(servers) as url:
        yield url


@pytest.fixture(scope="module")
def module_db(
    servers: Places, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Give one module a database to commit to, as for tests that share a pool of workers."""
    with django_db_blocker.unblock(), databases.clone(servers) as url:
        yield url


@pytest.fixture
def redis_db(servers: Places) -> Iterator[redis.Redis]:
    """Give this worker's own Redis database, empty; `REDIS_URL` and RQ_QUEUES name the same."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Let no figure that the console keeps of one test's rows meet the next."""
    cache.clear()


@pytest.fixture(autouse=True)
def _open_limiter() -> None:
    """Let no cooldown, breaker or closed quota of one test meet the next."""
    if _PLACES.valkey_socket.exists():
        # The socket is there a little before its server answers, and a little longer.
        with (
            suppress(redis.ConnectionError),
            redis.Redis.from_url(os.environ["REDIS_URL"]) as client,
        ):
            keys = list(client.scan_iter("medproc:gate:*"))
            if keys:
                client.delete(*keys)


@pytest.fixture(autouse=True)
def _no_deadline() -> Iterator[None]:
    """Let the deadline of a step that one test has run not end the next."""
    yield
    DEADLINE.forget()


@pytest.fixture
def live_key() -> str:
    """Give the real service's key, or skip."""
    key = os.environ.get(_LIVE_KEY_VARIABLE)
    if not key:
        pytest.skip("needs GEMINI_API_KEY, and no GEMINI_BASE_URL")
    return key
