"""Reasons that people give for a verb: one rule for console, commands and code.

Imports the errors. A reason is one line that every terminal, page and database can show.
"""

from __future__ import annotations

import unicodedata

from pipeline.core.errors import UserError, UserErrorCode

LONGEST = 500
"""Characters of a reason."""
_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of what breaks a line, a terminal or the database: control characters, halves of
characters, separators of lines."""


class ReasonError(UserError):
    """The reason is missing, or cannot be stored as given."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=UserErrorCode.REASON_INVALID)


def stated(reason: str | None) -> str:
    """Return a reason as it is kept. Raises ReasonError, in words for whoever gave it."""
    words = (reason or "").strip()
    if any(unicodedata.category(each) in _BREAKING for each in words):
        raise ReasonError("give a reason of one line, without control characters")
    if not words:
        raise ReasonError("give a reason")
    if len(words) > LONGEST:
        raise ReasonError(f"give a reason of at most {LONGEST} characters")
    return words


def stated_if_given(reason: str | None) -> str | None:
    """Return the same, or None where there is none. Raises ReasonError."""
    return stated(reason) if reason and reason.strip() else None
