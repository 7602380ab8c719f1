"""A step needs at most two more SQL statements for each batch, zone or narrative.

Pass 1.5 needs the same number for each group of encounters, whatever the number of entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from pipeline.core.states import Step
from pipeline.models import Job, Session
from pipeline.models.work_tables import WORK_TABLES
from pipeline.stages.pass1_5 import run as pass1_5
from pipeline.transitions.totals import write_totals
from pipeline.workers import run_step
from tests.support import code_rows, records
from tests.support.short_records import short_record

pytestmark = pytest.mark.xdist_group("statement-budget")

FEW, MANY = 20, 40
DENSE = ("Gout. Osteoarthritis of the knee. Chronic obstructive pulmonary disease.",)
"""A line of more conditions on each page."""
FOR_UNKNOWN_WORDS = 2
STATEMENTS_OF_A_GROUP = 12
"""The fence, the search of each category, and the write of one group."""
STATEMENTS_OF_TOTALS = 7
"""The encounters, the figures of all passes, a row for each of three passes, summary and session.
"""
STATEMENTS_OF_A_RECORD = 190
"""All six passes of a record of four visits, with the ends of transactions; 180 today."""
NOT_COUNTED = (
    "BEGIN",
    "COMMIT",
    "SAVEPOINT",
    "RELEASE SAVEPOINT",
    "UPDATE JOB_QUEUE SET HEARTBEAT_AT",
)
"""The beginnings of uncounted statements: ends of transactions, and the heartbeat."""


SKIPPED = {"pass1": ("pass1_5", "pass2", "pass3"), "pass2": ("pass1_5", "pass3")}
"""Passes that are switched off while a pass is counted; Pass 1.5 otherwise."""


def statements_of(step: str, path: Path, visits: int) -> tuple[int, int]:
    """Run a record of so many visits; return the statements of a pass, and its items."""
    received = records.submit(short_record(path, visits))
    steps = ("pages", "pass05", "pass1", "pass2", "pass3")
    with override_settings(SKIPPED_PASSES=SKIPPED.get(step, ("pass1_5",))):
        for earlier in steps[: steps.index(step)]:
            run_step.run_step(earlier)
        # Five parallel calls of one second each give five completions per second.
        with (
            records.through_emulator(latency="1/call", answers="minimal"),
            CaptureQueriesContext(connection) as captured,
        ):
            run_step.run_step(step)
    assert Job.objects.get(id=received.job_id).status == "completed"
    table = WORK_TABLES[Step(step)]
    items = table.rows.filter(**{table.record: received.shell_file_id}).count()
    return counted(captured), items


def counted(captured: CaptureQueriesContext) -> int:
    """Return the number of counted statements."""
    asked = [" ".join(query["sql"].upper().split()) for query in captured]
    return sum(not sql.startswith(NOT_COUNTED) for sql in asked)


@pytest.mark.django_db
@pytest.mark.parametrize("step", ["pass1", "pass2", "pass3"])
def test_an_item_costs_at_most_two_statements_at_five_completions_a_second(
    step: str, tmp_path: Path, settings: Any
) -> None:
    settings.PASS1_CONCURRENCY_LIMIT = 5
    # A slow machine would add statements that time alone causes.
    settings.LEASE_S = settings.CALL_DEADLINE_S = settings.PREEMPT_AFTER_S = 2400.0

    few, few_items = statements_of(step, tmp_path / "few.pdf", FEW)
    many, many_items = statements_of(step, tmp_path / "many.pdf", MANY)

    # The number of completions per flush depends on the machine, so only a minimum is checked.
    assert few > 0
    # The record's own narrative is one more, in both records.
    assert many_items - few_items == MANY - FEW
    assert (many - few) / (MANY - FEW) <= 2


@pytest.mark.django_db
def test_a_group_of_encounters_costs_pass_1_5_the_same_statements_whatever_its_entities(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    settings.SKIPPED_PASSES = ("pass2", "pass3")
    code_rows.load_icd_part()

    def statements(name: str, more: Sequence[str], size: int) -> int:
        received = records.submit(short_record(tmp_path / name, 4, more=tuple(more)))
        for step in ("pages", "pass05", "pass1"):
            run_step.run_step(step)
        monkeypatch.setattr(pass1_5, "GROUP_SIZE", size)
        with CaptureQueriesContext(connection) as captured:
            run_step.run_step("pass1_5")
        assert Job.objects.get(id=received.job_id).status == "completed"
        return counted(captured)

    plain = statements("plain.pdf", (), 10_000)
    dense = statements("dense.pdf", DENSE, 10_000)
    parted = statements("parted.pdf", (), 1)

    # One group each: misread or unknown words need statements of their own, entities need none.
    assert abs(dense - plain) <= FOR_UNKNOWN_WORDS
    # Four groups: three times the statements of one group more.
    assert (parted - plain) / 3 <= STATEMENTS_OF_A_GROUP


@pytest.mark.django_db
def test_a_record_and_its_totals_cost_a_known_number_of_statements(
    tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    code_rows.load_icd_part()
    received = records.submit(short_record(tmp_path / "record.pdf", 4))
    with CaptureQueriesContext(connection) as of_record:
        for step in Step:
            run_step.run_step(step.value)
    job = Job.objects.get(id=received.job_id)
    assert job.status == "completed"

    session = Session.objects.get(shell_file_id=received.shell_file_id)
    with CaptureQueriesContext(connection) as of_totals:
        write_totals(received.shell_file_id, session.id, Step.PASS3)

    assert len(of_totals) <= STATEMENTS_OF_TOTALS
    assert len(of_record) <= STATEMENTS_OF_A_RECORD
