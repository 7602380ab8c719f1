"""Read the ink that no known word explains, and report the ink that stays unread.

Each block of such ink is read by OCR. Words of lines that read well join the page; all other ink is
unread. Runs in the child only.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PIL import Image, ImageFilter, ImageOps, ImageStat

from .bits import Bits, bits
from .ink import EDGE, Box, Patch, blocks, components, covered, is_barcode, patches, strokes
from .ocr import DISAGREEMENT, LONGEST, NOISE, READ, Ocr, OcrResult, noise
from .page_layout import lay_out
from .placed_words import PageWord, in_lines, upright
from .text_rows import RowToken
from .types import PARTLY_READ, PageRead, Region, Word

#: Least share of the page of one unread patch of writing: a handwritten number on letter paper has
#: .0005, a speck of a worn scan less than .0002.
WRITING = 0.0003
#: Least share of the page of an unread picture: seals, logos and hole marks are smaller.
PICTURE = 0.01
#: Unread shares of a page below this value are not reported.
REPORTED = 0.0005
#: Share of a patch that is solid, from which the patch is a picture and no writing. Pen strokes are
#: thinner than 5 pixels at 100 dpi.
SOLID = 0.35
#: Blocks of one page that OCR reads; a page with more is a drawing.
MAX_BLOCKS = 24
#: Share of the time of a page after which no further block of unexplained ink is read.
FOR_INK = 0.4
#: Processor time in seconds for one block; a full page of small type takes 2.
BLOCK_SECONDS = 5.0
#: White pixels around a block; Tesseract misses words at the edge of an image.
_MARGIN = 24
#: Ground of this mean grey level or darker carries light words.
_DARK_GROUND = 115
_KNOWN_BLOCKS = 64
#: Longest side of the image on which the ink of a scan is searched: letter paper at 100 dpi.
PAGE_PIXELS = 1100
#: Share of a scan up to which a block that OCR missed is read again.
LARGEST_MISSED = 0.3


@dataclass(frozen=True, kw_only=True)
class InkReading:
    """Result of the ink check: lines of OCR, regions of the page, and the unread share (0–1).

    `lines` are upright on the upright page. `apart` holds the lines of blocks with another turn,
    such as a table that lies sideways; the words are those of the upright block.
    """

    lines: tuple[tuple[RowToken, ...], ...] = ()
    apart: tuple[tuple[PageWord, ...], ...] = ()
    regions: tuple[Region, ...] = ()
    unread_share: float = 0.0

    @property
    def tokens(self) -> list[RowToken | PageWord]:
        """Return all words that OCR added."""
        inside = [token for line in self.lines for token in line]
        return [*inside, *(word for words in self.apart for word in words)]


@dataclass(frozen=True, kw_only=True)
class _Block:
    """One block as OCR read it; boxes are in pixels of the block."""

    lines: list[list[RowToken]]
    words: list[PageWord]
    rotation: int


class BlockReader:
    """Reads blocks of a file's pages; a block that repeats, such as a logo, is read once."""

    def __init__(self, ocr: Ocr) -> None:
        self._ocr = ocr
        self._known: dict[tuple[tuple[int, int], int], _Block] = {}

    def read_page(self, image: Image.Image, *, until: float) -> tuple[OcrResult, InkReading]:
        """Read a page that has no text layer; then read the blocks that the first reading missed.

        No block is begun after `until` (time.process_time).
        """
        reading = self._ocr.read(image)
        factor = max(image.size) / PAGE_PIXELS
        look = image
        if factor > 1:
            size = max(1, round(image.width / factor)), max(1, round(image.height / factor))
            look = image.resize(size, Image.Resampling.BOX)
        noisy = noise(look) >= NOISE
        if noisy:
            look = look.filter(ImageFilter.MedianFilter(3))
        known = [token for line in reading.lines if is_read(line) for token in line]
        mask = covered(look.size, ((t.x0, t.y0, t.x1, t.y1) for t in known), 0.25)
        missed = read_ink(
            strokes(look, 2 * EDGE if noisy else EDGE).without(mask),
            look,
            lambda: image,
            self,
            turn=reading.rotation,
            until=until,
            largest=LARGEST_MISSED,
        )
        return _completed(reading, missed, image.size), missed

    def read(self, image: Image.Image, box: Box) -> _Block:
        """Return what `image` shows within `box`, in fractions of `image`."""
        left, top = max(0, box[0]), max(0, box[1])
        crop = image.crop((left, top, min(image.width, box[2]), min(image.height, box[3])))
        if min(crop.size) < 1:
            return _Block(lines=[], words=[], rotation=0)
        key = crop.size, hash(crop.tobytes())
        if key not in self._known:
            if len(self._known) >= _KNOWN_BLOCKS:
                self._known.clear()
            framed = ImageOps.expand(on_light_ground(crop), _MARGIN, 255)
            # A picture of noise would keep Tesseract busy at four rotations.
            self._ocr.until = time.process_time() + BLOCK_SECONDS
            try:
                result = self._ocr.read(framed)
            finally:
                self._ocr.until = math.inf
            self._known[key] = _Block(
                lines=[[_unframed(token, framed.size) for token in line] for line in result.lines],
                words=list(result.words),
                rotation=result.rotation,
            )
        block = self._known[key]
        lines = [
            [_on_page(token, (left, top), image.size) for token in line] for line in block.lines
        ]
        boxes = [(t.x0, t.y0, t.x1, t.y1) for line in lines for t in line]
        words = [replace(word, box=place) for word, place in zip(block.words, boxes, strict=True)]
        return replace(block, lines=lines, words=words)


