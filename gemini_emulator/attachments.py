"""Documents and images inside a request: count their tokens, and read them as text.

The reader's killable child process parses them: PDFium for a text layer, Tesseract for a scan.
Pages are counted here on the loop's own thread, because PDFium is not thread-safe.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import pypdfium2 as pdfium

from pipeline.documents.reader import InputRefused, ReaderError, read_pages
from pipeline.providers.prompts import Question, page_tokens

PDF = "application/pdf"
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
REMEMBERED = 64


class UnreadableError(ValueError):
    """The service would refuse these bytes."""


@dataclass(frozen=True, kw_only=True)
class Inline:
    """One `inlineData` part."""

    media_type: str
    content: bytes = field(repr=False)
    pages: int

    def tokens(self, model: str) -> int:
        """Return the input tokens of the part's pages."""
        return self.pages * page_tokens(model)

    @property
    def modality(self) -> str:
        """`DOCUMENT` or `IMAGE`, as the usage figures name it."""
        return "DOCUMENT" if self.media_type == PDF else "IMAGE"


def inline(media_type: str, content: bytes) -> Inline:
    """Inspect the bytes of a part.

    Raises UnreadableError with the service's own message if the service would refuse them.
    """
    if media_type in IMAGES:
        return Inline(media_type=media_type, content=content, pages=1)
    if media_type != PDF:
        raise UnreadableError(f"Unsupported MIME type: {media_type}")
    try:
        document = pdfium.PdfDocument(content)
        pages = len(document)
        document.close()
    except pdfium.PdfiumError:
        raise UnreadableError("Request contains an invalid argument.") from None
    if not pages:
        raise UnreadableError("The document has no pages.")
    return Inline(media_type=media_type, content=content, pages=pages)


class Pages:
    """Reads attached pages and caches recent documents, because retries send the same bytes."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._lock = Lock()

    def fill(self, question: Question, documents: Sequence[Inline]) -> Question:
        """Return the question with the text of its attached pages. Runs in a thread.

        A missing or unreadable page has no text: a model would see nothing either.
        """
        if not any(s.attached and not s.text for s in question.slices):
            return question
        texts = [text for document in documents for text in self._texts(document)]
        return replace(
            question,
            slices=tuple(
                replace(s, text=texts[s.attached - 1])
                if 0 < s.attached <= len(texts) and not s.text
                else s
                for s in question.slices
            ),
        )

    def _texts(self, document: Inline) -> tuple[str, ...]:
        key = hashlib.sha256(document.content).hexdigest()
        with self._lock:
            if key in self._known:
                return self._known[key]
        texts = _read(document)
        with self._lock:
            self._known[key] = texts
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return texts


def _read(document: Inline) -> tuple[str, ...]:
    texts = [""] * document.pages
    with tempfile.NamedTemporaryFile(prefix="emulator-") as copy:
        copy.write(document.content)
        copy.flush()
        try:
            for page in read_pages(copy.name, 1, document.pages):
                texts[page.number - 1] = page.text
        except (InputRefused, ReaderError):
            return tuple(texts)
    return tuple(texts)
