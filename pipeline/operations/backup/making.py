"""Make a backup: the dump, the stored files and the counts belong to one snapshot of the database.

Workers and console keep working. A stored file never changes, and only an erasure deletes a file
that a record names. A backup during an erasure would hold a record without its file, so the backup
is refused.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from medproc.files import sync_folder
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import ShellFile
from pipeline.operations.backup.client_programs import run_on_database
from pipeline.operations.backup.manifest import (
    DUMP,
    FILE_LIST,
    FILES,
    FORMAT,
    MANIFEST,
    Manifest,
    StoredBytes,
    copied,
    digest_of,
    file_in,
    secret_key_digest,
)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def make_backup(parent: Path, audit_head: Callable[[], object | None]) -> tuple[Path, Manifest]:
    """Write a backup into a new folder below `parent`; return the folder and the manifest.

    `audit_head` reads the last event of the audit in the snapshot. Raises UserError; no folder is
    left then. Call this as the owner of the tables.
    """
    _check_parent(parent)
    made_at = datetime.now(UTC)
    final = parent / f"medproc-{made_at:%Y%m%dT%H%M%SZ}"
    with _new_folder(final) as folder, _snapshot() as snapshot:
        head = audit_head()
        tables = rows_by_table()
        _dump(folder, snapshot)
        files, files_bytes = _copy_files(folder)
        manifest = Manifest(
            format=FORMAT,
            made_at=made_at.isoformat(timespec="seconds"),
            secret_key=secret_key_digest(),
            migrations=_applied(),
            tables=tables,
            records=ShellFile.objects.count(),
            files=files,
            files_bytes=files_bytes,
            dump_sha256=digest_of(folder / DUMP),
            file_list_sha256=digest_of(folder / FILE_LIST),
            audit_head=None if head is None else str(head),
        )
        with _new(folder / MANIFEST) as file:
            file.write(manifest.model_dump_json(indent=2).encode() + b"\n")
            _to_disk(file)
    return final, manifest


def rows_by_table() -> dict[str, int]:
    """Return the number of rows of each table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind = 'r' ORDER BY relname"
        )
        names = [name for (name,) in cursor.fetchall()]
        found = {}
        for name in names:
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(name)}")  # noqa: S608 - a name of the catalogue, quoted
            (found[name],) = cursor.fetchone()
        return found


def _check_parent(parent: Path) -> None:
    """Raise UserError for a missing folder, and for a folder that the backup itself would hold."""
    data = Path(settings.MEDPROC_DATA_DIR).resolve()
    if not parent.is_dir():
        raise _refused("there is no such folder; make the folder first")
    if parent.resolve().is_relative_to(data):
        raise _refused("the folder is inside the data folder; a backup belongs on another disk")


@contextmanager
def _new_folder(final: Path) -> Iterator[Path]:
    """Yield a private folder, and give the folder its final name if the block succeeds."""
    partial = final.with_name(f"{final.name}.partial")
    try:
        partial.mkdir(mode=0o700)
        (partial / FILES).mkdir(mode=0o700)
        yield partial
        sync_folder(partial)
        partial.rename(final)
        sync_folder(final.parent)
    except FileExistsError:
        raise _refused("another backup of this second exists; try again") from None
    except OSError as error:
        _discard(partial)
        if error.errno in _NO_ROOM:
            raise UserError(
                "the disk of the backup is full; nothing is left of this backup",
                code=UserErrorCode.BACKUP_FAILED,
            ) from None
        raise _refused(f"the folder cannot be written ({type(error).__name__})") from None
    except BaseException:
        _discard(partial)
        raise


def _discard(partial: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(partial)


@contextmanager
def _snapshot() -> Iterator[str]:
    """Read everything in one snapshot, and yield the name by which `pg_dump` shares the snapshot.

    The transaction does nothing while `pg_dump` runs, so it needs no limit of idle time.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SELECT pg_export_snapshot()")
        (name,) = cursor.fetchone()
        yield name


def _dump(folder: Path, snapshot: str) -> None:
    run_on_database(
        "pg_dump",
        "--format=custom",
        f"--snapshot={snapshot}",
        # `roles.sql` has created the extension, which only a superuser may do.
        "--exclude-extension=*",
        "--no-owner",
        # `migrate` grants the privileges again.
        "--no-privileges",
        f"--file={folder / DUMP}",
    )
    (folder / DUMP).chmod(0o600)
    with (folder / DUMP).open("rb") as dump:
        os.fsync(dump.fileno())


def _copy_files(folder: Path) -> tuple[int, int]:
    """Copy each stored file once, and list the files; return their number and bytes."""
    rows = ShellFile.objects.order_by("storage_key").distinct("storage_key")
    number = size = 0
    with _new(folder / FILE_LIST) as listed:
        for row in rows.values_list("storage_key", "sha256", "size_bytes").iterator():
            file = StoredBytes(*row)
            _copy(file, folder)
            listed.write(json.dumps(file._asdict()).encode() + b"\n")
            number, size = number + 1, size + file.size_bytes
        _to_disk(listed)
    return number, size


def _copy(file: StoredBytes, folder: Path) -> None:
    try:
        with default_storage.open(file.key) as source, _new(file_in(folder, file)) as target:
            found = copied(source, target)
            _to_disk(target)
    except FileNotFoundError:
        raise UserError(
            f"the stored file {file.key} does not exist. If a record was erased during the backup,"
            " make the backup again; else see manage.py sweep_files --dry-run",
            code=UserErrorCode.BACKUP_FAILED,
        ) from None
    if found != (file.sha256, file.size_bytes):
        raise UserError(
            f"the stored file {file.key} is damaged: its bytes are not those that were submitted",
            code=UserErrorCode.BACKUP_FAILED,
        )


def _applied() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for app, name in sorted(MigrationRecorder(connection).applied_migrations()):
        found.setdefault(app, []).append(name)
    return found


def _new(path: Path) -> BinaryIO:
    """Create a file that only the present user may read."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))


def _to_disk(file: BinaryIO) -> None:
    """Force what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _refused(message: str) -> UserError:
    return UserError(message, code=UserErrorCode.OUTPUT_INVALID)
