"""The step executor decides on recorded event logs as the executor that recorded the logs.

The logs are older than the restructuring of the executor. The logs contain the fault matrix, the
short chaos run, and tests of outages, splits, retries, deadlines and crashes. `pytest -s` prints
the figures.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.core.errors import ErrorCode
from pipeline.execution import admission, attempt_budget, backoff, failed_call, step_writer
from tests.support.event_log import FOLDER, DivergedError, EventLog, logs
from tests.support.executor_replay import ReplayedStep

FIXTURES = sorted(FOLDER.glob("*.jsonl.xz"))


@pytest.fixture(autouse=True)
def _unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a write have any number of results, as the recorded executor did.

    `tests/integration/test_flush_sizes.py` tests the limit.
    """
    monkeypatch.setattr(step_writer, "HELD_RESULTS", sys.maxsize)
    monkeypatch.setattr(step_writer, "REUSED_RESULTS", sys.maxsize)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Suppress the warnings of a recorded absence of PostgreSQL."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def replayed(name: str) -> Counter[str]:
    compared: Counter[str] = Counter()
    for entries in logs(FOLDER / f"{name}.jsonl.xz"):
        compared += ReplayedStep(EventLog(entries)).play()
    return compared


@pytest.mark.parametrize("name", [path.name.split(".")[0] for path in FIXTURES])
def test_recorded_steps_are_decided_as_they_were(name: str) -> None:
    compared = replayed(name)

    figures = ", ".join(f"{number:,} {what}" for what, number in sorted(compared.items()))
    sys.stdout.write(f"\n{name}: {figures}\n")
    assert compared["decisions"] > compared["steps"] > 50


@pytest.mark.parametrize(
    ("target", "name", "value"),
    [
        (backoff, "JITTER", 0.3),
        (attempt_budget, "SKEW_S", -1000.0),
        (admission, "PARK_AFTER_S", 6000.0),
        (failed_call, "OUTAGE_CODES", frozenset({ErrorCode.API_5XX})),
        (step_writer, "FLUSH_S", 5.0),
    ],
)
def test_a_replay_notices_a_changed_constant(
    monkeypatch: pytest.MonkeyPatch, target: Any, name: str, value: object
) -> None:
    monkeypatch.setattr(target, name, value)

    with pytest.raises(DivergedError):
        replayed("fault_matrix")
