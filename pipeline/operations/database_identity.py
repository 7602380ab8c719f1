"""What tells a database from every other database, after a restore too."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection


class DatabaseIdentity(NamedTuple):
    """The identity of one database."""

    system: int
    """The identifier of the cluster; a copy of the cluster's files has the same identifier."""
    database: int
    timeline: int
    """Changes if the cluster is restored, or promoted from a standby."""


def database_identity() -> DatabaseIdentity:
    """Return the identity of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.system_identifier, d.oid, c.timeline_id"
            " FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d"
            " WHERE d.datname = current_database()"
        )
        return DatabaseIdentity(*cursor.fetchone())
