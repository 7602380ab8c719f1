"""An automatic retry takes only work that the retry could repair."""

from __future__ import annotations

from uuid import UUID

import pytest

from pipeline.core.errors import ErrorCode
from pipeline.transitions import Failure
from pipeline.transitions.retries import ALL, NO_ITEMS, worth_retrying

ENCOUNTERS = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222")


def _failed(*causes: tuple[str | None, str]) -> Failure:
    return Failure(
        code=ErrorCode.MAX_RETRIES_EXCEEDED,
        message="m",
        underlying=ErrorCode.API_4XX,
        drill_down=[
            {"encounter_id": encounter, "error_code": "INTERNAL_ERROR", "underlying_error": cause}
            for encounter, cause in causes
        ],
    )


def test_a_retry_by_itself_takes_up_the_encounters_whose_every_cause_may_pass() -> None:
    one, two = ENCOUNTERS

    mixed = worth_retrying(_failed((one, "API_5XX"), (one, "API_4XX"), (two, "RATE_LIMIT")))

    assert mixed is not None
    assert mixed.encounters == (UUID(two),)
    assert worth_retrying(_failed((one, "API_4XX"))) is None
    assert worth_retrying(_failed((None, "API_5XX"), (None, "PARSE_JSON"))) == ALL
    assert worth_retrying(_failed((None, "API_5XX"), (None, "CONTENT_BLOCKED"))) is None
    assert worth_retrying(Failure(code=ErrorCode.DB_ERROR, message="m")) == NO_ITEMS
    assert worth_retrying(Failure(code=ErrorCode.INPUT_INVALID, message="m")) is None


@pytest.mark.parametrize("code", ["PARSE_JSON", "PARSE_SCHEMA"])
def test_no_retry_by_itself_follows_the_same_unusable_reply_twice(code: str) -> None:
    again = {"encounter_id": None, "error_code": code, "underlying_error": code}

    assert worth_retrying(Failure(code=ErrorCode(code), message="m", drill_down=[again])) is None
    assert worth_retrying(Failure(code=ErrorCode(code), message="m")) is None
