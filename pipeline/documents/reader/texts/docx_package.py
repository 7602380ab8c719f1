"""The zip file of a DOCX: its parts, unpacked within limits."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from pathlib import Path
from xml.etree.ElementTree import Element

from .. import refusals
from ..types import ReaderLimits
from .xml_tree import parse

#: Files inside; a long report with pictures has a few hundred.
MOST_PARTS = 4096
_OFFICE = "http://schemas.openxmlformats.org"
_STRICT = "http://purl.oclc.org/ooxml"
_PLACES = {
    "w": "/wordprocessingml/2006/main wordprocessingml/main",
    "r": "/officeDocument/2006/relationships officeDocument/relationships",
    "m": "/officeDocument/2006/math officeDocument/math",
    "a": "/drawingml/2006/main drawingml/main",
    "wp": "/drawingml/2006/wordprocessingDrawing drawingml/wordprocessingDrawing",
    "pic": "/drawingml/2006/picture drawingml/picture",
    "c": "/drawingml/2006/chart drawingml/chart",
    "dgm": "/drawingml/2006/diagram drawingml/diagram",
}
NAMESPACES = {
    f"{base}{place}": prefix
    for prefix, places in _PLACES.items()
    for base, place in zip((_OFFICE, f"{_STRICT}/"), places.split(), strict=True)
} | {
    "http://schemas.openxmlformats.org/package/2006/relationships": "rel",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.microsoft.com/office/word/2010/wordprocessingShape": "wps",
    "http://schemas.microsoft.com/office/word/2010/wordml": "w14",
    "urn:schemas-microsoft-com:vml": "v",
    "urn:schemas-microsoft-com:office:office": "o",
}
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError)
"""What `zipfile` raises for a damaged file. NotImplementedError: unknown compression."""


class DocxPackage:
    """An open DOCX file."""

    def __init__(self, path: Path, limits: ReaderLimits) -> None:
        self._limit = limits.max_text_bytes
        self._left = 2 * limits.max_text_bytes
        _refuse_many_parts(path, self._limit)
        try:
            self._zip = zipfile.ZipFile(path)
        except _BAD_ZIP:
            raise refusals.broken_document("DOCX") from None
        self._names = {info.filename.lstrip("/"): info for info in self._zip.infolist()}
        if len({name.lower() for name in self._names}) < len(self._zip.infolist()):
            # Programs disagree about which of two parts of one name counts.
            raise refusals.broken_document("DOCX")
        if any(info.flag_bits & 1 for info in self._names.values()):
            raise refusals.encrypted()
        self.main = self._main()

    def tree(self, part: str) -> Element | None:
        """Return the tree of a part; None if the file has no such part. Raises InputRefused."""
        raw = self._raw(part)
        return None if raw is None else parse(raw, NAMESPACES, "DOCX")

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the parts that a part names: id → (last word of the type, part)."""
        folder, name = posixpath.split(part)
        tree = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        found = {}
        for each in tree if tree is not None else ():
            if each.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, each.get("Target", "")))
                kind = each.get("Type", "").rpartition("/")[2]
                found[each.get("Id", "")] = (kind, target.lstrip("/"))
        return found

    def part_of_type(self, kind: str) -> str | None:
        """Return the part of a type that the main part names."""
        return next((part for k, part in self.related(self.main).values() if k == kind), None)

    def _main(self) -> str:
        for kind, part in self.related("").values():
            if kind == "officeDocument" and part in self._names:
                if not part.startswith("word/"):
                    raise refusals.other_package()
                return part
        raise refusals.broken_document("DOCX")

    def _raw(self, part: str) -> bytes | None:
        if part not in self._names:
            return None
        try:
            with self._zip.open(self._names[part]) as file:
                # The stated size may lie, so only the bytes that are really read count.
                raw = file.read(min(self._limit, self._left) + 1)
        except _BAD_ZIP:
            raise refusals.broken_document("DOCX") from None
        self._left -= len(raw)
        if self._left < 0 or len(raw) > self._limit:
            raise refusals.too_much_inside(self._limit)
        return raw


def _refuse_many_parts(path: Path, limit: int) -> None:
    """Refuse by the number of parts that the end of the zip file states (APPNOTE 4.3.16)."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 65_557))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        raise refusals.broken_document("DOCX")
    parts = int.from_bytes(tail[at + 10 : at + 12], "little")
    listed = int.from_bytes(tail[at + 12 : at + 16], "little")
    if parts > MOST_PARTS or listed > MOST_PARTS * 512:
        raise refusals.too_much_inside(limit)
