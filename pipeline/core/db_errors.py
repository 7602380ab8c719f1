"""The difference between a database that is unreachable and a statement that is refused.

Work that meets an unreachable database waits and is repeated. A refused statement is refused
again, so repeating it is useless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError, Error, InterfaceError, OperationalError, connection

_AWAY_CLASSES = frozenset({"08", "25", "40", "53", "55", "57", "58"})
"""SQLSTATE classes of temporary failures: connection, transaction state, rollback (deadlock),
resources, locks, operator, system. https://www.postgresql.org/docs/18/errcodes-appendix.html"""
_CANCELLED = "57014"
"""`statement_timeout`: the same statement would take as long again."""
_READ_ONLY = "25006"
"""A standby, or `default_transaction_read_only`. psycopg makes this an InternalError."""


def is_away(error: BaseException) -> bool:
    """Return whether the same statement can succeed on a fresh connection a little later."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    if state == _READ_ONLY:
        return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    return state is None or (state[:2] in _AWAY_CLASSES and state != _CANCELLED)


def _do_nothing(_error: Error) -> None:
    """Take no action while the database is unreachable."""


@contextmanager
def unless_away(when_away: Callable[[Error], None] = _do_nothing) -> Iterator[None]:
    """Suppress the error of an unreachable database, and close the broken connection.

    Calls `when_away` with the error. Re-raises every other error.
    """
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        if not is_away(error):
            raise
        connection.close()
        when_away(error)
