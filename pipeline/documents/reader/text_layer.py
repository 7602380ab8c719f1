"""The text layer of a PDF page: its visible words and marks. Runs in the child only.

A word that the rendered page does not show (white, covered, off the page, tiny, invisible) is never
part of the text.
"""

from __future__ import annotations

import ctypes
import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pypdfium2 as pdfium
import pypdfium2.raw as pdf
from PIL import Image

from . import refusals
from .annotations import NOTHING_NOTED, Noted
from .check_glyphs import named
from .drawings import Shape, marks_of, shapes_of
from .ink import Fractions
from .placed_words import CheckBox, Marks, Rule
from .sight import Sight
from .text_ink import SharpInk, TextInk
from .text_rows import RowToken, clean
from .unseen import HiddenWhy, Unseen, without_shadows

#: Characters of a page above which the file is an attack; a dense printed page has 8,000.
MAX_CHARACTERS = 200_000
#: Height in points of the tallest check box among the form fields.
TALLEST_FIELD = 60.0
#: A word with the break right after the word, or a break on its own. PDFium gives 0 for a
#: character without a code.
_WORD_OR_BREAK = re.compile(r"(?P<word>[^\s\0]+)(?P<end>[\n\r]?)|[\n\r]")
_GRID = 1_000_000
#: Rows of a page in which words are looked up.
_ROWS = 200


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The visible words as lines in reading order, and the words that a person cannot see."""

    lines: tuple[tuple[RowToken, ...], ...]
    #: Lines, frames and check boxes in points of the displayed page.
    marks: Marks
    unseen: tuple[Unseen, ...] = ()

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

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return (x, y) of a point."""
        return self._a * x + self._c * y + self._e, self._b * x + self._d * y + self._f

    def box(
        self, left: float, bottom: float, right: float, top: float
    ) -> tuple[float, float, float, float]:
        """Return (x0, y0, x1, y1) of a rectangle in points."""
        xs = sorted((self._a * left + self._c * bottom, self._a * right + self._c * top))
        ys = sorted((self._b * left + self._d * bottom, self._b * right + self._d * top))
        return xs[0] + self._e, ys[0] + self._f, xs[1] + self._e, ys[1] + self._f

    def matrix(
        self, width: float, height: float
    ) -> tuple[float, float, float, float, float, float]:
        """Return the matrix to points of the displayed page of `width` × `height` points."""
        return (
            self._a * width,
            self._b * height,
            self._c * width,
            self._d * height,
            self._e * width,
            self._f * height,
        )


def read_layer(
    page: pdfium.PdfPage,
    number: int,
    shown: Image.Image,
    noted: Noted = NOTHING_NOTED,
    ink: TextInk | None = None,
    sharp: SharpInk | None = None,
) -> Layer:
    """Return the text layer of `page` (1-based `number`), checked against its image `shown`.

    `noted` holds what the annotations of the page stated before they became part of the page.
    `ink` is the ink of the page's text; a word without ink of its own is hidden. `sharp` measures
    the contrast of pale words.
    """
    textpage = page.get_textpage()
    count = textpage.count_chars()
    if count > MAX_CHARACTERS:
        raise refusals.too_many_characters(number, MAX_CHARACTERS)
    width, height = page.get_size()
    sight = Sight(textpage, shown, height, ink, sharp)
    placement = Placement(page)
    fonts = _Fonts(textpage)
    tokens = _Tokens(textpage, placement, fonts)
    lines: list[list[RowToken]] = [[]]
    unseen: list[Unseen] = []
    doubted: list[tuple[list[RowToken], Unseen]] = []
    for word, start, end, breaks in _words(textpage, count):
        if clean(word):
            parts = [
                tokens.of(part, first, last) for part, first, last in fonts.parts(word, start, end)
            ]
            whole = _whole(parts)
            why = sight.why_unseen(whole, start, parts[0].size)
            if why is None:
                lines[-1].extend(parts)
            else:
                hidden = Unseen(text=clean(word), why=why, box=_box(whole))
                if (
                    why is HiddenWhy.FAINT
                    and ink is not None
                    and ink.is_strong(hidden.text, hidden.box)
                ):
                    lines[-1].extend(parts)
                    doubted.append((parts, hidden))
                else:
                    unseen.append(hidden)
        if breaks and lines[-1]:
            lines.append([])
    unseen += _borrowed(lines, doubted)
    return Layer(
        lines=tuple(tuple(line) for line in lines if line),
        marks=_marks(page, placement, noted, width, height),
        unseen=without_shadows(unseen, [token for line in lines for token in line]),
    )


