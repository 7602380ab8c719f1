"""The objects of a PDF page, with those inside forms: text that can be hidden, and images.

Runs in the child only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdf

#: Forms inside forms that are searched; PDFium itself draws no deeper.
DEPTH = 16
#: Objects of a page above which the search ends; a dense page has 5,000.
MAX_OBJECTS = 50_000


class PageObjects:
    """The text objects and images of one page, at any depth of forms."""

    def __init__(self, page: pdfium.PdfPage) -> None:
        self._page = page  # keeps the objects alive
        self._seen = 0
        self._text: list[Any] = []
        #: The image objects.
        self.images: list[Any] = []
        self._walk(pdf.FPDFPage_CountObjects, pdf.FPDFPage_GetObject, page.raw, 0)

    @property
    def is_complete(self) -> bool:
        """Return whether all objects were found, so that `hidden_text` hides all text."""
        return self._seen <= MAX_OBJECTS

    @contextmanager
    def hidden_text(self) -> Iterator[None]:
        """Leave all text out of every rendering within the block."""
        for each in self._text:
            pdf.FPDFPageObj_SetIsActive(each, False)
        try:
            yield
        finally:
            for each in self._text:
                pdf.FPDFPageObj_SetIsActive(each, True)

    def _walk(
        self, count: Callable[[Any], int], get: Callable[[Any, int], Any], parent: Any, depth: int
    ) -> None:
        for index in range(count(parent)):
            self._seen += 1
            if not self.is_complete:
                return
            each = get(parent, index)
            kind = pdf.FPDFPageObj_GetType(each)
            if kind == pdf.FPDF_PAGEOBJ_TEXT:
                self._text.append(each)
            elif kind == pdf.FPDF_PAGEOBJ_IMAGE:
                self.images.append(each)
            elif kind == pdf.FPDF_PAGEOBJ_FORM and depth < DEPTH:
                self._walk(pdf.FPDFFormObj_CountObjects, pdf.FPDFFormObj_GetObject, each, depth + 1)
