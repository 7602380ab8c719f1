"""What failed calls cost, and what an outage gives back of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from pipeline.core.errors import ErrorCode
from pipeline.execution.admission import OUTAGE_CODES
from pipeline.execution.attempt_budget import Tally
from pipeline.execution.splits import Piece

PAGES = tuple(range(1, 11))


def a_row(**columns: Any) -> Any:
    return SimpleNamespace(
        **{
            "id": uuid4(),
            "attempt_count": 0,
            "rate_limit_waits": 0,
            "transient_error_history": None,
            **columns,
        }
    )


def fail(
    tally: Tally, piece: Piece, code: ErrorCode, at: float, *, spends: bool = True
) -> dict[str, Any]:
    entry: dict[str, Any] = {"error_code": code.value}
    tally.failed(piece, code, at, spends=spends)
    tally.recorded(piece, entry)
    return entry


def test_an_outage_gives_back_what_failed_in_it_and_nothing_else() -> None:
    row = a_row()
    piece = Piece(row=row, pages=PAGES)
    tally = Tally([row], OUTAGE_CODES)
    before = fail(tally, piece, ErrorCode.API_5XX, 50.0)
    garbage = fail(tally, piece, ErrorCode.PARSE_JSON, 101.0)
    within = fail(tally, piece, ErrorCode.API_TIMEOUT, 102.0)
    after = fail(tally, piece, ErrorCode.API_5XX, 150.0)

    changed = tally.give_back(100.0, 120.0)

    assert changed == [row]
    assert within["given_back"] is True
    assert not any("given_back" in entry for entry in (before, garbage, after))
    assert row.attempt_count == tally.attempts(piece) == 3


def test_nothing_is_given_back_twice() -> None:
    row = a_row()
    piece = Piece(row=row, pages=PAGES)
    tally = Tally([row], OUTAGE_CODES)
    fail(tally, piece, ErrorCode.API_5XX, 100.0)

    tally.give_back(99.0)
    again = tally.give_back(99.0)

    assert (again, row.attempt_count) == ([], 0)


def test_what_is_given_back_before_it_is_recorded_is_marked_when_it_is() -> None:
    row = a_row()
    piece = Piece(row=row, pages=PAGES)
    tally = Tally([row], OUTAGE_CODES)
    tally.failed(piece, ErrorCode.API_5XX, 100.0, spends=True)
    tally.give_back(99.0)
    entry: dict[str, Any] = {}

    tally.recorded(piece, entry)

    assert (entry, row.attempt_count) == ({"given_back": True}, 0)


def test_an_earlier_runs_failures_are_given_back_by_their_history() -> None:
    entry = {
        "attempt": 1,
        "error_code": "API_5XX",
        "timestamp": "1970-01-01T00:01:40+00:00",
    }
    row = a_row(attempt_count=2, transient_error_history=[entry])
    tally = Tally([row], OUTAGE_CODES)

    tally.give_back(99.0, 101.0)

    assert (row.attempt_count, entry["given_back"]) == (1, True)


def test_each_part_has_attempts_of_its_own_and_the_row_shows_the_most() -> None:
    row = a_row()
    first, second = Piece(row=row, pages=PAGES).halves
    tally = Tally([row], OUTAGE_CODES)
    fail(tally, first, ErrorCode.PARSE_JSON, 1.0)
    fail(tally, first, ErrorCode.PARSE_JSON, 2.0)

    tally.answered(second)

    assert (tally.attempts(first), tally.attempts(second), row.attempt_count) == (2, 1, 2)


@pytest.mark.parametrize("code", [ErrorCode.RATE_LIMIT, ErrorCode.QUOTA_EXHAUSTED])
def test_limits_and_quotas_spend_no_attempt(code: ErrorCode) -> None:
    row = a_row()
    piece = Piece(row=row, pages=PAGES)
    tally = Tally([row], OUTAGE_CODES)

    fail(tally, piece, code, 1.0, spends=False)

    assert row.attempt_count == 0
    assert row.rate_limit_waits == tally.waits(row) == (code is ErrorCode.RATE_LIMIT)