def _borrowed(
    lines: list[list[RowToken]], doubted: Sequence[tuple[list[RowToken], Unseen]]
) -> list[Unseen]:
    """Take the pale words out of `lines` whose strong ink is the ink of other words; return them.

    PDFium gives a word with a pale shadow once, as the shadow: such a word has the place alone.
    """
    if not doubted:
        return []
    pale = {id(token) for parts, _ in doubted for token in parts}
    others: defaultdict[int, list[Fractions]] = defaultdict(list)
    for token in (token for line in lines for token in line if id(token) not in pale):
        for row in range(int(token.y0 * _ROWS), int(token.y1 * _ROWS) + 1):
            others[row].append(_box(token))
    found = []
    for parts, hidden in doubted:
        row = int((hidden.box[1] + hidden.box[3]) / 2 * _ROWS)
        if any(_overlap(hidden.box, other) for other in others[row]):
            found.append((parts, hidden))
    gone = {id(token) for parts, _ in found for token in parts}
    for line in lines:
        line[:] = [token for token in line if id(token) not in gone]
    return [hidden for _, hidden in found]


def _overlap(one: Fractions, other: Fractions) -> bool:
    """Return whether two words share a fifth of the narrower word."""
    shared = min(one[2], other[2]) - max(one[0], other[0])
    return shared > 0.2 * min(one[2] - one[0], other[2] - other[0])


def _box(token: RowToken) -> Fractions:
    return token.x0, token.y0, token.x1, token.y1


def _marks(
    page: pdfium.PdfPage, placement: Placement, noted: Noted, width: float, height: float
) -> Marks:
    shapes = shapes_of(page, placement.matrix(width, height))
    fields = []
    for rectangle, ticked in noted.fields:
        x0, y0, x1, y1 = placement.box(*rectangle)
        fields.append(
            CheckBox(
                left=x0 * width,
                top=y0 * height,
                right=x1 * width,
                bottom=y1 * height,
                ticked=ticked,
                box=(x0, y0, x1, y1),
                is_field=True,
            )
        )
    fields.sort(key=lambda field: field.top)
    tops = [field.top for field in fields]
    drawn = [s for s in shapes if not (fields and _drawn_in(s, fields, tops))]
    marks = marks_of(drawn, width, height)
    struck = []
    for rectangle in noted.struck:
        x0, y0, x1, y1 = placement.box(*rectangle)
        struck.append(Rule(left=x0 * width, top=y0 * height, right=x1 * width, bottom=y1 * height))
    return replace(marks, check_boxes=(*fields, *marks.check_boxes), struck=tuple(struck))


def _drawn_in(shape: Shape, fields: Sequence[CheckBox], tops: Sequence[float]) -> bool:
    """Return whether a shape is the appearance of a form field; `fields` are sorted by `tops`."""
    left, top, right, bottom = shape.bounds
    return any(
        left >= field.left - 2 and right <= field.right + 2 and bottom <= field.bottom + 2
        for field in fields[bisect_left(tops, top - TALLEST_FIELD) : bisect_right(tops, top + 2)]
    )


def _words(textpage: pdfium.PdfTextPage, count: int) -> Iterator[tuple[str, int, int, bool]]:
    """Yield (word, first character, last character, whether a line ends here)."""
    unicode_of, raw = pdf.FPDFText_GetUnicode, textpage.raw
    codes = [unicode_of(raw, index) for index in range(count)]
    text = "".join([chr(code) if code < 0x110000 else "\ufffd" for code in codes])
    for found in _WORD_OR_BREAK.finditer(text + "\n"):
        word, start = found["word"], found.start()
        if word is None:
            yield "", start, start, True
        else:
            yield _join_surrogates(word), start, start + len(word) - 1, bool(found["end"])


