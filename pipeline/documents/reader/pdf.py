"""PDF files: opened by PDFium, rebuilt by pikepdf if PDFium refuses, read page by page.

No page is skipped: an unreadable page has `damage`, and never counts as blank. Runs in the child
only.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw
from PIL import Image

from . import refusals
from .annotations import NOTHING_NOTED, Noted, read_annotations
from .blank import is_uniform
from .check_glyphs import as_boxes
from .ocr import READ, Ocr, OcrResult, page_from_image
from .page_layout import in_given_order, lay_out
from .placed_words import turned
from .raised import settle
from .text_layer import Layer, read_layer
from .text_quality import plausible
from .text_rows import placed, reading_turn, right_to_left
from .types import (
    HIDDEN_TEXT,
    PARTLY_DAMAGED,
    RENDERED_SMALLER,
    REPAIRED,
    TEXT_LAYER_REJECTED,
    PageRead,
    ReaderLimits,
)

#: Resolution of the image that shows which words are visible; 1–3 ms a page.
LOOK_DPI = 100
#: A page that fits the limits only below this resolution is too large for any text to be legible.
SANE_DPI = 20
#: Share of the page from which images may contain text that the text layer lacks.
IMAGE_SHARE = 0.2
#: A layer over a scan with at most this many visible characters is a stamp or a fax header.
STAMP_CHARACTERS = 300
#: Operators that show text, an image or a form.
_SHOWS = re.compile(rb"(?<![A-Za-z])(Tj|TJ|Do|BI)(?![A-Za-z])")
#: The end mark must be within this many last bytes; fax servers append junk after the mark.
_TAIL_BYTES = 4096
#: The word in qpdf's warning when qpdf has to search the file for its objects.
_LOST = "reconstruct"
_PASSWORD = 4


class PageDamagedError(Exception):
    """The content of the page cannot be decoded."""


class PdfFile:
    """One open PDF."""

    def __init__(self, path: Path, limits: ReaderLimits) -> None:
        self._path = path
        self._limits = limits
        self._repaired: pdfium.PdfDocument | None = None
        self._repair_tried = False
        #: True if the file is truncated or had to be rebuilt; a part may be lost.
        self.was_repaired = _breaks_off(path)
        self._document = self._open()
        self.page_count = self._count()

    def _open(self) -> pdfium.PdfDocument:
        try:
            return pdfium.PdfDocument(self._path)
        except pdfium.PdfiumError as error:
            if getattr(error, "err_code", None) == _PASSWORD:
                return self._unlocked()
        repaired = self._rebuild()
        if repaired is None:
            raise refusals.broken()
        self.was_repaired = True
        return repaired

    def _unlocked(self) -> pdfium.PdfDocument:
        import pikepdf

        try:
            with pikepdf.open(self._path) as file:
                buffer = io.BytesIO()
                file.save(buffer, encryption=False)
            return pdfium.PdfDocument(buffer)
        except Exception:  # noqa: BLE001 - every failure to unlock means that the file needs a password
            raise refusals.encrypted() from None

    def _rebuild(self) -> pdfium.PdfDocument | None:
        """Return the file as pikepdf rebuilds it, or None. The rebuild is tried once."""
        if self._repair_tried:
            return self._repaired
        self._repair_tried = True
        import pikepdf

        try:
            with pikepdf.open(self._path) as file:
                buffer = io.BytesIO()
                file.save(buffer)
            self._repaired = pdfium.PdfDocument(buffer)
        except pikepdf.PasswordError:
            raise refusals.encrypted() from None
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a hostile file raises anything; it is not repairable
            self._repaired = None
        return self._repaired

    def _count(self) -> int:
        count = len(self._document)
        if count > self._limits.max_pages:
            # A page tree may claim any number of pages; the rebuilt file has really counted them.
            repaired = self._rebuild()
            if repaired is None or len(repaired) > self._limits.max_pages:
                raise refusals.too_many_pages(count, self._limits.max_pages)
            self._document, count = repaired, len(repaired)
            self.was_repaired = True
        if count == 0:
            repaired = self._rebuild()
            if repaired is None or len(repaired) == 0:
                raise refusals.no_pages()
            self._document, count = repaired, len(repaired)
            self.was_repaired = True
        return count

    def read(self, number: int, ocr: Ocr) -> PageRead:
        """Return page `number` (1-based)."""
        page, noted, repaired = self._page(number)
        found = _PageReader(page, noted, number, self._limits, ocr).read()
        if found.is_blank and raw.FPDFPage_CountObjects(page) == 0 and self._has_content(number):
            raise PageDamagedError
        if repaired or self.was_repaired:
            found = replace(found, warnings=(*found.warnings, REPAIRED))
        return found

    def render(self, number: int, dpi: int) -> Image.Image:
        """Return page `number` (1-based) in colour at `dpi`, or less if a limit requires."""
        page, _, _ = self._page(number)
        scale, _ = _scale(page, number, dpi, self._limits)
        image: Image.Image = page.render(scale=scale, may_draw_forms=False).to_pil()
        return image.convert("RGB")

    def _has_content(self, number: int) -> bool:
        """Return whether the page has visible content, or has lost such content."""
        import pikepdf

        try:
            with pikepdf.open(self._path) as file:
                page = file.pages[number - 1]
                page.contents_coalesce()
                contents = page.obj.get("/Contents")
                if contents is None:
                    # In a truncated file, pages may survive while their content is gone.
                    return self.was_repaired or any(
                        _LOST in str(said) for said in file.get_warnings()
                    )
                return bool(_SHOWS.search(contents.read_bytes()))
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - content that cannot be decoded is still content
            return True

    def _page(self, number: int) -> tuple[pdfium.PdfPage, Noted, bool]:
        try:
            return *_flattened(self._document, number - 1), False
        except pdfium.PdfiumError:
            repaired = self._rebuild()
            if repaired is None or number > len(repaired):
                raise
            return *_flattened(repaired, number - 1), True


def _breaks_off(path: Path) -> bool:
    """Return whether the end mark of a complete PDF is missing."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return b"%%EOF" not in file.read()


