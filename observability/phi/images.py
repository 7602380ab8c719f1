"""The image of a page, rendered on demand from the stored bytes and never cached. PHI.

The reader's child process renders and can be killed. A process renders two images at a time; a
request that waits too long is asked to try again.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.core import signing

from pipeline.documents import reader, storage

AT_ONCE = 2
"""Children per process at the same time; each uses up to `Limits.memory_bytes`."""
PATIENCE_S = 20.0
SMALL_DPI, LARGE_DPI = 100, 200
SHOWN_FOR_S = 600
"""Seconds for which an image request belongs to the audited reading of its page."""

_room = threading.BoundedSemaphore(AT_ONCE)


class BusyError(Exception):
    """Too many images are being rendered; try again."""


def page_image(storage_key: str, number: int, *, large: bool = False) -> bytes:
    """Return a page as PNG. Raises BusyError, FileNotFoundError, and the reader's errors."""
    if not _room.acquire(timeout=PATIENCE_S):
        raise BusyError
    try:
        with storage.local_path(storage_key) as path:
            if not path.exists():
                # Without this check the reader would report an unspecific failure.
                raise FileNotFoundError
            return reader.render_page(
                path,
                number,
                dpi=LARGE_DPI if large else SMALL_DPI,
                limits=replace(
                    reader.ReaderLimits(),
                    max_bytes=settings.MAX_UPLOAD_MB * 1024 * 1024,
                    max_pages=settings.MAX_PAGES,
                ),
            )
    finally:
        _room.release()


def ticket(user_id: str, record_id: UUID, number: int) -> str:
    """Return a token that proves that this user's reading of this page was audited."""
    said = f"{user_id}.{record_id}.{number}"
    return _signer().sign(said).removeprefix(f"{said}:")


def is_written_down(text: str, user_id: str, record_id: UUID, number: int) -> bool:
    """Return whether a token belongs to this user and page and has not expired."""
    try:
        _signer().unsign(f"{user_id}.{record_id}.{number}:{text}", max_age=SHOWN_FOR_S)
    except signing.BadSignature:
        return False
    return True


def _signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt="medproc.page-image")
