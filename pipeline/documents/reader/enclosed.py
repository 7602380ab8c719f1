"""Content of a PDF that its pages do not show: XFA forms, portfolios and attached files.

A file whose pages are only a cover is refused. Runs in the child only.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdf

from . import refusals
from .types import ATTACHMENTS, HIDDEN_TEXT, InputRefused

#: Start of the page that Adobe's software puts in place of a form which it draws itself.
_COVER = re.compile(r"^\s*(please wait|to view the full contents of this document)", re.I)
#: The whole of that page, which is left over if another program removed the form.
_LEFT_OVER = re.compile(
    r"^\s*please wait\b.{0,200}proper contents of the document.{0,120}viewer may not be able to"
    r" display this type of document",
    re.I | re.S,
)
_DATA = re.compile(r"<(?:\w+:)?data\b.*?</(?:\w+:)?data>", re.S)
_VALUE = re.compile(r">([^<>]+)<")


def check(document: pdfium.PdfDocument, path: Path) -> tuple[str, ...]:
    """Return the warnings about content that is not on the pages.

    Raises `InputRefused` if the pages are only the cover of that content.
    """
    form = pdf.FPDF_GetFormType(document)
    if form == pdf.FORMTYPE_XFA_FULL:
        raise refusals.dynamic_form()
    files = pdf.FPDFDoc_GetAttachmentCount(document)
    warnings = []
    if files > 0:
        if _is_portfolio(path):
            raise refusals.portfolio()
        warnings.append(ATTACHMENTS)
    if form == pdf.FORMTYPE_XFA_FOREGROUND and _form_holds_more(document, path):
        warnings.append(HIDDEN_TEXT)
    return tuple(warnings)


def is_cover(text: str) -> bool:
    """Return whether the text of a one-page file is only the cover of a lost XFA form."""
    return bool(_LEFT_OVER.search(text))


def _is_portfolio(path: Path) -> bool:
    import pikepdf

    try:
        with pikepdf.open(path) as file:
            return "/Collection" in file.Root
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a file that only PDFium can open has pages that were read
        return False


def _form_holds_more(document: pdfium.PdfDocument, path: Path) -> bool:
    """Return whether an XFA form with drawn pages holds values that no field shows.

    Raises `InputRefused` if the page is a cover, or if no field shows any value.
    """
    import pikepdf

    if len(document) == 1 and _COVER.search(_text(document)):
        raise refusals.dynamic_form()
    try:
        with pikepdf.open(path) as file:
            form = file.Root["/AcroForm"]
            data = _DATA.findall(_xml(form.get("/XFA")))
            values = {_plain(value) for part in data for value in _VALUE.findall(part)} - {""}
            shown = {_plain(value) for value in _field_values(form.get("/Fields"), 0)}
    except (MemoryError, InputRefused):
        raise
    except Exception:  # noqa: BLE001 - a form that cannot be compared counts as holding more
        return True
    # Check boxes and other choices are stored as numbers or names that differ from the field's.
    missing = {value for value in values - shown if len(value) > 2}
    if missing and not values & shown:
        raise refusals.dynamic_form()
    return bool(missing)


def _text(document: pdfium.PdfDocument) -> str:
    page = document[0]
    text: str = page.get_textpage().get_text_range()
    page.close()
    return text


def _xml(xfa: Any) -> str:
    """Return the XML of an XFA entry: one stream, or an array of names and streams."""
    import pikepdf

    parts = list(xfa) if isinstance(xfa, pikepdf.Array) else [xfa]
    streams = [part for part in parts if isinstance(part, pikepdf.Stream)]
    return b"".join(stream.read_bytes() for stream in streams).decode("utf-8", "replace")


def _field_values(fields: Any, depth: int) -> Iterator[str]:
    for field in fields or ():
        if "/V" in field:
            yield str(field["/V"])
        if depth < 16:
            yield from _field_values(field.get("/Kids"), depth + 1)


def _plain(value: str) -> str:
    return " ".join(html.unescape(value).split()).casefold()
