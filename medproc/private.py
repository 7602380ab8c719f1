"""Folders and small files that only their owner may read.

A link, or a folder of another user in place of our folder, raises PermissionError and is never
used. Files that root creates belong to the owner of their folder, who may be unprivileged.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

OUR_MARK = "instance"
"""The file that every data folder of medproc has."""
DRAFT = ".draft."
"""The beginning of the name of a file that `replace` has not finished."""


def folder(
    path: Path, *, uid: int | None = None, gid: int | None = None, mode: int = 0o700
) -> Path:
    """Create `path` and its parents with this owner and mode.

    The default owner is the present user, and for root the owner of the parent folder. Raises
    PermissionError if the folder belongs to another user.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    default = _owner_below(path.parent)
    uid = default[0] if uid is None else uid
    gid = default[1] if gid is None else gid
    path.mkdir(mode=mode, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (uid, os.geteuid()):
        raise PermissionError(f"{path} is a link or belongs to another user")
    if os.geteuid() == 0 and (status.st_uid, status.st_gid) != (uid, gid):
        os.chown(path, uid, gid, follow_symlinks=False)
    if stat.S_IMODE(status.st_mode) != mode:
        path.chmod(mode)
    return path


def handed_over(path: Path, *, uid: int, gid: int) -> Path:
    """Create the private folder `path` of this owner.

    If the folder belonged to root, the files of root in the folder are given to the owner too.
    Links are not followed. Raises PermissionError for a folder of root that holds anything but our
    files.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if os.geteuid() == 0 and uid != 0 and status.st_uid == 0 and stat.S_ISDIR(status.st_mode):
        if not (path / OUR_MARK).is_file() and any(path.iterdir()):
            raise PermissionError(f"{path} is a folder of root, and not of medproc")
        # The folder itself comes last: until then, only root can enter the folder.
        path.chmod(0o700)
        try:
            _give(path, uid, gid)
        except PermissionError:
            # A container without CAP_CHOWN, or a shared disk: the folder stays root's.
            uid, gid = status.st_uid, status.st_gid
    return folder(path, uid=uid, gid=gid)


def _give(path: Path, uid: int, gid: int) -> None:
    """Give root's files below `path`, and then `path`, to this owner."""
    for _, folders, files, descriptor in os.fwalk(path, topdown=False):
        for name in (*folders, *files):
            # A second start may delete its temporary file at this moment.
            with contextlib.suppress(FileNotFoundError):
                if os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_uid == 0:
                    os.chown(name, uid, gid, dir_fd=descriptor, follow_symlinks=False)
    os.chown(path, uid, gid, follow_symlinks=False)


def append(path: Path) -> int:
    """Open the private file `path` for appending; return its descriptor.

    Raises OSError for a link, also in the place of the folder, and PermissionError for a file of
    another user.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    inside = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        descriptor = os.open(path.name, flags, 0o600, dir_fd=inside)
    finally:
        os.close(inside)
    status, owner = os.fstat(descriptor), _owner_below(path.parent)
    ours = status.st_uid in (owner[0], os.geteuid()) and status.st_nlink == 1
    if not stat.S_ISREG(status.st_mode) or not ours:
        os.close(descriptor)
        raise PermissionError(f"{path} belongs to another user")
    if status.st_uid != owner[0]:
        os.fchown(descriptor, *owner)
    os.fchmod(descriptor, 0o600)
    return descriptor


def replace(path: Path, content: bytes) -> None:
    """Write the private file `path`: a reader or a crash finds the old or the new content, whole.

    Raises OSError, and then leaves the old content.
    """
    draft = path.with_name(f"{DRAFT}{path.name}.{os.getpid()}.{threading.get_ident()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            if os.geteuid() == 0:
                os.fchown(file.fileno(), *_owner_below(path.parent))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    inside = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(inside)
    finally:
        os.close(inside)


def _owner_below(parent: Path) -> tuple[int, int]:
    """Return user and group of what this process creates in `parent`."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    status = parent.stat()
    return status.st_uid, status.st_gid


def kept_text(path: Path, draw: Callable[[], str]) -> str:
    """Return the text in `path`; the first caller draws it and writes it with mode 0600.

    Two concurrent processes agree on one text: a hard link makes the complete file appear at once.
    """
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        pass
    candidate = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    candidate.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(candidate, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if os.geteuid() == 0:
                os.fchown(file.fileno(), *_owner_below(path.parent))
            file.write(draw())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(candidate, path)
    finally:
        candidate.unlink()
    return path.read_text("utf-8")
