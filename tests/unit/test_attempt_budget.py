"""Failed calls spend attempts, and an outage refunds these attempts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.core.errors import OUTAGE_CODES, ErrorCode
from pipeline.execution.attempt_budget import AttemptBudget
from pipeline.execution.splits import Split
from pipeline.models import Batch
from pipeline.models.work_item import FailureEntry

PAGES = tuple(range(1, 11))


def an_entry(code: ErrorCode, at: float = 0.0) -> FailureEntry:
    return {
        "attempt": 1,
        "error_code": code.value,
        "error_message": "a test",
        "timestamp": datetime.fromtimestamp(at, UTC).isoformat(),
        "retry_delay_ms": None,
    }


def a_budget(**columns: Any) -> tuple[AttemptBudget, Split[Batch]]:
    row = Batch(page_range_start=1, page_range_end=10, **columns)
    return AttemptBudget([row], OUTAGE_CODES), Split(row=row, pages=PAGES)


def fail(
    budget: AttemptBudget, split: Split[Batch], code: ErrorCode, at: float, *, spends: bool = True
) -> None:
    budget.fail(split, code, at, spends=spends)
    budget.record(split, split.row.record_failure(an_entry(code, at)))


def refunded(row: Batch) -> list[bool]:
    return [entry.get("refunded", False) for entry in row.failure_history]


def test_an_outage_refunds_what_failed_in_it_and_nothing_else() -> None:
    budget, split = a_budget()
    for code, at in (
        (ErrorCode.API_5XX, 50.0),
        (ErrorCode.PARSE_JSON, 101.0),
        (ErrorCode.API_TIMEOUT, 102.0),
        (ErrorCode.API_5XX, 150.0),
    ):
        fail(budget, split, code, at)

    changed = budget.refund(100.0, 120.0)

    assert changed == [split.row]
    assert refunded(split.row) == [False, False, True, False]
    assert split.row.attempt_count == budget.attempts(split) == 3


def test_nothing_is_refunded_twice() -> None:
    budget, split = a_budget()
    fail(budget, split, ErrorCode.API_5XX, 100.0)

    budget.refund(99.0)
    again = budget.refund(99.0)

    assert (again, split.row.attempt_count) == ([], 0)


def test_a_call_that_is_refunded_before_it_is_recorded_is_marked_when_it_is() -> None:
    budget, split = a_budget()
    budget.fail(split, ErrorCode.API_5XX, 100.0, spends=True)
    budget.refund(99.0)

    budget.record(split, split.row.record_failure(an_entry(ErrorCode.API_5XX)))

    assert (refunded(split.row), split.row.attempt_count) == ([True], 0)


def test_an_earlier_runs_failures_are_refunded_by_their_history() -> None:
    entry = an_entry(ErrorCode.API_5XX, 100.0)
    budget, split = a_budget(attempt_count=2, transient_error_history=[entry])

    budget.refund(99.0, 101.0)

    assert (split.row.attempt_count, refunded(split.row)) == (1, [True])


def test_each_split_has_attempts_of_its_own_and_the_row_shows_the_most() -> None:
    budget, whole = a_budget()
    first, second = whole.halves
    fail(budget, first, ErrorCode.PARSE_JSON, 1.0)
    fail(budget, first, ErrorCode.PARSE_JSON, 2.0)

    budget.answer(second)

    assert (budget.attempts(first), budget.attempts(second)) == (2, 1)
    assert whole.row.attempt_count == 2


@pytest.mark.parametrize("code", [ErrorCode.RATE_LIMIT, ErrorCode.QUOTA_EXHAUSTED])
def test_limits_and_quotas_spend_no_attempt(code: ErrorCode) -> None:
    budget, split = a_budget()

    fail(budget, split, code, 1.0, spends=False)

    assert split.row.attempt_count == 0
    assert split.row.rate_limit_waits == budget.limited_calls(split.row)
    assert budget.limited_calls(split.row) == (code is ErrorCode.RATE_LIMIT)


def test_a_row_shows_no_attempt_that_its_history_does_not_have_yet() -> None:
    budget, split = a_budget()
    budget.fail(split, ErrorCode.API_5XX, 1.0, spends=True)
    budget.fail(split, ErrorCode.API_5XX, 2.0, spends=True)

    budget.record(split, split.row.record_failure(an_entry(ErrorCode.API_5XX)))

    assert (budget.attempts(split), split.row.attempt_count) == (2, 1)
