"""The application role appends to the audit, and no trick of SQL lets it do more."""

# ruff: noqa: S608 - every statement is built from the constants below
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from medproc.embedded import Places
from medproc.embedded.places import APPLICATION, OWNER, SUPERUSER
from medproc.embedded.postgres import ROLES
from observability.audit.chain import head
from observability.audit.grants import can_change_audit
from observability.audit.log import record
from observability.models import AuditEvent, AuditLink
from tests.support.databases import as_owner, worker_name
from tests.support.incident_rows import calls
from tests.support.rows import a_job

Session = psycopg.Connection[tuple[object, ...]]

LINK = "(9, gen_random_uuid(), repeat('0', 64))"
EVENT = "(gen_random_uuid(), 'eve', 'cancel', 'job')"
COLUMNS = "(id, actor, action, target_kind)"

TRICKS = {
    "update": "UPDATE audit_events SET reason = ''",
    "update of a call": "UPDATE provider_calls SET outcome = 'OK'",
    "update of a payload": "UPDATE provider_payloads SET reply = ''",
    "update of a link": "UPDATE audit_chain SET hash = ''",
    "delete": "DELETE FROM audit_events",
    "delete of a call": "DELETE FROM provider_calls",
    "delete of a call by its session": "DELETE FROM ai_processing_sessions",
    "delete of a call by its record": "DELETE FROM shell_files",
    "delete of a call by its patient": "DELETE FROM user_profiles",
    "delete of a link": "DELETE FROM audit_chain",
    "truncate": "TRUNCATE audit_events, audit_chain",
    "truncate by cascade": "TRUNCATE user_profiles CASCADE",
    "insert of a link": f"INSERT INTO audit_chain VALUES {LINK}",
    "insert of links by COPY": "COPY audit_chain FROM STDIN",
    "upsert of a link": f"INSERT INTO audit_chain VALUES {LINK} ON CONFLICT DO NOTHING",
    "upsert of an event": (
        f"INSERT INTO audit_events {COLUMNS} SELECT id, 'eve', 'x', 'job' FROM audit_events"
        " ON CONFLICT (id) DO UPDATE SET actor = 'eve'"
    ),
    "merge": (
        "MERGE INTO audit_events e USING audit_chain c ON c.event_id = e.id"
        " WHEN MATCHED THEN UPDATE SET actor = 'eve'"
    ),
    "merge that deletes": (
        "MERGE INTO audit_events e USING audit_chain c ON c.event_id = e.id"
        " WHEN MATCHED THEN DELETE"
    ),
    "update in a CTE": "WITH x AS (UPDATE audit_events SET actor = 'eve' RETURNING 1) TABLE x",
    "row lock": "SELECT FROM audit_events FOR UPDATE",
    "table lock": "LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE",
    "disable triggers": "ALTER TABLE audit_events DISABLE TRIGGER ALL",
    "disable the chain": "ALTER TABLE audit_events DISABLE TRIGGER audit_events_are_chained",
    "drop a trigger": "DROP TRIGGER audit_events_are_chained ON audit_events",
    "another trigger": (
        "CREATE TRIGGER z BEFORE INSERT ON audit_events FOR EACH ROW"
        " EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    ),
    "drop the table": "DROP TABLE audit_chain",
    "rename the table": "ALTER TABLE audit_chain RENAME TO x",
    "move the table": "ALTER TABLE audit_chain SET SCHEMA pg_catalog",
    "another column": "ALTER TABLE audit_events ADD COLUMN x int",
    "inheritance": "CREATE TABLE public.x () INHERITS (audit_events)",
    "take ownership": "ALTER TABLE audit_events OWNER TO CURRENT_USER",
    "rule": "CREATE RULE r AS ON INSERT TO audit_events DO INSTEAD NOTHING",
    "row security": "ALTER TABLE audit_chain ENABLE ROW LEVEL SECURITY",
    "policy": "CREATE POLICY p ON audit_chain USING (false)",
    "replace the function": (
        "CREATE OR REPLACE FUNCTION public.audit_events_are_chained() RETURNS trigger"
        " LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    ),
    "alter the function": "ALTER FUNCTION audit_events_are_chained() SECURITY INVOKER",
    "function before the catalogue": (
        "CREATE FUNCTION pg_catalog.sha256(text) RETURNS text LANGUAGE sql AS 'SELECT NULL'"
    ),
    "function in public": (
        "CREATE FUNCTION public.sha256(text) RETURNS text LANGUAGE sql AS 'SELECT NULL'"
    ),
    "call the function": "SELECT audit_events_are_chained()",
    "schema before public": "CREATE SCHEMA medproc_app",
    "table before public": "CREATE TEMP TABLE audit_chain (seq bigint, event_id uuid, hash text)",
    "view before public": "CREATE TEMP VIEW audit_events AS SELECT 1",
    "function in pg_temp": (
        "CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'"
    ),
    "replication role": "SET session_replication_role = replica",
    "owner's role": f"SET ROLE {OWNER}",
    "superuser's role": "SET ROLE medproc",
    "session authorization": f"SET SESSION AUTHORIZATION {OWNER}",
    "join the owner": f"GRANT {OWNER} TO {APPLICATION}",
    "superuser": f"ALTER ROLE {APPLICATION} SUPERUSER",
    "owner's password": f"ALTER ROLE {OWNER} PASSWORD 'x'",
    "reassign": f"REASSIGN OWNED BY {OWNER} TO {APPLICATION}",
    "write the catalogue": "UPDATE pg_trigger SET tgenabled = 'D'",
    "system setting": "ALTER SYSTEM SET fsync = off",
    "log setting": "SET log_min_messages = debug5",
    "program": "COPY audit_events TO PROGRAM 'cat'",
    "server file": "COPY audit_events FROM '/etc/hostname'",
    "read a server file": "SELECT pg_read_file('postgresql.conf')",
    "extension": "CREATE EXTENSION plpgsql",
    "event trigger": (
        "CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION audit_events_are_chained()"
    ),
    "publication": "CREATE PUBLICATION p FOR TABLE audit_events",
    "sequence": "SELECT setval('auth_user_id_seq', 1)",
    "comment": "COMMENT ON TABLE audit_events IS 'x'",
    "index": "CREATE INDEX ON audit_events (actor)",
    "database": "ALTER DATABASE postgres SET session_replication_role = replica",
    "history of migrations": "DELETE FROM django_migrations",
}
IGNORED = {
    "grant to itself": f"GRANT ALL ON audit_events TO {APPLICATION}",
    "grant to all": "GRANT UPDATE ON audit_chain TO PUBLIC",
    "revoke from the owner": f"REVOKE ALL ON audit_events FROM {OWNER}",
    "default privileges": f"ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO {APPLICATION}",
    "vacuum": "VACUUM FULL audit_chain",
}
"""Statements that PostgreSQL does not refuse, and that change nothing."""


@pytest.fixture(scope="module")
def application(module_db: str) -> Iterator[Session]:
    """Log in as the application role, as a process of the service does."""
    job = a_job()
    calls(job, "OK", 1)
    for number in range(3):
        record("ada", "cancel", target_kind="job", facts={"n": number})
    with psycopg.connect(module_db, autocommit=True) as session:
        yield session


def run(session: Session, statement: str) -> None:
    """Run a statement, with a row for a COPY."""
    with session.cursor() as cursor:
        if statement.endswith("FROM STDIN"):
            with cursor.copy(statement.encode()) as copy:
                copy.write("9\t00000000-0000-0000-0000-000000000000\tx\n")
        else:
            cursor.execute(statement.encode())


def state() -> tuple[object, ...]:
    """Return the audit, its rights and its triggers."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relacl::text, relowner, relhasrules, relrowsecurity FROM pg_class"
            " WHERE relname IN ('audit_events', 'audit_chain', 'provider_calls') ORDER BY 1"
        )
        tables = cursor.fetchall()
        cursor.execute("SELECT tgname, tgenabled FROM pg_trigger ORDER BY 1")
        triggers = cursor.fetchall()
    events = list(AuditEvent.objects.order_by("id").values_list())
    return tables, triggers, events, list(AuditLink.objects.order_by("seq").values_list())


@pytest.mark.parametrize("trick", TRICKS)
def test_the_application_role_cannot_change_the_audit(application: Session, trick: str) -> None:
    before = state()

    with pytest.raises(psycopg.Error):
        run(application, TRICKS[trick])

    assert state() == before


@pytest.mark.parametrize("trick", IGNORED)
def test_a_right_that_the_role_gives_itself_has_no_effect(application: Session, trick: str) -> None:
    before = state()

    with suppress(psycopg.Error):
        run(application, IGNORED[trick])

    assert state() == before


@pytest.mark.parametrize(
    "values",
    [
        "(gen_random_uuid(), 'eve', 'cancel', 'job', 'infinity')",
        "(gen_random_uuid(), 'eve', 'cancel', 'job', '-infinity')",
        "(gen_random_uuid(), 'eve', 'cancel', 'job', '0044-03-15 BC')",
        "(gen_random_uuid(), E'\\\\u{\\1', 'cancel', 'job', 'today')",
    ],
)
@pytest.mark.parametrize(
    "settings",
    [
        "SELECT 1",
        "SET search_path = pg_temp, public; SET timezone = 'Asia/Kolkata'; SET datestyle = german",
        "SET standard_conforming_strings = off; SET extra_float_digits = -15",
        "SET transform_null_equals = on; SET bytea_output = escape; SET intervalstyle = iso_8601",
    ],
)
def test_no_insert_breaks_the_chain(module_db: str, values: str, settings: str) -> None:
    with psycopg.connect(module_db) as session:
        session.execute(settings)
        session.execute("SET LOCAL standard_conforming_strings = on")
        session.execute(
            f"INSERT INTO public.audit_events {COLUMNS[:-1]}, created_at) VALUES {values}"
        )

    call_command("verify_audit")
    newest = AuditEvent.objects.get(id=AuditLink.objects.order_by("-seq")[0].event_id)
    assert newest.actor != "ada"
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        assert abs((cursor.fetchone()[0] - newest.created_at).total_seconds()) < 60


def test_the_trigger_writes_no_link_for_another_table(module_db: str) -> None:
    """The privilege for temporary tables alone, given back by mistake, opens nothing."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT format('GRANT TEMPORARY ON DATABASE %I TO {APPLICATION}', current_database())"
        )
        cursor.execute(cursor.fetchone()[0])
    before = head()

    with psycopg.connect(module_db, autocommit=True) as session:
        session.execute("CREATE TEMP TABLE mine (LIKE public.audit_events INCLUDING ALL)")
        session.execute("CREATE TEMP TABLE audit_chain (LIKE public.audit_chain)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(
                "CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW"
                " EXECUTE FUNCTION public.audit_events_are_chained()"
            )
        session.execute(f"INSERT INTO public.audit_events {COLUMNS} VALUES {EVENT}")
        shadowed = session.execute("SELECT count(*) FROM pg_temp.audit_chain").fetchone()

    assert shadowed == (0,)
    assert before is not None
    assert AuditLink.objects.count() == before.seq + 1
    call_command("verify_audit")


def test_a_role_that_can_change_the_audit_is_known(module_db: str) -> None:
    assert not can_change_audit(connection, APPLICATION)
    assert can_change_audit(connection, OWNER)
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"GRANT UPDATE ON provider_calls TO {APPLICATION}")
        assert can_change_audit(connection, APPLICATION)
        cursor.execute(f"REVOKE UPDATE ON provider_calls FROM {APPLICATION}")


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        (
            f"GRANT {OWNER} TO {APPLICATION} WITH INHERIT FALSE",
            f"REVOKE {OWNER} FROM {APPLICATION}",
        ),
        (
            f"ALTER SCHEMA public OWNER TO {APPLICATION}",
            "ALTER SCHEMA public OWNER TO pg_database_owner",
        ),
        (
            f"GRANT UPDATE (outcome) ON provider_calls TO {APPLICATION}",
            f"REVOKE UPDATE (outcome) ON provider_calls FROM {APPLICATION}",
        ),
    ],
)
def test_a_role_that_can_change_the_audit_by_a_detour_is_known(
    module_db: str, change: str, undo: str
) -> None:
    with as_owner(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change)
        try:
            assert can_change_audit(connection, APPLICATION)
        finally:
            cursor.execute(undo)
    assert not can_change_audit(connection, APPLICATION)


