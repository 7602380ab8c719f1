"""What a step has to write, collected in memory and written in flushes.

A success is committed within a second. While PostgreSQL is away, results wait in memory as long as
the lease lives. A publication that the database refuses stops no other publication.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from medproc.telemetry import errors
from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.db_errors import is_away
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode
from pipeline.core.redaction import redacted
from pipeline.execution.heartbeat import Heartbeat
from pipeline.execution.step_trace import StepTrace
from pipeline.execution.step_work import GroupPublisher, W
from pipeline.models.work_item import WorkItem
from pipeline.transitions import Flush, Lease, row_of

logger = logging.getLogger(__name__)

FLUSH_S = 0.5
"""Seconds between flushes: half of the second within which a success is committed."""

HELD_RESULTS = 250
"""Results of several groups that one write has at most. The limit bounds the memory: a result of
Pass 2 and its share of the statement need about 3 kB. Groups that run side by side can all end in
the same half second."""
REUSED_RESULTS = 1_000
"""The same limit for results that are reused. No call holds memory then, and fewer writes mean
fewer moments at which a kill leaves a part of the groups for the next run."""


@dataclass(frozen=True, kw_only=True)
class _Publication:
    """What makes one group visible, kept apart until it is written: it can be refused alone."""

    group: Hashable
    flush: Flush
    rows: tuple[UUID, ...]


class StepWriter(Generic[W]):
    """The unwritten changes of one step."""

    def __init__(
        self,
        lease: Lease,
        model: type[WorkItem],
        rows: Mapping[UUID, W],
        heartbeat: Heartbeat,
        deadline: StepDeadline,
        publisher: GroupPublisher[W] | None,
        *,
        is_reuse: bool = False,
    ) -> None:
        """`is_reuse`: all replies are known, so the groups are published together at the end.

        More than REUSED_RESULTS results are published in several writes.
        """
        self._is_reuse = is_reuse
        self._most_results = REUSED_RESULTS if is_reuse else HELD_RESULTS
        self._lease = lease
        self._model = model
        self._rows = rows
        self._heartbeat = heartbeat
        self._deadline = deadline
        self._publisher = publisher
        self._trace = StepTrace.of(lease)
        self._dirty: set[UUID] = set()
        self._publications: list[_Publication] = []
        self._flushed_at = time.monotonic()
        self.flush = Flush(work=model)
        """Rows of calls, payloads and encounters that go with the next write."""

    def touch(self, row: WorkItem) -> None:
        """Have a changed row written."""
        self._dirty.add(row.id)

    def start(self, row: W) -> None:
        """Add what changes in the group of a row when a call of the row begins."""
        if self._publisher is not None:
            self._publisher.start(row, self.flush)

    def settle(self, group: Hashable) -> None:
        """Add what changes when the last row of a group has ended."""
        if self._publisher is None:
            return
        flush = Flush(work=self._model)
        try:
            rows = tuple(self._publisher.settle(group, flush))
        except Exception as error:  # noqa: BLE001 - a group that breaks must not stop the others
            self._refuse(self._publisher, group, ErrorCode.INTERNAL_ERROR, error)
            return
        if rows or flush.results:
            if self._held_results and self._held_results + len(flush.results) > self._most_results:
                self.write()
            self._publications.append(_Publication(group=group, flush=flush, rows=rows))
        else:
            self.flush.parents += flush.parents

    def keep_up(self) -> None:
        """Write, and renew the lease, where either is due."""
        if time.monotonic() - self._flushed_at >= FLUSH_S and not self._is_reuse:
            self.write()
        self._heartbeat.renew_when_due()

    def write(self) -> None:
        """Write what there is, unless PostgreSQL is away."""
        self._flushed_at = time.monotonic()
        with self._heartbeat.unless_away("a write"):
            try:
                self._write_together(self._publications)
            except (DatabaseError, InterfaceError) as error:
                if is_away(error):
                    raise
                self._publish_apart(error)

    def write_all(self, pause_s: float) -> None:
        """Write what is left, as often as it takes; raises LeaseLostError where it takes too long.

        No reply is given up while the lease lives: the provider would be asked for it again.
        """
        self.write()
        if self._has_unwritten:
            self._deadline.extend(scaled(settings.LEASE_S))
        while self._has_unwritten:
            time.sleep(pause_s)
            self.keep_up()
            self.write()

    def rescue(self) -> None:
        """Write what was answered before something broke; publish nothing."""
        with suppress(DatabaseError, InterfaceError):
            self._write_together(())

    @property
    def _held_results(self) -> int:
        return sum(len(each.flush.results) for each in self._publications)

    @property
    def _has_unwritten(self) -> bool:
        return bool(self.flush or self._dirty or self._publications)

    def _write_together(self, publications: Sequence[_Publication]) -> None:
        published = {row for each in publications for row in each.rows}
        flush = replace(
            self.flush,
            items=[
                row_of(self._rows[row], is_published=row in published)
                for row in sorted(self._dirty | published)
            ],
            parents=[
                *self.flush.parents,
                *(row for each in publications for row in each.flush.parents),
            ],
            results=[row for each in publications for row in each.flush.results],
        )
        transitions.write(self._lease, flush)
        # Only now: a write whose commit is unknown is repeated with the outputs still there.
        for row in published:
            self._rows[row].publish()
        if self._trace is not None:
            self._trace.written(self.flush.calls, [self._rows[row] for row in self._dirty])
        self.flush = Flush(work=self._model)
        self._dirty.clear()
        written = {id(each) for each in publications}
        self._publications = [each for each in self._publications if id(each) not in written]

    def _publish_apart(self, error: Exception) -> None:
        """Store what was answered, then publish group by group: a refused one stops no other.

        The replies of a refused group stay on their rows: a later run of the step publishes them
        without a call (requirement 27).
        """
        if self._publisher is None or not self._publications:
            raise error
        self._write_together(())
        for publication in tuple(self._publications):
            try:
                self._write_together((publication,))
            except DatabaseError as refusal:
                if is_away(refusal):
                    raise
                self._publications.remove(publication)
                self._refuse(self._publisher, publication.group, ErrorCode.DB_ERROR, refusal)
        self._write_together(())

    def _refuse(
        self, publisher: GroupPublisher[W], group: Hashable, code: ErrorCode, error: Exception
    ) -> None:
        logger.error(
            "a publication was refused: %s",
            redacted(error),
            extra={"action": "publication_refused", **self._lease.log_context()},
        )
        errors.report(error, step=self._lease.step.value)
        publisher.refuse(group, code, self.flush)
