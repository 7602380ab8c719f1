"""The owner of a provider step: the one thread that decides, and that touches the database.

Imports `fanout`, `transitions`, `ledger`, `retry_policy`. It turns the fan-out's events into the
state of batches or chunks and writes that in flushes: dispatch first, write second. A success is
committed within a second; while PostgreSQL is away results wait in memory as long as the lease
lives.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Event as Cancel
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils import timezone
from pydantic import BaseModel

from medproc.timing import scaled
from pipeline import fanout, retry_policy, transitions
from pipeline.database import is_away
from pipeline.errors import CallError, ErrorCode, LeaseLostError, PipelineError
from pipeline.ledger import Answer, Ledger
from pipeline.models import Batch, Chunk
from pipeline.models.fields import milliseconds
from pipeline.provider.base import Provider, Request
from pipeline.scrub import scrubbed
from pipeline.states import WorkStatus
from pipeline.stopping import grace_left, grace_s, on_stop
from pipeline.transitions import Flush, Lease, row_of

logger = logging.getLogger(__name__)

FLUSH_S = 0.5
"""Seconds between flushes: half of what `design.md` §3 allows until a success is committed."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A reply that fits: what is stored on the row until it is published, and its counts."""

    output: dict[str, Any] = field(repr=False)
    counts: dict[str, int]
    """Columns of the row, as `entities_detected`."""


