"""The check whether PostgreSQL, Redis and the bucket accept writes now, with the reason if not.

A server that refuses writes still answers reads, so the check asks for a write. Health, the
overview and the commands use it. Each question takes a connection of its own with a short timeout.
The overview asks the bucket for a read only: a write would cost four more requests.
"""

from __future__ import annotations

import psycopg
from django.core.cache import cache
from redis.exceptions import RedisError

from medproc import db_pool
from pipeline.core.server_faults import ServerFault, fault_of
from pipeline.documents import storage
from pipeline.queueing.queues import check_writes

TIMEOUT_S = 5
"""Seconds for a connection to PostgreSQL."""
KEEP_S = 5.0
"""Seconds for which `recent_server_faults` keeps an answer."""
LAST_S, ASKED_S = 60.0, 30.0
"""Seconds for which an answer may stand in while one thread asks, and which that thread may take.
"""


def server_faults(*, writes: bool = False) -> tuple[ServerFault, ...]:
    """Return why PostgreSQL, Redis and the bucket refuse now; empty if all accept writes.

    With `writes`, the bucket is asked for a write.
    """
    found = (postgres_fault(), redis_fault(), storage.fault(writes=writes))
    return tuple(fault for fault in found if fault is not None)


def recent_server_faults() -> tuple[ServerFault, ...]:
    """Return `server_faults`, at most `KEEP_S` old: many open pages ask at the same time.

    One thread asks; the others get the last answer meanwhile. A server that hangs would otherwise
    hold a thread for each open page.
    """
    name, last_name, asked_name = "server-faults", "server-faults-last", "server-faults-asked"
    kept: tuple[ServerFault, ...] | None = cache.get(name)
    if kept is not None:
        return kept
    last: tuple[ServerFault, ...] | None = cache.get(last_name)
    if last is not None and not cache.add(asked_name, True, ASKED_S):
        return last
    found = server_faults()
    cache.set(name, found, KEEP_S)
    cache.set(last_name, found, LAST_S)
    cache.delete(asked_name)
    return found


def postgres_fault() -> ServerFault | None:
    """Return why PostgreSQL refuses writes now, or None.

    A new connection, because a setting of the database or role is read when a session begins.
    """
    options = {"application_name": "medproc check", "autocommit": True}
    try:
        with (
            db_pool.connect(connect_timeout=TIMEOUT_S, **options) as session,
            session.cursor() as cursor,
        ):
            cursor.execute("SET statement_timeout = '5s'")
            cursor.execute(
                "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool"
            )
            row = cursor.fetchone()
    except psycopg.Error as error:
        return fault_of(error)
    return ServerFault.POSTGRES_READ_ONLY if row is None or row[0] else None


def redis_fault() -> ServerFault | None:
    """Return why Redis refuses writes now, or None."""
    try:
        check_writes()
    except RedisError as error:
        return fault_of(error)
    except OSError:
        return ServerFault.REDIS_AWAY
    return None
