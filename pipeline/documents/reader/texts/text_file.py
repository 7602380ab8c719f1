"""An open text file: its pages as text with places, and as images. Runs in the child only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from .. import refusals
from ..ocr import Ocr
from ..types import InputRefused, MediaType, PageRead, ReaderLimits
from . import blocks, ccda, characters, docx, drawing, encoding, plain, rtf
from .lines import Item
from .typesetting import ROWS, paginate


@dataclass(frozen=True, kw_only=True)
class Content:
    """The items of a file, and the warnings that hold for each of its pages."""

    items: Iterable[Item]
    warnings: tuple[str, ...] = ()


class TypedDocument:
    """An open file of one of the `TEXT_TYPES`."""

    def __init__(self, path: Path, media_type: MediaType, limits: ReaderLimits) -> None:
        size = path.stat().st_size
        if media_type is not MediaType.DOCX and size > limits.max_text_bytes:
            raise refusals.too_many_bytes(size, limits.max_text_bytes)
        try:
            content = _OPENED_BY[media_type](path, limits)
            self._pages = paginate(content.items, limits.max_pages)
        except (InputRefused, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - a hostile file raises anything
            raise refusals.broken_document(media_type.name) from None
        self._warnings = content.warnings
        self.page_count = len(self._pages)
        if self.page_count == 0:
            raise refusals.no_pages()
        if self.page_count > limits.max_pages:
            raise refusals.too_many_pages(self.page_count, limits.max_pages)

    def read(self, number: int, _ocr: Ocr | None = None) -> PageRead:
        """Return page `number` (1-based); its words need no OCR."""
        page = self._pages[number - 1]
        text, words = page.text()
        width, height = page.points
        return PageRead(
            number=number,
            text=text,
            source="text_layer" if words else "blank",
            width=width,
            height=height,
            words=words,
            is_blank=not words,
            unread_share=page.unread_share,
            warnings=tuple(dict.fromkeys((*page.warnings, *(self._warnings if words else ())))),
        )

    def render(self, number: int, dpi: int) -> Image.Image:
        """Return page `number` (1-based) in colour at `dpi`."""
        return drawing.draw(self._pages[number - 1], dpi)


def _plain(path: Path, limits: ReaderLimits) -> Content:
    decoded = encoding.decode(path.read_bytes())
    text, warnings = characters.normalised(decoded.text)
    # A page end drops one empty line at most, so that many lines need that many pages at least.
    least = text.count("\n") // (ROWS + 1)
    if least > limits.max_pages + 1:
        raise refusals.too_many_pages(least, limits.max_pages)
    return Content(items=plain.items_of(text), warnings=(*decoded.warnings, *warnings))


def _rtf(path: Path, _: ReaderLimits) -> Content:
    return Content(items=blocks.items_of(rtf.read_rtf(path.read_bytes())))


def _docx(path: Path, limits: ReaderLimits) -> Content:
    return Content(items=blocks.items_of(docx.read_docx(path, limits)))


def _ccda(path: Path, _: ReaderLimits) -> Content:
    return Content(items=blocks.items_of(ccda.read_ccda(path)))


_OPENED_BY: dict[MediaType, Callable[[Path, ReaderLimits], Content]] = {
    MediaType.TEXT: _plain,
    MediaType.RTF: _rtf,
    MediaType.DOCX: _docx,
    MediaType.CCDA: _ccda,
}
