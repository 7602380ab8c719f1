"""Heads of the audit chain, recorded in files out of reach of a person who can change the database.

A recorded head proves that its link existed. So the verification notices a cut tail, which leaves
no gap in the chain itself. Each line has the time, the database, and `SEQ:HASH`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from medproc import private
from observability.audit.chain import ChainHead, head
from pipeline.operations.database_identity import database_identity

FILE = "audit-heads.log"
_LINE = re.compile(r"\S+ (?P<database>\d+/\d+) (?P<seq>\d{1,18}):(?P<hash>[0-9a-f]{64})")


def paths() -> list[Path]:
    """Return the files of heads: in the data folder, and in AUDIT_HEADS_DIR if it is set."""
    second = [settings.AUDIT_HEADS_DIR] if settings.AUDIT_HEADS_DIR else []
    return [Path(folder) / FILE for folder in (settings.MEDPROC_DATA_DIR, *second)]


def record_newest() -> str:
    """Record the newest head in each file that does not end with it; return a line for the log.

    Services call this when they start and when they end, and the scheduler every hour. Raises
    OSError if a file cannot be written; the other files are written nevertheless.
    """
    newest = head()
    if newest is None:
        return ""
    database = _database()
    failure: OSError | None = None
    for path in paths():
        try:
            if _last(path, database) != newest:
                _append(path, f"{timezone.now():%Y-%m-%dT%H:%M:%SZ} {database} {newest}\n")
        except OSError as error:
            failure = error
    if failure is not None:
        raise failure
    return f"head of the audit {newest}"


def recorded() -> list[ChainHead]:
    """Return all recorded heads of this database; a file that does not exist has none."""
    database = _database()
    return [found for path in paths() for found in _read(path, database)]


def _database() -> str:
    """Return the name of this database in the files, so that a new database has no heads."""
    # A promotion changes the timeline, and the heads stay valid.
    found = database_identity()
    return f"{found.system}/{found.database}"


def _read(path: Path, database: str) -> Iterator[ChainHead]:
    with suppress(FileNotFoundError):
        for line in path.read_text("utf-8", "replace").splitlines():
            # A full disk can leave a part of a line.
            matched = _LINE.fullmatch(line)
            if matched and matched["database"] == database:
                yield ChainHead(int(matched["seq"]), matched["hash"])


def _last(path: Path, database: str) -> ChainHead | None:
    return next(reversed(list(_read(path, database))), None)


def _append(path: Path, line: str) -> None:
    descriptor = private.append(path)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
