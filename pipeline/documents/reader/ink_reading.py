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

from PIL import Image

from .bits import Bits, bits, whole
from .blank import EDGE as SHADOW
from .block_reader import FINER, Block, BlockReader, is_read
from .ink import (
    EDGE,
    Box,
    Fractions,
    Patch,
    blocks,
    covered,
    is_blurred_line,
    is_code,
    patches,
    strokes,
    with_marks,
)
from .median import median3
from .ocr import LONGEST, NOISE, READ, OcrResult, noise
from .page_layout import lay_out
from .placed_words import PageWord, upright
from .text_rows import RowToken
from .types import PARTLY_READ, PageRead, Region, RegionKind, Word

#: Least share of the page of one unread patch of writing. A handwritten number on letter paper has
#: .0005, a printed arrow of 8 pt .0002. Specks of a worn scan have less than .0002.
WRITING, WRITING_ON_SCAN = 0.0002, 0.0003
#: Least share of the page of an unread picture: seals, logos and hole marks are smaller.
PICTURE = 0.01
#: Share of a patch that is solid, from which the patch is a picture and no writing. Pen strokes are
#: thinner than 5 pixels at 100 dpi.
SOLID = 0.35
#: Blocks of one page that OCR reads; a page with more is a drawing.
MAX_BLOCKS = 24
#: Share of the time of a page after which no further block of unexplained ink is read.
FOR_INK = 0.4
#: Pixels of the least block in which noise can be told from letters: 1.5 by 1.5 inches.
LEAST_NOISY = 22_500
#: Longest side of the image on which the ink of a scan is searched: letter paper at 100 dpi.
PAGE_PIXELS = 1100
#: Share of a scan up to which a block that OCR missed is read again.
LARGEST_MISSED = 0.3


@dataclass(frozen=True, kw_only=True)
class InkReading:
    """Result of the ink check: blocks of OCR, regions of the page, and the unread share (0–1)."""

    #: Blocks that are upright on the upright page.
    blocks: tuple[Block, ...] = ()
    #: Blocks with another turn, such as a table that lies sideways.
    apart: tuple[Block, ...] = ()
    regions: tuple[Region, ...] = ()
    unread_share: float = 0.0

    @property
    def tokens(self) -> list[RowToken]:
        """Return all words that OCR added."""
        return [token for block in (*self.blocks, *self.apart) for token in block.tokens]

    def words(self, width: float, height: float) -> list[PageWord]:
        """Return the words of the upright blocks on a page of `width` × `height` points."""
        return [word for block in self.blocks for word in block.words(width, height)]


def read_ink(
    ink: Bits,
    look: Image.Image,
    sharp: Callable[[int], Image.Image],
    reader: BlockReader,
    *,
    turn: int,
    until: float,
    is_scan: bool = False,
) -> InkReading:
    """Read `ink`, which is what the known words of the page leave over in its image `look`.

    `sharp` renders the page at a multiple of the resolution of OCR, without the known words. `turn`
    (degrees) makes the page upright. After `until` (time.process_time) no further block is read. A
    scan has been read once as a whole, so its large blocks are not read again. The unread share
    counts the area of unread ink.
    """
    writing = WRITING_ON_SCAN if is_scan else WRITING
    # A scan has specks, so only larger ink may be words. Other pages have none.
    found = _candidates(ink, look, writing if is_scan else 0.0)
    if not found:
        return InkReading()
    ink = _calmed(ink, look, blocks(found))
    found = _candidates(ink, look, writing if is_scan else 0.0)
    largest = LARGEST_MISSED * look.width * look.height if is_scan else math.inf
    places = [box for box in blocks(with_marks(found, ink)) if _area(box) <= largest]
    chosen = sorted(places, key=_area, reverse=True)[:MAX_BLOCKS]
    read: list[Block] = []
    regions: list[Region] = []
    images: dict[int, Image.Image] = {}

    def read_at(box: Box, factor: int) -> Block:
        if factor not in images:
            images[factor] = sharp(factor)
        scaled = _scaled(box, images[factor].width / look.width)
        return reader.read(images[factor], scaled, turn)

    for box in chosen:
        if time.process_time() > until:
            break
        block = read_at(box, 1)
        if block.is_small_type and not is_scan:
            fine = read_at(box, FINER)
            # A finer image of a coarse picture shows more of its noise, so it must clearly win.
            wins = fine.score > 1.03 * block.score
            better, other = (fine, block) if wins else (block, fine)
            block = better.confirmed(other)
        block = block.well_read()
        if block.lines:
            read.append(block)
            regions.append(_region("ocr", box, look.size))
    left = unread(ink, look, [token for block in read for token in block.tokens], writing)
    return replace(
        left,
        blocks=tuple(block for block in read if block.rotation == turn),
        apart=tuple(block for block in read if block.rotation != turn),
        regions=(*regions, *left.regions),
    )


