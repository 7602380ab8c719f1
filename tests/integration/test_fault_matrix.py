"""Every fault of the emulator has the code, budget and rows of the fault matrix, in every pass.

The matrix must name every fault of the emulator, so that a fault without a row fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gemini_emulator.faults import FAULTS
from pipeline.core.states import Step
from pipeline.providers.reply_parsing import FINISHES
from tests.support.fault_matrix import (
    FAULT,
    MATRIX,
    ExpectedBudget,
    ExpectedEnd,
    FaultCase,
    Lasts,
)
from tests.support.fault_player import (
    IN_OUTAGE,
    LATER,
    PARKS,
    PASSES,
    Ended,
    Played,
    has_halves,
    lasting,
    outage_visit_of,
    passing,
    playing,
    visit_of,
)

pytestmark = pytest.mark.xdist_group("fault-matrix")

by_step = pytest.mark.parametrize("step", PASSES)
PASSING = [(step, row) for step in PASSES for row in passing(step)]


def by_row(rows: list[FaultCase] | tuple[FaultCase, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name.replace(" ", "-"))


@pytest.fixture(scope="module")
def played(module_db: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with playing(tmp_path_factory.mktemp("matrix")) as made:
        yield made


def test_every_fault_of_the_emulator_has_a_row() -> None:
    assert {row.fault for row in MATRIX} == set(FAULTS)


def test_every_code_that_a_finish_reason_can_mean_has_a_row() -> None:
    codes = {row.code for row in MATRIX if row.fault == "finish"}

    assert codes == {code.value for code in FINISHES.values()} | {"EMPTY_RESPONSE"}


@by_step
@by_row(MATRIX)
def test_a_fault_that_lasts_ends_as_the_table_says(
    played: Played, row: FaultCase, step: Step
) -> None:
    *earlier, last = played.lasting(step, row)

    assert [rows_of(ended, row) for ended in earlier] == [parked(row)] * len(earlier)
    end = row.budget.end(Lasts.PERSISTENT, has_halves=has_halves(step))
    assert rows_of(last, row) == work(row, end)
    if len(last.work) == 1:
        assert record_of(last) == record(step, row, end)
    if step is Step.PASS1:
        assert encounter_of(last, row) == encounter(row, end)
    if step is not Step.PASS05:
        is_read = end.status == "succeeded"
        assert last.visible[visit_of(row)] == (
            played.healthy(step)[visit_of(row)] if is_read else 0
        )


@pytest.mark.parametrize("step", LATER)
def test_a_record_of_a_later_pass_fails_with_its_first_item_and_lists_all(
    played: Played, step: Step
) -> None:
    ended = played.together(step, lasts=Lasts.PERSISTENT)

    halves = has_halves(step)
    ends = [(row, row.budget.end(Lasts.PERSISTENT, has_halves=halves)) for row in lasting()]
    failed = [(row, end) for row, end in ends if end.status == "failed"]
    assert record_of(ended) == {
        **record(step, *failed[0]),
        "listed": [row.code for row, _ in failed],
    }


@by_step
@by_row(PARKS)
def test_a_fault_that_parks_the_job_and_passes_has_cost_it_nothing(
    played: Played, row: FaultCase, step: Step
) -> None:
    first, last = played.alone(step, Lasts.PASSING, row)

    assert rows_of(first, row) == parked(row)
    assert record_of(first) == record(step, row, row.budget.end(Lasts.PERSISTENT))
    end = row.budget.end(Lasts.PASSING)
    assert rows_of(last, row) == work(row, end)
    assert record_of(last) == record(step, row, end)


@pytest.mark.parametrize(
    ("step", "row"), PASSING, ids=[f"{s}-{r.name.replace(' ', '-')}" for s, r in PASSING]
)
def test_a_fault_that_passes_leaves_its_history_and_nothing_else(
    played: Played, step: Step, row: FaultCase
) -> None:
    ended = played.together(step, timed_out=row.times_out)

    end = row.budget.end(Lasts.PASSING)
    assert rows_of(ended, row) == work(row, end)
    if step is Step.PASS1:
        assert encounter_of(ended, row) == encounter(row, end)
    if step is not Step.PASS05:
        assert ended.visible[visit_of(row)] == played.healthy(step)[visit_of(row)] > 0


@by_step
@pytest.mark.parametrize("timed_out", [False, True])
def test_faults_that_all_pass_let_their_record_complete(
    played: Played, step: Step, timed_out: bool
) -> None:
    ended = played.together(step, timed_out=timed_out)

    rows = [row for row in passing(step) if row.times_out == timed_out]
    assert record_of(ended) == record(step, rows[0], rows[0].budget.end(Lasts.PASSING))
    assert ended.encounters == len(rows)


@by_step
def test_in_an_outage_each_of_its_faults_is_refunded_and_parks(played: Played, step: Step) -> None:
    down, over = played.outage(step)

    assert (down.job.status, down.job.incident.kind) == ("parked", "outage")
    assert (over.job.error_code, over.session.error_code) == (None, None)
    histories: list[dict[str, Any]] = []
    for row in IN_OUTAGE:
        before, after = down.work[outage_visit_of(row)], over.work[outage_visit_of(row)]
        assert (before.status, before.attempt_count) == ("pending", 0)
        assert (after.status, after.attempt_count) == ("succeeded", 1)
        history = after.transient_error_history or []
        assert after.had_transient_failure is bool(history)
        # On a slow machine, the short deadline can pass before the 503 arrives.
        assert {entry["error_code"] for entry in history} <= {row.code, "API_TIMEOUT"}
        histories += history
    assert len(histories) >= len(IN_OUTAGE) / 2
    assert all(entry["refunded"] for entry in histories)


def rows_of(ended: Ended, row: FaultCase) -> dict[str, Any]:
    """Return the columns of a work item, and of its calls."""
    found = ended.work[visit_of(row)]
    calls = sorted(ended.calls[found.id], key=lambda call: (call.split, call.attempt))
    history = found.transient_error_history or []
    context = found.error_context or {}
    assert all(
        entry.keys() - {"split"}
        == {"attempt", "error_code", "error_message", "timestamp", "retry_delay_ms"}
        for entry in history
    )
    return {
        "status": found.status,
        "error_code": found.error_code,
        "attempts": found.attempt_count,
        "waits": found.rate_limit_waits,
        "calls": [(call.outcome, call.accepted) for call in calls],
        "http": {call.http_status for call in calls if not call.accepted},
        "root": context.get("final_underlying_error"),
        "says": bool(context.get("final_underlying_message")),
        "in context": len(context.get("attempt_history", [])),
        "history": [(entry["attempt"], entry["error_code"]) for entry in history],
        "had transient": found.had_transient_failure,
        "output": found.output is not None,
    }


def work(row: FaultCase, end: ExpectedEnd) -> dict[str, Any]:
    """Return the expected values."""
    outcomes = [row.code if outcome == FAULT else outcome for outcome in end.calls]
    fails = end.status == "failed"
    return {
        "status": end.status,
        "error_code": (row.code if end.error == FAULT else end.error) or None,
        "attempts": end.attempts,
        "waits": end.waits,
        "calls": [(outcome, outcome == "OK") for outcome in outcomes],
        "http": {row.http_status} if end.failures else set(),
        "root": row.code if fails else None,
        "says": fails,
        "in context": end.failures if fails else 0,
        "history": [(number, row.code) for number in range(1, end.failures + 1)],
        "had transient": end.failures > (1 if fails else 0) and end.status != "pending",
        "output": False,
    }


def parked(row: FaultCase) -> dict[str, Any]:
    """Return the expected columns of a work item whose first call parked the job."""
    return {
        **work(row, ExpectedEnd(status="pending", calls=(FAULT,), words="")),
        "had transient": False,
    }


def record_of(ended: Ended) -> dict[str, Any]:
    """Return the columns of the job, the session and the summary."""
    job, session, summary = ended.job, ended.session, ended.summary
    details = job.error_details or {}
    drill_down = (summary.error_drill_down or {}).get("failures", [])
    return {
        "job": (job.status, job.current_step, job.error_code, job.retry_count),
        "job's cause": details.get("underlying_error"),
        "job's history": len(details.get("attempt_history", [])),
        "waits for": (job.incident and job.incident.kind, job.parked_until is not None),
        "session": (session.session_status, session.failure_pass, session.error_code),
        "session's cause": (session.error_context or {}).get("final_underlying_error"),
        "pass": getattr(session, f"{ended.step}_status"),
        "discovery": (ended.discovery.status, ended.discovery.error_code),
        "summary": (summary.failure_stage, summary.failure_batch_index, summary.error_code),
        "report": summary.processing_status == "failed",
        "listed": [failure["underlying_error"] for failure in drill_down],
        "record": ended.record.status,
        "at the rate limiter": (ended.limiter.in_flight, ended.limiter.limited_items),
    }


RECORD_STATUS = {
    Step.PASS05: ("pages_complete", "pass05_complete"),
    Step.PASS1: ("pass05_complete", "pass1_complete"),
    Step.PASS2: ("pass1_complete", "pass2_complete"),
    Step.PASS3: ("pass2_complete", "completed"),
}
"""Status of the record before and after each pass."""


def record(step: Step, row: FaultCase, end: ExpectedEnd) -> dict[str, Any]:
    """Return the expected values."""
    code = (row.code if end.error == FAULT else end.error) or None
    is_first = step is Step.PASS05
    fails, waits = end.status == "failed", end.status == "pending"
    root = row.code if fails else None
    own = "failed" if fails else "pending" if waits else "completed"
    job = "failed" if fails else "parked" if waits else "pending" if is_first else "completed"
    session = "failed" if fails else "processing" if waits or is_first else "completed"
    reached, done = RECORD_STATUS[step]
    is_quota = row.budget is ExpectedBudget.QUOTA
    return {
        "job": (job, "pass1" if is_first and own == "completed" else step.value, code, 0),
        "job's cause": root,
        "job's history": end.failures if fails else 0,
        "waits for": (row.incident, is_quota) if waits else (None, False),
        "session": (session, step.value if fails else None, code),
        "session's cause": root,
        "pass": "processing" if waits else own,
        "discovery": (
            ("completed", None) if not is_first else ("processing" if waits else own, code)
        ),
        "summary": (
            step.value if fails else None,
            0 if fails and step in {Step.PASS1, Step.PASS2} else None,
            code,
        ),
        "report": fails,
        "listed": [root] if fails else [],
        "record": reached if fails or waits else done,
        "at the rate limiter": (0, 0),
    }


def encounter_of(ended: Ended, row: FaultCase) -> dict[str, Any]:
    """Return the columns of the encounter's result."""
    result = ended.results[visit_of(row)]
    return {
        "status": result.status,
        "error_code": result.error_code,
        "failed": (result.batches_failed, result.failure_batch_index),
        "says its cause": bool(row.code) and row.code in (result.error_summary or ""),
        "retries": result.total_retries_used,
    }


def encounter(row: FaultCase, end: ExpectedEnd) -> dict[str, Any]:
    """Return the expected values."""
    fails = end.status == "failed"
    return {
        "status": end.status,
        "error_code": (row.code if end.error == FAULT else end.error) or None,
        "failed": (1, 0) if fails else (0, None),
        "says its cause": fails,
        "retries": max(0, end.attempts - 1),
    }
