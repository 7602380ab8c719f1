"""The difference between a database that is unreachable and a statement that is refused.

Work that meets an unreachable database waits and is repeated. A refused statement is refused
again, so repeating it is useless.
"""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

_AWAY_CLASSES = frozenset({"08", "25", "40", "53", "55", "57", "58"})
"""SQLSTATE classes of temporary failures: connection, transaction state, rollback (deadlock),
resources, locks, operator, system. https://www.postgresql.org/docs/18/errcodes-appendix.html"""
_CANCELLED = "57014"
"""`statement_timeout`: the same statement would take as long again."""


def is_away(error: BaseException) -> bool:
    """Tell whether the same statement can succeed on a fresh connection a little later."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or (state[:2] in _AWAY_CLASSES and state != _CANCELLED)
