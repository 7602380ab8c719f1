"""PDF files: opened by PDFium, rebuilt by pikepdf if PDFium refuses, read page by page.

No page is skipped: an unreadable page has `damage`, and never counts as blank. Runs in the child
only.
"""

from __future__ import annotations

import ctypes
import io
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as raw
from PIL import Image

from . import enclosed, refusals
from .blank import is_uniform
from .block_reader import BlockReader
from .check_glyphs import as_boxes
from .hidden_annotations import Flat, flatten
from .ink import LOOK_DPI, Fractions, covered, patches, strokes
from .ink_reading import FOR_INK, read_ink, read_scan, with_ink, with_unread
from .ocr import Ocr, OcrResult, page_from_image
from .page_layout import in_given_order, lay_out
from .page_objects import PageObjects
from .placed_words import turned
from .raised import settle
from .text_ink import SHARP_DPI, SharpInk, TextInk
from .text_layer import Layer, read_layer
from .text_quality import plausible, spoken
from .text_rows import placed, reading_turn, right_to_left
from .ticks import TICK_ROOM, check_boxes, tick_boxes, tick_words
from .types import (
    PARTLY_DAMAGED,
    RENDERED_SMALLER,
    REPAIRED,
    TEXT_LAYER_REJECTED,
    PageRead,
    ReaderLimits,
)
from .unseen import Unseen, hidden, pale, with_hidden

#: A page that fits the limits only below this resolution is too large for any text to be legible.
SANE_DPI = 20
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
        _draw_fields(self._document)
        self._warnings = enclosed.check(self._document, path)
        self._blocks: BlockReader | None = None
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
            _draw_fields(self._repaired)
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
        flat, repaired = self._page(number)
        warnings = [*flat.warnings, *(self._warnings if number == 1 else ())]
        if self._blocks is None:
            self._blocks = BlockReader(ocr)
        found = _PageReader(flat, number, self._limits, self._blocks).read()
        found = with_unread(found, flat.undrawn)
        if self.page_count == 1 and enclosed.is_cover(found.text):
            raise refusals.dynamic_form()
        empty = raw.FPDFPage_CountObjects(flat.page) == 0
        if found.is_blank and empty and self._has_content(number):
            raise PageDamagedError
        if repaired or self.was_repaired:
            warnings = [*warnings, REPAIRED]
        return replace(found, warnings=tuple(dict.fromkeys((*found.warnings, *warnings))))

    def render(self, number: int, dpi: int) -> Image.Image:
        """Return page `number` (1-based) in colour at `dpi`, or less if a limit requires."""
        page = self._page(number)[0].page
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

    def _page(self, number: int) -> tuple[Flat, bool]:
        """Return page `number`, and whether only the rebuilt file has the page."""
        try:
            return flatten(self._document, number - 1), False
        except pdfium.PdfiumError:
            repaired = self._rebuild()
            if repaired is None or number > len(repaired):
                raise
            return flatten(repaired, number - 1), True


def _draw_fields(document: pdfium.PdfDocument) -> None:
    """Let PDFium draw the fields that have a value and no appearance, as every viewer does."""
    if document.get_formtype() != raw.FORMTYPE_NONE:
        with suppress(pdfium.PdfiumError):
            document.init_forms()


