"""Pages that are attached to a call as bytes: what is sent, what is refused, what is released."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gemini_emulator import Emulator
from pipeline.core.errors import ErrorCode
from pipeline.core.types import PageSlice
from pipeline.providers.base import Attachment, Request
from pipeline.providers.gemini import GeminiProvider
from pipeline.providers.prompts import estimate_tokens, render_entities
from pipeline.providers.schemas import EntityReply
from tests.support import hostile_files
from tests.support.emulator import MODEL, entities_request, failure, gemini


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def provider(emulator: Emulator) -> Iterator[GeminiProvider]:
    made = gemini(emulator.url)
    yield made
    made.close()


def attached_request(*contents: bytes, media_type: str = "application/pdf") -> Request:
    """Request the entities of one attached page."""
    whole = PageSlice(page=4, start=0, text="never sent", attached=1)
    request = entities_request()
    return replace(
        request,
        prompt=render_entities(request.item_token, [whole], include_zones=False),
        attachments=tuple(Attachment(media_type=media_type, content=c) for c in contents),
    )


def test_an_attached_page_is_read_and_released(provider: GeminiProvider) -> None:
    request = attached_request(hostile_files.note_pdf())

    reply = provider.generate(request)

    assert isinstance(reply.output, EntityReply)
    assert {(e.page, e.name.lower()) for e in reply.output.entities} >= {(4, "metformin")}
    assert reply.details.input_tokens == estimate_tokens(request.prompt) + 560
    assert [attachment.content for attachment in request.attachments] == [b""]


def test_a_page_that_was_not_attached_has_no_entities(provider: GeminiProvider) -> None:
    reply = provider.generate(attached_request())

    assert isinstance(reply.output, EntityReply)
    assert reply.output.entities == []


def test_pages_that_are_too_large_are_not_sent_and_ask_for_fewer(emulator: Emulator) -> None:
    content = hostile_files.note_pdf()
    provider = GeminiProvider(
        api_key="k", model=MODEL, base_url=emulator.url, max_inline_bytes=2 * len(content) - 1
    )
    before = len(emulator.log())

    error = failure(provider, attached_request(content, content))

    assert error.code is ErrorCode.CONTEXT_TOO_LARGE
    assert len(emulator.log()) == before


@pytest.mark.parametrize(
    ("content", "media_type", "code"),
    [
        (b"%PDF-1.7 nothing", "application/pdf", ErrorCode.API_4XX),
        (b"x", "application/zip", ErrorCode.API_4XX),
    ],
)
def test_bytes_that_the_service_refuses_are_a_refused_request(
    provider: GeminiProvider, content: bytes, media_type: str, code: ErrorCode
) -> None:
    assert failure(provider, attached_request(content, media_type=media_type)).code is code
