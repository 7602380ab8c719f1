"""Cursors: the place after which the next page of a list begins, opaque to the client."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error

from ninja import P, QueryEx

from observability.listing.pagination import is_place
from pipeline.core.errors import UserError, UserErrorCode

MOST, DEFAULT = 200, 50
"""Rows of a page."""
Limit = QueryEx[int, P(ge=1, le=MOST, description="Rows of a page.")]
Cursor = QueryEx[
    str | None,
    P(description="`next_cursor` of the page before, unchanged.", pattern="^[A-Za-z0-9_-]+$"),
]


def cursor_of(place: str) -> str | None:
    """Return the cursor of a place; None for the end of a list."""
    return urlsafe_b64encode(place.encode()).decode().rstrip("=") if place else None


def place_of_rows(cursor: str | None) -> str:
    """Return the place of a cursor of a list by time and id. Raises UserError."""
    place = decoded(cursor)
    if place and not is_place(place):
        raise _invalid()
    return place


def place_of_indexes(cursor: str | None) -> tuple[int, int] | None:
    """Return the place of a cursor of a list by two indexes. Raises UserError."""
    place = decoded(cursor)
    if not place:
        return None
    parts = place.split("~")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise _invalid()
    first, second = map(int, parts)
    if max(first, second) >= 2**31:
        raise _invalid()
    return first, second


def decoded(cursor: str | None) -> str:
    """Return the text of a cursor; "" without a cursor. Raises UserError."""
    if cursor is None:
        return ""
    try:
        place = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (Base64Error, UnicodeError, ValueError):
        raise _invalid() from None
    if not place:
        raise _invalid()
    return place


def _invalid() -> UserError:
    return UserError(
        "the cursor is not one of this list; send `next_cursor` of the page before, unchanged",
        code=UserErrorCode.VALUE_INVALID,
    )
