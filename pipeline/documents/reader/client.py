"""The parent's side of the reader: a killable child process answers each request.

Even if a file crashes the child, the caller gets pages, an `InputRefused`, or a `ReaderError` if
this project is at fault.
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from . import ipc, refusals
from .types import MediaType, PageRead, Probe, ReaderError, ReaderLimits, Slice
from .version import reader_version


def warm() -> None:
    """Do the one-time work of a process that reads files, which a forked process inherits."""
    import_module(f"{__package__}.watchdog")
    reader_version()


def probe(path: str | Path, limits: ReaderLimits | None = None) -> Probe:
    """Return media type and page count of the file at `path`. Raises `InputRefused`."""
    with closing(open_and_read(path, 1, 0, limits)) as found:
        for each in found:
            if isinstance(each, Probe):
                return each
    raise ReaderError


def read_pages(
    path: str | Path, first: int, last: int, limits: ReaderLimits | None = None
) -> Iterator[PageRead]:
    """Yield pages `first` to `last`, like `open_and_read`."""
    with closing(open_and_read(path, first, last, limits)) as found:
        for each in found:
            if isinstance(each, PageRead):
                yield each


def open_and_read(
    path: str | Path, first: int, last: int, limits: ReaderLimits | None = None
) -> Generator[Probe | PageRead, None, None]:
    """Yield media type and page count of the file at `path`, then its pages `first` to `last`.

    The pages are 1-based, inclusive, cut at the file's last page, and in order. One child does
    both: the start of a child takes longer than a page of text.

    Raises `InputRefused` at a file or a page that is too costly or kills the child. Raises it too
    after the last page, if the request covered the whole file and no page was readable. The child
    dies with the iterating thread and when the iterator is closed.
    """
    if first < 1:
        message = "Pages count from 1."
        raise ValueError(message)
    limits = limits or ReaderLimits()
    count = readable = 0
    with closing(_ask(path, limits, verb="read", first=first, last=last)) as answers:
        for kind, body in answers:
            # A child that replaces another child opens the file again.
            if kind == "opened" and not count:
                count = body["page_count"]
                yield Probe(media_type=MediaType(body["media_type"]), page_count=count)
            if kind == "page":
                page = ipc.unpack_page(body)
                readable += page.damage is None
                yield page
    if first == 1 and last >= count and not readable:
        raise refusals.every_page_damaged()


def render_page(
    path: str | Path, number: int, dpi: int = 100, limits: ReaderLimits | None = None
) -> bytes:
    """Return page `number` (1-based) as PNG at `dpi`; the boxes of `Word` match the image."""
    question = {"verb": "render", "first": number, "dpi": dpi}
    with closing(_ask(path, limits or ReaderLimits(), **question)) as answers:
        for kind, body in answers:
            if kind == "png":
                return base64.b64decode(body)
    raise ReaderError


def slice_pages(
    path: str | Path, pages: Sequence[int], limits: ReaderLimits | None = None
) -> tuple[Slice, ...]:
    """Return these pages (1-based) unchanged, without any content of other pages.

    A PDF gives one PDF with the pages in the given order. An image file gives one JPEG per page.
    Raises `InputRefused` (INPUT_TOO_LARGE) if the result exceeds a limit.
    """
    if not pages:
        return ()
    question = {"verb": "slice", "first": pages[0], "pages": list(pages)}
    with closing(_ask(path, limits or ReaderLimits(), **question)) as answers:
        return tuple(
            Slice(media_type=MediaType(body[0]), content=base64.b64decode(body[1]))
            for kind, body in answers
            if kind == "slice"
        )


def _ask(
    path: str | Path, limits: ReaderLimits, **question: Any
) -> Generator[tuple[str, Any], None, None]:
    """Yield the messages of a child; replace a child that was killed from outside, once."""
    # Each child imports this package, and watches no child of its own.
    from .watchdog import KilledFromOutsideError, WatchedChild

    where = Path(path).resolve()
    asked_again = False
    while True:
        child = WatchedChild(where, limits, question)
        try:
            yield from child.messages()
        except KilledFromOutsideError:
            if asked_again:
                raise refusals.too_much_memory(child.page, limits.memory_bytes) from None
            asked_again = True
            question = {**question, "first": child.page} if child.page else question
            continue
        finally:
            child.end()
        return
