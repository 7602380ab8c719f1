"""The text layer of a PDF page: its visible words with boxes. Runs in the child only.

A word that the rendered page does not show (white, covered, off the page, tiny, invisible) is never
part of the text.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdf
from PIL import Image

from . import refusals
from .blank import spread
from .text_rows import RowToken, clean

#: Characters of a page above which the file is an attack; a dense printed page has 8,000.
MAX_CHARACTERS = 200_000
#: Height in points below which a word is illegible.
TINY = 2.0
#: Least difference of grey levels between the darkest and lightest pixel of a visible word.
CONTRAST = 8
#: WHITE: colour component (0–255) from which a fill looks white. DARK_ENOUGH: mean grey level of a
#: background on which white is visible.
WHITE = 240
DARK_ENOUGH = 200
_BREAKS = {0x0A, 0x0D}
_GRID = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The visible words as lines in reading order, and the number of hidden words."""

    lines: tuple[tuple[RowToken, ...], ...]
    #: Words that are white, covered, tiny or off the page.
    hidden: int
    #: Words in the invisible text mode; scanners write them over the scanned image.
    invisible: int

    @property
    def text(self) -> str:
        """Return the visible words, one line of text for each line of the layer."""
        return "\n".join(" ".join(token.text for token in line) for line in self.lines)


class Placement:
    """Maps a page's own coordinates to fractions of the displayed page (crop and /Rotate)."""

    def __init__(self, page: pdfium.PdfPage) -> None:
        corner_x, corner_y = self._device(page, 0, 0)
        right_x, right_y = self._device(page, 100, 0)
        up_x, up_y = self._device(page, 0, 100)
        self._a, self._b = (right_x - corner_x) / 100, (right_y - corner_y) / 100
        self._c, self._d = (up_x - corner_x) / 100, (up_y - corner_y) / 100
        self._e, self._f = corner_x, corner_y

    @staticmethod
    def _device(page: pdfium.PdfPage, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        pdf.FPDF_PageToDevice(page, 0, 0, _GRID, _GRID, 0, x, y, across, down)
        return across.value / _GRID, down.value / _GRID

    def box(
        self, left: float, bottom: float, right: float, top: float
    ) -> tuple[float, float, float, float]:
        """Return (x0, y0, x1, y1) of a rectangle in points."""
        xs = sorted((self._a * left + self._c * bottom, self._a * right + self._c * top))
        ys = sorted((self._b * left + self._d * bottom, self._b * right + self._d * top))
        return xs[0] + self._e, ys[0] + self._f, xs[1] + self._e, ys[1] + self._f


def read_layer(page: pdfium.PdfPage, number: int, shown: Image.Image) -> Layer:
    """Return the text layer of `page` (1-based `number`), checked against its image `shown`."""
    textpage = page.get_textpage()
    count = textpage.count_chars()
    if count > MAX_CHARACTERS:
        raise refusals.too_many_characters(number, MAX_CHARACTERS)
    sight = _Sight(textpage, shown, page.get_height())
    placement = Placement(page)
    lines: list[list[RowToken]] = [[]]
    hidden = invisible = 0
    for word, start, end, breaks in _words(textpage, count):
        if clean(word):
            token = _token(textpage, placement, word, start, end)
            if sight.invisible(start):
                invisible += 1
            elif sight.shows(token, start):
                lines[-1].append(token)
            else:
                hidden += 1
        if breaks and lines[-1]:
            lines.append([])
    return Layer(
        lines=tuple(tuple(line) for line in lines if line), hidden=hidden, invisible=invisible
    )


def _words(textpage: pdfium.PdfTextPage, count: int) -> Iterator[tuple[str, int, int, bool]]:
    """Yield (word, first character, last character, whether a line ends here)."""
    unicode_of, raw = pdf.FPDFText_GetUnicode, textpage.raw
    codes = [unicode_of(raw, index) for index in range(count)]
    start: int | None = None
    chars: list[str] = []
    for index, code in enumerate([*codes, 0x0A]):
        char = chr(code) if code < 0x110000 else "\ufffd"
        if not (char.isspace() or code == 0):
            start = index if start is None else start
            chars.append(char)
            continue
        if start is not None:
            yield _join_surrogates("".join(chars)), start, index - 1, code in _BREAKS
            start, chars = None, []
        elif code in _BREAKS:
            yield "", index, index, True


def _join_surrogates(text: str) -> str:
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _token(
    textpage: pdfium.PdfTextPage, placement: Placement, word: str, start: int, end: int
) -> RowToken:
    boxes = []
    rectangle = pdf.FS_RECTF()
    for index in {start, end}:
        pdf.FPDFText_GetLooseCharBox(textpage, index, rectangle)
        boxes.append(
            placement.box(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
        )
    return RowToken(
        text=word,
        x0=min(box[0] for box in boxes),
        y0=min(box[1] for box in boxes),
        x1=max(box[2] for box in boxes),
        y1=max(box[3] for box in boxes),
    )


class _Sight:
    """Tells whether a word of one page is visible."""

    def __init__(self, textpage: pdfium.PdfTextPage, shown: Image.Image, height: float) -> None:
        self._textpage = textpage
        self._shown = shown
        self._height = height
        self._modes: dict[int, int] = {}

    def invisible(self, index: int) -> bool:
        """Return whether the character is in a text mode that paints nothing."""
        text_object = pdf.FPDFText_GetTextObject(self._textpage, index)
        if not text_object:
            return False
        address = ctypes.addressof(text_object.contents)
        if address not in self._modes:
            self._modes[address] = pdf.FPDFTextObj_GetTextRenderMode(text_object)
        return self._modes[address] in {
            pdf.FPDF_TEXTRENDERMODE_INVISIBLE,
            pdf.FPDF_TEXTRENDERMODE_CLIP,
        }

    def shows(self, token: RowToken, index: int) -> bool:
        """Return whether the image shows ink at `token`, or a light word on a dark ground."""
        across, down = (token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2
        if not (0 <= across <= 1 and 0 <= down <= 1):
            return False
        if (token.y1 - token.y0) * self._height < TINY:
            return False
        patch = self._patch(token)
        if spread(patch) < CONTRAST:
            return False
        if not self._light(index):
            return True
        levels = patch.tobytes()
        return sum(levels) < DARK_ENOUGH * len(levels)

    def _patch(self, token: RowToken) -> Image.Image:
        width, height = self._shown.size
        # The loose box reaches into the lines above and below, whose ink must not count. Only a
        # rule or a full stop has its ink at the edge of the box.
        letters = any(char.isalnum() for char in token.text)
        inset = 0.2 * (token.y1 - token.y0) if letters else 0.0
        left, top = int(max(0.0, token.x0) * width), int(max(0.0, token.y0 + inset) * height)
        right = max(left + 1, min(width, round(token.x1 * width)))
        bottom = max(top + 1, min(height, round((token.y1 - inset) * height)))
        return self._shown.crop((min(left, width - 1), min(top, height - 1), right, bottom))

    def _light(self, index: int) -> bool:
        red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
        if not pdf.FPDFText_GetFillColor(self._textpage, index, red, green, blue, alpha):
            return False
        return alpha.value < 16 or min(red.value, green.value, blue.value) >= WHITE
