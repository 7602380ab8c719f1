"""The message for a command or page when PostgreSQL or Redis is away.

The message is one line without the password of an address. It is None if the server is running:
then the error has another cause, which must not be hidden.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import psycopg
import redis
from django.conf import settings
from django.db import OperationalError

from medproc import embedded

_START = "start it with `manage.py services up`"


def explain(error: OperationalError | redis.ConnectionError | redis.TimeoutError) -> str | None:
    """Return one line that names the missing server and the remedy, or None."""
    if isinstance(error, OperationalError):
        return _explain_postgres(error)
    if settings.EMBEDDED_VALKEY:
        return (
            None
            if embedded.status(settings.EMBEDDED)[1].running
            else f"Redis is not running: {_START}"
        )
    return f"Redis cannot be reached at {_host(settings.REDIS_URL)} (REDIS_URL)"


def _explain_postgres(error: OperationalError) -> str | None:
    cause = error.__cause__
    refused = isinstance(cause, psycopg.OperationalError) and cause.sqlstate is None
    if settings.EMBEDDED_POSTGRES:
        running = embedded.status(settings.EMBEDDED)[0].running
        return None if running else f"PostgreSQL is not running: {_START}"
    if refused:
        return f"PostgreSQL cannot be reached at {_host(settings.DATABASE_URL)} (DATABASE_URL)"
    return None


def _host(url: str) -> str:
    parts = urlsplit(url)
    if parts.hostname is None:
        return parts.path
    return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
