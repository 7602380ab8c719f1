"""A call attaches the right pages, sends the others as text, and bounds the memory."""

from __future__ import annotations

import gc
import io
import threading
from pathlib import Path

import pikepdf
import pytest

from pipeline.core.errors import CallError, ErrorCode
from pipeline.core.types import PageSlice, PageText
from pipeline.documents.reader import ReaderLimits
from pipeline.execution.attachments import HeldBytes, Source
from pipeline.providers.base import Attachment
from pipeline.providers.prompts import (
    read_prompt,
    render_discovery,
    render_entities,
)
from tests.support import hostile_files
from tests.support.emulator import MODEL

TOKEN = "ab" * 16
PAGES = {n: PageText(number=n, text=f"Line one of {n}\nLine two of {n}\n") for n in range(1, 5)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "record"
    file.write_bytes(hostile_files.note_pdf(4))
    return file


def source(
    path: Path, *, textual: frozenset[int] = frozenset(), limits: ReaderLimits | None = None
) -> Source:
    return Source(path, limits=limits or ReaderLimits(), model=MODEL, textual=textual)


def whole(number: int) -> PageSlice:
    return PageSlice(page=number, start=0, text=PAGES[number].text)


def part(number: int, *, context: bool = False) -> PageSlice:
    return PageSlice(page=number, start=0, text="Line one of ", context=context)


def page_count(attachments: tuple[Attachment, ...]) -> int:
    (attachment,) = attachments
    with pikepdf.open(io.BytesIO(attachment.content)) as file:
        return len(file.pages)


def test_a_page_that_is_the_encounters_alone_is_attached_in_place_of_its_text(path: Path) -> None:
    shown = source(path).whole_pages([whole(2), whole(3)], PAGES)

    prompt = render_entities(TOKEN, shown.slices, include_zones=True)
    assert page_count(shown.attachments) == 2
    assert f"<<<PAGE {TOKEN} 2 0 own attached=1>>>" in prompt
    assert f"<<<PAGE {TOKEN} 3 0 own attached=2>>>" in prompt
    assert "Line one" not in prompt
    assert shown.input_tokens == 2 * 560


def test_only_the_encounters_own_text_of_a_shared_page_is_sent(path: Path) -> None:
    shown = source(path).whole_pages([whole(1), part(2)], PAGES)

    prompt = render_entities(TOKEN, shown.slices, include_zones=False)
    assert page_count(shown.attachments) == 1
    assert "Line one of " in prompt
    assert "Line two" not in prompt


def test_context_is_sent_as_text_and_its_page_is_not_attached(path: Path) -> None:
    shown = source(path).whole_pages([part(1, context=True), whole(2)], PAGES)

    assert [(s.page, s.attached) for s in shown.slices] == [(1, 0), (2, 1)]
    assert page_count(shown.attachments) == 1


def test_runs_that_leave_out_only_white_space_are_one_whole_page(path: Path) -> None:
    text = PAGES[2].text
    first, second = text.splitlines()
    runs = [
        PageSlice(page=2, start=0, text=first),
        PageSlice(page=2, start=text.index(second), text=second),
    ]

    shown = source(path).whole_pages(runs, PAGES)

    assert [(s.page, s.start, s.attached) for s in shown.slices] == [(2, 0, 1)]


def test_a_page_with_hidden_text_is_sent_as_the_text_that_shows(path: Path) -> None:
    hidden = source(path, textual=frozenset({2}))

    for shown in (
        hidden.whole_pages([whole(1), whole(2)], PAGES),
        hidden.beside_text([whole(1), whole(2)]),
    ):
        assert [s.attached for s in shown.slices] == [1, 0]
        assert page_count(shown.attachments) == 1


def test_discovery_keeps_the_numbered_lines_beside_the_pages(path: Path) -> None:
    blank = PageSlice(page=4, start=0, text=" ")

    shown = source(path).beside_text([part(1, context=True), whole(2), whole(3), blank])

    prompt = render_discovery(TOKEN, shown.slices)
    assert [(s.page, s.attached) for s in shown.slices] == [(1, 0), (2, 1), (3, 2), (4, 0)]
    assert "1| Line one of 2" in prompt
    assert page_count(shown.attachments) == 2


def test_a_prompt_of_attached_pages_is_read_back(path: Path) -> None:
    shown = source(path).whole_pages([part(1, context=True), whole(2)], PAGES)

    question = read_prompt(render_entities(TOKEN, shown.slices, include_zones=True))

    assert [(s.page, s.context, s.attached, s.text) for s in question.slices] == [
        (1, True, 0, "Line one of "),
        (2, False, 1, ""),
    ]


def test_a_prompt_of_text_says_nothing_of_attachments() -> None:
    for prompt in (
        render_entities(TOKEN, [whole(1)], include_zones=True),
        render_discovery(TOKEN, [whole(1)]),
    ):
        assert "attached" not in prompt


@pytest.mark.parametrize(
    ("content", "limits", "code"),
    [
        (hostile_files.note_pdf(1), ReaderLimits(), ErrorCode.INPUT_INVALID),
        (hostile_files.note_pdf(4), ReaderLimits(max_bytes=100), ErrorCode.CONTEXT_TOO_LARGE),
    ],
    ids=["broken", "too many"],
)
def test_pages_that_cannot_be_cut_out_say_whether_fewer_may_help(
    path: Path, content: bytes, limits: ReaderLimits, code: ErrorCode
) -> None:
    path.write_bytes(content)

    with pytest.raises(CallError) as raised:
        source(path, limits=limits).whole_pages([whole(2)], PAGES)

    assert raised.value.code is code
    assert raised.value.__cause__ is None


def attachment(size: int) -> Attachment:
    return Attachment(media_type="application/pdf", content=b"x" * size)


def test_a_call_waits_until_the_pages_of_others_have_gone() -> None:
    room = HeldBytes(100, max_wait_s=60)
    first = room.hold(attachment(80))
    waits = threading.Thread(target=room.hold, args=(attachment(50),))
    waits.start()
    waits.join(0.05)
    assert waits.is_alive()

    first.release()

    waits.join(60)
    assert not waits.is_alive()
    assert first.content == b""


def test_pages_that_are_forgotten_make_room_too() -> None:
    room = HeldBytes(100)
    held = room.hold(attachment(80))
    assert room.held == 80

    del held
    gc.collect()

    assert room.held == 0


def test_a_release_counts_once() -> None:
    room = HeldBytes(100)
    held = room.hold(attachment(80))

    held.release()
    held.release()

    assert room.held == 0


def test_a_too_large_attachment_goes_ahead_and_no_call_waits_without_end() -> None:
    room = HeldBytes(100, max_wait_s=0.0)

    first, second = room.hold(attachment(500)), room.hold(attachment(10))

    assert room.held == 510
    assert first.content
    assert second.content


def test_pages_are_not_shown_in_a_repr() -> None:
    assert "xxx" not in repr(attachment(10))
