"""Migrations do not break the version before, and no worker waits long behind a migration."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django_migration_linter import MigrationLinter

from medproc.embedded import Places
from medproc.embedded.places import APPLICATION, OWNER
from medproc.env import PROJECT_ROOT

OURS = {"api", "observability", "pipeline"}
BEFORE_THE_FIRST_RELEASE = {
    ("observability", "0001_initial"),
    ("pipeline", "0002_index_the_owner_of_records"),
}
"""Migrations that build an index and block writes meanwhile: they only ever run on empty tables."""
REMOVALS: set[tuple[str, str]] = set()
"""Migrations that remove what the version before the change no longer uses."""
TABLE, BEFORE = "sla_snapshots", "0002"


@pytest.mark.django_db
def test_no_migration_breaks_or_blocks_the_version_before() -> None:
    linter = MigrationLinter(str(PROJECT_ROOT), no_cache=True, no_output=True)
    migrations = MigrationLoader(connection).disk_migrations

    warned = set()
    for key, migration in migrations.items():
        if key[0] in OURS:
            linter.lint_migration(migration)
            if linter.nb_erroneous or linter.nb_warnings:
                warned.add(key)
            linter.reset_counters()

    assert warned == BEFORE_THE_FIRST_RELEASE | REMOVALS


def test_migrate_lets_others_through_and_tries_again(cloned_db: str, servers: Places) -> None:
    name = str(connection.settings_dict["NAME"])
    environment = {
        **os.environ,
        "DATABASE_URL": servers.url_of(APPLICATION, name),
        "DATABASE_OWNER_URL": servers.url_of(OWNER, name),
    }
    command = [sys.executable, "manage.py", "migrate", "observability", BEFORE]
    with (
        psycopg.connect(environment["DATABASE_URL"]) as reader,
        psycopg.connect(environment["DATABASE_URL"], autocommit=True) as other,
        subprocess.Popen(
            command, cwd=PROJECT_ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as migrate,
    ):  # fmt: skip
        reader.execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608 - a constant
        assert migrate.stderr
        assert migrate.stderr.readline().endswith("attempt 1 of 15.\n")

        # The migration has given up its place in the queue, or does so within its timeout.
        other.execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608 - a constant
        reader.rollback()
        _, said = migrate.communicate(timeout=120)

        assert migrate.returncode == 0, said
        assert other.execute(f"SELECT to_regclass('{TABLE}')").fetchone() == (None,)