def read_ink(
    ink: Bits,
    look: Image.Image,
    sharp: Callable[[], Image.Image],
    reader: BlockReader,
    *,
    turn: int,
    until: float,
    largest: float = 1.0,
) -> InkReading:
    """Read `ink`, which is what the known words of the page leave over in its image `look`.

    `sharp` renders the page at the resolution of OCR, without the known words. `turn` (degrees)
    makes the page upright. After `until` (time.process_time) no further block is read. Blocks above
    the share `largest` of the page are not read. The unread share counts the area of unread ink.
    """
    found = [each for each in patches(ink) if _may_be_words(each, look)]
    if not found:
        return InkReading()
    pixels = look.width * look.height
    readable = [box for box in blocks(found) if _area(box) <= largest * pixels]
    chosen = sorted(readable, key=_area, reverse=True)[:MAX_BLOCKS]
    lines: list[tuple[RowToken, ...]] = []
    apart: list[tuple[PageWord, ...]] = []
    seen: list[RowToken] = []
    regions: list[Region] = []
    image = sharp() if chosen else look
    scale = image.width / look.width, image.height / look.height
    for box in chosen:
        if time.process_time() > until:
            break
        block = reader.read(image, _scaled(box, scale))
        read = [line for line in block.lines if reads_well(line)]
        if not read:
            continue
        regions.append(_region("ocr", box, look.size))
        tokens = [token for line in read for token in line]
        seen += tokens
        if block.rotation == turn:
            lines += map(tuple, read)
        else:
            kept = {(token.x0, token.y0, token.x1, token.y1) for token in tokens}
            apart.append(tuple(word for word in block.words if word.box in kept))
    left = unread(ink, look, seen)
    return InkReading(
        lines=tuple(lines),
        apart=tuple(apart),
        regions=(*regions, *left.regions),
        unread_share=left.unread_share,
    )


def unread(ink: Bits, look: Image.Image, words: Sequence[RowToken]) -> InkReading:
    """Return the regions and the share of `ink` that `words` leave unread."""
    mask = covered(look.size, ((word.x0, word.y0, word.x1, word.y1) for word in words), 0.25)
    left = [each for each in patches(ink.without(mask)) if _counts(each, look)]
    share = sum(each.area for each in left) / (look.width * look.height)
    if share < REPORTED:
        return InkReading()
    regions = tuple(_region("unread", box, look.size) for box in blocks(left))
    return InkReading(regions=regions, unread_share=round(min(1.0, share), 4))


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