def _breaks_off(path: Path) -> bool:
    """Return whether the end mark of a complete PDF is missing."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return b"%%EOF" not in file.read()


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

    def __init__(self, flat: Flat, number: int, limits: ReaderLimits, blocks: BlockReader) -> None:
        self._page = flat.page
        self._noted = flat.noted
        self._number = number
        self._limits = limits
        self._blocks = blocks
        self._objects = PageObjects(flat.page)
        self._until = time.process_time() + FOR_INK * limits.seconds_per_page
        self._warnings: list[str] = []
        self._unseen: Sequence[Unseen] = ()

    def read(self) -> PageRead:
        """Read the page, with the places of its hidden words."""
        return with_hidden(self._read(), self._unseen)

    def _read(self) -> PageRead:
        """Read the words that a person sees.

        1. Render the page with and without its text, and keep the words that leave ink.
        2. A plausible layer is the text. OCR adds the words of the ink that the layer lacks.
        3. Otherwise a uniform image is blank, if everything on the page could be decoded.
        4. Otherwise OCR reads the image.
        """
        look = self._image(LOOK_DPI)
        bare = self._bare(LOOK_DPI) if self._objects.is_complete else None
        text_ink = TextInk(look, bare) if bare else None
        sharp = SharpInk(self._in_colour) if bare else None
        layer = spoken(read_layer(self._page, self._number, look, self._noted, text_ink, sharp))
        self._unseen = layer.unseen
        if plausible(layer.text):
            return self._from_layer(layer, look, bare, text_ink)
        faint = pale(layer.unseen) if bare else []
        if faint and bare:
            look.paste(bare, mask=covered(look.size, faint).image())
        if is_uniform(look) and not layer.lines:
            return self._from_image(look, None)
        image = self._image(self._limits.dpi, warn=True)
        if faint:
            image = self._without(faint, 1, show_other_text=True)
        reading, ink = read_scan(image, self._blocks, until=self._until)
        if layer.lines or layer.unseen:
            self._warnings.append(TEXT_LAYER_REJECTED)
        self._unseen = hidden(layer.unseen, reading.tokens, bare)
        return with_ink(self._from_image(image, reading), ink)

    def _from_layer(
        self, layer: Layer, look: Image.Image, bare: Image.Image | None, text_ink: TextInk | None
    ) -> PageRead:
        width, height = self._page.get_size()
        turn = reading_turn(layer.lines)
        tokens = [token for line in layer.lines for token in line]
        lines = [[placed(token, width, height, turn) for token in line] for line in layer.lines]
        boxes = [(token.x0, token.y0, token.x1, token.y1) for token in tokens]
        boxes += pale(layer.unseen)
        if bare is None or text_ink is None:
            ink, spilled = strokes(look).without(covered(look.size, boxes)), True
        else:
            beside = text_ink.outside(boxes)
            ink, spilled = strokes(bare).also(beside), bool(patches(beside))
        known = tick_words(as_boxes(settle([word for line in lines for word in line])), ink)
        marks = replace(layer.marks, check_boxes=tick_boxes(layer.marks.check_boxes, ink))
        found = read_ink(
            ink.without(covered(look.size, check_boxes(known, marks), TICK_ROOM)),
            bare or look,
            lambda factor: self._without(boxes, factor, show_other_text=spilled),
            self._blocks,
            turn=turn,
            until=self._until,
        )
        self._unseen = hidden(layer.unseen, found.tokens, bare)
        if not self._all_decodes():
            self._warnings.append(PARTLY_DAMAGED)
        read = found.words(width, height)
        if right_to_left(tokens):
            text, words = in_given_order([*lines, read])
        else:
            text, words = lay_out([*known, *read], turned(marks, width, height, turn))
        page = PageRead(
            number=self._number,
            text=text,
            source="mixed" if found.tokens else "text_layer",
            width=width,
            height=height,
            rotation=turn,
            words=words,
            warnings=tuple(self._warnings),
        )
        return with_ink(page, found)

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

    def _in_colour(self) -> tuple[Image.Image, Image.Image]:
        """Return the page in colour, with and without its text, sharp enough for small print."""
        scale, _ = _scale(self._page, self._number, SHARP_DPI, self._limits)

        def drawn() -> Image.Image:
            image: Image.Image = self._page.render(scale=scale, may_draw_forms=False).to_pil()
            return image.convert("RGB")

        with self._objects.hidden_text():
            bare = drawn()
        return drawn(), bare

    def _bare(self, dpi: float) -> Image.Image:
        """Return the image of the page without its text."""
        with self._objects.hidden_text():
            return self._image(dpi)

    def _without(
        self, boxes: Sequence[Fractions], factor: int, *, show_other_text: bool
    ) -> Image.Image:
        """Return the page at `factor` times the resolution of OCR, without the words at `boxes`."""
        bare = self._bare(factor * self._limits.dpi)
        if not show_other_text:
            return bare
        whole = self._image(factor * self._limits.dpi)
        whole.paste(bare, mask=covered(whole.size, boxes).image())
        return whole

    def _all_decodes(self) -> bool:
        """Return whether PDFium could decode all images of the page."""
        for image in self._objects.images:
            size = ctypes.c_uint(), ctypes.c_uint()
            raw.FPDFImageObj_GetImagePixelSize(image, *size)
            if size[0].value * size[1].value > self._limits.max_pixels_per_page:
                continue
            bitmap = raw.FPDFImageObj_GetBitmap(image)
            if not bitmap:
                return False
            raw.FPDFBitmap_Destroy(bitmap)
        return True
