"""The rows that a log of the emulator is proved against.

Imports models and the emulator's `proof`; reads only. Of each record that the log tells of, all
batches, chunks and calls are read, so that one that never reached the emulator is missed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from pipeline.models import Batch, Chunk, Job, ProviderCall, Session
from pipeline.provider.emulator.proof import Proof, RecordedCall, RecordedItem, prove
from pipeline.provider.emulator.requestlog import LogLine
from pipeline.states import JobStatus, WorkStatus

AT_ONCE = 5_000
"""Ids in one statement."""


def prove_log(lines: Sequence[LogLine]) -> Proof:
    """Compare a log with the database."""
    sessions = _sessions({line.item_token for line in lines if line.item_token})
    dead = set(
        Job.objects.filter(
            shell_file__in=Session.objects.filter(id__in=sessions).values("shell_file"),
            status__in=(JobStatus.DEAD, JobStatus.CANCELLED, JobStatus.FAILED),
        ).values_list("shell_file_id", flat=True)
    )
    ended = set(
        Session.objects.filter(id__in=sessions, shell_file__in=dead).values_list("id", flat=True)
    )
    items = [
        *_items(Batch.objects.filter(processing_session__in=sessions), ended),
        *_items(Chunk.objects.filter(processing_session__in=sessions), ended),
    ]
    return prove(lines, items, list(_calls(sessions)))


def _sessions(tokens: Iterable[str]) -> list[UUID]:
    ids = []
    for token in tokens:
        with suppress(ValueError):
            ids.append(UUID(token))
    found: set[UUID] = set()
    for at in range(0, len(ids), AT_ONCE):
        for rows in (Batch.objects, Chunk.objects):
            some: QuerySet[Any] = rows.filter(id__in=ids[at : at + AT_ONCE])
            found.update(some.values_list("processing_session_id", flat=True))
    return sorted(found)


def _items(rows: QuerySet[Any], ended: set[UUID]) -> Iterator[RecordedItem]:
    fields = ("id", "status", "page_range_start", "page_range_end", "processing_session_id")
    for pk, status, first, last, session in rows.values_list(*fields):
        yield RecordedItem(
            token=pk.hex,
            succeeded=status == WorkStatus.SUCCEEDED,
            first_page=first,
            last_page=last,
            ended_early=session in ended,
        )


def _calls(sessions: Sequence[UUID]) -> Iterator[RecordedCall]:
    rows = ProviderCall.objects.filter(processing_session__in=sessions, provider="gemini")
    for call in rows.exclude(batch=None, chunk=None).iterator():
        began = call.started_at.timestamp()
        item = call.batch_id or call.chunk_id
        yield RecordedCall(
            token=item.hex if item else "",
            run=f"{call.processing_session_id} {call.step}",
            accepted=call.accepted,
            outcome=call.outcome,
            response_id=call.response_id or "",
            lease_gen=call.lease_gen,
            began=began,
            ended=began + call.duration_ms / 1000,
        )