def joined(
    text: str, words: Sequence[Word], apart: Sequence[Sequence[PageWord]]
) -> tuple[str, tuple[Word, ...]]:
    """Return the page's text with the blocks of another turn below, each laid out on its own."""
    found = list(words)
    for block in apart:
        more, of_block = lay_out(block)
        start = len(text) + 1 if text else 0
        text = f"{text}\n{more}" if text else more
        found += [
            replace(word, start=start + word.start, end=start + word.end) for word in of_block
        ]
    return text, tuple(found)


def repeats(unseen: Sequence[str], read: Sequence[RowToken | PageWord]) -> bool:
    """Return whether OCR read at least half of the words that the page hides.

    The hidden text of a scan repeats the scan; other hidden text says something else.
    """
    seen = {token.text.casefold().strip(".,;:") for token in read}
    return 2 * sum(word.casefold().strip(".,;:") in seen for word in unseen) >= len(unseen)


def words_of(
    lines: Sequence[Sequence[RowToken]], width: float, height: float, turn: int
) -> list[PageWord]:
    """Return lines of OCR as words of a page of `width` × `height` that `turn` makes upright."""
    return in_lines([[_word(token, width, height, turn) for token in line] for line in lines])


def mean_confidence(words: Sequence[Word]) -> float | None:
    """Return the mean confidence (0–100) of the words of OCR, or None without such words."""
    confidences = [word.confidence for word in words if word.confidence is not None]
    return round(statistics.fmean(confidences), 1) if confidences else None


def with_ink(page: PageRead, found: InkReading) -> PageRead:
    """Return `page` with the regions of the ink check, its warning, and the blocks set apart."""
    warnings = (*page.warnings, PARTLY_READ) if found.unread_share else page.warnings
    text, words = joined(page.text, page.words, found.apart)
    return replace(
        page,
        text=text,
        words=words,
        ocr_confidence=mean_confidence(words),
        regions=found.regions,
        unread_share=found.unread_share,
        warnings=warnings,
    )


def _completed(reading: OcrResult, missed: InkReading, size: tuple[int, int]) -> OcrResult:
    """Return `reading` with the lines of the second reading in place of its own guesses there."""
    again = missed.lines
    if not again:
        return reading
    dropped = {
        (token.x0, token.y0, token.x1, token.y1)
        for line in reading.lines
        if not is_read(line)
        for token in line
        if any(_lies_in(token, other) for other in again)
    }
    kept = [word for word in reading.words if word.box not in dropped]
    factor = max(1.0, max(size) / LONGEST)
    width, height = size[0] / factor, size[1] / factor
    more = [
        _straightened(word, kept, width, height, reading.rotation)
        for word in words_of(again, width, height, reading.rotation)
    ]
    lines = [
        tuple(t for t in line if (t.x0, t.y0, t.x1, t.y1) not in dropped) for line in reading.lines
    ]
    return replace(
        reading,
        lines=tuple(line for line in (*lines, *map(tuple, again)) if line),
        words=(*kept, *more),
    )


def _straightened(
    word: PageWord, others: Sequence[PageWord], width: float, height: float, turn: int
) -> PageWord:
    """Return `word` moved like the nearest other word, which the skew correction has moved."""
    if not others:
        return word
    x, y = word.box[0], word.box[1]
    near = min(others, key=lambda other: abs(other.box[0] - x) + 4 * abs(other.box[1] - y))
    left, top, right, bottom = upright(near.box, width, height, turn)
    across = (near.left + near.right - left - right) / 2
    down = (near.top + near.bottom - top - bottom) / 2
    return replace(
        word,
        left=word.left + across,
        right=word.right + across,
        top=word.top + down,
        bottom=word.bottom + down,
        baseline=word.baseline + down,
    )


