"""The bytes of records: written once under a server-made name, read through a local path.

Imports Django's storage, so that the same code serves a folder and an S3-compatible store.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from pipeline.core.errors import ErrorCode, PipelineError

logger = logging.getLogger(__name__)

_BLOCK = 1 << 20
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The disk, the owner's quota, or what a process may write to a file, is used up."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Bytes that are safely in the store."""

    key: str
    sha256: str
    size_bytes: int


def store(source: BinaryIO) -> Stored:
    """Copy a stream into the store and hash it.

    Raises PipelineError STORAGE_FULL where there is no room; nothing is left behind then.
    """
    digest, size = hashlib.sha256(), 0
    while block := source.read(_BLOCK):
        digest.update(block)
        size += len(block)
    source.seek(0)
    name = f"records/{uuid4()}"
    try:
        key = default_storage.save(name, File(source))
    except OSError as error:
        discard(name)
        if error.errno not in NO_ROOM:
            raise
        raise PipelineError(code=ErrorCode.STORAGE_FULL) from None
    return Stored(key=key, sha256=digest.hexdigest(), size_bytes=size)


def discard(key: str) -> None:
    """Delete bytes that no record names; what cannot be deleted is logged, never raised."""
    try:
        default_storage.delete(key)
    except OSError as error:
        logger.error("stored bytes %s could not be deleted: %s", key, type(error).__name__)


@contextmanager
def local_path(key: str) -> Iterator[Path]:
    """Give a path at which the stored bytes can be read for the time of the block."""
    try:
        path = default_storage.path(key)
    except NotImplementedError:
        folder = settings.FILE_UPLOAD_TEMP_DIR
        with tempfile.NamedTemporaryFile(prefix="medproc-", dir=folder) as copy:
            # By the lock the sweep of the folder knows it from what a killed process has left.
            fcntl.flock(copy, fcntl.LOCK_EX)
            with default_storage.open(key) as stored:
                shutil.copyfileobj(stored, copy, _BLOCK)
            copy.flush()
            yield Path(copy.name)
    else:
        yield Path(path)
