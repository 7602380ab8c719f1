"""Folders and small files that only their owner may read.

A link, or a folder of another user in place of our folder, raises PermissionError and is never
used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path


def folder(
    path: Path, *, uid: int | None = None, gid: int | None = None, mode: int = 0o700
) -> Path:
    """Create `path` and its parents with this owner and mode.

    Raises PermissionError if the folder belongs to another user.
    """
    uid = os.geteuid() if uid is None else uid
    gid = os.getegid() if gid is None else gid
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=mode, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (uid, os.geteuid()):
        raise PermissionError(f"{path} is a link or belongs to another user")
    if os.geteuid() == 0 and (status.st_uid, status.st_gid) != (uid, gid):
        os.chown(path, uid, gid, follow_symlinks=False)
    if stat.S_IMODE(status.st_mode) != mode:
        path.chmod(mode)
    return path


def kept_text(path: Path, draw: Callable[[], str]) -> str:
    """Return the text in `path`; the first caller draws it and writes it with mode 0600.

    Two concurrent processes agree on one text: a hard link makes the complete file appear at once.
    """
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        pass
    candidate = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(draw())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(candidate, path)
    finally:
        candidate.unlink()
    return path.read_text("utf-8")
