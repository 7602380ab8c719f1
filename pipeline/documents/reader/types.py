"""The values that cross the reader's border: limits in, pages out, and one refusal.

Imports the standard library only. Every value is frozen; nothing here carries a file's name, and
`InputRefused` never carries its content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

RefusalCode = Literal["INPUT_ENCRYPTED", "INPUT_INVALID", "INPUT_TOO_LARGE"]
PageSource = Literal["text_layer", "ocr", "blank", "damaged"]

#: The page holds characters that its rendered image does not show; they are left out of `text`.
HIDDEN_TEXT = "hidden_text"
#: The text layer was garbage or empty over an image, so the page was read from its image.
TEXT_LAYER_REJECTED = "text_layer_rejected"
#: The page is so large that it was rendered at less than `Limits.dpi`.
RENDERED_SMALLER = "rendered_smaller"
#: A library could open the file only after it was rebuilt.
REPAIRED = "repaired"
#: A part of the page (an image, a stream) could not be decoded; what is there was read.
PARTLY_DAMAGED = "partly_damaged"


class MediaType(StrEnum):
    """What a file is by its content."""

    PDF = "application/pdf"
    TIFF = "image/tiff"
    PNG = "image/png"
    JPEG = "image/jpeg"


class InputRefused(Exception):  # noqa: N818 - a verdict on the input, not a fault of ours
    """The file cannot be processed, now or later; `message` says what to do about it."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code: RefusalCode = code
        self.message = message


class ReaderError(RuntimeError):
    """The reader itself is at fault (installation, bug); the input has not been judged."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one file may cost; figures measured on 40 odd, broken and hostile files."""

    #: Size of the file in bytes.
    max_bytes: int = 512 * 1024 * 1024
    #: Pages of the file; a record of thousands of pages is real, one of 20,000 is a bomb.
    max_pages: int = 10_000
    #: Pixels of one rendered page or one stored frame; A4 at 200 dpi has 3.9 million.
    max_pixels_per_page: int = 40_000_000
    #: Address space of the child in bytes, so also a bound of its resident memory.
    memory_bytes: int = 800_000_000
    #: Wall time in seconds that one page may take, OCR at four rotations included.
    seconds_per_page: float = 20.0
    #: Wall time in seconds to open a file and count its pages.
    seconds_to_open: float = 10.0
    #: Resolution in dots per inch at which a page is rendered for OCR.
    dpi: int = 200


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a file is and how many pages it has."""

    media_type: MediaType
    page_count: int


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Pages that were cut out of a file: a PDF of several, or an image of one."""

    media_type: MediaType
    content: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Word:
    """One word of a page: where it stands in `PageRead.text` and on the page.

    `start` and `end` are character offsets (0-based, end exclusive). The box is in fractions (0–1)
    of the page as `render_page` shows it, origin top left. `confidence` is Tesseract's (0–100),
    None for a word of the text layer.
    """

    start: int
    end: int
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class PageRead:
    """One page as it was read.

    `number` is 1-based. `width` and `height` are those of the page as displayed: points (1/72 inch)
    for a PDF, pixels for an image. `rotation` is the clockwise turn in degrees (0, 90, 180, 270)
    that `render_page`'s image needs to read upright. `ocr_confidence` is the mean word confidence
    (0–100), None unless OCR found words. `damage` says why a page could not be read; its text is
    then empty and its source "damaged", and it is never blank.
    """

    number: int
    text: str
    source: PageSource
    width: float
    height: float
    rotation: int = 0
    words: tuple[Word, ...] = ()
    ocr_confidence: float | None = None
    is_blank: bool = False
    warnings: tuple[str, ...] = ()
    damage: str | None = None
