"""The user's own files: a file, a folder or a zip archive, read line by line.

A line that is not UTF-8, that holds a NUL or that is longer than a limit ends the load. Nothing is
unpacked to the disk.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode

_CHUNK = 1 << 20
_RELEASE = re.compile(r"RxNorm_\w+_([01][0-9])([0-3][0-9])(20[0-9]{2})")
LONGEST_LINE = 1 << 20
"""Bytes of a line; the longest line of the known sources has less than 30,000."""


def sha256_of(*paths: Path) -> str:
    """Return the SHA-256 of the files' bytes, in order."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            _update(digest, stream)
    return digest.hexdigest()


@dataclass(frozen=True)
class TextFile:
    """One text file, on its own or inside a zip archive."""

    path: Path
    member: str = ""
    """The name inside the archive; "" for a file of its own."""

    @property
    def name(self) -> str:
        """The name without folders."""
        return Path(self.member or self.path).name

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the bytes; turn every error of the file or archive into a CodesError."""
        try:
            if self.member:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                    yield stream
            else:
                with self.path.open("rb") as stream:
                    yield stream
        except OSError as error:
            raise _unreadable(self.name, error.strerror or "it cannot be read") from None
        except (zipfile.BadZipFile, zlib.error, EOFError):
            raise _unreadable(self.name, "the archive is damaged") from None
        except (RuntimeError, NotImplementedError):
            # zipfile raises these for a password and for an unknown compression.
            raise _unreadable(self.name, "the archive has a password or is packed oddly") from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of each line, without its end; a mark of byte order is dropped.

        Every line needs its end: a file that is cut off could otherwise end in half a name.
        """
        with self.open() as stream:
            number = 0
            while raw := stream.readline(LONGEST_LINE + 1):
                number += 1
                if len(raw) > LONGEST_LINE:
                    raise self.refuse_row(number, f"is longer than {LONGEST_LINE} bytes")
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    raise CodesError(
                        f"{self.name}: line {number} is not UTF-8. Convert the file to UTF-8.",
                        code=CodesErrorCode.CODES_ENCODING,
                    ) from None
                if not line.endswith("\n"):
                    raise self.refuse_row(number, "has no end, so the file is cut off")
                if "\0" in line:
                    raise CodesError(
                        f"{self.name}: line {number} holds a NUL; the file is not UTF-8 text.",
                        code=CodesErrorCode.CODES_ENCODING,
                    )
                yield number, line.rstrip("\r\n")
            if number == 0:
                raise CodesError(f"{self.name} is empty.", code=CodesErrorCode.CODES_EMPTY)

    def refuse_row(self, number: int, problem: str) -> CodesError:
        """Return the error of one line; `problem` continues `line 3 …`."""
        return CodesError(f"{self.name}: line {number} {problem}.", code=CodesErrorCode.CODES_ROW)

    def refuse_header(self, problem: str) -> CodesError:
        """Return the error of the first line; `problem` follows the name of the file."""
        return CodesError(f"{self.name}: {problem}.", code=CodesErrorCode.CODES_HEADER)


@dataclass(frozen=True)
class UserFiles:
    """What the user named: a text file, a folder or a zip archive."""

    path: Path

    def __post_init__(self) -> None:
        try:
            exists = self.path.exists()
        except (OSError, ValueError):
            raise _unreadable(self.path.name, "it cannot be read") from None
        if not exists:
            raise CodesError(
                f"{self.path.name} does not exist.", code=CodesErrorCode.CODES_FILE_MISSING
            )
        if not (self.path.is_file() or self.path.is_dir()):
            # Reading a pipe or a device could wait without end.
            raise _unreadable(self.path.name, "it is neither a file nor a folder")
        if self.path.suffix.lower() == ".zip" and self.path.is_file() and not self._is_archive:
            raise _unreadable(self.path.name, "the archive is damaged")

    @property
    def name(self) -> str:
        """The name of the file, folder or archive without its folders."""
        return self.path.resolve().name

    def find(self, pattern: str, *, kind: str) -> TextFile:
        """Return the text file whose name fits; a single named file needs no particular name."""
        if self.path.is_file() and not self._is_archive:
            return TextFile(self.path)
        found = self.look_for(pattern)
        if found is None:
            raise CodesError(
                f"{self.name} holds no {kind}.", code=CodesErrorCode.CODES_FILE_MISSING
            )
        return found

    def look_for(self, pattern: str) -> TextFile | None:
        """Return the file of a folder or archive whose name fits, or None.

        A release can contain a smaller edition in a deeper folder; the shallowest file counts.
        """
        wanted = re.compile(pattern, re.IGNORECASE)
        fits = [name for name in self._names() if wanted.fullmatch(Path(name).name)]
        depth = min((len(Path(name).parts) for name in fits), default=0)
        fits = sorted(name for name in fits if len(Path(name).parts) == depth)
        if len(fits) > 1:
            raise CodesError(
                f"{self.name} holds both {fits[0]} and {fits[1]}. Name the folder of one release.",
                code=CodesErrorCode.CODES_FILE_UNREADABLE,
            )
        if not fits:
            return None
        if self._is_archive:
            return TextFile(self.path, fits[0])
        return TextFile(self.path / fits[0])

    def release(self) -> str:
        """Return the date in the name of a release (`RxNorm_full_11032025`) as ISO date, or ""."""
        for part in reversed(self.path.resolve().parts):
            found = _RELEASE.search(part)
            if found:
                month, day, year = found.groups()
                return f"{year}-{month}-{day}"
        return ""

    @cached_property
    def _is_archive(self) -> bool:
        return self.path.is_file() and zipfile.is_zipfile(self.path)

    def _names(self) -> list[str]:
        if self.path.is_dir():
            return [
                str(found.relative_to(self.path))
                for found in self.path.rglob("*")
                if found.is_file()
            ]
        if not self._is_archive:
            return []
        try:
            with zipfile.ZipFile(self.path) as archive:
                return [each.filename for each in archive.infolist() if not each.is_dir()]
        except zipfile.BadZipFile:
            raise _unreadable(self.name, "the archive is damaged") from None


def digest_of(*files: TextFile) -> str:
    """Return the SHA-256 of the files' text; an archive and its unpacked files have the same."""
    digest = hashlib.sha256()
    for file in files:
        with file.open() as stream:
            _update(digest, stream)
    return digest.hexdigest()


def _update(digest: hashlib._Hash, stream: IO[bytes]) -> None:
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)


def _unreadable(name: str, problem: str) -> CodesError:
    return CodesError(f"{name}: {problem}.", code=CodesErrorCode.CODES_FILE_UNREADABLE)
