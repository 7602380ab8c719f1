"""The database rows that prove a log of the emulator.

The module only reads. For each record in the log it reads all batches, chunks and calls. So an item
that never reached the emulator is noticed too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from gemini_emulator.proof import Proof, RecordedCall, RecordedItem, prove
from gemini_emulator.request_log import LogLine
from pipeline.core.states import JobStatus, WorkStatus
from pipeline.execution.split_plan import SPLIT_CODES
from pipeline.execution.splits import token_of
from pipeline.models import Job, ProviderCall, Session
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES


class CallSubject(NamedTuple):
    """The subject of a call: its row, its part of a split, and its pages."""

    row: UUID
    name: str
    pages: tuple[int, int]


NO_ITEM = UUID(int=0)
AT_ONCE = 5_000
"""Ids per SQL statement, so that a long log stays within the limit of parameters."""


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
    calls = list(_calls(sessions))
    items = [
        item
        for table in WORK_TABLES.values()
        for item in _items(table.rows.filter(processing_session__in=sessions), ended)
    ]
    return prove(lines, [*_with_parts(items, calls)], [call for call, _ in calls])


def _with_parts(
    items: Sequence[RecordedItem], calls: Sequence[tuple[RecordedCall, CallSubject]]
) -> Iterator[RecordedItem]:
    """Yield the items, and the parts of each item that was split; a part has its own replies."""
    by_row: dict[str, list[tuple[RecordedCall, CallSubject]]] = defaultdict(list)
    for call, part in calls:
        by_row[part.row.hex].append((call, part))
    for item in items:
        own = by_row[item.token]
        split = {part.name for call, part in own if call.outcome in SPLIT_CODES}
        parts = {part.name for _, part in own} | {name + digit for name in split for digit in "01"}
        ranges = {part.name: part.pages for _, part in own}
        answered = {part.name for call, part in own if call.accepted}
        for name in sorted(parts - {""}):
            first, last = ranges.get(name, (item.first_page, item.last_page))
            yield replace(
                item,
                token=token_of(UUID(item.token), name),
                succeeded=name in answered,
                first_page=first,
                last_page=last,
            )
        yield item if "" in answered or not answered else replace(item, succeeded=False)


def _sessions(tokens: Iterable[str]) -> list[UUID]:
    ids = []
    for token in tokens:
        with suppress(ValueError):
            ids.append(UUID(token))
    found: set[UUID] = set()
    for at in range(0, len(ids), AT_ONCE):
        for table in WORK_TABLES.values():
            some = table.rows.filter(pk__in=ids[at : at + AT_ONCE])
            found.update(some.values_list("processing_session_id", flat=True))
    return sorted(found)


def _items(rows: QuerySet[WorkItem, WorkItem], ended: set[UUID]) -> Iterator[RecordedItem]:
    fields = ("id", "status", "page_range_start", "page_range_end", "processing_session_id")
    for pk, status, first, last, session in rows.values_list(*fields):
        yield RecordedItem(
            token=pk.hex,
            succeeded=status == WorkStatus.SUCCEEDED,
            first_page=first,
            last_page=last,
            ended_early=session in ended,
        )


def _calls(sessions: Sequence[UUID]) -> Iterator[tuple[RecordedCall, CallSubject]]:
    rows = ProviderCall.objects.filter(processing_session__in=sessions, provider="gemini")
    for call in rows.exclude(work_item_id=None).iterator():
        began = call.started_at.timestamp()
        item = call.work_item_id or NO_ITEM
        recorded = RecordedCall(
            token=token_of(item, call.split),
            run=f"{call.processing_session_id} {call.step}",
            accepted=call.accepted,
            outcome=call.outcome,
            response_id=call.response_id or "",
            lease_gen=call.lease_gen,
            began=began,
            ended=began + call.duration_ms / 1000,
        )
        yield (
            recorded,
            CallSubject(item, call.split, (call.page_range_start or 0, call.page_range_end or 0)),
        )
