"""Form fields with a tick, and struck-through text, as the annotations of a page state them.

They are read before PDFium draws the annotations into the page. Runs in the child only.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdf

#: Annotations of a page above which the rest is not read.
MAX_ANNOTATIONS = 2_000
_HIDDEN = 0x2 | 0x20
_OFF = "Off"

Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Noted:
    """What the annotations of one page state; rectangles (left, bottom, right, top) of the page."""

    #: Check boxes and radio buttons with their state.
    fields: tuple[tuple[Rectangle, bool], ...] = ()
    struck: tuple[Rectangle, ...] = ()


NOTHING_NOTED = Noted()


def read_annotations(page: pdfium.PdfPage) -> Noted:
    """Return the ticked and unticked fields and the struck-through areas of `page`."""
    fields: list[tuple[Rectangle, bool]] = []
    struck: list[Rectangle] = []
    for index in range(min(pdf.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        note = pdf.FPDFPage_GetAnnot(page, index)
        if not note:
            continue
        try:
            if pdf.FPDFAnnot_GetFlags(note) & _HIDDEN:
                continue
            kind = pdf.FPDFAnnot_GetSubtype(note)
            if kind == pdf.FPDF_ANNOT_WIDGET:
                state = _text(note, b"AS")
                rectangle = _rectangle(note)
                if state and rectangle:
                    fields.append((rectangle, state != _OFF))
            elif kind == pdf.FPDF_ANNOT_STRIKEOUT:
                struck.extend(_quads(note))
        finally:
            pdf.FPDFPage_CloseAnnot(note)
    return Noted(fields=tuple(fields), struck=tuple(struck))


def _rectangle(note: ctypes.c_void_p) -> Rectangle | None:
    found = pdf.FS_RECTF()
    if not pdf.FPDFAnnot_GetRect(note, found):
        return None
    return found.left, found.bottom, found.right, found.top


def _quads(note: ctypes.c_void_p) -> list[Rectangle]:
    found: list[Rectangle] = []
    for index in range(min(pdf.FPDFAnnot_CountAttachmentPoints(note), MAX_ANNOTATIONS)):
        quad = pdf.FS_QUADPOINTSF()
        if pdf.FPDFAnnot_GetAttachmentPoints(note, index, quad):
            xs = (quad.x1, quad.x2, quad.x3, quad.x4)
            ys = (quad.y1, quad.y2, quad.y3, quad.y4)
            found.append((min(xs), min(ys), max(xs), max(ys)))
    if not found and (whole := _rectangle(note)):
        found.append(whole)
    return found


def _text(note: ctypes.c_void_p, key: bytes) -> str:
    buffer = ctypes.create_string_buffer(128)
    target = ctypes.cast(buffer, ctypes.POINTER(pdf.FPDF_WCHAR))
    length = pdf.FPDFAnnot_GetStringValue(note, key, target, len(buffer))
    return buffer.raw[: min(length, len(buffer))].decode("utf-16-le", "replace").rstrip("\0")