def _flattened(document: pdfium.PdfDocument, index: int) -> tuple[pdfium.PdfPage, Noted]:
    """Return the page with its annotations as part of its text, and what they stated."""
    page = document[index]
    if raw.FPDFPage_GetAnnotCount(page) == 0:
        return page, NOTHING_NOTED
    noted = read_annotations(page)
    if raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) != raw.FLATTEN_SUCCESS:
        return page, noted
    page.close()
    return document[index], noted


def _scale(
    page: pdfium.PdfPage, number: int, dpi: float, limits: ReaderLimits
) -> tuple[float, bool]:
    """Return the scale for `dpi` or the largest allowed scale, and whether `dpi` was reduced."""
    width, height = page.get_size()
    area = width * height
    if not 0 < area < float("inf"):
        raise refusals.too_many_pixels(number, limits.max_pixels_per_page)
    largest = (limits.max_pixels_per_page / area) ** 0.5
    if largest < SANE_DPI / 72:
        raise refusals.too_many_pixels(number, limits.max_pixels_per_page)
    # A page of a few points by many would round up to far more pixels than its area suggests.
    largest = min(largest, 20_000 / max(width, height))
    return min(dpi / 72, largest), dpi / 72 > largest


class _PageReader:
    """Decides how to read one page."""

    def __init__(
        self,
        page: pdfium.PdfPage,
        noted: Noted,
        number: int,
        limits: ReaderLimits,
        ocr: Ocr,
    ) -> None:
        self._page = page
        self._noted = noted
        self._number = number
        self._limits = limits
        self._ocr = ocr
        self._warnings: list[str] = []

    def read(self) -> PageRead:
        """Read the page.

        1. Render the page, and keep the words of the text layer that the image shows.
        2. A plausible layer that is not a stamp over a scan is the text.
        3. Otherwise a uniform image is blank, if everything on the page could be decoded.
        4. Otherwise OCR reads the image; the layer wins if it contains as much.
        """
        shown = self._image(LOOK_DPI)
        layer = read_layer(self._page, self._number, shown, self._noted)
        believed = plausible(layer.text)
        share = self._image_share()
        if layer.hidden or (layer.invisible and share < IMAGE_SHARE):
            self._warnings.append(HIDDEN_TEXT)
        if believed and share < IMAGE_SHARE:
            return self._from_layer(layer)
        if is_uniform(shown) and not layer.lines:
            return self._from_image(shown, None)
        image = self._image(self._limits.dpi, warn=True)
        reading = self._ocr.read(image)
        if believed and _holds_as_much(layer, reading):
            return self._from_layer(layer)
        if layer.lines or layer.invisible:
            self._warnings.append(TEXT_LAYER_REJECTED)
        return self._from_image(image, reading)

    def _from_layer(self, layer: Layer) -> PageRead:
        turn = reading_turn(layer.lines)
        width, height = self._page.get_size()
        lines = [[placed(token, width, height, turn) for token in line] for line in layer.lines]
        tokens = [token for line in layer.lines for token in line]
        if right_to_left(tokens):
            text, words = in_given_order(lines)
        else:
            words_in = as_boxes(settle([word for line in lines for word in line]))
            text, words = lay_out(words_in, turned(layer.marks, width, height, turn))
        return PageRead(
            number=self._number,
            text=text,
            source="text_layer",
            width=width,
            height=height,
            rotation=turn,
            words=words,
            warnings=tuple(self._warnings),
        )

    def _from_image(self, image: Image.Image, reading: OcrResult | None) -> PageRead:
        width, height = self._page.get_size()
        if not self._all_decodes():
            if reading is None or not reading.lines:
                raise PageDamagedError
            self._warnings.append(PARTLY_DAMAGED)
        return page_from_image(
            self._number, image, reading, width=width, height=height, warnings=self._warnings
        )

    def _image(self, dpi: float, *, warn: bool = False) -> Image.Image:
        scale, smaller = _scale(self._page, self._number, dpi, self._limits)
        if smaller and warn:
            self._warnings.append(RENDERED_SMALLER)
        bitmap = self._page.render(scale=scale, grayscale=True, may_draw_forms=False)
        image: Image.Image = bitmap.to_pil()
        return image.convert("L")

    def _images(self) -> Iterator[Any]:
        yield from self._page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=4)

    def _image_share(self) -> float:
        """Return the share of the page that images cover (0–1, overlaps counted twice)."""
        width, height = self._page.get_size()
        covered = 0.0
        for image in self._images():
            left, bottom, right, top = image.get_bounds()
            covered += max(0.0, right - left) * max(0.0, top - bottom)
        return min(1.0, float(covered / (width * height)))

    def _all_decodes(self) -> bool:
        """Return whether PDFium could decode all images of the page."""
        for image in self._images():
            width, height = image.get_px_size()
            if width * height > self._limits.max_pixels_per_page:
                continue
            try:
                image.get_bitmap()
            except pdfium.PdfiumError:
                return False
        return True


def _holds_as_much(layer: Layer, reading: OcrResult) -> bool:
    """Return whether the layer is more than a stamp and has about as many words as OCR read."""
    of_layer = sum(len(line) for line in layer.lines)
    if len("".join(layer.text.split())) <= STAMP_CHARACTERS:
        return len(reading.tokens) <= of_layer
    read = sum((token.confidence or 0.0) >= READ for token in reading.tokens)
    return read <= 1.25 * of_layer + 10
