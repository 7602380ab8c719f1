"""The prompt and the reply of a call. PHI.

Prompts are not stored. A prompt is rendered again from the pages, and its hash is compared with the
stored hash. So a different prompt is never shown as the prompt that was sent.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from uuid import UUID

from pipeline.core.labels import work_item
from pipeline.core.states import Step
from pipeline.core.types import PageSlice, PageText
from pipeline.documents import reader
from pipeline.execution.attachments import Source
from pipeline.execution.splits import pages_of, token_of
from pipeline.models import OUTCOME_OK, Page, ProviderCall, ProviderPayload, selectors
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES, WorkTable
from pipeline.providers.base import Attachment
from pipeline.providers.prompts import PROMPT_VERSION, render
from pipeline.providers.tasks import TASKS

LONGEST_REPLY = 2_000_000
"""Most characters of a reply that are shown."""


class Prompt(StrEnum):
    """How the rendered prompt compares with the sent prompt; people read the value."""

    SAME = "This is the prompt that was sent: rendered again from the pages, with the same hash."
    DIFFERS = (
        "This is not the prompt that was sent: its hash does not match. Pages, plan or settings"
        " have changed since; the prompt that was sent cannot be shown."
    )
    UNCHECKED = (
        "This prompt is rendered from the pages as they are now. No hash was stored for this call,"
        " so it is unknown whether this is the prompt that was sent."
    )
    OTHER_VERSION = "The prompt's version has changed since; the prompt cannot be rendered again."
    PAGES_GONE = "The pages of this call are no longer stored, so its prompt cannot be rendered."
    NOT_RENDERED = "Prompts of this pass cannot be rendered again."


@dataclass(frozen=True, kw_only=True)
class Read:
    """A call with its prompt and reply."""

    call: ProviderCall
    item: str
    """What the call asks about, in words; empty for a call about a whole record."""
    prompt: str = field(repr=False)
    state: Prompt
    reply: str | None = field(repr=False)
    """Indented if the reply is JSON; None if no reply is stored."""
    is_json: bool = False
    is_cut: bool = False
    missing: str = ""
    """Why no reply is stored."""


def read_call(call: ProviderCall) -> Read:
    """Render the prompt of a call, and read its reply if one is stored."""
    payload: ProviderPayload | None = getattr(call, "payload", None)
    item = selectors.work_item_of(call)
    words = _words(call, item) if item else ""
    prompt, state = _prompt(call, item, payload.prompt_sha256 if payload else "")
    if payload is None:
        return Read(
            call=call, item=words, prompt=prompt, state=state, reply=None, missing=_missing(call)
        )
    text = zlib.decompress(bytes(payload.reply)).decode("utf-8", "replace")
    shown, is_json = set_out(text)
    return Read(
        call=call,
        item=words,
        prompt=prompt,
        state=state,
        reply=shown[:LONGEST_REPLY],
        is_json=is_json,
        is_cut=len(shown) > LONGEST_REPLY,
    )


def reply_lines(call_id: UUID) -> list[str] | None:
    """Return the lines of an indented reply; None if no reply is stored."""
    payload = ProviderPayload.objects.filter(call_id=call_id).first()
    if payload is None:
        return None
    return set_out(zlib.decompress(bytes(payload.reply)).decode("utf-8", "replace"))[0].split("\n")


def set_out(text: str) -> tuple[str, bool]:
    """Return JSON with one value per line, any other text unchanged; and whether it was JSON."""
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False), True
    except (ValueError, RecursionError):
        return text, False


def _words(call: ProviderCall, item: WorkItem) -> str:
    table = WORK_TABLES[Step(call.step)]
    return work_item(table.noun, table.number_of(item), table.encounter_index_of(item))


def _missing(call: ProviderCall) -> str:
    if call.outcome == OUTCOME_OK:
        return "The reply was deleted after its retention time (PAYLOAD_RETENTION_DAYS)."
    return "No reply is stored: the call ended without one, or the reply was deleted."


def _prompt(call: ProviderCall, item: WorkItem | None, digest: str) -> tuple[str, Prompt]:
    if call.prompt_version and call.prompt_version != PROMPT_VERSION:
        return "", Prompt.OTHER_VERSION
    first = ""
    try:
        for prompt in _candidates(call, item):
            if sha256(prompt.encode()).hexdigest() == digest:
                return prompt, Prompt.SAME
            first = first or prompt
            if not digest:
                break
    except KeyError:
        # The plan names a page whose row is gone.
        return "", Prompt.PAGES_GONE
    if not first:
        return "", Prompt.NOT_RENDERED
    return first, Prompt.DIFFERS if digest else Prompt.UNCHECKED


def _candidates(call: ProviderCall, item: WorkItem | None) -> Iterator[str]:
    """Yield the prompt under the settings at submission, then under all other settings."""
    if item is None:
        return
    session = call.processing_session
    pages = selectors.page_texts(session.shell_file_id)
    is_pdf, zones = session.processing_mode == "pdf", _zones(session.model_config)
    source = _Uncut(
        Path(),
        limits=reader.ReaderLimits(),
        model="",
        textual=frozenset(
            Page.objects.filter(
                shell_file_id=session.shell_file_id, warnings__contains=[reader.HIDDEN_TEXT]
            ).values_list("page_number", flat=True)
        ),
    )
    table = WORK_TABLES[Step(call.step)]
    task = TASKS[table.task]
    slices = _slices(table, item, call.split, pages)
    token = token_of(item.id, call.split)
    for attached in (is_pdf, not is_pdf):
        shown = slices
        if attached and task.has_line_numbers:
            shown = source.beside_text(slices).slices
        elif attached:
            shown = source.whole_pages(slices, pages).slices
        for with_zones in (zones, not zones) if task.has_zones else (False,):
            yield render(task, token, shown, include_zones=with_zones)


class _Uncut(Source):
    """A source that names pages as the prompt does, without cutting them out of the file."""

    def _cut(self, numbers: Sequence[int]) -> tuple[Attachment, ...]:
        return ()


def _zones(configuration: object) -> bool:
    stated = configuration if isinstance(configuration, dict) else {}
    return bool(stated.get("include_zones_in_prompt", True))


def _slices(
    table: WorkTable, item: WorkItem, split: str, pages: Mapping[int, PageText]
) -> tuple[PageSlice, ...]:
    """Return the slices of a prompt: those of the pass, or else whole pages with their context."""
    if table.slices:
        slices: tuple[PageSlice, ...] = resolve_name(table.slices)(item, split, pages)
        return slices
    own = pages_of(range(item.page_range_start, item.page_range_end + 1), split)
    context: tuple[int, ...] = ()
    if table.context:
        # A later split sees the page before its own first page.
        first = getattr(item, table.context) if own[0] == item.page_range_start else own[0] - 1
        context = () if first is None else (first,)
    return (
        *(PageSlice(page=n, start=0, text=pages[n].text, context=True) for n in context),
        *(PageSlice(page=n, start=0, text=pages[n].text) for n in own),
    )
