"""Check the reply to an embedding call: as many vectors as texts, of one size, finite, not zero.

A vector that fails a check would order codes by chance, so one such vector refuses the whole reply.
No message quotes a text or a vector.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Protocol

from pipeline.core.errors import CallDetails, ErrorCode, ReplyError


class SentVector(Protocol):
    """One vector as the client returns it."""

    values: list[float] | None


def checked(
    sent: Sequence[SentVector] | None, texts: int, dimensions: int, details: CallDetails
) -> tuple[Sequence[float], ...]:
    """Return the vectors, each scaled to length 1. Raises ReplyError with `details`.

    The service scales vectors of its full size only (documentation of the API).
    """
    if not sent:
        raise ReplyError(
            "the reply holds no vector", code=ErrorCode.EMPTY_RESPONSE, details=details
        )
    if len(sent) != texts:
        raise _unusable(f"the reply has {len(sent)} vectors for {texts} texts", details)
    return tuple(_unit(each.values or [], dimensions, details) for each in sent)


def _unit(values: Sequence[float], dimensions: int, details: CallDetails) -> Sequence[float]:
    if len(values) != dimensions:
        raise _unusable(f"a vector has {len(values)} dimensions, not {dimensions}", details)
    length = math.hypot(*values)
    if not math.isfinite(length) or length == 0.0:
        raise _unusable("a vector is zero, or has a value that is not a number", details)
    return array("f", (value / length for value in values))


def _unusable(message: str, details: CallDetails) -> ReplyError:
    return ReplyError(message, code=ErrorCode.PARSE_SCHEMA, details=details)
