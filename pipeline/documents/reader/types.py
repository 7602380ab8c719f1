"""The values that cross the reader's interface: limits in, pages out, and one refusal.

Every value is frozen and carries no file name. `InputRefused` carries no content of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

RefusalCode = Literal["INPUT_ENCRYPTED", "INPUT_INVALID", "INPUT_TOO_LARGE"]
PageSource = Literal["text_layer", "ocr", "mixed", "blank", "damaged"]
RegionKind = Literal[
    "ocr", "unread", "tiny", "faint", "off_page", "unpainted", "covered", "to_a_model"
]
SuspectFlag = Literal["hidden_text", "addresses_a_model"]

#: The page contains characters that its rendered image does not show; `text` omits them.
HIDDEN_TEXT: Final = "hidden_text"
#: Text of the page, shown or hidden, addresses a language model.
ADDRESSES_A_MODEL: Final = "addresses_a_model"
#: The text layer was garbage, or was empty over an image. The page was read from its image.
TEXT_LAYER_REJECTED = "text_layer_rejected"
#: The page is so large that it was rendered at less than `Limits.dpi`.
RENDERED_SMALLER = "rendered_smaller"
#: A library could open the file only after it was rebuilt.
REPAIRED = "repaired"
#: A part of the page (an image, a stream) could not be decoded; the rest was read.
PARTLY_DAMAGED = "partly_damaged"
#: The page shows ink that neither the text layer nor OCR explains; `unread_share` measures the ink.
PARTLY_READ = "partly_read"
#: The page or its file carries attached files, which were not read.
ATTACHMENTS = "attachments"
#: The JPEG holds further pictures, which were not read; a preview or a gain map is no such picture.
FURTHER_PICTURES = "further_pictures"
#: A text file does not say its encoding; letters with accents may be other letters.
ENCODING_GUESSED = "encoding_guessed"
#: Some characters were lost when the file was saved; they are shown as U+FFFD.
LOST_CHARACTERS = "lost_characters"
#: The page holds changes that are not yet accepted; deleted words are left out.
TRACKED_CHANGES = "tracked_changes"


class MediaType(StrEnum):
    """The type of a file by its content."""

    PDF = "application/pdf"
    TIFF = "image/tiff"
    PNG = "image/png"
    JPEG = "image/jpeg"
    WEBP = "image/webp"
    BMP = "image/bmp"
    HEIC = "image/heic"
    TEXT = "text/plain"
    RTF = "application/rtf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    CCDA = "text/xml"


#: Types that hold text instead of pictures of pages. The reader makes their pages itself.
TEXT_TYPES = frozenset({MediaType.TEXT, MediaType.RTF, MediaType.DOCX, MediaType.CCDA})


class InputRefused(Exception):  # noqa: N818 - a verdict on the input, not a fault of this program
    """The file cannot be processed, now or later; `message` tells the user how to correct this."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code: RefusalCode = code
        self.message = message


class ReaderError(RuntimeError):
    """The reader itself is at fault (installation, bug); the input was not judged."""


@dataclass(frozen=True, kw_only=True)
class ReaderLimits:
    """The resources that one file may use; measured on 40 odd, broken and hostile files."""

    #: Size of the file in bytes.
    max_bytes: int = 512 * 1024 * 1024
    #: Pages of the file. A record of thousands of pages is real, a file of 20,000 pages is an
    #: attack.
    max_pages: int = 10_000
    #: Size in bytes of a text, RTF or XML file, and of each unpacked part of a DOCX file. A page of
    #: text has about 3,000 characters.
    max_text_bytes: int = 32 * 1024 * 1024
    #: Pixels of one rendered page or one stored frame; A4 at 200 dpi has 3.9 million.
    max_pixels_per_page: int = 40_000_000
    #: Address space of the child in bytes, which also bounds its resident memory.
    memory_bytes: int = 800_000_000
    #: Wall time in seconds for one page, including OCR at four rotations.
    seconds_per_page: float = 20.0
    #: Wall time in seconds to open a file and count its pages.
    seconds_to_open: float = 10.0
    #: Resolution in dots per inch at which a page is rendered for OCR.
    dpi: int = 200


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The type of a file and its number of pages."""

    media_type: MediaType
    page_count: int


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Pages cut out of a file: one PDF of several pages, or one image of a single page."""

    media_type: MediaType
    content: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Word:
    """One word of a page: its place in `PageRead.text` and on the page.

    `start` and `end` are character offsets (0-based, end exclusive). The box is in fractions (0–1)
    of the page as `render_page` shows it, with the origin at the top left. `confidence` is
    Tesseract's (0–100); None for a word of the text layer.
    """

    start: int
    end: int
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """A part of a page that needs a look.

    Only OCR could read the part (`ocr`) or nothing could (`unread`); or words that do not show were
    left out there (`tiny`, `faint`, `off_page`, `unpainted`, `covered`, as `HiddenWhy` says); or
    the words there address a language model (`to_a_model`). The box is in fractions (0–1) of the
    page, like the box of a `Word`.
    """

    kind: RegionKind
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """A part `start`–`end` of the page text in which a person must check every entity.

    `hidden_text`: hidden words lie between or below these words. `addresses_a_model`: a paragraph
    with words to a language model.
    """

    flag: SuspectFlag
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class PageRead:
    """One page as it was read.

    `number` is 1-based. `width` and `height` are those of the displayed page: points (1/72 inch)
    for a PDF and a text file, pixels for an image. `rotation` is the clockwise turn in degrees
    (0, 90, 180, 270) that makes the image of `render_page` upright. `ocr_confidence` is the mean
    word confidence
    (0–100), or None if OCR found no words. `damage` says why a page could not be read. A damaged
    page has no text, has the source "damaged", and is never blank. The source "mixed" means a text
    layer to which OCR added words; only these words have a confidence. `regions` shows where, and
    where ink stayed unread. `unread_share` is the share (0–1) of the page with unread ink.
    """

    number: int
    text: str
    source: PageSource
    width: float
    height: float
    rotation: int = 0
    words: tuple[Word, ...] = ()
    regions: tuple[Region, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    unread_share: float = 0.0
    ocr_confidence: float | None = None
    is_blank: bool = False
    warnings: tuple[str, ...] = ()
    damage: str | None = None