def read_scan(
    image: Image.Image, reader: BlockReader, *, until: float
) -> tuple[OcrResult, InkReading]:
    """Read a page that has no text layer; then read the blocks that the first reading missed.

    No block is begun after `until` (time.process_time).
    """
    reading = reader.ocr.read(image)
    factor = max(1.0, max(image.size) / PAGE_PIXELS)
    size = max(1, round(image.width / factor)), max(1, round(image.height / factor))
    look = image.resize(size, Image.Resampling.BOX) if factor > 1 else image
    edge = EDGE
    median = median3(look)
    if noise(look, median) >= NOISE:
        look, edge = median, 2 * EDGE
    known = [
        token
        for line in reading.lines
        for token in line
        if is_read(line) or (token.confidence or 0.0) >= READ
    ]
    mask = covered(look.size, ((t.x0, t.y0, t.x1, t.y1) for t in known), 0.25)
    missed = read_ink(
        _within_the_lid(strokes(look, edge).without(mask)),
        look,
        lambda _: image,
        reader,
        turn=reading.rotation,
        until=until,
        is_scan=True,
    )
    return _completed(reading, missed, image.size), missed


def unread(
    ink: Bits, look: Image.Image, words: Sequence[RowToken], least: float = WRITING
) -> InkReading:
    """Return the regions and the share of `ink` that `words` leave unread.

    Patches below the share `least` of the page are not reported.
    """
    mask = covered(look.size, ((word.x0, word.y0, word.x1, word.y1) for word in words), 0.25)
    left = [each for each in _candidates(ink.without(mask), look, least) if _counts(each, look)]
    places = blocks(left)
    share = sum(map(_area, places)) / (look.width * look.height)
    return InkReading(
        regions=tuple(_region("unread", box, look.size) for box in places),
        unread_share=round(min(1.0, share), 4),
    )


def with_ink(page: PageRead, found: InkReading) -> PageRead:
    """Return `page` with the regions of the ink check, its warning, and the blocks set apart."""
    warnings = (*page.warnings, PARTLY_READ) if found.unread_share else page.warnings
    text, words = page.text, list(page.words)
    for block in found.apart:
        more, of_block = lay_out([each.word for line in block.lines for each in line])
        start = len(text) + 1 if text else 0
        text = f"{text}\n{more}" if text else more
        words += [
            replace(word, start=start + word.start, end=start + word.end) for word in of_block
        ]
    return replace(
        page,
        text=text,
        words=tuple(words),
        ocr_confidence=_mean_confidence(words),
        regions=found.regions,
        unread_share=found.unread_share,
        warnings=warnings,
    )


def with_unread(page: PageRead, places: Sequence[Fractions]) -> PageRead:
    """Return `page` with further unread parts."""
    if not places:
        return page
    regions = [
        Region(kind="unread", x0=_edge(x0), y0=_edge(y0), x1=_edge(x1), y1=_edge(y1))
        for x0, y0, x1, y1 in places
    ]
    area = sum((each.x1 - each.x0) * (each.y1 - each.y0) for each in regions)
    return replace(
        page,
        regions=(*page.regions, *regions),
        unread_share=round(min(1.0, page.unread_share + area), 4),
        warnings=tuple(dict.fromkeys((*page.warnings, PARTLY_READ))),
    )


