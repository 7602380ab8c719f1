"""Reads bytes as a text file, in the same process and in the reader's child."""

from __future__ import annotations

from pathlib import Path

from pipeline.documents.reader import (
    InputRefused,
    MediaType,
    PageRead,
    ReaderLimits,
    read_pages,
)
from pipeline.documents.reader.texts import characters, encoding, plain
from pipeline.documents.reader.texts.text_file import TypedDocument
from pipeline.documents.reader.texts.typesetting import TypedPage, paginate


def sheets_of(raw: bytes) -> list[TypedPage]:
    """Return the pages of plain text. Raises InputRefused."""
    text, _ = characters.normalised(encoding.decode(raw).text)
    return list(paginate(plain.items_of(text), 10_000))


def texts_of(raw: bytes) -> list[str]:
    """Return the page texts of plain text. Raises InputRefused."""
    return [sheet.text()[0] for sheet in sheets_of(raw)]


def pages_of(folder: Path, raw: bytes, name: str = "record") -> list[PageRead]:
    """Return the pages of a file of any type, as the reader's child reads them."""
    path = folder / name
    path.write_bytes(raw)
    return list(read_pages(path, 1, 10_000))


def refusal_of(folder: Path, raw: bytes) -> str:
    """Return code and message of a refused file; empty if the file is read."""
    try:
        pages_of(folder, raw)
    except InputRefused as refused:
        return str(refused)
    return ""


def read_in_process(folder: Path, raw: bytes, media_type: MediaType) -> list[PageRead]:
    """Return the pages of a text file, read without a child. Raises InputRefused."""
    path = folder / "record"
    path.write_bytes(raw)
    document = TypedDocument(path, media_type, ReaderLimits())
    return [document.read(number) for number in range(1, document.page_count + 1)]
