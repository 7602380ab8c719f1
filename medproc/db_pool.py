"""The connection pool of the console, and its absence everywhere else (requirement 44).

The role of the process decides. `wsgi.py`, which only a web server imports, calls `use_web_pool`.
Workers and the scheduler fork and call `use_no_pool`, because children of a fork would share the
connections of a pool. Every other command has no pool, because the settings contain none.
"""

from __future__ import annotations

import atexit
import os
from functools import partial
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

WEB_POOL: dict[str, float] = {
    "min_size": 2,
    "max_size": 10,
    # Seconds that a request waits for a connection; after that the page says what is wrong.
    "timeout": 5.0,
    # Seconds of one series of attempts to connect. Each request after that begins a new series at
    # once, so the console is back as soon as PostgreSQL is.
    "reconnect_timeout": 5.0,
}


def use_web_pool() -> None:
    """Give the console its pool, of 2 to 10 connections, from the next connection on."""
    connections.close_all()
    for options in connections.settings.values():
        # Django's pool needs connections that return to the pool after each request.
        options["CONN_MAX_AGE"] = 0
        options["OPTIONS"] = {**options["OPTIONS"], "pool": dict(WEB_POOL)}
    _check_all_after_a_break()
    # A pre-forking web server may import the application before it forks.
    os.register_at_fork(after_in_child=_replace_pools)
    atexit.register(use_no_pool)


def use_no_pool() -> None:
    """Close all connections and pools of this process, and make connections without a pool."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        _close_pool(connection)
    for options in connections.settings.values():
        options.get("OPTIONS", {}).pop("pool", None)


def has_foreign_pool(database: dict[str, Any]) -> bool:
    """Return whether a database's settings name a pool that is not the console's own."""
    pool = database.get("OPTIONS", {}).get("pool")
    return pool is not None and pool != WEB_POOL


def cause_of(error: BaseException) -> BaseException | None:
    """Return why a pool had no connection, from one attempt without the pool.

    Returns the error itself if the error is no timeout of a pool, and None if PostgreSQL accepts
    the connection: then all connections of the pool are busy. Opens one connection.
    """
    if not type(error).__module__.startswith("psycopg_pool"):
        return error
    try:
        connect().close()
    except psycopg.Error as refused:
        return refused
    return None


def connect(**options: Any) -> psycopg.Connection[Any]:
    """Open a connection with Django's parameters, outside Django and the pool."""
    return psycopg.connect(**{**connections[DEFAULT_DB_ALIAS].get_connection_params(), **options})


def _close_pool(connection: BaseDatabaseWrapper) -> None:
    # Only PostgreSQL's wrapper has pools, and its `close_pool` would make a pool in order to close
    # the pool.
    pools: dict[str, Any] = getattr(connection, "_connection_pools", {})
    pool = pools.pop(connection.alias, None)
    if pool is not None:
        pool.close()


def _replace_pools() -> None:
    """Replace the pools of the parent, whose sockets belong to the parent."""
    for connection in connections.all(initialized_only=True):
        getattr(connection, "_connection_pools", {}).clear()
    _check_all_after_a_break()


def _check_all_after_a_break() -> None:
    """Let a pool that meets a broken connection drop all broken connections at once.

    A pool of psycopg drops one broken connection at a time, and pauses 1 s, 2 s … in between. So
    the first requests after a restart of PostgreSQL would wait 5 s and fail.
    """
    for connection in connections.all():
        pool: Any = getattr(connection, "pool", None)
        if pool is not None:
            # Django passes a check of its own, and its settings permit no other check.
            pool._check = partial(_check, pool)  # noqa: SLF001 - the pool has no public way


def _check(pool: Any, connection: Any) -> None:
    try:
        pool.check_connection(connection)
    except Exception:
        pool.check()
        raise
