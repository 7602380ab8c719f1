"""The limit of simultaneous uploads of one client, over all web processes and hosts.

A slot is an advisory lock of the session of PostgreSQL that serves the request. The lock belongs to
the session: it ends with the upload, or with the session if the process is killed. No row and no
key remembers a slot, so nothing is left to clean up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection

from api.problems import ApiError, ApiErrorCode

RETRY_S = 5
"""Seconds after which a client tries again; an upload of 50 MB at 100 Mbit/s takes 4 s."""
# The scan stops at the first slot that is free. Without the settings, PostgreSQL would wait for a
# host that lost its power as long as the system's TCP does: two hours.
_TAKE = """
SELECT n, set_config('tcp_keepalives_idle', '30', false),
  set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)
FROM generate_series(1, %(slots)s) AS n
WHERE pg_try_advisory_lock(hashtextextended(%(client)s || n, 0)) LIMIT 1
"""
_FREE = "SELECT pg_advisory_unlock(hashtextextended(%(client)s || %(slot)s, 0))"


@contextmanager
def upload_slot(client_id: UUID) -> Iterator[None]:
    """Hold one of the client's slots. Raises ApiError TOO_MANY_UPLOADS if none is free."""
    name = f"upload of {client_id} "
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {"slots": settings.API_UPLOADS_PER_CLIENT, "client": name})
        taken = cursor.fetchone()
    if taken is None:
        raise ApiError(ApiErrorCode.TOO_MANY_UPLOADS, headers={"Retry-After": str(RETRY_S)})
    try:
        yield
    finally:
        _free(name, taken[0])


def _free(name: str, slot: int) -> None:
    """Unlock the slot. If that fails, close the session: the pool would reuse it with the lock."""
    session = connection.connection
    try:
        with connection.cursor() as cursor:
            cursor.execute(_FREE, {"client": name, "slot": str(slot)})
    except DatabaseError:
        with suppress(Exception):
            session.close()
