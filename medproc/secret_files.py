"""Secrets: their masked type, and their values from files.

`NAME_FILE` is the path of a file that holds the value of the secret variable NAME: the convention
of Docker, Kubernetes and the image of PostgreSQL. No error quotes the content of a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from medproc.printable import in_one_line

SUFFIX = "_FILE"
LARGEST_BYTES = 65_536
"""The largest file of a secret; a larger file is another file."""


class Secret(str):
    """A string with a masked repr; `str()` returns the value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'********'"


NO_SECRET = Secret()


@dataclass(frozen=True, kw_only=True)
class SecretFile:
    """What the variable NAME_FILE gave: a text, or the reason why there is none."""

    path: str = ""
    """Printable; empty if the path must not be shown."""
    text: Secret = NO_SECRET
    reason: str = ""
    """A reason that follows the name of the variable; empty if the file was read."""


# pydantic-settings has `secrets_dir`. It does not fit: each file must have the name of its variable
# in one folder, and the absence of a file or of the folder is no error.
def read_all(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, SecretFile]:
    """Return what each variable NAME_FILE gave, by NAME; an empty variable counts as unset."""
    return {
        name: _read(name, given, is_doubled=bool(environment.get(name)))
        for name in names
        if (given := environment.get(name + SUFFIX))
    }


def paths(names: Iterable[str], environment: Mapping[str, str]) -> list[Path]:
    """Return the paths that the variables NAME_FILE name."""
    return [Path(given) for name in names if (given := environment.get(name + SUFFIX))]


def _read(name: str, given: str, *, is_doubled: bool) -> SecretFile:
    if is_doubled:
        return SecretFile(reason=f"is set, although {name} is set too; set one of the two")
    if not given.startswith("/") or given != given.strip():
        # The variable can hold the secret itself, so this line must not quote it.
        return SecretFile(reason="is not an absolute path (the secret itself belongs in the file)")
    shown = in_one_line(given)
    try:
        content = _content(given)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return SecretFile(path=shown, reason=f"names {shown}, which cannot be read: {reason}")
    flaw = _flaw_of(content)
    if flaw:
        return SecretFile(path=shown, reason=f"names {shown}, which {flaw}")
    return SecretFile(path=shown, text=Secret(_without_line_end(content).decode("utf-8")))


def _content(path: str) -> bytes:
    """Return the first bytes of a file, one more than LARGEST_BYTES at most.

    Raises OSError or ValueError if `path` is not a file that can be read. A pipe is never waited
    for.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise ValueError("Is a directory")
        if not stat.S_ISREG(mode):
            raise ValueError("Is not a regular file")
        return file.read(LARGEST_BYTES + 1)


def _flaw_of(content: bytes) -> str:
    if len(content) > LARGEST_BYTES:
        return f"is larger than {LARGEST_BYTES // 1024} KiB"
    if not _without_line_end(content):
        return "is empty"
    if b"\0" in content:
        return "holds a NUL byte"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "is not UTF-8"
    return ""


def _without_line_end(content: bytes) -> bytes:
    """Return the content without one LF or CRLF at its end, which editors and `echo` write."""
    if content.endswith(b"\n"):
        return content[:-1].removesuffix(b"\r")
    return content
