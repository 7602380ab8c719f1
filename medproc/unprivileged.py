"""Leave root: a service that root starts runs as an unprivileged user.

The embedded servers, the workers, the scheduler, the console and the reader all run as this
user. If a folder such as /root hides the code from the user, the process gets its own view of
the file system, in which only the needed folders are visible there. Each start of the reader
imports this module, so the module imports little.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

USERS = ("medproc", "postgres", "nobody")
"""Users for processes that root starts; the first existing user is taken."""

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_SLAVE = 2, 4, 4096, 16384, 1 << 19
_MNT_DETACH = 2
_CAP_SYS_ADMIN = 21


class NoUserError(Exception):
    """There is no user that could run the service; the message is one line."""


class ServerUser(NamedTuple):
    """The user that runs a server; `changes` is True if it is not the present user."""

    name: str
    uid: int
    gid: int
    changes: bool
    home: str = "/"


def server_user() -> ServerUser:
    """Return the user that runs the service: the present user, or an unprivileged user for root."""
    me = os.geteuid()
    if me != 0:
        try:
            entry = pwd.getpwuid(me)
        except KeyError:
            raise NoUserError(
                f"PostgreSQL needs a user with a name, but the user id {me} has no name"
            ) from None
        return ServerUser(name=entry.pw_name, uid=me, gid=os.getegid(), changes=False)
    for name in USERS:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return ServerUser(
                name=name, uid=entry.pw_uid, gid=entry.pw_gid, changes=True, home=entry.pw_dir
            )
    raise NoUserError(
        "PostgreSQL refuses to run as root, and none of these users exists: " + " or ".join(USERS)
    )


def owner_of_data() -> tuple[int, int]:
    """Return the user and group that own the data folder: those of the service."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    try:
        user = server_user()
    except NoUserError:
        return 0, os.getegid()
    return user.uid, user.gid


def code_folders() -> list[Path]:
    """Return the folders that Python needs for imports, without duplicates."""
    project = Path(__file__).resolve().parent.parent
    found = [project, Path(sys.prefix), Path(sys.base_prefix)]
    found += [Path(entry) for entry in sys.path if entry and Path(entry).is_dir()]
    return list(dict.fromkeys(path.absolute() for path in found))


def obstacle(needed: Iterable[Path]) -> str | None:
    """Return why this process of root cannot go on as the unprivileged user; None if it can."""
    if os.geteuid() != 0:
        return None
    try:
        user = server_user()
    except NoUserError as error:
        return str(error)
    paths = list(needed)
    for path in paths:
        if path.exists() and not lets_in(path, user, 0o4 if path.is_file() else 0o5):
            return f"the user {user.name} cannot read {path}"
    closed = _closed_folders(paths, user)
    if closed and not _may_mount():
        return f"the user {user.name} cannot enter {closed[0]}"
    return None


def leave_root(needed: Iterable[Path]) -> str | None:
    """Become the unprivileged user for good; return the reason if this process stays root.

    `needed` are the files and folders that the process still reads or writes. A process that is
    not root stays as it is.
    """
    if os.geteuid() != 0:
        return None
    paths = [path.absolute() for path in needed if path.exists()]
    reason = obstacle(paths)
    if reason is not None:
        return reason
    user = server_user()
    closed = _closed_folders(paths, user)
    if closed:
        try:
            _show_only(paths, closed)
        except OSError as error:
            return f"the user {user.name} cannot enter {closed[0]} ({error.strerror})"
    try:
        os.setgroups([])
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    except OSError as error:
        return f"the kernel refuses the change to the user {user.name} ({error.strerror})"
    # The libraries look for certificates below HOME, and root's home refuses them.
    os.environ["HOME"] = user.home
    return None


def lets_in(path: Path, user: ServerUser, wanted: int) -> bool:
    """Return whether the mode of `path` grants `user` the `wanted` bits (4 read, 1 enter)."""
    status = path.stat()
    if status.st_uid == user.uid:
        granted = status.st_mode >> 6
    elif status.st_gid == user.gid:
        granted = status.st_mode >> 3
    else:
        granted = status.st_mode
    return granted & wanted == wanted


def _closed_folders(paths: Iterable[Path], user: ServerUser) -> list[Path]:
    """Return the outermost folders on the way to `paths` that `user` cannot enter."""
    found: list[Path] = []
    for path in paths:
        for way in (path.absolute(), path.resolve()):
            for folder in reversed(way.parents):
                if folder.is_dir() and not lets_in(folder, user, 0o1):
                    real = folder.resolve()
                    if real not in found:
                        found.append(real)
                    break
    return [path for path in found if not any(other in path.parents for other in found)]


def _may_mount() -> bool:
    """Return whether this process has CAP_SYS_ADMIN; containers usually lack it."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return False
    effective = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> _CAP_SYS_ADMIN & 1)


def _show_only(paths: Sequence[Path], closed: Sequence[Path]) -> None:
    """Give this process a view in which `closed` folders can be entered and hold only `paths`.

    Other processes keep their view. Raises OSError if the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    ways = sorted({path for given in paths for path in (given, given.resolve())})
    _call(libc.unshare, _CLONE_NEWNS)
    _call(libc.mount, b"none", b"/", None, _MS_REC | _MS_SLAVE, None)
    # Only descriptors of the new view can be mounted in it.
    opened = [
        (path, os.open(path, os.O_PATH | os.O_CLOEXEC))
        for path in ways
        if any(folder in path.parents for folder in closed)
    ]
    covered: list[Path] = []
    try:
        for folder in closed:
            options = b"mode=0711,size=1m"
            flags = _MS_NOSUID | _MS_NODEV
            _call(libc.mount, b"none", os.fsencode(folder), b"tmpfs", flags, options)
            covered.append(folder)
        before = os.umask(0o066)
        try:
            _bind(libc, opened)
        finally:
            os.umask(before)
    except OSError:
        for folder in covered:
            libc.umount2(os.fsencode(folder), _MNT_DETACH)
        raise
    finally:
        for _, descriptor in opened:
            os.close(descriptor)


def _bind(libc: ctypes.CDLL, opened: Sequence[tuple[Path, int]]) -> None:
    """Mount each opened file or folder at its path, without those inside an earlier folder."""
    shown: list[Path] = []
    for path, descriptor in opened:
        if any(other in path.parents for other in shown):
            continue
        shown.append(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            path.mkdir(exist_ok=True)
        else:
            path.touch(0o600)
        source = f"/proc/self/fd/{descriptor}".encode()
        _call(libc.mount, source, os.fsencode(path), None, _MS_BIND | _MS_REC, None)


def _call(function: ctypes._NamedFuncPointer, *arguments: bytes | int | None) -> None:
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