def _word(token: RowToken, width: float, height: float, turn: int) -> PageWord:
    box = (token.x0, token.y0, token.x1, token.y1)
    left, top, right, bottom = upright(box, width, height, turn)
    return PageWord(
        text=token.text,
        left=left,
        top=top,
        right=right,
        bottom=bottom,
        baseline=bottom,
        size=bottom - top,
        box=box,
        confidence=token.confidence,
    )


def _lies_in(token: RowToken, line: Sequence[RowToken]) -> bool:
    across, down = (token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2
    return min(each.x0 for each in line) <= across <= max(each.x1 for each in line) and min(
        each.y0 for each in line
    ) <= down <= max(each.y1 for each in line)


def on_light_ground(image: Image.Image) -> Image.Image:
    """Return `image` with its dark areas inverted, so that all words are dark on light."""
    cell = 4
    dark = bits(ImageOps.invert(image.reduce(cell)), 128)
    grounds = dark.closed(2, 2)
    shown = image
    for runs in components(grounds):
        left = cell * min(first for _, first, _ in runs)
        right = min(image.width, cell * max(end for _, _, end in runs))
        top, bottom = cell * runs[0][0], min(image.height, cell * (runs[-1][0] + 1))
        if right - left < 60 or bottom - top < 24:
            continue
        part = image.crop((left, top, right, bottom))
        if ImageStat.Stat(part).mean[0] < _DARK_GROUND:
            shown = image.copy() if shown is image else shown
            shown.paste(ImageOps.invert(part), (left, top))
    return shown


def _is_disputed(token: RowToken) -> bool:
    has_digit = any(char.isdigit() for char in token.text)
    return has_digit and DISAGREEMENT <= (token.confidence or 0.0) < READ


def _counts(patch: Patch, look: Image.Image) -> bool:
    """Return whether the patch is large enough to matter: pictures count later than writing."""
    if not _may_be_words(patch, look):
        return False
    return patch.area >= PICTURE * look.width * look.height or not _is_solid(patch, look)


def _may_be_words(patch: Patch, look: Image.Image) -> bool:
    large = patch.area >= WRITING * look.width * look.height
    return large and not is_barcode(look, patch.box)


def _is_solid(patch: Patch, look: Image.Image) -> bool:
    """Return whether a large part of the patch's ink is thicker than strokes of a pen."""
    part = look.crop(patch.box)
    counts = part.histogram()
    ground = counts.index(max(counts))
    marks = bits(part.point(lambda level: abs(level - ground)), 60)
    return marks.shrunk(2, 2).count > SOLID * max(1, marks.count)


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _scaled(box: Box, scale: tuple[float, float]) -> Box:
    """Return `box` in pixels of the sharp image, with room for letters that touch its edge."""
    across, down = scale
    return (
        int((box[0] - 4) * across),
        int((box[1] - 4) * down),
        int((box[2] + 4) * across),
        int((box[3] + 4) * down),
    )


def _region(kind: str, box: Box, size: tuple[int, int]) -> Region:
    width, height = size
    return Region(
        kind="ocr" if kind == "ocr" else "unread",
        x0=round(box[0] / width, 5),
        y0=round(box[1] / height, 5),
        x1=round(min(1.0, box[2] / width), 5),
        y1=round(min(1.0, box[3] / height), 5),
    )


def _unframed(token: RowToken, size: tuple[int, int]) -> RowToken:
    """Return `token` in pixels of the block, from fractions of the framed block."""
    width, height = size
    return replace(
        token,
        x0=token.x0 * width - _MARGIN,
        y0=token.y0 * height - _MARGIN,
        x1=token.x1 * width - _MARGIN,
        y1=token.y1 * height - _MARGIN,
    )


def _on_page(token: RowToken, corner: tuple[int, int], size: tuple[int, int]) -> RowToken:
    return replace(
        token,
        x0=(token.x0 + corner[0]) / size[0],
        y0=(token.y0 + corner[1]) / size[1],
        x1=(token.x1 + corner[0]) / size[0],
        y1=(token.y1 + corner[1]) / size[1],
    )
