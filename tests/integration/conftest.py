"""Fixtures of the integration tests: real worker commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from medproc.embedded import Places
from tests.support.workers import Nursery, WorkerCommand


@pytest.fixture(scope="session")
def nursery(servers: Places) -> Iterator[Nursery]:
    """Give the process that worker commands are forked from."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def start_worker(
    nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., WorkerCommand]]:
    """Give a way to start worker commands with the steps of `tests/support/jobs.py`."""
    started: list[WorkerCommand] = []

    def start(does: str, *arguments: str, **options: Any) -> WorkerCommand:
        folder: Path = tmp_path_factory.mktemp("worker")
        started.append(nursery.start(folder, does, *arguments, **options))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
