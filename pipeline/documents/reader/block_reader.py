"""OCR of one block of a page, such as a picture or outlined text. Runs in the child only."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from PIL import Image, ImageOps, ImageStat

from .bits import bits
from .ink import Box, Fractions, components
from .ocr import DISAGREEMENT, LONGEST, READ, Ocr
from .placed_words import PageWord, upright
from .text_rows import RowToken

#: Processor time in seconds for one block; a full page of small type takes 2.
BLOCK_SECONDS = 5.0
#: Height in pixels of a word below which a block is read again at FINER times the resolution. The
#: point of "6.8" was lost at 14 pixels, which is 7 pt type at 200 dpi.
SMALL = 18
FINER = 2
#: White pixels around a block; Tesseract misses words at the edge of an image.
MARGIN = 24
#: Ground of this mean grey level or darker carries light words.
_DARK_GROUND = 115
#: Width and height in pixels of the least dark ground: a word of 6 pt type at 200 dpi.
_GROUND = 60, 24
_KNOWN_BLOCKS = 64


@dataclass(frozen=True, kw_only=True)
class BlockWord:
    """A word of a block: its place on the page, and on the straightened, upright block."""

    #: The word with its box in fractions of the page as it is displayed.
    token: RowToken
    #: The word in pixels of the straightened block.
    word: PageWord


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block as OCR read it: its lines, and the clockwise turn (degrees) that makes it upright."""

    lines: tuple[tuple[BlockWord, ...], ...] = ()
    rotation: int = 0
    #: The block with its margin, in fractions of the page as it is displayed.
    frame: Fractions = (0.0, 0.0, 1.0, 1.0)
    #: Size in pixels of the straightened block with its margin.
    size: tuple[int, int] = (1, 1)

    @property
    def tokens(self) -> list[RowToken]:
        """Return the words with their boxes on the page."""
        return [each.token for line in self.lines for each in line]

    @property
    def runs_down(self) -> bool:
        """Return whether most longer words are taller than wide."""
        long = [each.word for line in self.lines for each in line if len(each.word.text) > 3]
        tall = sum(word.bottom - word.top > word.right - word.left for word in long)
        return 2 * tall > len(long)

    @property
    def is_small_type(self) -> bool:
        """Return whether most words are so small that OCR loses points and commas."""
        heights = [each.word.bottom - each.word.top for line in self.lines for each in line]
        return bool(heights) and median(heights) < SMALL

    def confirmed(self, other: Block) -> Block:
        """Return the block with doubt on each number that the other reading does not repeat."""
        known = {token.text for token in other.tokens}

        def settled(each: BlockWord) -> BlockWord:
            token = each.token
            if token.text in known or not any(char.isdigit() for char in token.text):
                return each
            doubt = min(DISAGREEMENT, token.confidence or 0.0)
            return BlockWord(
                token=replace(token, confidence=doubt), word=replace(each.word, confidence=doubt)
            )

        return replace(self, lines=tuple(tuple(map(settled, line)) for line in self.lines))

    @property
    def score(self) -> float:
        """Return the sum of the confidences of the words that count as read."""
        confidences = [token.confidence or 0.0 for token in self.tokens]
        return sum(confidence for confidence in confidences if confidence >= READ)

    def well_read(self) -> Block:
        """Return the block with the lines that are more than a guess."""
        if not any(reads_well([each.token for each in line]) for line in self.lines):
            return replace(self, lines=())
        kept = tuple(line for line in self.lines if is_read([each.token for each in line]))
        return replace(self, lines=kept)

    def words(self, width: float, height: float) -> list[PageWord]:
        """Return the words in points of the upright page, straightened within the block.

        `width` and `height` are those of the displayed page.
        """
        left, top, right, bottom = upright(self.frame, width, height, self.rotation)
        across, down = (right - left) / self.size[0], (bottom - top) / self.size[1]
        return [
            replace(
                each.word,
                left=left + across * each.word.left,
                right=left + across * each.word.right,
                top=top + down * each.word.top,
                bottom=top + down * each.word.bottom,
                baseline=top + down * each.word.baseline,
                size=down * each.word.size,
            )
            for line in self.lines
            for each in line
        ]


