"""The text that the reader makes of a page that a test draws."""

from __future__ import annotations

from pathlib import Path

from pipeline.documents.reader.ocr import Ocr
from pipeline.documents.reader.pdf import PdfFile
from pipeline.documents.reader.types import ReaderLimits
from tests.support.printed_pages import (
    Draw,
    pdf_of,
)

LIMITS = ReaderLimits()


def text_of(folder: Path, draw: Draw) -> str:
    """Return the text of the page that `draw` prints; `→` is a TAB."""
    path = folder / "page.pdf"
    path.write_bytes(pdf_of(draw))
    page = PdfFile(path, LIMITS).read(1, Ocr(LIMITS.dpi))
    assert page.source == "text_layer"
    assert [
        page.text[w.start : w.end] for w in page.words if "\t" in page.text[w.start : w.end]
    ] == []
    return page.text.replace("\t", "→")


def joined(text: str) -> str:
    return " ".join(text.split())