def _mean_confidence(words: Sequence[Word]) -> float | None:
    confidences = [word.confidence for word in words if word.confidence is not None]
    return round(statistics.fmean(confidences), 1) if confidences else None


def _completed(reading: OcrResult, missed: InkReading, size: tuple[int, int]) -> OcrResult:
    """Return `reading` with the lines of the second reading in place of its own guesses there."""
    again = [[each.token for each in line] for block in missed.blocks for line in block.lines]
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
    lines = [
        tuple(t for t in line if (t.x0, t.y0, t.x1, t.y1) not in dropped) for line in reading.lines
    ]
    factor = max(1.0, max(size) / LONGEST)
    width, height = size[0] / factor, size[1] / factor
    more = [
        _straightened(word, kept, width, height, reading.rotation)
        for word in missed.words(width, height)
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


def _lies_in(token: RowToken, line: Sequence[RowToken]) -> bool:
    across, down = (token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2
    return min(each.x0 for each in line) <= across <= max(each.x1 for each in line) and min(
        each.y0 for each in line
    ) <= down <= max(each.y1 for each in line)


def _calmed(ink: Bits, look: Image.Image, places: Sequence[Box]) -> Bits:
    """Return `ink` without the noise of scans, which is found place by place."""
    image = None
    for box in places:
        part = look.crop(box)
        # In a small block, the letters themselves look like noise.
        if _area(box) < LEAST_NOISY:
            continue
        median = median3(part)
        if noise(part, median) < NOISE:
            continue
        image = image or ink.image()
        calm = strokes(median, 2 * EDGE)
        image.paste(bits(ink.image().crop(box).convert("L"), 128).both(calm).image(), box[:2])
    return bits(image.convert("L"), 128) if image else ink


def _within_the_lid(ink: Bits) -> Bits:
    """Return `ink` without the edges of the scan."""
    across, down = round(SHADOW * ink.width), round(SHADOW * ink.height)
    return ink.both(whole(ink.width, ink.height, (across, down)))


def _candidates(ink: Bits, look: Image.Image, least: float) -> list[Patch]:
    """Return the ink that may be words and covers the share `least` of the page."""
    area = least * look.width * look.height
    return [each for each in patches(ink) if each.area >= area and not is_code(look, each.box)]


def _counts(patch: Patch, look: Image.Image) -> bool:
    """Return whether an unread patch matters: pictures count later than writing."""
    if patch.area >= PICTURE * look.width * look.height:
        return True
    return not _is_solid(patch, look) or is_blurred_line(look, patch.box)


def _is_solid(patch: Patch, look: Image.Image) -> bool:
    """Return whether a large part of the patch's ink is thicker than strokes of a pen."""
    part = look.crop(patch.box)
    counts = part.histogram()
    ground = counts.index(max(counts))
    marks = bits(part.point(lambda level: abs(level - ground)), 60)
    return marks.shrunk(2, 2).count > SOLID * max(1, marks.count)


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _scaled(box: Box, scale: float) -> Box:
    """Return `box` in pixels of the sharp image, with room for letters that touch its edge."""
    return (
        int((box[0] - 4) * scale),
        int((box[1] - 4) * scale),
        int((box[2] + 4) * scale),
        int((box[3] + 4) * scale),
    )


def _edge(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 5)


def _region(kind: RegionKind, box: Box, size: tuple[int, int]) -> Region:
    width, height = size
    return Region(
        kind=kind,
        x0=_edge(box[0] / width),
        y0=_edge(box[1] / height),
        x1=_edge(box[2] / width),
        y1=_edge(box[3] / height),
    )
