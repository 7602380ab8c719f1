"""The bytes of records: written once under a server-made name, read through a local path.

Django's storage API serves a local folder and an S3-compatible store with the same code.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection

from pipeline.core.errors import ErrorCode, PipelineError

logger = logging.getLogger(__name__)

_BLOCK = 1 << 20
FOLDER = "records"
_LOCK = int.from_bytes(b"file", "big")
"""First key of the advisory locks on stored files; the second key is the hash of the name."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a full disk, an exhausted disk quota, or a file size limit."""


class SweptError(Exception):
    """The sweep deleted the bytes before their submission claimed them: they were too old."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Bytes that are safely in the store."""

    key: str
    sha256: str
    size_bytes: int


def store(source: BinaryIO) -> Stored:
    """Copy a stream into the store and hash it.

    Raises PipelineError STORAGE_FULL if there is no room, and then leaves nothing behind. Raises
    SweptError if the sweep deletes the bytes while they are written.
    """
    digest, size = hashlib.sha256(), 0
    while block := source.read(_BLOCK):
        digest.update(block)
        size += len(block)
    source.seek(0)
    name = f"{FOLDER}/{uuid4()}"
    try:
        key = default_storage.save(name, File(source))
    except FileNotFoundError:
        raise SweptError from None
    except OSError as error:
        discard(name)
        if error.errno not in NO_ROOM:
            raise
        raise PipelineError(code=ErrorCode.STORAGE_FULL) from None
    return Stored(key=key, sha256=digest.hexdigest(), size_bytes=size)


def discard(key: str) -> None:
    """Delete bytes that no record names. A failure is logged and never raised."""
    try:
        default_storage.delete(key)
    except OSError as error:
        logger.error("stored bytes %s could not be deleted: %s", key, type(error).__name__)


def sync_folder(folder: Path) -> None:
    """Force the names of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def claim(key: str) -> bool:
    """Lock stored bytes against the sweep until this transaction ends; return whether they exist.

    A submission claims its bytes before it inserts the row that names them. The sweep deletes only
    bytes that it could lock and that no committed row names. So no order of the two loses bytes.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, key])
    return default_storage.exists(key)


def lock_unclaimed(keys: Collection[str]) -> list[str]:
    """Lock the stored bytes that no submission has claimed, until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key FROM unnest(%s::text[]) AS candidate(key)"
            " WHERE pg_try_advisory_xact_lock(%s, hashtext(key))",
            [list(keys), _LOCK],
        )
        return [key for (key,) in cursor.fetchall()]


@contextmanager
def local_path(key: str) -> Iterator[Path]:
    """Yield a path at which the stored bytes are readable during the block."""
    try:
        path = default_storage.path(key)
    except NotImplementedError:
        folder = settings.FILE_UPLOAD_TEMP_DIR
        with tempfile.NamedTemporaryFile(prefix="medproc-", dir=folder) as copy:
            # The lock tells the clean-up of the folder that this copy is in use. A copy without a
            # lock was left by a killed process.
            fcntl.flock(copy, fcntl.LOCK_EX)
            with default_storage.open(key) as stored:
                shutil.copyfileobj(stored, copy, _BLOCK)
            copy.flush()
            yield Path(copy.name)
    else:
        yield Path(path)
