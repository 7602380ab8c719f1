"""The isolation of the reader's child: no root, no network, no writing, and only its file to read.

Landlock hides the files, a seccomp filter refuses sockets, programs and writing. Both need no
rights. Where the system lacks one of them, `gap` says so in words for the operator.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from medproc import unprivileged

from . import syscall_filter

# A user namespace with an empty network was not used: containers refuse it, it leaves unix sockets
# open, and its end costs milliseconds. The landlock package of PyPI is a wrapper of three calls.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""The rights that each version of Landlock knows, from that version on."""
_TCP, _TCP_FROM = 0b11, 4
_SCOPES, _SCOPES_FROM = 0b11, 6
_PR_SET_NO_NEW_PRIVS = 38
_PROJECT = Path(__file__).resolve().parents[3]
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/zero",
    "/dev/urandom", "/dev/random", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
    "/sys/devices/system/cpu", "/sys/fs/cgroup",
)  # fmt: skip
"""Libraries, fonts, and the facts that numeric libraries ask for; no file of a patient."""


def gap() -> str | None:
    """Return what the isolation of a reader's child lacks on this system; None if nothing."""
    lacks = [reason for reason in (_landlock_obstacle(), syscall_filter.obstacle()) if reason]
    if os.geteuid() == 0:
        root = unprivileged.obstacle(unprivileged.code_folders())
        lacks += [f"the reader runs as root, because {root}"] if root else []
    return "; ".join(lacks) or None


def enter(path: Path) -> None:
    """Isolate this process for good; only the file at `path` stays readable.

    What the system lacks is left out; `gap` reports it. A child of root stays root if the
    unprivileged user cannot read the file; the files of the data folder belong to that user.
    """
    unprivileged.leave_root([*unprivileged.code_folders(), path])
    with suppress(OSError):
        _hide_files(path)
    with suppress(OSError):
        syscall_filter.apply()


def _landlock_version() -> int:
    if not sys.platform.startswith("linux"):
        return 0
    version = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
    return max(0, int(version))


def _landlock_obstacle() -> str | None:
    if _landlock_version():
        return None
    return "this system has no Landlock, so the reader can read other files"


def _hide_files(path: Path) -> None:
    """Let this process read only code and `path`, and write nothing. Raises OSError."""
    version = _landlock_version()
    if not version:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    rights = max(known for first, known in _ALL_RIGHTS.items() if first <= version)
    handled = [rights]
    if version >= _TCP_FROM:
        handled.append(_TCP)
    if version >= _SCOPES_FROM:
        handled.append(_SCOPES)
    attributes = struct.pack(f"{len(handled)}Q", *handled)
    ruleset = _checked(libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    try:
        for readable in _readable(path):
            _allow_reading(libc, ruleset, readable)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _readable(path: Path) -> Iterable[Path]:
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    # The project's own folder can hold the data folder, and sys.path can name the root folder or
    # another folder that holds records.
    yield from (_PROJECT / package for package in ("medproc", "pipeline"))
    closed = (_PROJECT, *_PROJECT.parents, *path.resolve().parents)
    for folder in unprivileged.code_folders():
        if folder.resolve() not in closed:
            yield folder
    yield from (Path(name) for name in (*_SYSTEM, *libraries) if name)
    yield path


def _allow_reading(libc: ctypes.CDLL, ruleset: int, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | (_READ_DIR | _EXECUTE if path.is_dir() else 0)
        rule = struct.pack("=Qi", rights, descriptor)
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
