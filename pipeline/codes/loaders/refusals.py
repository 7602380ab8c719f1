"""The reasons for which a load is refused. After a refusal the old codes are unchanged."""

from __future__ import annotations

from enum import StrEnum

from pipeline.core.errors import MedprocError


class CodesErrorCode(StrEnum):
    """Why a code system cannot be loaded; docs/codes.md explains each code."""

    CODES_SYSTEM_UNKNOWN = "CODES_SYSTEM_UNKNOWN"
    CODES_PACKAGE_MISSING = "CODES_PACKAGE_MISSING"
    CODES_FILE_NEEDED = "CODES_FILE_NEEDED"
    CODES_FILE_NOT_USED = "CODES_FILE_NOT_USED"
    CODES_FILE_MISSING = "CODES_FILE_MISSING"
    CODES_FILE_UNREADABLE = "CODES_FILE_UNREADABLE"
    CODES_FILE_CHANGED = "CODES_FILE_CHANGED"
    CODES_EMPTY = "CODES_EMPTY"
    CODES_ENCODING = "CODES_ENCODING"
    CODES_HEADER = "CODES_HEADER"
    CODES_ROW = "CODES_ROW"
    CODES_CHECK_DIGIT = "CODES_CHECK_DIGIT"
    CODES_DUPLICATE = "CODES_DUPLICATE"


class CodesError(MedprocError):
    """A code system cannot be loaded. The message is one line and says what is wrong."""

    def __init__(self, message: str, *, code: CodesErrorCode) -> None:
        self.code = code
        super().__init__(message)
