"""Test databases in the session's PostgreSQL: a template that is migrated once, and its clones.

No database is flushed with TRUNCATE: a test rolls back, or has a clone that is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql

from medproc.embedded import Places
from medproc.embedded.processes import exclusive

TEMPLATE = "medproc_template"
_numbers = count(1)


def worker_name() -> str:
    """Return the name of this xdist worker: gw0, gw1, …; `main` without xdist."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


def url_of(places: Places, name: str) -> str:
    """Return the URL of the database `name`."""
    return f"postgresql://medproc@/{name}?host={places.sockets}"


def ensure_template(places: Places) -> None:
    """Create and migrate the template database unless another worker has done this."""
    with exclusive(places.base / "template.lock"):
        with _maintenance(places) as server:
            found = server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE])
            if found.fetchone():
                return
            server.execute("CREATE DATABASE medproc_unfinished")
        with using("medproc_unfinished"):
            call_command("migrate", verbosity=0, interactive=False)
        with _maintenance(places) as server:
            server.execute(
                sql.SQL("ALTER DATABASE medproc_unfinished RENAME TO {}").format(
                    sql.Identifier(TEMPLATE)
                )
            )


@contextmanager
def using(name: str) -> Iterator[None]:
    """Point Django's default connection, and those of new threads, at the database `name`."""
    before = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = before


@contextmanager
def clone(places: Places, name: str | None = None) -> Iterator[str]:
    """Provide a fresh copy of the template to this process and its children; drop it at the end.

    Yields the URL of the copy. `os.environ["DATABASE_URL"]` and `settings.DATABASE_URL` have the
    same URL.
    """
    name = name or f"clone_{worker_name()}_{next(_numbers)}"
    identifier = sql.Identifier(name)
    with _maintenance(places) as server:
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                identifier, sql.Identifier(TEMPLATE)
            )
        )
    url = url_of(places, name)
    before = os.environ["DATABASE_URL"], settings.DATABASE_URL
    os.environ["DATABASE_URL"] = settings.DATABASE_URL = url
    try:
        with using(name):
            yield url
    finally:
        os.environ["DATABASE_URL"], settings.DATABASE_URL = before
        with _maintenance(places) as server:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


@contextmanager
def _maintenance(places: Places) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(url_of(places, "postgres"), autocommit=True) as server:
        yield server


@contextmanager
def no_connections() -> Iterator[None]:
    """Cut every connection to the current database, and refuse new ones."""
    name = connection.settings_dict["NAME"]
    connection.close()
    with psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True) as server:
        allow = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
        server.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        try:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            yield
        finally:
            server.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
