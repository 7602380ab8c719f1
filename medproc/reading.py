"""A read-only transaction with a time limit, for every page and for every answer of the API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

PAGE_DEADLINE_MS = 10_000
"""The time limit of one statement of a page, so that no page blocks the database."""


@contextmanager
def reading() -> Iterator[None]:
    """Open a read-only transaction with a time limit."""
    with transaction.atomic():
        _read_only()
        yield


def _read_only() -> None:
    # Thousands of look-ups have a high estimated cost. A server with JIT would therefore compile
    # such a statement on each request.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('transaction_read_only', 'on', true),"
            " set_config('statement_timeout', %s, true), set_config('jit', 'off', true)",
            [str(PAGE_DEADLINE_MS)],
        )
