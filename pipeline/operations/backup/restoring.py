"""Restore a backup into an installation whose database is empty.

The stored files come first, then the database in one transaction. A killed restore leaves an empty
database, and the same command starts again: files that are there already are compared, not copied.
"""

from __future__ import annotations

from pathlib import Path

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from pipeline.core.errors import UserError, UserErrorCode
from pipeline.operations.backup.client_programs import run_on_database
from pipeline.operations.backup.making import rows_by_table
from pipeline.operations.backup.manifest import (
    DUMP,
    Manifest,
    StoredBytes,
    check_contents,
    file_in,
    listed_files,
    read_manifest,
    secret_key_digest,
)


def restore_backup(backup: Path, *, other_key: bool = False) -> Manifest:
    """Restore the database and the stored files; return the manifest.

    With `other_key`, a backup of another SECRET_KEY is restored. Raises UserError; the database is
    then unchanged. Call this as the owner of the tables, and `migrate` afterwards: the tables may
    be those of an earlier version, and the privileges are not in the dump.
    """
    manifest = read_manifest(backup)
    _check_key(manifest, other_key=other_key)
    _check_version(manifest)
    _check_empty()
    check_contents(backup, manifest)
    for file in listed_files(backup):
        _put(backup, file)
    run_on_database(
        "pg_restore",
        "--exit-on-error",
        "--single-transaction",
        "--no-owner",
        "--no-privileges",
        backup / DUMP,
    )
    _check_rows(manifest)
    return manifest


def _check_key(manifest: Manifest, *, other_key: bool) -> None:
    if manifest.secret_key != secret_key_digest() and not other_key:
        raise UserError(
            "the backup was made under another SECRET_KEY. Set SECRET_KEY to the key of the backup,"
            " or state --other-secret-key: medproc then recognises no patient of the backup",
            code=UserErrorCode.BACKUP_INVALID,
        )


def _check_version(manifest: Manifest) -> None:
    """Raise UserError for a backup of a newer version, whose tables this version does not know."""
    known = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    unknown = [
        f"{app}.{name}"
        for app, names in manifest.migrations.items()
        for name in names
        if (app, name) not in known
    ]
    if unknown:
        raise UserError(
            f"the backup is of another version of medproc: this one does not know {unknown[0]}",
            code=UserErrorCode.BACKUP_INVALID,
        )


def _check_empty() -> None:
    if rows_by_table():
        raise UserError(
            "the database has tables already. Restore into an empty database, which createdb and"
            " medproc/roles.sql make",
            code=UserErrorCode.STATE_CONFLICT,
        )


def _put(backup: Path, file: StoredBytes) -> None:
    """Store a file of the backup under its own name."""
    if default_storage.exists(file.key):
        if default_storage.size(file.key) == file.size_bytes:
            return
        # A killed restore left a part of the file.
        default_storage.delete(file.key)
    with file_in(backup, file).open("rb") as source:
        default_storage.save(file.key, File(source))


def _check_rows(manifest: Manifest) -> None:
    connection.close()
    found = rows_by_table()
    different = sorted(
        name for name in {*found, *manifest.tables} if found.get(name) != manifest.tables.get(name)
    )
    if different:
        raise UserError(
            f"the restored table {different[0]} has {found.get(different[0])} rows, but the backup"
            f" has {manifest.tables.get(different[0])}",
            code=UserErrorCode.BACKUP_INVALID,
        )
