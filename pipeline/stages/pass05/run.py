"""The stage of Pass 0.5: chunks of pages are searched in parallel, then joined and published.

Chunks use the same executor, retries, stored replies and resume as batches. If a chunk fails for
good, the pass fails and publishes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from pydantic import BaseModel

from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode
from pipeline.core.labels import counted, ended_with, pages
from pipeline.core.states import WORK_TERMINAL, WorkStatus
from pipeline.core.types import PageSlice, PageText
from pipeline.execution import executor
from pipeline.execution.attachments import Shown, Source, source_of
from pipeline.execution.heartbeat import call_with_lease
from pipeline.execution.splits import Split, pages_of
from pipeline.execution.step_result import (
    AllItemsEnded,
    StepCompleted,
    StepFailed,
    StepResult,
)
from pipeline.execution.step_work import AcceptedReply
from pipeline.models import Chunk, DiscoverySession, selectors
from pipeline.providers.base import Request
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import provider_for
from pipeline.providers.prompts import estimate_tokens, render_discovery
from pipeline.providers.schemas import DiscoveryReply
from pipeline.stages.pass05 import store
from pipeline.stages.pass05.reconcile import ChunkReport, check, reconcile
from pipeline.stages.pass05.report_dates import without_open_dates
from pipeline.stages.provider_passes import call_request
from pipeline.transitions import Failure, Lease

ISO_639_1 = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy"
    " da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu"
    " hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb"
    " lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om"
    " or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw"
    " ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
"""The two-letter codes of ISO 639-1."""
LANGUAGE = re.compile(rf"({ISO_639_1.replace(' ', '|')}|ceb|fil|haw|hmn|yue)(-[A-Z]{{2}})?")
"""A language, perhaps with a region. Any other text of a model may come from the document."""

PARTS = "parts"
"""Key of a chunk's output that keeps the reply of each split, if the pages were halved."""

