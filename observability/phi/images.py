"""The image of a page, made on demand from the stored bytes and kept nowhere. PHI.

Imports storage and the reader, whose killable child renders. Two are made at once in a process;
whoever waits too long is told to come again.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.core import signing

from pipeline.documents import reader, storage

AT_ONCE = 2
"""Children of a process at the same time; one has up to `Limits.memory_bytes`."""
PATIENCE_S = 20.0
SMALL_DPI, LARGE_DPI = 100, 200
SHOWN_FOR_S = 600
"""How long the image of a page belongs to the reading that its page has written down."""

_room = threading.BoundedSemaphore(AT_ONCE)


class BusyError(Exception):
    """Too many images are being made; try again."""


def page_image(storage_key: str, number: int, *, large: bool = False) -> bytes:
    """Return a page as PNG. Raises BusyError, FileNotFoundError, and the reader's errors."""
    if not _room.acquire(timeout=PATIENCE_S):
        raise BusyError
    try:
        with storage.local_path(storage_key) as path:
            if not path.exists():
                # The reader's process would only say that it failed.
                raise FileNotFoundError
            return reader.render_page(
                path,
                number,
                dpi=LARGE_DPI if large else SMALL_DPI,
                limits=replace(
                    reader.Limits(),
                    max_bytes=settings.MAX_UPLOAD_MB * 1024 * 1024,
                    max_pages=settings.MAX_PAGES,
                ),
            )
    finally:
        _room.release()


def ticket(user_id: str, record_id: UUID, number: int) -> str:
    """Return what shows that this user's reading of this page has been written down."""
    said = f"{user_id}.{record_id}.{number}"
    return _signer().sign(said).removeprefix(f"{said}:")


def is_written_down(text: str, user_id: str, record_id: UUID, number: int) -> bool:
    """Whether a ticket is of this user and page, and not too old."""
    try:
        _signer().unsign(f"{user_id}.{record_id}.{number}:{text}", max_age=SHOWN_FOR_S)
    except signing.BadSignature:
        return False
    return True


def _signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt="medproc.page-image")
