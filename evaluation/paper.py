"""Draw short texts as PDF pages, one page per text, with nothing but a standard font."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pikepdf

_SIZE, _LEADING, _LEFT, _TOP, _CELL = 11, 16, 50, 800, 130
"""Points: font, distance of lines, first column, first line, distance of columns."""
_PAGE = (612, 842)


def can_draw(text: str) -> bool:
    """Whether a standard font has all characters of a text."""
    try:
        text.replace("\t", " ").encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def draw(texts: Sequence[str], path: Path) -> None:
    """Write one PDF with one page per text. A TAB begins the next column."""
    with pikepdf.new() as pdf:
        font = pdf.make_indirect(
            pikepdf.Dictionary(
                Type=pikepdf.Name.Font,
                Subtype=pikepdf.Name.Type1,
                BaseFont=pikepdf.Name.Helvetica,
                Encoding=pikepdf.Name.WinAnsiEncoding,
            )
        )
        for text in texts:
            page = pdf.add_blank_page(page_size=_PAGE)
            page.obj.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font))
            page.obj.Contents = pdf.make_stream(_content(text))
        pdf.save(path)


def _content(text: str) -> bytes:
    parts = []
    for row, line in enumerate(text.split("\n")):
        for column, cell in enumerate(line.split("\t")):
            if cell.strip():
                x, y = _LEFT + column * _CELL, _TOP - row * _LEADING
                parts.append(f"BT /F1 {_SIZE} Tf {x} {y} Td ({_escaped(cell)}) Tj ET")
    return "\n".join(parts).encode("cp1252")


def _escaped(words: str) -> str:
    return words.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