def _join_surrogates(text: str) -> str:
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Fonts:
    """Size and kind of the type of each text object of a page."""

    def __init__(self, textpage: pdfium.PdfTextPage) -> None:
        self._raw = textpage.raw
        self._objects: dict[int, tuple[float, bool, str]] = {}
        self._fonts: dict[int, tuple[bool, str]] = {}

    def of(self, index: int) -> tuple[float, bool, str]:
        """Return size in points (0 if unknown), boldness, and font name of a character."""
        text_object = pdf.FPDFText_GetTextObject(self._raw, index)
        if not text_object:
            return 0.0, False, ""
        address = ctypes.addressof(text_object.contents)
        if address not in self._objects:
            matrix = pdf.FS_MATRIX()
            size = float(pdf.FPDFText_GetFontSize(self._raw, index))
            if pdf.FPDFText_GetMatrix(self._raw, index, matrix):
                size *= math.hypot(matrix.c, matrix.d)
            self._objects[address] = (size, *self._font(text_object))
        return self._objects[address]

    def parts(self, word: str, start: int, end: int) -> list[tuple[str, int, int]]:
        """Split a word where the size or the baseline of its characters changes."""
        if end - start + 1 != len(word) or self._object(start) == self._object(end):
            return [(word, start, end)]
        found: list[tuple[str, int, int]] = []
        begin, (size, base) = start, self._type(start)
        for index in range(start + 1, end + 1):
            here, there = self._type(index)
            if abs(here - size) < 0.1 * size and abs(there - base) < 0.06 * size:
                continue
            found.append((word[begin - start : index - start], begin, index - 1))
            begin, size, base = index, here, there
        found.append((word[begin - start :], begin, end))
        return found

    def _object(self, index: int) -> int:
        text_object = pdf.FPDFText_GetTextObject(self._raw, index)
        return ctypes.addressof(text_object.contents) if text_object else 0

    def _type(self, index: int) -> tuple[float, float]:
        """Return the size of a character, and the place of its baseline across the text."""
        x, y = ctypes.c_double(), ctypes.c_double()
        pdf.FPDFText_GetCharOrigin(self._raw, index, x, y)
        angle = pdf.FPDFText_GetCharAngle(self._raw, index)
        return self.of(index)[0], y.value * math.cos(angle) - x.value * math.sin(angle)

    def _font(self, text_object: ctypes.c_void_p) -> tuple[bool, str]:
        font = pdf.FPDFTextObj_GetFont(text_object)
        if not font:
            return False, ""
        address = ctypes.addressof(font.contents)
        if address not in self._fonts:
            buffer = ctypes.create_string_buffer(128)
            length = pdf.FPDFFont_GetBaseFontName(font, buffer, len(buffer))
            name = buffer.raw[: min(length, len(buffer))].decode("utf-8", "replace").rstrip("\0")
            bold = "bold" in name.lower() or "black" in name.lower()
            self._fonts[address] = bold, name
        return self._fonts[address]


class _Tokens:
    """Gives the words of a page their place and type."""

    def __init__(self, textpage: pdfium.PdfTextPage, placement: Placement, fonts: _Fonts) -> None:
        self._raw = textpage.raw
        self._placement = placement
        self._fonts = fonts
        # PDFium writes its answers here. New memory for each word costs more than the answers.
        self._rectangle = pdf.FS_RECTF()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()

    def of(self, word: str, start: int, end: int) -> RowToken:
        """Return the word of the characters from `start` to `end`."""
        x0s, y0s, x1s, y1s = zip(*(self._box(index) for index in {start, end}), strict=True)
        pdf.FPDFText_GetCharOrigin(self._raw, start, self._x, self._y)
        size, bold, font = self._fonts.of(start)
        return RowToken(
            text=named(word, font),
            x0=min(x0s),
            y0=min(y0s),
            x1=max(x1s),
            y1=max(y1s),
            origin=self._placement.point(self._x.value, self._y.value),
            size=size,
            bold=bold,
        )

    def _box(self, index: int) -> Fractions:
        place = self._rectangle
        pdf.FPDFText_GetLooseCharBox(self._raw, index, place)
        return self._placement.box(place.left, place.bottom, place.right, place.top)


def _whole(parts: Sequence[RowToken]) -> RowToken:
    if len(parts) == 1:
        return parts[0]
    return RowToken(
        text="".join(part.text for part in parts),
        x0=min(part.x0 for part in parts),
        y0=min(part.y0 for part in parts),
        x1=max(part.x1 for part in parts),
        y1=max(part.y1 for part in parts),
    )
