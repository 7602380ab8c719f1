"""Words of a text layer that a person cannot see: the reason, the place, the text around them.

Such words are never part of the page text. A reviewer gets their place, and an entity that is read
across their place is not accepted. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from PIL import Image

from .blank import spread
from .ink import Fractions
from .model_phrases import addresses
from .placed_words import upright
from .text_rows import RowToken
from .types import ADDRESSES_A_MODEL, HIDDEN_TEXT, PageRead, Region, Suspect, Word

#: Unseen words of one page above which the whole page is suspect.
MOST_WORDS = 2_000
#: Words of a scan's text layer over empty paper that are no slip of the scanner's software.
LEAST_LONE = 3
#: Least grey levels between paper and the ink of a scan.
INK = 40
#: Regions of unseen words that one page reports.
MOST_REGIONS = 200


class HiddenWhy(StrEnum):
    """Why a person cannot see a word; the values are kinds of a `Region`."""

    TINY = "tiny"
    """Type of less than 2 points."""
    FAINT = "faint"
    """Contrast below 1.5 with what is drawn at its place, or transparent."""
    OFF_PAGE = "off_page"
    UNPAINTED = "unpainted"
    """A text mode that paints nothing."""
    COVERED = "covered"
    """Below a later shape or image, outside a clip, or in a layer that is off."""


#: Words whose ink must not be read by OCR either.
PALE = frozenset({HiddenWhy.TINY, HiddenWhy.FAINT})


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """A word that a person cannot see, with its box in fractions of the displayed page."""

    text: str
    why: HiddenWhy
    box: Fractions


def pale(unseen: Sequence[Unseen]) -> list[Fractions]:
    """Return the boxes of the words whose ink must not be read by OCR."""
    return [each.box for each in unseen if each.why in PALE]


def with_hidden(page: PageRead, unseen: Sequence[Unseen]) -> PageRead:
    """Return `page` with the places of hidden words and the text that they are between."""
    if not unseen:
        return page
    warnings = [*page.warnings, HIDDEN_TEXT]
    if addresses("\n".join(" ".join(each.text for each in line) for line in _lines(unseen))):
        warnings.append(ADDRESSES_A_MODEL)
    return replace(
        page,
        regions=(*page.regions, *regions_of(unseen)),
        suspects=(*page.suspects, *touched(page, unseen)),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def regions_of(unseen: Sequence[Unseen]) -> list[Region]:
    """Return a region for each run of unseen words of one line and one reason."""
    regions = []
    for line in _lines(unseen)[:MOST_REGIONS]:
        boxes = [each.box for each in line]
        regions.append(
            Region(
                kind=line[0].why.value,
                x0=_edge(min(box[0] for box in boxes)),
                y0=_edge(min(box[1] for box in boxes)),
                x1=_edge(max(box[2] for box in boxes)),
                y1=_edge(max(box[3] for box in boxes)),
            )
        )
    return regions


def touched(page: PageRead, unseen: Sequence[Unseen]) -> list[Suspect]:
    """Return the parts of the page text that unseen words are between or below.

    Words that OCR read stand for what the page shows, so they are not suspect.
    """
    if len(unseen) > MOST_WORDS:
        return [Suspect(flag=HIDDEN_TEXT, start=0, end=len(page.text))]
    words = [(word, _upright(page, word)) for word in page.words if word.confidence is None]
    spans = {_around(page, words, each) for each in unseen}
    return [Suspect(flag=HIDDEN_TEXT, start=s, end=e) for s, e in sorted(filter(None, spans))]


def without_shadows(unseen: Sequence[Unseen], shown: Sequence[RowToken]) -> tuple[Unseen, ...]:
    """Return the unseen words except those that repeat a shown word at its place.

    A program draws the shadow of a word as a second, pale copy of the word.
    """
    if not unseen:
        return ()
    places: defaultdict[str, list[Fractions]] = defaultdict(list)
    for token in shown:
        places[token.text].append((token.x0, token.y0, token.x1, token.y1))
    return tuple(
        each
        for each in unseen
        if not any(_is_near(each.box, other) for other in places.get(each.text, ()))
    )


def hidden(
    unseen: Sequence[Unseen], read: Sequence[RowToken], bare: Image.Image | None
) -> tuple[Unseen, ...]:
    """Return the unseen words that are no text layer of a scan.

    The text layer of a scan repeats the scan: OCR read at least half of its words. `bare` is the
    page without its text. Words over empty paper then repeat nothing, unless OCR read them.
    """
    seen = {_plain(token.text) for token in read}
    if not repeats([each.text for each in unseen], seen):
        return tuple(unseen)
    lone = [
        each
        for each in unseen
        if _plain(each.text) not in seen and not (bare and is_below(bare, each.box))
    ]
    return tuple(lone) if len(lone) >= LEAST_LONE else ()


def repeats(words: Sequence[str], seen: Container[str]) -> bool:
    """Return whether at least half of the words are among those that OCR read."""
    return 2 * sum(_plain(word) in seen for word in words) >= len(words)


def is_below(image: Image.Image, box: Fractions) -> bool:
    """Return whether an image of the page without its text shows something at `box`."""
    width, height = image.size
    left, top = int(max(0.0, box[0]) * width), int(max(0.0, box[1]) * height)
    right = min(width, max(left + 1, round(box[2] * width)))
    bottom = min(height, max(top + 1, round(box[3] * height)))
    return left < right and top < bottom and spread(image.crop((left, top, right, bottom))) >= INK


def _lines(unseen: Sequence[Unseen]) -> list[list[Unseen]]:
    lines: list[list[Unseen]] = []
    for each in unseen:
        last = lines[-1][-1] if lines else None
        if last and last.why is each.why and abs(last.box[1] - each.box[1]) < 0.005:
            lines[-1].append(each)
        else:
            lines.append([each])
    return lines


def _around(
    page: PageRead, words: Sequence[tuple[Word, Fractions]], unseen: Unseen
) -> tuple[int, int] | None:
    """Return the text below an unseen word, or the gap of its line; None at the end of a line."""
    box = upright(unseen.box, page.width, page.height, page.rotation)
    across, down = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    line = [(word, own) for word, own in words if own[1] <= down <= own[3]]
    below = next((word for word, own in line if own[0] <= across <= own[2]), None)
    if below:
        return below.start, below.end
    before = max((x for x in line if x[1][2] < across), key=lambda x: x[1][2], default=None)
    after = min((x for x in line if x[1][0] > across), key=lambda x: x[1][0], default=None)
    if not before or not after:
        return None
    gap = before[0].end, after[0].start
    return gap if gap[0] < gap[1] and "\n" not in page.text[slice(*gap)] else None


def _upright(page: PageRead, word: Word) -> Fractions:
    return upright((word.x0, word.y0, word.x1, word.y1), page.width, page.height, page.rotation)


def _is_near(one: Fractions, other: Fractions) -> bool:
    height = max(one[3] - one[1], 0.001)
    return max(abs(one[0] - other[0]), abs(one[1] - other[1])) < height / 3


def _plain(word: str) -> str:
    return word.casefold().strip(".,;:")


def _edge(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 5)
