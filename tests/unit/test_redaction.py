"""The description of an exception has types, codes and places, and no value."""

from __future__ import annotations

import json

import pytest

from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.core.redaction import redacted

PATIENT = "Jane Doe"


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error from cause
    return caught.value


def test_a_message_of_an_exception_is_never_shown() -> None:
    said = redacted(raised(ValueError(PATIENT), KeyError(PATIENT)))

    assert "Jane" not in said
    assert said.startswith("ValueError from KeyError at ")


def test_the_code_of_the_taxonomy_is_shown() -> None:
    said = redacted(raised(PipelineError(PATIENT, code=ErrorCode.DB_ERROR)))

    assert said.startswith("PipelineError [DB_ERROR] at ")


def test_an_implicit_context_is_shown_unless_it_was_suppressed() -> None:
    def fail(suppressed: bool) -> None:
        try:
            json.loads(PATIENT)
        except ValueError:
            if suppressed:
                raise RuntimeError(PATIENT) from None
            again(RuntimeError(PATIENT))

    def again(error: Exception) -> None:
        raise error

    with pytest.raises(RuntimeError) as kept:
        fail(suppressed=False)
    with pytest.raises(RuntimeError) as hidden:
        fail(suppressed=True)

    assert redacted(kept.value).startswith("RuntimeError from JSONDecodeError at ")
    assert redacted(hidden.value).startswith("RuntimeError at ")


def test_the_innermost_places_come_first_and_are_few() -> None:
    def fall(depth: int) -> None:
        if depth:
            fall(depth - 1)
        raise ValueError(PATIENT)

    with pytest.raises(ValueError, match=PATIENT) as caught:
        fall(50)

    said = redacted(caught.value)
    assert said.count("fall:") == 6
    assert "\n" not in said


def test_causes_in_a_circle_end() -> None:
    first, second = ValueError(PATIENT), KeyError(PATIENT)
    first.__cause__, second.__cause__ = second, first

    assert redacted(first).startswith("ValueError from KeyError from ValueError at ")