def test_migrate_as_the_application_role_names_the_missing_variable(
    servers: Places, django_db_setup: None
) -> None:
    with empty_database(servers) as name:
        url = servers.url_of(APPLICATION, name)
        found = manage("migrate", DATABASE_URL=url)

    assert found.returncode == 1
    assert found.stderr.startswith("CommandError: This role must not change the tables; set")


def test_migrate_as_the_owner_gives_another_role_its_privileges(
    servers: Places, django_db_setup: None
) -> None:
    with empty_database(servers) as name, superuser(servers, name) as session:
        session.execute("DROP ROLE IF EXISTS another; CREATE ROLE another LOGIN")
        urls = {
            "DATABASE_URL": servers.url_of("another", name),
            "DATABASE_OWNER_URL": servers.url_of(OWNER, name),
        }
        found = manage("migrate", "--verbosity=0", **urls)
        assert (found.returncode, found.stderr) == (0, "")
        with psycopg.connect(urls["DATABASE_URL"], autocommit=True) as other:
            other.execute(f"INSERT INTO audit_events {COLUMNS} VALUES {EVENT}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute("DELETE FROM audit_events")
        session.execute("DROP OWNED BY another; DROP ROLE another")


def test_the_roles_take_over_a_database_of_an_earlier_version(
    servers: Places, django_db_setup: None
) -> None:
    with empty_database(servers) as name, superuser(servers, name) as session:
        session.execute(
            "CREATE TABLE kept (id serial);"
            " CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"
        )
        for _ in range(2):
            session.execute(ROLES.read_bytes())

        owners = session.execute(
            "SELECT relowner::regrole::text FROM pg_class WHERE relname IN ('kept', 'kept_id_seq')"
            " UNION ALL SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'f'"
        ).fetchall()

    assert owners == [(OWNER,)] * 3


@contextmanager
def superuser(servers: Places, name: str) -> Iterator[Session]:
    """Log in as the superuser."""
    with psycopg.connect(servers.url_of(SUPERUSER, name), autocommit=True) as session:
        yield session


@contextmanager
def empty_database(servers: Places) -> Iterator[str]:
    """Provide a database that is not migrated."""
    name = f"empty_{worker_name()}"
    with superuser(servers, "postgres") as session:
        session.execute(f"CREATE DATABASE {name} OWNER {OWNER}".encode())
        try:
            yield name
        finally:
            session.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def manage(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of manage.py with these variables."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
