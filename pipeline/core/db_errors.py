"""Whether PostgreSQL is away, or refuses what it was told. Imports Django's errors only.

What is away comes back, so its work waits and is repeated; what is refused will be refused again.
"""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

_AWAY_CLASSES = frozenset({"08", "25", "40", "53", "55", "57", "58"})
"""SQLSTATE classes of what passes: connection, transaction state, rollback (deadlock), resources,
locks, operator, system. https://www.postgresql.org/docs/18/errcodes-appendix.html"""
_CANCELLED = "57014"
"""`statement_timeout`: the same statement will take as long again."""


def is_away(error: BaseException) -> bool:
    """Tell whether the same statement can succeed on a fresh connection a little later."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or (state[:2] in _AWAY_CLASSES and state != _CANCELLED)
