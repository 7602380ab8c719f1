"""Real servers that refuse: each fault is put on, and taken away at the end of the block.

PostgreSQL's faults hit the current test database only. Redis's faults hit this process's Valkey.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import redis
from django.core.cache import cache
from django.db import connection, connections
from psycopg import sql

from medproc.embedded.places import SUPERUSER
from pipeline.core.server_faults import ServerFault
from pipeline.queueing.queues import producer
from tests.support.databases import no_connections

ROLE = "medproc_limited"


@contextmanager
def refusing(fault: ServerFault) -> Iterator[None]:
    """Let a server refuse with this fault."""
    cache.clear()
    with _FAULTS[fault]():
        yield
    cache.clear()


@contextmanager
def _redis(wrong: tuple[str, ...], right: tuple[str, ...]) -> Iterator[None]:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        client.execute_command(*wrong)
        try:
            yield
        finally:
            client.execute_command(*right)


@contextmanager
def _full() -> Iterator[None]:
    name = ("CONFIG", "SET", "maxmemory")
    with _redis((*name, "1"), (*name, "0")):
        yield


@contextmanager
def _replica() -> Iterator[None]:
    with _redis(("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")):
        yield


@contextmanager
def _without_replicas() -> Iterator[None]:
    name = ("CONFIG", "SET", "min-replicas-to-write")
    with _redis((*name, "1"), (*name, "0")):
        yield


@contextmanager
def _redis_away() -> Iterator[None]:
    with redis_at("/nonexistent/valkey.sock"):
        yield


@contextmanager
def redis_at(path: str) -> Iterator[None]:
    """Let this process's short commands go to the server at a socket."""
    pool = producer().connection_pool
    before = dict(pool.connection_kwargs)
    pool.connection_kwargs["path"] = path
    # Connections that exist keep their own address.
    pool.reset()
    try:
        yield
    finally:
        pool.connection_kwargs.update(before)
        pool.reset()


@contextmanager
def _read_only() -> Iterator[None]:
    name = sql.Identifier(connection.settings_dict["NAME"])
    with _server() as server:
        server.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
        )
        connections.close_all()
        # A session keeps the value that it began with.
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [connection.settings_dict["NAME"]],
        )
        try:
            yield
        finally:
            server.execute(
                sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name)
            )
            connections.close_all()


@contextmanager
def _without_connections() -> Iterator[None]:
    """Log in as a role whose number of connections is used up."""
    with _server() as server:
        with suppress(psycopg.errors.DuplicateObject):
            server.execute(f"CREATE ROLE {ROLE} LOGIN CONNECTION LIMIT 0")
        with _settings(USER=ROLE):
            yield


@contextmanager
def postgres_at(folder: str) -> Iterator[None]:
    """Let new connections go to the server with its socket in a folder."""
    with _settings(HOST=folder, NAME="postgres"):
        yield


@contextmanager
def _away() -> Iterator[None]:
    with _settings(HOST="127.0.0.1", PORT="1"):
        yield


@contextmanager
def _login() -> Iterator[None]:
    with no_connections():
        yield


@contextmanager
def _settings(**changed: str) -> Iterator[None]:
    before = {name: connection.settings_dict[name] for name in changed}
    connections.close_all()
    connection.settings_dict.update(changed)
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict.update(before)


@contextmanager
def _server() -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(
        os.environ["DATABASE_URL"], user=SUPERUSER, dbname="postgres", autocommit=True
    ) as server:
        yield server


_FAULTS = {
    ServerFault.REDIS_FULL: _full,
    ServerFault.REDIS_READ_ONLY: _replica,
    ServerFault.REDIS_NO_REPLICAS: _without_replicas,
    ServerFault.REDIS_AWAY: _redis_away,
    ServerFault.POSTGRES_READ_ONLY: _read_only,
    ServerFault.POSTGRES_CONNECTIONS: _without_connections,
    ServerFault.POSTGRES_AWAY: _away,
    ServerFault.POSTGRES_LOGIN: _login,
}
REDIS_FAULTS = tuple(fault for fault in _FAULTS if not fault.is_of_postgres)
POSTGRES_FAULTS = tuple(fault for fault in _FAULTS if fault.is_of_postgres)
