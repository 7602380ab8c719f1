"""`PASS_INPUT=pdf`: the pages of a call, cut out of the record's file and sent beside the prompt.

The executor thread opens the file once a step; `Source` runs in call threads and touches no
database. The cut pages stay within a bound of memory. A page that another encounter shares is not
sent: the prompt holds this encounter's text of that page alone.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from django.conf import settings

from pipeline.core.errors import CallError, ErrorCode
from pipeline.core.types import PageSlice, PageText
from pipeline.documents import reader, storage
from pipeline.models import Page, ShellFile
from pipeline.providers.base import Attachment
from pipeline.providers.prompts import page_tokens

logger = logging.getLogger(__name__)

CUT_AT_ONCE = 2
"""Children that cut pages at the same time in this process; one takes 0.2 s (measured)."""
MAX_HELD_BYTES = 128 * 1024 * 1024
"""Of attachments that wait for their answers in this process; ten scanned pages have 2–10 MB."""
MAX_WAIT_S = 30.0
"""How long a call waits for that room before it goes on without."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a call shows: slices for its prompt, and the pages that are attached."""

    slices: tuple[PageSlice, ...]
    attachments: tuple[Attachment, ...] = ()
    input_tokens: int = 0
    """Estimate of the attached pages'."""


class Source:
    """Shows pages of one file, as text or attached."""

    def __init__(
        self,
        path: Path,
        *,
        limits: reader.ReaderLimits,
        model: str,
        textual: frozenset[int] = frozenset(),
    ) -> None:
        self._path = path
        self._limits = limits
        self._model = model
        self._textual = textual
        """Pages that are shown as text, since they hold text that a reader of paper never sees."""

    def whole_pages(self, slices: Sequence[PageSlice], pages: Mapping[int, PageText]) -> Shown:
        """Attach each page of which the slices hold all the text, in place of that text.

        Raises CallError where the pages cannot be cut out.
        """
        whole = self._whole(slices, pages)
        places = {number: place for place, number in enumerate(sorted(whole), start=1)}
        shown: list[PageSlice] = []
        for part in slices:
            if part.context or part.page not in whole:
                shown.append(part)
            elif not any(s.page == part.page and s.attached for s in shown):
                text = pages[part.page].text
                shown.append(
                    PageSlice(page=part.page, start=0, text=text, attached=places[part.page])
                )
        return self._shown(shown, sorted(whole))

    def size_of_whole_pages(
        self, slices: Sequence[PageSlice], pages: Mapping[int, PageText]
    ) -> int:
        """Estimate the input tokens of what `whole_pages` shows; cuts nothing."""
        whole = self._whole(slices, pages)
        text = sum(len(s.text) for s in slices if s.context or s.page not in whole)
        return text // 4 + self._tokens(whole)

    def beside_text(
        self, slices: Sequence[PageSlice], only: Collection[int] | None = None
    ) -> Shown:
        """Attach the own pages that have text, beside that text, by whose lines they are told.

        `only` limits the pages; None does not.
        """
        numbers = [n for n in self._beside(slices) if only is None or n in only]
        places = {number: place for place, number in enumerate(numbers, start=1)}
        shown = [
            s if s.context or s.page not in places else replace(s, attached=places[s.page])
            for s in slices
        ]
        return self._shown(shown, numbers)

    def size_beside_text(self, slices: Sequence[PageSlice]) -> int:
        """Estimate the input tokens of what `beside_text` shows; cuts nothing."""
        return sum(len(s.text) for s in slices) // 4 + self._tokens(self._beside(slices))

    def _whole(self, slices: Sequence[PageSlice], pages: Mapping[int, PageText]) -> set[int]:
        return {
            number
            for number in {s.page for s in slices if not s.context}
            if number not in self._textual and _covers(slices, pages[number])
        }

    def _beside(self, slices: Sequence[PageSlice]) -> list[int]:
        return sorted(
            {
                s.page
                for s in slices
                if not s.context and s.text.strip() and s.page not in self._textual
            }
        )

    def _tokens(self, attached: Collection[int]) -> int:
        return len(attached) * page_tokens(self._model)

    def _shown(self, slices: Sequence[PageSlice], numbers: Sequence[int]) -> Shown:
        return Shown(
            slices=tuple(slices),
            attachments=self._cut(numbers),
            input_tokens=self._tokens(numbers),
        )

    def _cut(self, numbers: Sequence[int]) -> tuple[Attachment, ...]:
        if not numbers or _only_text.get():
            return ()
        with _cutters:
            try:
                parts = reader.slice_pages(self._path, numbers, self._limits)
            except reader.InputRefused as refusal:
                raise _call_error(refusal) from None
            return tuple(
                _held.hold(Attachment(media_type=part.media_type.value, content=part.content))
                for part in parts
            )


