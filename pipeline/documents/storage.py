"""The bytes of records: written once under a server-made name, read through a local path.

Django's storage API serves a local folder and an S3-compatible store with the same code.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast
from uuid import uuid4

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection

from medproc.files import FinishedFile
from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.core.server_faults import FileStoreError, ServerFault
from pipeline.documents import scratch

if TYPE_CHECKING:
    from pipeline.documents.bucket import BucketStorage

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


def store(source: BinaryIO | FinishedFile) -> Stored:
    """Copy a stream into the store and hash it; a folder keeps a finished file without a copy.

    Raises PipelineError STORAGE_FULL if there is no room, and then leaves nothing behind. Raises
    FileStoreError if the bucket refuses; the sweep deletes the bytes that the bucket may have kept.
    Raises SweptError if the sweep deletes the bytes while they are written.
    """
    content: File[bytes]
    if isinstance(source, FinishedFile):
        content, sha256, size = source, source.sha256, source.size
    else:
        sha256, size = _hashed(source)
        content = File(source)
    name = f"{FOLDER}/{uuid4()}"
    try:
        key = default_storage.save(name, content)
    except FileNotFoundError:
        raise SweptError from None
    except OSError as error:
        discard(name)
        if error.errno not in NO_ROOM:
            raise
        raise PipelineError(code=ErrorCode.STORAGE_FULL) from None
    return Stored(key=key, sha256=sha256, size_bytes=size)


def _hashed(source: BinaryIO) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while block := source.read(_BLOCK):
        digest.update(block)
        size += len(block)
    source.seek(0)
    return digest.hexdigest(), size


def discard(key: str) -> None:
    """Delete bytes that no record names. A failure is logged and never raised."""
    try:
        default_storage.delete(key)
    except (OSError, FileStoreError) as error:
        logger.error("stored bytes %s could not be deleted: %s", key, type(error).__name__)


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


Copying = Callable[[Callable[[], None]], None]
"""Runs the copy of a stored file that it gets as a function."""


def at_once(copy: Callable[[], None]) -> None:
    """Run a copy, and do nothing else meanwhile."""
    copy()


@contextmanager
def local_path(key: str, copying: Copying = at_once) -> Iterator[Path]:
    """Yield a path at which the stored bytes are readable during the block.

    `copying` runs the copy from a bucket, which can take long; a step renews its lease meanwhile.
    """
    try:
        path = default_storage.path(key)
    except NotImplementedError:
        with scratch.new_copy() as copy:
            copying(partial(_copy, key, copy))
            yield Path(copy.name)
    else:
        yield Path(path)


def _copy(key: str, target: BinaryIO) -> None:
    try:
        with default_storage.open(key) as stored:
            shutil.copyfileobj(stored, target, _BLOCK)
        target.flush()
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise PipelineError(code=ErrorCode.STORAGE_FULL) from None


def warm() -> None:
    """Do the one-time work of a bucket, which a forked process inherits. Connects to nothing."""
    if bucket := _bucket():
        # The steps wait for a bucket whose key cannot be had.
        with suppress(FileStoreError):
            _ = bucket.connection


def fault(*, writes: bool = False) -> ServerFault | None:
    """Return why the bucket refuses now; None if it accepts, and without a bucket.

    With `writes`, the check also writes and deletes an object.
    """
    bucket = _bucket()
    if bucket is None:
        return None
    quick = bucket.quick
    try:
        if writes:
            quick.check_writes(f"checks/{uuid4()}")
        else:
            quick.check_reads()
    except FileStoreError as error:
        return error.fault
    except OSError:
        return ServerFault.STORAGE_DISK_FULL
    return None


def abort_unfinished(older_s: float) -> int:
    """Delete the parts of unfinished uploads to the bucket, and return the number of uploads.

    An upload that began within the last `older_s` seconds stays: its process may still run.
    """
    bucket = _bucket()
    return bucket.abort_unfinished(f"{FOLDER}/", older_s) if bucket else 0


def _bucket() -> BucketStorage | None:
    """Return the store of the files if it is a bucket; None for a folder."""
    return cast("BucketStorage", default_storage) if settings.STORAGE_BUCKET is not None else None
