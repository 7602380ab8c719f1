"""The servers of the suite, its environment, the order of the tests, and the database fixtures.

All xdist workers share one PostgreSQL and have databases of their own; each has its own Valkey.
Servers start with the first test that needs them and stop at the end. A test marked `django_db`
rolls back. A test that commits, or that starts processes or threads, uses `cloned_db`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest
import redis
from django.conf import settings
from django.core.cache import cache
from pytest_django import DjangoDbBlocker

from medproc import embedded
from medproc.embedded import Places
from medproc.env import VARIABLES
from tests.support import databases, schedule, valkey

_BASE_VARIABLE = "MEDPROC_TEST_SERVERS"
_LIVE_KEY_VARIABLE = "MEDPROC_TEST_LIVE_KEY"
_TIME_SCALE = "0.05"
_PATIENT_S = 2_400.0
"""Lease, and deadline of a call, of a step that runs in the process of a test: two minutes at the
scale of the tests, because a busy machine can pause a process for seconds. The processes that a
test starts have the defaults."""


def _shared_places() -> Places:
    """Return the places of PostgreSQL: the controller makes them, its xdist workers find them."""
    base = os.environ.get(_BASE_VARIABLE)
    if base is None:
        places = embedded.throw_away_places()
        os.environ[_BASE_VARIABLE] = str(places.base)
        return places
    return Places(base=Path(base), sockets=Path(base) / "run")


def _isolate_environment(shared: Places, own: Places) -> None:
    """Set the environment that settings will read; a developer's own never reaches a test.

    A fixture would be too late: the settings read the environment once, before the first test
    module is imported.
    """
    worker = databases.worker_name()
    real_service = os.environ.get("GEMINI_API_KEY") and not os.environ.get("GEMINI_BASE_URL")
    if real_service:
        os.environ[_LIVE_KEY_VARIABLE] = os.environ["GEMINI_API_KEY"]
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(
        DJANGO_SETTINGS_MODULE="medproc.settings",
        DATABASE_URL=databases.url_of(shared, f"test_{worker}"),
        REDIS_URL=own.redis_url,
        SECRET_KEY="for-tests-only-" + "0" * 50,
        MEDPROC_DATA_DIR=str(shared.base / f"var-{worker}"),
        MEDPROC_PROVIDER="local",
        # An empty Redis lets calls in at the rate of the quota alone.
        GEMINI_RPM="1000000",
        GEMINI_TPM="1000000000",
        TIME_SCALE=_TIME_SCALE,
        # A job that fails ends as failed; a test of its retries sets their number.
        JOB_MAX_RETRIES="0",
        # Most tests are about the passes up to Pass 1; tests of later passes switch these on.
        SKIPPED_PASSES="pass1_5,pass2,pass3",
        # Chance gives a review a second reviewer; a test of two reviewers sets the row or this.
        REVIEW_DOUBLE_PERCENT="0",
        # A slow test would write its session in the transaction that a page has made read-only.
        SESSION_IDLE_S="86400",
    )


# A busy machine draws examples slowly, which says nothing about the code.
hypothesis.settings.register_profile(
    "suite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")

if settings.configured:
    raise pytest.UsageError("unset DJANGO_SETTINGS_MODULE: the suite sets the environment first")
_IS_FIRST_PROCESS = _BASE_VARIABLE not in os.environ
_SHARED = _shared_places()
_OWN = embedded.throw_away_places()
"""The Valkey of this process: a test that empties, freezes or kills it disturbs no other worker."""
_isolate_environment(_SHARED, _OWN)


def pytest_configure(config: pytest.Config) -> None:
    """Load the settings in this environment; pytest-django then sets Django up."""
    databases.limit_rights(settings.DATABASES["default"])
    settings.LEASE_S = settings.CALL_DEADLINE_S = _PATIENT_S
    if config.getoption("dist", "no") != "no":
        # With this variable an xdist worker would load the settings before its own environment.
        del os.environ["DJANGO_SETTINGS_MODULE"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop this process's Valkey; the controller, or the only process, stops PostgreSQL too."""
    embedded.throw_away(_OWN)
    if _IS_FIRST_PROCESS:
        embedded.throw_away(_SHARED)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests that break a rule of the suite, and put the longest groups first."""
    for item in items:
        _refuse_flush(item)
        schedule.refuse_slow_without_reason(item)
    schedule.sort_longest_first(items)


def _refuse_flush(item: pytest.Item) -> None:
    """Refuse a test whose database would be flushed: TRUNCATE erases the migrations' rows."""
    marker = item.get_closest_marker("django_db")
    names: set[str] = set(getattr(item, "fixturenames", ()))
    flushes = (marker and marker.kwargs.get("transaction")) or "transactional_db" in names
    clones = names & {"cloned_db", "module_db"}
    if flushes or (clones and (marker or "db" in names)):
        raise pytest.UsageError(f"{item.nodeid}: a test that commits uses cloned_db, alone")


@pytest.fixture(scope="session")
def servers() -> Places:
    """Start the session's PostgreSQL and this worker's Valkey; return the places of PostgreSQL."""
    embedded.up(_SHARED, with_valkey=False, throw_away=True)
    embedded.up(_OWN, with_postgres=False, throw_away=True)
    valkey.claim(os.environ["REDIS_URL"], _SHARED.base, databases.worker_name())
    return _SHARED


@pytest.fixture(scope="session")
def django_db_setup(servers: Places, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Provide this worker a database of its own, cloned from the migrated template."""
    with django_db_blocker.unblock():
        databases.ensure_template(servers)
    with databases.clone(servers, f"test_{databases.worker_name()}"):
        yield


@pytest.fixture
def cloned_db(
    servers: Places, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Provide one test a database to commit to; child processes find its URL in the environment."""
    with django_db_blocker.unblock(), databases.clone(servers) as url:
        yield url


@pytest.fixture(scope="module")
def module_db(
    servers: Places, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Provide one module a database to commit to, for tests that share a pool of workers."""
    with django_db_blocker.unblock(), databases.clone(servers) as url:
        yield url


@pytest.fixture
def redis_db(servers: Places) -> Iterator[redis.Redis]:
    """Provide this worker's Redis, emptied; `REDIS_URL` and `RQ_QUEUES` name the same database."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Empty the console's cache, so that no test sees figures of an earlier test's rows."""
    cache.clear()


@pytest.fixture(autouse=True)
def _open_limiter() -> None:
    """Delete the rate limiter's keys, so that no test meets the cooldown or breaker of another."""
    if _OWN.valkey_socket.exists():
        # The socket exists a little before the server answers, and a little after its end.
        with (
            suppress(redis.ConnectionError),
            redis.Redis.from_url(os.environ["REDIS_URL"]) as client,
        ):
            keys = list(client.scan_iter("medproc:gate:*"))
            if keys:
                client.delete(*keys)


@pytest.fixture
def live_key() -> str:
    """Return the real service's key, or skip."""
    key = os.environ.get(_LIVE_KEY_VARIABLE)
    if not key:
        pytest.skip("needs GEMINI_API_KEY, and no GEMINI_BASE_URL")
    return key
