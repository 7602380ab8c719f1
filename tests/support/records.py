"""Records that the real steps process in this process.

The pipeline itself makes the rows, never a fixture. A record that fails meets its faults at the
emulator, through the real client. Needs `db`, `cloned_db` or `module_db`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection
from django.test import override_settings

from gemini_emulator import Emulator
from medproc.env import PROJECT_ROOT
from pipeline.core.states import JobStatus
from pipeline.models import Job, ShellFile
from pipeline.operations.operator_actions import record_submit
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import warm
from pipeline.stages import registry
from pipeline.stages.intake import Received, Submission
from pipeline.workers import run_step

SAMPLES = PROJECT_ROOT / "samples"
LAB = SAMPLES / "lab_5p_8enc.pdf"
"""5 pages, 8 encounters, none longer than two pages: one batch each."""
VISITS = SAMPLES / "visits_20p_4enc.pdf"
SCAN = SAMPLES / "scan_5p.pdf"
LONG = SAMPLES / "long_72p.pdf"
"""72 pages, 12 encounters, one of them with 30 pages in several batches."""
TRAPS = SAMPLES / "traps_10p.pdf"

PATIENCE_S = 1_200.0

OUTAGE: tuple[Mapping[str, Any], ...] = (
    {"fault": "503", "kind": "entities", "page": "1-4"},
    {"fault": "500", "kind": "entities", "page": 5, "attempt": 1},
)
"""On `LAB`: seven batches fail with API_5XX; the batch of page 5 succeeds at its second attempt."""
ONE_BROKEN_BATCH: tuple[Mapping[str, Any], ...] = (
    {"fault": "bad-json", "kind": "entities", "page": 1},
)
"""On `VISITS`: the first batch of the first encounter fails with PARSE_JSON."""


def submit(path: Path, **options: Any) -> Received:
    """Submit a file, as the command `process` does."""
    return record_submit(Submission(path=path, filename=path.name, **options))


def run_record(received: Received) -> ShellFile:
    """Run the steps of a record in this process until its job ends or parks; return the record."""
    for step in registry.PASSES:
        job = Job.objects.get(id=received.job_id)
        if job.status == JobStatus.PENDING and job.current_step == step:
            with patient():
                run_step.run_step(step.value)
    return ShellFile.objects.get(id=received.shell_file_id)


def completed_record(path: Path = LAB, **options: Any) -> ShellFile:
    """Run a file through the local engine."""
    return run_record(submit(path, **options))


@contextmanager
def through_emulator(
    faults: Sequence[Mapping[str, Any]] = (), **options: Any
) -> Iterator[Emulator]:
    """Let steps of this process call an emulator that plays `faults`."""
    with (
        Emulator(faults=faults, **options) as emulator,
        override_settings(MEDPROC_PROVIDER="gemini", GEMINI_BASE_URL=emulator.url),
    ):
        # A worker does the same before it forks: the import alone can outlast a lease of the tests.
        warm(ProviderConfig.of_settings())
        yield emulator


def patient() -> override_settings:
    """Let a lease and a call last longer than any test.

    The suite scales a lease to three seconds and a call's deadline to six. On a busy machine the
    OCR of a page takes as long, and so does the first answer of an emulator.
    """
    return override_settings(LEASE_S=PATIENCE_S, CALL_DEADLINE_S=PATIENCE_S)


def no_breaker() -> override_settings:
    """Keep the breaker closed, so that each failure costs an attempt and none is an outage."""
    return override_settings(GATE_BREAKER_FAILURES=1000)


def failed_record(
    path: Path = LAB, faults: Sequence[Mapping[str, Any]] = OUTAGE, **options: Any
) -> ShellFile:
    """Run a file through an emulator that plays `faults`, without a breaker."""
    with through_emulator(faults), no_breaker():
        return run_record(submit(path, **options))


def run_again(record_id: UUID) -> None:
    """Run the pass for which a record waits, through an emulator without faults.

    Other records that wait for the same pass may run first.
    """
    waiting = Job.objects.filter(shell_file_id=record_id, status=JobStatus.PENDING)
    step = waiting.get().current_step
    with through_emulator(), patient():
        for _ in range(Job.objects.filter(status=JobStatus.PENDING).count()):
            if waiting.filter(current_step=step).exists():
                run_step.run_step(step)


def rows(sql: str, *parameters: str) -> list[dict[str, Any]]:
    """Return the rows of a query as dictionaries by column."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
