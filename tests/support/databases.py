"""Test databases in the session's PostgreSQL: a template that is migrated once, and its clones.

No database is flushed with TRUNCATE: a test rolls back, or has a clone that is dropped. Tests run
with the rights of the application role; only the creation of a database, and `as_owner`, have more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql
from psycopg.pq import TransactionStatus

from medproc.embedded import Places
from medproc.embedded.places import APPLICATION, OWNER, SUPERUSER
from medproc.embedded.processes import exclusive

TEMPLATE = "medproc_template"
_numbers = count(1)


def worker_name() -> str:
    """Return the name of this xdist worker: gw0, gw1, …; `main` without xdist."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


def url_of(places: Places, name: str) -> str:
    """Return the URL of the database `name` for the application role."""
    return places.url_of(APPLICATION, name)


def limit_rights(options: dict[str, Any]) -> None:
    """Give a DATABASES entry the rights of the application role, which `as_owner` can lift.

    A process that a test starts logs in as the application role, and cannot lift anything.
    """
    options["USER"] = SUPERUSER
    options["OPTIONS"] = {**options["OPTIONS"], "assume_role": APPLICATION}


@contextmanager
def as_owner() -> Iterator[None]:
    """Run statements of the default connection, in its open transaction, as a superuser.

    For what no process of the service may do: a trigger that fails, a changed row of the audit.
    """
    with connection.cursor() as cursor:
        cursor.execute("SHOW role")
        (before,) = cursor.fetchone()
        cursor.execute("SET ROLE NONE")
    try:
        yield
    finally:
        _set(sql.SQL("SET ROLE {}").format(sql.SQL(before)))


@contextmanager
def rewriting() -> Iterator[None]:
    """Run statements as a superuser without any trigger: a test gives old calls another time."""
    with as_owner():
        _set(sql.SQL("SET session_replication_role = replica"))
        try:
            yield
        finally:
            _set(sql.SQL("SET session_replication_role = origin"))


def _set(statement: sql.Composable) -> None:
    """Run a SET unless the transaction has failed; a rollback or a log-in restores the value."""
    raw = connection.connection
    works = raw and raw.info.transaction_status in (
        TransactionStatus.IDLE,
        TransactionStatus.INTRANS,
    )
    if works and not connection.needs_rollback:
        with connection.cursor() as cursor:
            cursor.execute(statement)


def ensure_template(places: Places) -> None:
    """Create and migrate the template database unless another worker has done this."""
    with exclusive(places.base / "template.lock"):
        with _maintenance(places) as server:
            found = server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE])
            if found.fetchone():
                return
            server.execute("CREATE DATABASE medproc_unfinished OWNER medproc_owner")
        settings.DATABASE_OWNER_URL = places.owner_url
        connection.settings_dict["USER"] = APPLICATION
        try:
            with using("medproc_unfinished"):
                call_command("migrate", verbosity=0, interactive=False)
        finally:
            connection.settings_dict["USER"] = SUPERUSER
            settings.DATABASE_OWNER_URL = ""
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
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy OWNER {}").format(
                identifier, sql.Identifier(TEMPLATE), sql.Identifier(OWNER)
            )
        )
        # As in roles.sql: a clone does not inherit the privileges on its template.
        server.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(identifier))
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
    with psycopg.connect(places.url_of(SUPERUSER, "postgres"), autocommit=True) as server:
        yield server


@contextmanager
def no_connections() -> Iterator[None]:
    """Cut every connection to the current database, and refuse new ones."""
    name = connection.settings_dict["NAME"]
    connection.close()
    with psycopg.connect(
        os.environ["DATABASE_URL"], user=SUPERUSER, dbname="postgres", autocommit=True
    ) as server:
        allow = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
        server.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        try:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            yield
        finally:
            server.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