MAX_OUTPUT_TOKENS = 16_384
"""Room for about two hundred encounters; a reply that fills this room is in a loop."""


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Find the encounters of a record; continue with the stored plan after an interruption."""
    pages = selectors.page_texts(lease.shell_file_id)
    session, chunks = store.plan(lease, pages, settings.PASS05_CHUNK_PAGES)
    with source_of(lease.shell_file_id, partial(call_with_lease, lease, deadline)) as source:
        work = ChunkWork(pages, chunks, source)
        result = executor.run(
            lease,
            work,
            provider_for(ProviderConfig.of_settings()),
            deadline=deadline,
        )
    if not isinstance(result, AllItemsEnded):
        return result
    failed = [chunk for chunk in chunks if chunk.status == WorkStatus.FAILED]
    if failed:
        of_chunks = _failed(lease, session, _failure(failed, len(chunks)))
        return replace(of_chunks, is_of_items=True)
    reports = _numbered(_with_blank_runs([found for c in chunks for found in _reports(c)]))
    unsupported = sorted({page for found in reports for page in found.unsupported_pages})
    written = [number for number, page in pages.items() if not page.is_blank]
    if written and set(unsupported) >= set(written):
        unread = Failure(
            code=ErrorCode.LANGUAGE_UNSUPPORTED,
            message=f"no page is in a language that the engine reads ({len(written)} pages)",
        )
        return _failed(lease, session, unread)
    reports, unclear = without_open_dates(reports, pages)
    known, key = store.known_digests(lease), store.digest_key()
    found = call_with_lease(
        lease, deadline, lambda: reconcile(reports, pages, known=known, key=key)
    )
    stated = [reply.language for chunk in chunks for _, reply in _replies(chunk)]
    languages = [language for language in stated if LANGUAGE.fullmatch(language)]

    findings = store.Findings(
        session=session,
        chunks=chunks,
        reports=reports,
        pages=pages,
        language=max(languages, key=languages.count) if languages else None,
        unsupported=unsupported,
        rejected=_rejected(chunks),
        unclear_dates=unclear,
    )

    def publish() -> None:
        # Another record of this patient may have been published in the meantime.
        latest = store.locked_digests(lease)
        unchanged = latest == known
        store.publish(
            lease,
            findings,
            found if unchanged else reconcile(reports, pages, known=latest, key=key),
        )

    return StepCompleted(publish=publish)


def report(split: Split[Chunk], reply: DiscoveryReply) -> ChunkReport:
    """Return the reply to a chunk, or to a split of a chunk, in the form for `reconcile`."""
    first, last = split.page_range
    return ChunkReport(
        chunk_index=split.row.chunk_index,
        first_page=first,
        last_page=last,
        context_page=_context_page(split),
        encounters=tuple(reply.encounters),
        unsupported_pages=tuple(reply.unsupported_pages),
    )


def _context_page(split: Split[Chunk]) -> int | None:
    """Return the page before the first one; text on it may continue across the edge."""
    chunk = split.row
    first = split.page_range[0]
    return chunk.context_page if first == chunk.page_range_start else first - 1


def _pages_of(chunk: Chunk) -> range:
    return range(chunk.page_range_start, chunk.page_range_end + 1)


def _replies(chunk: Chunk) -> list[tuple[Split[Chunk], DiscoveryReply]]:
    """Return the replies of a chunk: one reply, or the replies of its splits."""
    output = chunk.unpacked_output
    parts: dict[str, Any] = output.get(PARTS, {"": output})
    return [
        (
            Split(row=chunk, name=name, pages=tuple(pages_of(_pages_of(chunk), name))),
            DiscoveryReply.model_validate(reply),
        )
        for name, reply in sorted(parts.items())
    ]


def _rejected(chunks: Sequence[Chunk]) -> store.Rejected:
    """Return the number of encounters that broke the schema, and the pages of their replies."""
    answered = [pair for chunk in chunks for pair in _replies(chunk)]
    return store.Rejected(
        count=sum(reply.items_rejected for _, reply in answered),
        pages=sorted({p for split, reply in answered if reply.items_rejected for p in split.pages}),
    )


def _reports(chunk: Chunk) -> list[ChunkReport]:
    """Return the reports of a chunk; a split's report knows its first encounter's number."""
    reports: list[ChunkReport] = []
    seen = 0
    for split, reply in _replies(chunk):
        reports.append(replace(report(split, reply), row_index=chunk.chunk_index, first_local=seen))
        seen += len(reply.encounters)
    return reports


def _numbered(reports: list[ChunkReport]) -> list[ChunkReport]:
    """Renumber the reports if a chunk has several; the edges are then between reports."""
    if len({found.chunk_index for found in reports}) == len(reports):
        return reports
    return [replace(found, chunk_index=at) for at, found in enumerate(reports)]


def _with_blank_runs(reports: Sequence[ChunkReport]) -> list[ChunkReport]:
    """Insert an empty report for each run of blank pages that the plan left out."""
    joined: list[ChunkReport] = []
    for found in reports:
        if joined and joined[-1].last_page + 1 < found.first_page:
            joined.append(
                ChunkReport(
                    chunk_index=found.chunk_index - 1,
                    first_page=joined[-1].last_page + 1,
                    last_page=found.first_page - 1,
                    context_page=None,
                    encounters=(),
                )
            )
        joined.append(found)
    return joined


class ChunkWork:
    """The chunks of a record as the executor needs them; their pass publishes at its end."""

    def __init__(
        self, pages: dict[int, PageText], chunks: Sequence[Chunk], source: Source | None = None
    ) -> None:
        self._pages = pages
        self._source = source
        self._overhead = estimate_tokens(render_discovery("", ()))
        self.rows: Sequence[Chunk] = [
            chunk for chunk in chunks if chunk.status not in WORK_TERMINAL
        ]
        self.known: Sequence[Chunk] = ()
        self.groups: Sequence[Hashable] = [chunk.id for chunk in self.rows]

    def group_of(self, row: Chunk) -> Hashable:
        return cast(UUID, row.id)

    @property
    def schema(self) -> type[BaseModel]:
        return DiscoveryReply

    def pages_of(self, row: Chunk) -> Sequence[int]:
        return _pages_of(row)

    def size_of(self, split: Split[Chunk]) -> int:
        slices = self._slices(split)
        if self._source is not None:
            return self._overhead + self._source.size_beside_text(slices)
        return self._overhead + sum(len(s.text) for s in slices) // 4

    def request(self, split: Split[Chunk]) -> Request:
        shown = Shown(slices=tuple(self._slices(split)))
        if self._source is not None:
            shown = self._source.beside_text(shown.slices)
        prompt = render_discovery(split.token, shown.slices)
        return call_request(
            split.token,
            prompt,
            shown,
            schema=DiscoveryReply,
            max_output_tokens=MAX_OUTPUT_TOKENS,
        )

    def accept(self, split: Split[Chunk], output: BaseModel) -> AcceptedReply:
        reply = cast(DiscoveryReply, output)
        check(report(split, reply), self._pages)
        return AcceptedReply(
            output=reply.model_dump(mode="json"),
            counts={"encounters_detected": len(reply.encounters)},
        )

    def merge(
        self, row: Chunk, outputs: Sequence[tuple[Split[Chunk], Mapping[str, Any]]]
    ) -> AcceptedReply:
        return AcceptedReply(
            output={PARTS: {split.name: output for split, output in outputs}},
            counts={"encounters_detected": sum(len(output["encounters"]) for _, output in outputs)},
        )

    def _slices(self, split: Split[Chunk]) -> list[PageSlice]:
        slices = [PageSlice(page=n, start=0, text=self._pages[n].text) for n in split.pages]
        context = _context_page(split)
        if context is not None:
            text = self._pages[context].text
            slices.insert(0, PageSlice(page=context, start=0, text=text, context=True))
        return slices


def _failed(lease: Lease, session: DiscoverySession, failure: Failure) -> StepFailed:
    return StepFailed(failure=failure, publish=lambda: store.fail(lease, session, failure))


def _failure(failed: Sequence[Chunk], total: int) -> Failure:
    first = min(failed, key=lambda chunk: chunk.page_range_start)
    where = pages(range(first.page_range_start, first.page_range_end + 1))
    why = ended_with(first.error_code, first.error_message, first.error_context)
    context: dict[str, Any] = first.error_context or {}
    return Failure(
        code=ErrorCode(first.error_code or ErrorCode.INTERNAL_ERROR),
        message=f"chunk {first.chunk_index + 1} ({where}): {why};"
        f" {len(failed)} of {counted(total, 'chunk')} failed",
        underlying=ErrorCode(context.get("final_underlying_error", ErrorCode.INTERNAL_ERROR)),
        attempt_history=context.get("attempt_history", []),
    )
