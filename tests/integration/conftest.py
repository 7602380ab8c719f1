"""The fixtures of the integration tests start real worker commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from medproc.embedded import Places
from tests.support.workers import WorkerCommand, WorkerFixture


@pytest.fixture(scope="session")
def worker_fixture(servers: Places) -> Iterator[WorkerFixture]:
    """Provide the process from which worker commands are forked."""
    worker_fixture = WorkerFixture()
    yield worker_fixture
    worker_fixture.close()


@pytest.fixture
def start_worker(
    worker_fixture: WorkerFixture, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., WorkerCommand]]:
    """Provide a function that starts worker commands with the steps of `tests/support/jobs.py`."""
    started: list[WorkerCommand] = []

    def start(does: str, *arguments: str, **options: Any) -> WorkerCommand:
        folder: Path = tmp_path_factory.mktemp("worker")
        started.append(worker_fixture.start(folder, does, *arguments, **options))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
