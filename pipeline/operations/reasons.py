"""The rule for an operator's reasons, the same for console, commands and code.

A reason is one line that every terminal, page and database can show.
"""

from __future__ import annotations

import unicodedata

from pipeline.core.errors import UserError, UserErrorCode

LONGEST = 500
"""Most characters of a reason."""
_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that break a line, a terminal or the database: control characters, lone
surrogates, and separators of lines."""


class ReasonError(UserError):
    """The reason is missing, or cannot be stored as given."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=UserErrorCode.REASON_INVALID)


def stated(reason: str | None) -> str:
    """Return a reason in the form to store. Raises ReasonError with a message for the operator."""
    words = (reason or "").strip()
    if any(unicodedata.category(each) in _BREAKING for each in words):
        raise ReasonError("give a reason of one line, without control characters")
    if not words:
        raise ReasonError("give a reason")
    if len(words) > LONGEST:
        raise ReasonError(f"give a reason of at most {LONGEST} characters")
    return words


def stated_if_given(reason: str | None) -> str | None:
    """Return a reason in the form to store, or None if none is given. Raises ReasonError."""
    return stated(reason) if reason and reason.strip() else None
