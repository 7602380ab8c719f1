"""The limit of requests of one client, counted in Redis for all web processes."""

from __future__ import annotations

import time
from uuid import UUID

from redis.exceptions import RedisError

from medproc.web.limits import CLIENT_REQUESTS
from pipeline.queueing.queues import producer

_MINUTE_S = 60


def wait_s(client_id: UUID) -> int | None:
    """Count a request; return the seconds to wait if the client sends too many, else None.

    The minutes are those of the clock. The limit protects this server only, so a Redis that does
    not answer causes no refusal.
    """
    minute, second = divmod(int(time.time()), _MINUTE_S)
    key = f"medproc:api:{client_id}:{minute}"
    try:
        with producer().pipeline() as commands:
            commands.incr(key)
            commands.expire(key, 2 * _MINUTE_S)
            count, _ = commands.execute()
    except RedisError:
        return None
    return _MINUTE_S - second if count > CLIENT_REQUESTS else None
