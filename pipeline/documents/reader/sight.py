"""Whether a person sees a word of the text layer, and why not. Runs in the child only.

Images of the page with and without its text decide. The properties of the text name the reason, and
decide where the image cannot: other text at the same place must not lend its ink.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdf
from PIL import Image

from .contrast import LEAST_RATIO, Colour, ratio
from .ink import Fractions
from .levels import Levels
from .text_ink import CONTRAST, SharpInk, TextInk, inset_of
from .text_rows import RowToken
from .unseen import HiddenWhy

#: Size in points below which type is illegible.
TINY = 2.0
#: Size in points from which pale type is legible: a watermark.
LARGE = 30.0
#: WHITE: colour component (0–255) from which a fill looks white. DARK_ENOUGH: mean grey level of a
#: background on which white is visible.
WHITE = 240
DARK_ENOUGH = 200
#: Colour component (0–255) below which a fill is dark enough for any paper.
_DARK = 128
#: Share (0–255) of opacity below which text counts as transparent.
_CLEAR = 16
_FILLED = {pdf.FPDF_TEXTRENDERMODE_FILL, pdf.FPDF_TEXTRENDERMODE_FILL_CLIP}
_UNPAINTED = {pdf.FPDF_TEXTRENDERMODE_INVISIBLE, pdf.FPDF_TEXTRENDERMODE_CLIP}


@dataclass(frozen=True, kw_only=True)
class _Look:
    """How a text object paints its letters."""

    mode: int = pdf.FPDF_TEXTRENDERMODE_FILL
    #: Red, green and blue (0–255) of the fill; None for a pattern or an outline.
    fill: Colour | None = None
    alpha: int = 255
    #: Width of the type relative to its height.
    width: float = 1.0


class Sight:
    """Tells whether a word of one page is visible."""

    def __init__(
        self,
        textpage: pdfium.PdfTextPage,
        shown: Image.Image,
        height: float,
        ink: TextInk | None,
        sharp: SharpInk | None,
    ) -> None:
        self._textpage = textpage
        self._size = shown.size
        # The box of a word at the edge of the page reaches one pixel beyond the page.
        self._shown = Levels(shown.crop((0, 0, shown.width + 1, shown.height + 1)))
        self._height = height
        self._ink = ink
        self._sharp = sharp
        self._looks: dict[int, _Look] = {}

    def why_unseen(self, token: RowToken, index: int, size: float) -> HiddenWhy | None:
        """Return why the word of a character is not seen, or None; `size` is in points."""
        look = self._look(index)
        if look.mode in _UNPAINTED:
            return HiddenWhy.UNPAINTED
        across, down = (token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2
        if not (0 <= across <= 1 and 0 <= down <= 1):
            return HiddenWhy.OFF_PAGE
        if self._is_tiny(token, size, look):
            return HiddenWhy.TINY
        box = token.x0, token.y0, token.x1, token.y1
        if not self._leaves_ink(token, look):
            return (
                HiddenWhy.FAINT
                if self._has_the_colour_of_its_ground(look, box)
                else HiddenWhy.COVERED
            )
        return HiddenWhy.FAINT if size < LARGE and self._is_faint(token.text, look, box) else None

    def _is_tiny(self, token: RowToken, size: float, look: _Look) -> bool:
        if size <= 0:
            return (token.y1 - token.y0) * self._height < TINY
        return size * min(1.0, look.width) < TINY

    def _leaves_ink(self, token: RowToken, look: _Look) -> bool:
        """Return whether the image shows ink at `token`, or a light word on a dark ground."""
        if not _has_contrast(self._rows(token)):
            return False
        if self._ink and not self._ink.shows(token.text, (token.x0, token.y0, token.x1, token.y1)):
            return False
        if look.alpha >= _CLEAR and (look.fill is None or min(look.fill) < WHITE):
            return True
        levels = b"".join(self._rows(token))
        return sum(levels) < DARK_ENOUGH * len(levels)

    def _has_the_colour_of_its_ground(self, look: _Look, box: Fractions) -> bool:
        if look.fill is None:
            return False
        if self._sharp is None:
            return look.alpha < _CLEAR or min(look.fill) >= WHITE
        ground = self._sharp.ground(box)
        return ratio(_mixed(look.fill, ground, look.alpha / 255), ground) < LEAST_RATIO

    def _is_faint(self, text: str, look: _Look, box: Fractions) -> bool:
        """Return whether the contrast of a word with its ground is too low to be seen."""
        if self._ink is None or self._sharp is None:
            return False
        is_dark = look.fill is None or max(look.fill) < _DARK
        if self._ink.is_strong(text, box) and (is_dark or self._ink.differs(look.fill, box)):
            return False
        if self._has_the_colour_of_its_ground(look, box):
            return True
        return self._sharp.contrast(text, box) < LEAST_RATIO

    def _rows(self, token: RowToken) -> Iterator[bytes]:
        width, height = self._size
        inset = inset_of(token.text) * (token.y1 - token.y0)
        left, top = int(max(0.0, token.x0) * width), int(max(0.0, token.y0 + inset) * height)
        right = max(left + 1, min(width, round(token.x1 * width)))
        bottom = max(top + 1, min(height, round((token.y1 - inset) * height)))
        return self._shown.rows((min(left, width - 1), min(top, height - 1), right, bottom))

    def _look(self, index: int) -> _Look:
        text_object = pdf.FPDFText_GetTextObject(self._textpage, index)
        if not text_object:
            return _Look()
        address = ctypes.addressof(text_object.contents)
        if address not in self._looks:
            self._looks[address] = self._look_of(text_object, index)
        return self._looks[address]

    def _look_of(self, text_object: ctypes.c_void_p, index: int) -> _Look:
        mode = pdf.FPDFTextObj_GetTextRenderMode(text_object)
        red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
        matrix = pdf.FS_MATRIX()
        width = 1.0
        if pdf.FPDFText_GetMatrix(self._textpage, index, matrix):
            tall = math.hypot(matrix.c, matrix.d)
            width = math.hypot(matrix.a, matrix.b) / tall if tall else 1.0
        if not (
            mode in _FILLED
            and pdf.FPDFText_GetFillColor(self._textpage, index, red, green, blue, alpha)
        ):
            return _Look(mode=mode, width=width)
        fill = (red.value, green.value, blue.value)
        return _Look(mode=mode, fill=fill, alpha=alpha.value, width=width)


def _has_contrast(rows: Iterable[bytes]) -> bool:
    """Return whether the levels of these rows differ; a few rows of a printed word show that."""
    darkest, lightest = 255, 0
    for row in rows:
        darkest, lightest = min(darkest, min(row)), max(lightest, max(row))
        if lightest - darkest >= CONTRAST:
            return True
    return False


def _mixed(colour: Colour, ground: Colour, opacity: float) -> Colour:
    """Return the colour that shows if a colour of `opacity` (0–1) lies on a ground."""
    red, green, blue = (
        opacity * one + (1 - opacity) * other for one, other in zip(colour, ground, strict=True)
    )
    return red, green, blue