_only_text: ContextVar[bool] = ContextVar("only_text", default=False)


@contextmanager
def without_attachments() -> Iterator[None]:
    """Cut no pages in this thread: only the prompts are needed."""
    before = _only_text.set(True)
    try:
        yield
    finally:
        _only_text.reset(before)


@contextmanager
def source_of(
    shell_file_id: UUID, copying: storage.Copying = storage.at_once
) -> Iterator[Source | None]:
    """Give the record's file for the time of a step; None where only text is sent.

    `copying` is that of `storage.local_path`.

    A text file has no pictures of pages, so its text is sent in each mode.

    Runs in the executor thread: reads the database and opens the store.
    """
    if settings.PASS_INPUT != "pdf":  # noqa: S105 - a mode, not a password
        yield None
        return
    stored = ShellFile.objects.values_list("storage_key", "media_type")
    key, media_type = stored.get(id=shell_file_id)
    if media_type in reader.TEXT_TYPES:
        yield None
        return
    hidden = Page.objects.filter(
        shell_file_id=shell_file_id, warnings__contains=[reader.HIDDEN_TEXT]
    )
    with storage.local_path(key, copying) as path:
        yield Source(
            path,
            limits=replace(
                reader.ReaderLimits(),
                max_bytes=settings.MAX_UPLOAD_MB * 1024 * 1024,
                max_pages=settings.MAX_PAGES,
            ),
            model=settings.GEMINI_MODEL,
            textual=frozenset(hidden.values_list("page_number", flat=True)),
        )


class HeldBytes:
    """Bounds the bytes of attachments that are alive in this process."""

    def __init__(self, most: int = MAX_HELD_BYTES, *, max_wait_s: float = MAX_WAIT_S) -> None:
        self._most = most
        self._max_wait_s = max_wait_s
        self._free = threading.Condition()
        self.held = 0

    def hold(self, attachment: Attachment) -> Attachment:
        """Wait for room, then count an attachment until it is released or forgotten.

        An attachment larger than the limit is sent on its own. After `max_wait_s` the call
        proceeds anyway: the limit must not stall work.
        """
        size = len(attachment.content)
        due = time.monotonic() + self._max_wait_s
        with self._free:
            while self.held and self.held + size > self._most:
                if not self._free.wait(max(0.0, due - time.monotonic())):
                    logger.warning(
                        "attached pages pass the bound of memory: %d bytes",
                        self.held + size,
                        extra={"action": "attachments_over_bound"},
                    )
                    break
            self.held += size
        release = weakref.finalize(attachment, self._release, size)
        release.atexit = False
        attachment.on_release = release
        return attachment

    def _release(self, size: int) -> None:
        with self._free:
            self.held -= size
            self._free.notify_all()


_cutters = threading.BoundedSemaphore(CUT_AT_ONCE)
_held = HeldBytes()


def _covers(slices: Sequence[PageSlice], page: PageText) -> bool:
    """Return whether nothing but white space of a page is left out."""
    at, left = 0, ""
    for part in sorted((s for s in slices if s.page == page.number), key=lambda s: s.start):
        if part.context:
            return False
        left += page.text[at : part.start]
        at = max(at, part.start + len(part.text))
    return bool(page.text.strip()) and not (left + page.text[at:]).strip()


def _call_error(refusal: reader.InputRefused) -> CallError:
    """Fewer pages may fit where many are too much for a limit; a broken one stays broken."""
    if refusal.code == "INPUT_TOO_LARGE":
        return CallError("the pages are too large to be attached", code=ErrorCode.CONTEXT_TOO_LARGE)
    return CallError("the pages cannot be cut out of the file", code=ErrorCode(refusal.code))
