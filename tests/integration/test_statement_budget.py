"""A step of Pass 1 needs at most two more SQL statements for each batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline.models import Batch, Job
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

pytestmark = pytest.mark.xdist_group("statement-budget")

FEW, MANY = 20, 40
NOT_COUNTED = (
    "BEGIN",
    "COMMIT",
    "SAVEPOINT",
    "RELEASE SAVEPOINT",
    "UPDATE JOB_QUEUE SET HEARTBEAT_AT",
)
"""The beginnings of uncounted statements: ends of transactions, and the heartbeat."""


def statements_of_pass1(path: Path, visits: int) -> int:
    """Run a record of so many batches, and count the statements of its Pass 1."""
    received = records.submit(short_record(path, visits))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    # Five parallel calls of one second each give five completions per second.
    with (
        records.through_emulator(latency="1/call", answers="minimal"),
        CaptureQueriesContext(connection) as captured,
    ):
        run_step.run_step("pass1")
    assert Job.objects.get(id=received.job_id).status == "completed"
    batches = Batch.objects.filter(pass1_encounter_result__shell_file_id=received.shell_file_id)
    assert batches.count() == visits
    asked = [" ".join(query["sql"].upper().split()) for query in captured]
    return sum(not sql.startswith(NOT_COUNTED) for sql in asked)


@pytest.mark.django_db
def test_a_batch_costs_at_most_two_statements_at_five_completions_a_second(
    tmp_path: Path, settings: Any
) -> None:
    settings.PASS1_CONCURRENCY_LIMIT = 5
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0

    few = statements_of_pass1(tmp_path / "few.pdf", FEW)
    many = statements_of_pass1(tmp_path / "many.pdf", MANY)

    # The number of completions per flush depends on the machine, so only a minimum is checked.
    assert few > 0
    assert (many - few) / (MANY - FEW) <= 2
