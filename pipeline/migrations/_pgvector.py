"""Creates the extension `vector`, or says in one line what the server lacks."""

from __future__ import annotations

from django.apps.registry import Apps
from django.core.management import CommandError
from django.db import ProgrammingError, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def create_vector(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create the extension unless the database has it. Raises CommandError."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        if cursor.fetchone():
            return
        cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
        if not cursor.fetchone():
            raise CommandError(
                "PostgreSQL has no pgvector: install pgvector on the server (on Debian the package"
                " postgresql-18-pgvector), then run migrate again"
            )
        try:
            with transaction.atomic(using=schema_editor.connection.alias):
                cursor.execute("CREATE EXTENSION vector")
        except ProgrammingError:
            raise CommandError(
                "This role must not create the extension vector: run CREATE EXTENSION vector in"
                " this database as a superuser, then run migrate again"
            ) from None
