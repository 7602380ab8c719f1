"""Annotations of a page: drawn into the page, or reported if a reader of the page never sees them.

Runs in the child only.
"""

from __future__ import annotations

from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdf

from .annotations import NOTHING_NOTED, Noted, read_annotations
from .ink import Fractions
from .text_layer import Placement
from .types import ATTACHMENTS, HIDDEN_TEXT

#: Flags of an annotation that no viewer shows on the screen (PDF 1.7, table 165).
_HIDDEN, _NO_VIEW = 1 << 1, 1 << 5
#: Annotations that are no content of the page: they open a window, or a link.
_NO_CONTENT = {pdf.FPDF_ANNOT_POPUP, pdf.FPDF_ANNOT_LINK}
#: Annotations with words or handwriting that a viewer draws even without an appearance.
_DRAWN_BY_VIEWERS = {pdf.FPDF_ANNOT_FREETEXT, pdf.FPDF_ANNOT_INK, pdf.FPDF_ANNOT_STAMP}


@dataclass(frozen=True, kw_only=True)
class Flat:
    """A page whose annotations are a part of its content."""

    page: pdfium.PdfPage
    #: What the annotations stated.
    noted: Noted = NOTHING_NOTED
    warnings: tuple[str, ...] = ()
    #: Annotations that viewers draw and PDFium does not, in fractions of the displayed page.
    undrawn: tuple[Fractions, ...] = ()


def flatten(document: pdfium.PdfDocument, index: int) -> Flat:
    """Return page `index` (0-based) with its fields and annotations as a part of its content.

    Annotations with a flag that hides them are left out, with a warning.
    """
    page = document[index]
    if pdf.FPDFPage_GetAnnotCount(page) == 0:
        return Flat(page=page)
    noted = read_annotations(page)
    warnings = _leave_out_hidden(page)
    undrawn = _undrawn(page)
    if pdf.FPDFPage_Flatten(page, pdf.FLAT_NORMALDISPLAY) == pdf.FLATTEN_SUCCESS:
        page.close()
        page = document[index]
    return Flat(page=page, noted=noted, warnings=warnings, undrawn=undrawn)


def _leave_out_hidden(page: pdfium.PdfPage) -> tuple[str, ...]:
    """Remove the annotations that no viewer shows, because PDFium flattens some of them."""
    warnings: set[str] = set()
    for index in reversed(range(pdf.FPDFPage_GetAnnotCount(page))):
        note = pdf.FPDFPage_GetAnnot(page, index)
        if not note:
            continue
        kind, flags = pdf.FPDFAnnot_GetSubtype(note), pdf.FPDFAnnot_GetFlags(note)
        drawn = bool(pdf.FPDFAnnot_HasKey(note, b"AP"))
        pdf.FPDFPage_CloseAnnot(note)
        if kind == pdf.FPDF_ANNOT_FILEATTACHMENT:
            warnings.add(ATTACHMENTS)
        if flags & (_HIDDEN | _NO_VIEW) and kind not in _NO_CONTENT:
            if drawn:
                warnings.add(HIDDEN_TEXT)
            pdf.FPDFPage_RemoveAnnot(page, index)
    return tuple(sorted(warnings))


def _undrawn(page: pdfium.PdfPage) -> tuple[Fractions, ...]:
    """Return the places of annotations with content and without an appearance."""
    placement = Placement(page)
    found: list[Fractions] = []
    for index in range(pdf.FPDFPage_GetAnnotCount(page)):
        note = pdf.FPDFPage_GetAnnot(page, index)
        if not note:
            continue
        kind = pdf.FPDFAnnot_GetSubtype(note)
        says = kind in _DRAWN_BY_VIEWERS or (
            kind == pdf.FPDF_ANNOT_WIDGET and pdf.FPDFAnnot_GetStringValue(note, b"V", None, 0) > 2
        )
        rectangle = pdf.FS_RECTF()
        if (
            says
            and not pdf.FPDFAnnot_HasKey(note, b"AP")
            and pdf.FPDFAnnot_GetRect(note, rectangle)
        ):
            found.append(
                placement.box(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
            )
        pdf.FPDFPage_CloseAnnot(note)
    return tuple(found)
