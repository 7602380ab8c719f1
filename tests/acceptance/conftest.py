"""The fixtures of the acceptance tests start the whole product from real parts.

The parts are PostgreSQL, Valkey, `rqworker-pool` with its horses, and the google-genai client with
the emulator as its service. The tests of a module share its pools.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import redis

from medproc.embedded import Places
from pipeline.queueing.queues import RUN_STEP
from tests.support.workers import WorkerCommand, WorkerFixture

StartPool = Callable[..., WorkerCommand]
PATIENT = {"LEASE_S": 2400, "CALL_DEADLINE_S": 2400.0}
"""Two minutes at the suite's time scale, so that a busy machine loses no lease and no call."""


@pytest.fixture(autouse=True)
def _patient(settings: Any) -> None:
    for name, value in PATIENT.items():
        setattr(settings, name, value)


@pytest.fixture(scope="session")
def step_worker_fixture(servers: Places) -> Iterator[WorkerFixture]:
    """Provide the process from which pools with the real steps are forked."""
    worker_fixture = WorkerFixture(RUN_STEP)
    yield worker_fixture
    worker_fixture.close()


@pytest.fixture(scope="module")
def module_redis(servers: Places) -> Iterator[Any]:
    """Provide the Redis of this test process, emptied before and after the module."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture(scope="module")
def start_pool(
    step_worker_fixture: WorkerFixture,
    module_db: str,
    module_redis: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[StartPool]:
    """Provide a function that starts `rqworker-pool` on the module's database.

    `start_pool(CALL_DEADLINE_S=80, grace_s=60)` changes settings; the defaults are in `PATIENT`.
    `command` starts another command instead, such as the scheduler.
    """
    started: list[WorkerCommand] = []

    def start(
        *arguments: str,
        command: str = "rqworker-pool",
        grace_s: float = 600.0,
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> WorkerCommand:
        started.append(
            step_worker_fixture.start(
                tmp_path_factory.mktemp("pool"),
                "",
                command,
                *arguments,
                grace_s=grace_s,
                settings={**PATIENT, **settings},
                environment=environment,
            )
        )
        return started[-1]

    yield start
    left = [pool for pool in started if not pool.has_ended]
    for pool in left:
        pool.send()
    for pool in left:
        pool.finish()


@pytest.fixture
def scheduler(
    step_worker_fixture: WorkerFixture, module_db: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerCommand]:
    """Run the scheduler (`rqcron`) on the module's database for one test."""
    running = step_worker_fixture.start(tmp_path_factory.mktemp("scheduler"), "", "rqcron")
    yield running
    running.stop()