class Work(Protocol):
    """What a pass tells the owner about its batches or chunks."""

    @property
    def rows(self) -> Sequence[Batch] | Sequence[Chunk]:
        """The rows that still need a call."""
        ...

    @property
    def known(self) -> Sequence[Batch] | Sequence[Chunk]:
        """Rows that succeeded in an earlier run and are not published yet."""
        ...

    @property
    def groups(self) -> Sequence[Hashable]:
        """What must settle, in order; one whose rows have all succeeded settles at once."""
        ...

    def group_of(self, row: Any) -> Hashable:
        """Return what settles together with this row."""
        ...

    def size_of(self, row: Any) -> int:
        """Return how long its call will take, in any unit; the largest goes first."""
        ...

    def request(self, row: Any) -> Request:
        """Render its request. Runs in a call thread; touches no database."""
        ...

    def accept(self, row: Any, output: BaseModel) -> Accepted:
        """Check a reply against its pages. Runs in a call thread; raises ReplyError."""
        ...

    def started(self, row: Any, flush: Flush) -> None:
        """Add what changes when a call of this row begins."""
        ...

    def settled(self, group: Hashable, flush: Flush) -> Sequence[UUID]:
        """Add what changes when the last row of a group has ended; may publish it.

        Returns the ids of the rows that are published by it: their output is cleared with the
        flush that makes it visible.
        """
        ...

    def refused(self, group: Hashable, code: ErrorCode, flush: Flush) -> None:
        """Add what changes when what `settled` would have published cannot be made or written."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Publication:
    """What makes one group visible, kept apart until it is written: it can be refused alone."""

    group: Hashable
    flush: Flush
    rows: tuple[UUID, ...]


def run(lease: Lease, work: Work, provider: Provider, *, deadline_s: float) -> str | None:
    """Call the provider for every row and record all that happens.

    Returns None when each row has ended, or the reason why some were given back (`sigterm`,
    `written_off`). Raises LeaseLostError, with nothing more written, when the job is not ours any
    longer.
    """
    return _Owner(lease, work, provider).run(deadline_s)


def step_deadline_s(calls: int) -> float:
    """Return how long a step of that many calls may take, in seconds of this process's clock.

    The larger of STEP_DEADLINE_MIN_S and the calls at half the quota plus the longest retry chain
    (`spec.md` point 26).
    """
    attempts = settings.PASS1_MAX_RETRIES
    chain = attempts * settings.CALL_DEADLINE_S + sum(
        retry_policy.backoff_s(n) for n in range(1, attempts)
    )
    planned = calls / (settings.GEMINI_RPM / 2) * 60
    return scaled(max(settings.STEP_DEADLINE_MIN_S, planned + chain))


class _Owner:
    def __init__(self, lease: Lease, work: Work, provider: Provider) -> None:
        self._lease = lease
        self._work = work
        self._provider = provider
        self._rows = {row.id: row for row in (*work.known, *work.rows)}
        self._model = type(work.rows[0]) if work.rows else Batch
        self._ledger = Ledger(lease, provider)
        self._flush = Flush(work=self._model)
        self._dirty: set[UUID] = set()
        self._publications: list[_Publication] = []
        self._flushed_at = self._beat_at = time.monotonic()
        self._random = random.Random()

    def run(self, deadline_s: float) -> str | None:
        transitions.set_deadline(self._lease, deadline_s)
        limits = fanout.Limits(
            groups=settings.PASS1_ENCOUNTER_LIMIT,
            calls=min(
                settings.PASS1_CONCURRENCY_LIMIT,
                self._provider.max_calls or settings.PASS1_CONCURRENCY_LIMIT,
            ),
            call_deadline_s=scaled(settings.CALL_DEADLINE_S),
            grace_s=grace_s(),
            tick_s=min(FLUSH_S, scaled(settings.HEARTBEAT_S)) / 2,
            run_deadline_s=deadline_s,
        )
        items = [
            fanout.Item(
                key=row.id,
                group=self._work.group_of(row),
                size=self._work.size_of(row),
                attempts=row.attempt_count,
                waits=row.rate_limit_waits,
            )
            for row in self._work.rows
            if row.has_attempts_left
        ]
        reason: str | None = None
        # Reading the pages and planning have used up some of the lease.
        self._beat(time.monotonic())
        with fanout.FanOut(
            items,
            call=self._call,
            decide=self._decide,
            groups=self._work.groups,
            limits=limits,
        ) as run:
            forget = on_stop(lambda: run.stop("sigterm", grace_s=grace_left()))
            try:
                for event in run.events():
                    if isinstance(event, fanout.Stopped) and event.returned:
                        reason = event.reason
                    self._record(event)
                    self._keep_up()
            except LeaseLostError:
                raise
            except Exception:
                # Whatever broke, what was answered is kept.
                with suppress(DatabaseError, InterfaceError):
                    self._write_together(())
                raise
            finally:
                forget()
        self._write_all(limits.tick_s)
        return reason

    def _call(self, item: fanout.Item[UUID, Hashable], attempt: int, cancel: Cancel) -> Answer:
        row = self._rows[item.key]
        request = self._work.request(row)
        self._ledger.asked(row.id, request)
        reply = self._provider.generate(request)
        try:
            accepted = self._work.accept(row, reply.output)
        except PipelineError as error:
            raise CallError(error.message, code=error.code, facts=reply.facts) from None
        except Exception as error:
            # Ours to mend; the call has cost its tokens all the same.
            raise CallError(
                f"unexpected {type(error).__name__} in a call",
                code=ErrorCode.INTERNAL_ERROR,
                facts=reply.facts,
            ) from error
        return Answer(output=accepted.output, counts=accepted.counts, facts=reply.facts)

    def _decide(
        self, item: fanout.Item[UUID, Hashable], attempt: int, error: BaseException, now: float
    ) -> fanout.Decision[UUID, Hashable]:
        failed = as_call_error(error)
        if failed.code is ErrorCode.INTERNAL_ERROR:
            logger.error(
                "call failed: %s",
                scrubbed(error.__cause__ if isinstance(error.__cause__, Exception) else error),
                extra={"action": "call_crashed", **self._lease.log_context()},
            )
        row = self._rows[item.key]
        verdict = retry_policy.decide(
            failed.code,
            attempts=item.attempts,
            waits=item.waits,
            max_attempts=row.max_attempts,
            hint_s=failed.call.retry_after_s,
            rng=self._random,
            limits=retry_policy.RetryLimits(
                max_waits=settings.RATE_LIMIT_BUDGET, scale=settings.TIME_SCALE
            ),
        )
        if verdict.delay_s is None:
            return fanout.Fail(
                error=PipelineError(verdict.message or failed.message, code=verdict.code),
                spends_attempt=verdict.spends_attempt,
            )
        return fanout.Retry(delay_s=verdict.delay_s, spends_attempt=verdict.spends_attempt)

    def _record(self, event: fanout.Event[UUID, Hashable, Answer]) -> None:
        match event:
            case fanout.Started():
                row = self._touch(event.key)
                if row.status != WorkStatus.PROCESSING:
                    _begin(row)
                row.status = WorkStatus.PROCESSING
                self._ledger.started(event)
                self._work.started(row, self._flush)
            case fanout.AttemptFailed():
                self._ledger.failed(
                    self._touch(event.key), event, as_call_error(event.error), self._flush
                )
            case fanout.Succeeded():
                row = self._touch(event.key)
                self._ledger.succeeded(row, event, self._flush)
                _end(row, WorkStatus.SUCCEEDED)
                row.output = event.result.output
                for column, count in event.result.counts.items():
                    setattr(row, column, count)
            case fanout.Failed():
                row = self._touch(event.key)
                self._ledger.gave_up(row, event.error)
                _end(row, WorkStatus.FAILED)
            case fanout.LateReply():
                self._ledger.late(self._touch(event.key), event, self._flush)
            case fanout.Returned():
                row = self._touch(event.key)
                row.status = WorkStatus.PENDING
                if event.call_no is not None:
                    self._ledger.cut(row, event.call_no, self._flush)
            case fanout.GroupSettled():
                self._settle(event.group)
            case _:
                return

    def _touch(self, key: UUID) -> Any:
        self._dirty.add(key)
        return self._rows[key]

    def _keep_up(self) -> None:
        now = time.monotonic()
        if now - self._flushed_at >= FLUSH_S:
            self._write()
        if now - self._beat_at >= scaled(settings.HEARTBEAT_S):
            self._beat(now)

    def _settle(self, group: Hashable) -> None:
        flush = Flush(work=self._model)
        try:
            rows = tuple(self._work.settled(group, flush))
        except Exception as error:  # noqa: BLE001 - one group that breaks stops no other
            self._refuse(group, ErrorCode.INTERNAL_ERROR, error)
            return
        if rows or flush.entities:
            self._publications.append(_Publication(group=group, flush=flush, rows=rows))
        else:
            self._flush.encounters += flush.encounters

    def _write_all(self, pause_s: float) -> None:
        """Write what is left, as often as it takes; raises LeaseLostError where it takes too long.

        No reply is given up while the lease lives: the provider would be asked for it again.
        """
        self._write()
        while self._unwritten:
            time.sleep(pause_s)
            self._keep_up()
            self._write()

    @property
    def _unwritten(self) -> bool:
        return bool(self._flush or self._dirty or self._publications)

    def _write(self) -> None:
        self._flushed_at = time.monotonic()
        try:
            try:
                self._write_together(self._publications)
            except (DatabaseError, InterfaceError) as error:
                if is_away(error):
                    raise
                self._publish_apart(error)
        except (OperationalError, InterfaceError) as error:
            if not is_away(error):
                raise
            self._database_away(error)

    def _write_together(self, publications: Sequence[_Publication]) -> None:
        published = {key for each in publications for key in each.rows}
        flush = replace(
            self._flush,
            items=[
                {**row_of(self._rows[key]), "output": None}
                if key in published
                else row_of(self._rows[key])
                for key in sorted(self._dirty | published)
            ],
            encounters=[
                *self._flush.encounters,
                *(row for each in publications for row in each.flush.encounters),
            ],
            entities=[row for each in publications for row in each.flush.entities],
        )
        transitions.write(self._lease, flush)
        for key in published:
            self._rows[key].output = None
        self._flush = Flush(work=self._model)
        self._dirty.clear()
        written = {id(each) for each in publications}
        self._publications = [each for each in self._publications if id(each) not in written]

    def _publish_apart(self, error: Exception) -> None:
        """Store what was answered, then publish group by group, so that one refused stops no other.

        The replies of a refused group stay on their rows: a later run of the step publishes them
        without a call (`spec.md` point 27).
        """
        if not self._publications:
            raise error
        self._write_together(())
        for publication in tuple(self._publications):
            try:
                self._write_together((publication,))
            except DatabaseError as refusal:
                if is_away(refusal):
                    raise
                self._publications.remove(publication)
                self._refuse(publication.group, ErrorCode.DB_ERROR, refusal)
        self._write_together(())

    def _refuse(self, group: Hashable, code: ErrorCode, error: Exception) -> None:
        logger.error(
            "a publication was refused: %s",
            scrubbed(error),
            extra={"action": "publication_refused", **self._lease.log_context()},
        )
        self._work.refused(group, code, self._flush)

    def _beat(self, now: float) -> None:
        try:
            transitions.heartbeat(self._lease)
        except (OperationalError, InterfaceError) as error:
            if not is_away(error):
                raise
            self._database_away(error)
        else:
            self._beat_at = now

    def _database_away(self, error: Exception) -> None:
        # A flush is idempotent, so what is not known to be committed is simply written again.
        connection.close()
        logger.warning(
            "PostgreSQL is away (%s); results are kept in memory",
            type(error).__name__,
            extra={"action": "database_away", **self._lease.log_context()},
        )
        if time.monotonic() - self._beat_at > scaled(settings.LEASE_S):
            raise LeaseLostError("the lease could not be renewed in time; stopping") from None


def as_call_error(error: BaseException) -> CallError:
    """Return what a call ended with as a CallError; its message is ours, never a library's."""
    match error:
        case CallError():
            return error
        case fanout.CallTimedOut():
            return CallError(
                f"no answer within {error.deadline_s:.1f} s; the call was written off",
                code=ErrorCode.API_TIMEOUT,
            )
        case PipelineError():
            return CallError(error.message, code=error.code)
        case _:
            return CallError(
                f"unexpected {type(error).__name__} in a call", code=ErrorCode.INTERNAL_ERROR
            )


def _begin(row: Any) -> None:
    """Begin a row, which may have failed in an earlier run: of that only the history stays."""
    row.started_at = timezone.now()
    row.completed_at = row.duration_ms = None
    row.error_code = row.error_message = row.error_context = None
    if hasattr(row, "error_details"):
        row.error_details = None


def _end(row: Any, status: WorkStatus) -> None:
    row.status = status
    row.completed_at = timezone.now()
    row.duration_ms = milliseconds(row.completed_at - row.started_at)