class BlockReader:
    """Reads blocks of a file's pages; a block that repeats, such as a logo, is read once."""

    def __init__(self, ocr: Ocr) -> None:
        self.ocr = ocr
        self._known: dict[tuple[tuple[int, int], int, int], Block] = {}

    def read(self, image: Image.Image, box: Box, turn: int = 0) -> Block:
        """Return the lines that `image` (mode L) shows within `box` (pixels).

        `turn` is the clockwise turn in degrees that makes the page upright; it is tried first.
        """
        left, top = max(0, box[0]), max(0, box[1])
        right, bottom = min(image.width, box[2]), min(image.height, box[3])
        if right <= left or bottom <= top:
            return Block()
        crop = image.crop((left, top, right, bottom))
        key = crop.size, hash(crop.tobytes()), turn
        if key not in self._known:
            if len(self._known) >= _KNOWN_BLOCKS:
                self._known.clear()
            framed = ImageOps.expand(on_light_ground(crop), MARGIN, 255)
            # A picture of noise would keep Tesseract busy at four rotations.
            self.ocr.until = time.process_time() + BLOCK_SECONDS
            try:
                self._known[key] = self._best(framed, turn)
            finally:
                self.ocr.until = math.inf
        frame = (
            (left - MARGIN) / image.width,
            (top - MARGIN) / image.height,
            (right + MARGIN) / image.width,
            (bottom + MARGIN) / image.height,
        )
        return _on_page(self._known[key], frame)

    def _best(self, framed: Image.Image, turn: int) -> Block:
        """Read a block; read it again if Tesseract found lines that run up or down."""
        block = self._turned(framed, turn)
        if not block.runs_down:
            return block
        others = (self._turned(framed, (turn + more) % 360) for more in (90, 270))
        return max((block, *others), key=lambda each: (not each.runs_down, each.score))

    def _turned(self, framed: Image.Image, turn: int) -> Block:
        """Read a block after a clockwise turn; boxes are in fractions of the block before it."""
        result = self.ocr.read(framed.rotate(-turn, expand=True) if turn else framed)
        words = iter(result.words)
        lines = tuple(
            tuple(BlockWord(token=_turned_back(token, turn), word=next(words)) for token in line)
            for line in result.lines
        )
        rotation = (turn + result.rotation) % 360
        factor = max(1.0, max(framed.size) / LONGEST)
        width, height = (max(1, round(side / factor)) for side in framed.size)
        return Block(
            lines=lines,
            rotation=rotation,
            size=(height, width) if rotation in {90, 270} else (width, height),
        )


def reads_well(line: Sequence[RowToken]) -> bool:
    """Return whether OCR is sure of most words of `line`, and of one with two letters or digits.

    A number whose two readings disagree counts neither way.
    """
    sure = [token for token in line if (token.confidence or 0.0) >= READ]
    disputed = [token for token in line if _is_disputed(token)]
    told = any(sum(char.isalnum() for char in token.text) >= 2 for token in sure)
    return told and 2 * len(sure) >= len(line) - len(disputed)


def is_read(line: Sequence[RowToken]) -> bool:
    """Return whether the words of a line are more than a guess at spots or handwriting."""
    return reads_well(line) or all((token.confidence or 0.0) >= DISAGREEMENT for token in line)


def on_light_ground(image: Image.Image) -> Image.Image:
    """Return `image` with its dark areas inverted, so that all words are dark on light."""
    cell = 4
    dark = bits(ImageOps.invert(image.reduce(cell)), 128)
    shown = image
    for runs in components(dark.closed(2, 2)):
        left = cell * min(first for _, first, _ in runs)
        right = min(image.width, cell * max(end for _, _, end in runs))
        top, bottom = cell * runs[0][0], min(image.height, cell * (runs[-1][0] + 1))
        if right - left < _GROUND[0] or bottom - top < _GROUND[1]:
            continue
        part = image.crop((left, top, right, bottom))
        if ImageStat.Stat(part).mean[0] < _DARK_GROUND:
            shown = image.copy() if shown is image else shown
            shown.paste(ImageOps.invert(part), (left, top))
    return shown


def _turned_back(token: RowToken, turn: int) -> RowToken:
    """Return `token` of an image that was turned clockwise, on the image before the turn."""
    x0, y0, x1, y1 = token.x0, token.y0, token.x1, token.y1
    box = {
        0: (x0, y0, x1, y1),
        90: (y0, 1 - x1, y1, 1 - x0),
        180: (1 - x1, 1 - y1, 1 - x0, 1 - y0),
        270: (1 - y1, x0, 1 - y0, x1),
    }[turn]
    return replace(token, x0=box[0], y0=box[1], x1=box[2], y1=box[3])


def _is_disputed(token: RowToken) -> bool:
    has_digit = any(char.isdigit() for char in token.text)
    return has_digit and DISAGREEMENT <= (token.confidence or 0.0) < READ


def _on_page(block: Block, frame: Fractions) -> Block:
    """Return `block` with the boxes of its words in fractions of the page."""
    across, down = frame[2] - frame[0], frame[3] - frame[1]

    def placed(each: BlockWord) -> BlockWord:
        token = each.token
        box = (
            frame[0] + across * token.x0,
            frame[1] + down * token.y0,
            frame[0] + across * token.x1,
            frame[1] + down * token.y1,
        )
        return BlockWord(
            token=replace(token, x0=box[0], y0=box[1], x1=box[2], y1=box[3]),
            word=replace(each.word, box=box),
        )

    lines = tuple(tuple(map(placed, line)) for line in block.lines)
    return replace(block, lines=lines, frame=frame)
