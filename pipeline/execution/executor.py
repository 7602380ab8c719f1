"""The owner of a provider step: the one thread that decides, and that touches the database.

Imports `fanout`, `transitions`, `ledger`, `deciding`. It turns the fan-out's events into the
state of batches or chunks and writes that in flushes: dispatch first, write second. A success is
committed within a second; while PostgreSQL is away results wait in memory as long as the lease
lives.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event as Cancel
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils import timezone

from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.db_errors import is_away
from pipeline.core.deadline import DEADLINE, SOFT_SHARE
from pipeline.core.errors import CallError, ErrorCode, LeaseLostError, PipelineError
from pipeline.core.labels import counted
from pipeline.core.redaction import scrubbed
from pipeline.core.states import WORK_TERMINAL, WorkStatus
from pipeline.execution import fanout, retry_policy
from pipeline.execution.admission import OUTAGE_CODES, Admission
from pipeline.execution.attempt_budget import Tally
from pipeline.execution.call_log import Answer, Ledger
from pipeline.execution.policy import Policy, as_call_error
from pipeline.execution.preemption import PREEMPTED, Preemption
from pipeline.execution.shutdown import grace_left, grace_s, on_stop
from pipeline.execution.split_plan import Accepted, Dividing, Pieces
from pipeline.execution.splits import Key, Piece
from pipeline.execution.step_result import StepResult
from pipeline.models.fields import milliseconds
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES
from pipeline.providers.base import Provider, Request
from pipeline.transitions import Failure, Flush, Lease, row_of

logger = logging.getLogger(__name__)

FLUSH_S = 0.5
"""Seconds between flushes: half of what `design.md` §3 allows until a success is committed."""


class Work(Dividing, Protocol):
    """What a pass tells the owner about its batches or chunks."""

    @property
    def rows(self) -> Sequence[WorkItem]:
        """The rows that still need a call."""
        ...

    @property
    def known(self) -> Sequence[WorkItem]:
        """Rows that succeeded in an earlier run and are not published yet."""
        ...

    @property
    def groups(self) -> Sequence[Hashable]:
        """What must settle, in order; one whose rows have all succeeded settles at once."""
        ...

    def group_of(self, row: Any) -> Hashable:
        """Return what settles together with this row."""
        ...

    def size_of(self, piece: Piece) -> int:
        """Return the input tokens of its call by estimate; the largest goes first."""
        ...

    def request(self, piece: Piece) -> Request:
        """Render its request. Runs in a call thread; touches no database."""
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


def run(lease: Lease, work: Work, provider: Provider, *, deadline_s: float) -> StepResult | None:
    """Call the provider for every row and record all that happens.

    Returns None when each row has ended, or how the step goes on where some have not: given back
    (`sigterm`, `written_off`, `gave_way`, `cancelled`), parked until a quota, a key or the provider
    is there again, or failed with DEADLINE_EXCEEDED: a retry then asks for the rest.
    Raises LeaseLostError, with nothing more written, when the job is not ours any longer.
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
        self._model = WORK_TABLES[lease.step].model
        self._pieces = Pieces(work, work.rows)
        self._tally = Tally(work.rows, OUTAGE_CODES)
        self._admission = Admission(lease, provider)
        self._ledger = Ledger(lease, provider)
        self._flush = Flush(work=self._model)
        self._dirty: set[UUID] = set()
        self._publications: list[_Publication] = []
        self._flushed_at = self._beat_at = time.monotonic()
        self._policy = Policy(lease, work, self._pieces, self._tally, self._admission)
        self._is_cancelled = False
        self._preemption = Preemption(lease)

    def run(self, deadline_s: float) -> StepResult | None:
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
            soft_share=SOFT_SHARE,
        )
        self._begin_with_what_is_known()
        items = [self._policy.item(piece) for piece in self._pieces.open]
        reason: str | None = None
        # Reading the pages and planning have used up some of the lease.
        self._beat(time.monotonic())
        with fanout.FanOut(
            items,
            call=self._call,
            decide=self._policy.decide,
            groups=self._work.groups,
            admit=self._admit,
            limits=limits,
        ) as run:
            self._policy.follow(run, time.monotonic() + deadline_s)
            forget = on_stop(lambda: run.stop("sigterm", grace_s=grace_left()))
            try:
                if self._is_cancelled:
                    run.stop("cancelled")
                for event in run.events():
                    if isinstance(event, fanout.Stopped) and event.returned:
                        reason = event.reason
                    self._record(event)
                    self._dirty |= self._policy.take_changed()
                    was_cancelled = self._is_cancelled
                    self._keep_up()
                    if self._is_cancelled and not was_cancelled:
                        run.stop("cancelled")
                    elif run.stop_reason is None and self._gives_way():
                        run.stop(PREEMPTED, grace_s=limits.call_deadline_s)
            except LeaseLostError:
                raise
            except Exception:
                # Whatever broke, what was answered is kept.
                with suppress(DatabaseError, InterfaceError):
                    self._write_together(())
                raise
            finally:
                forget()
                self._admission.close()
        self._write_all(limits.tick_s)
        if reason is None:
            return None
        if reason == fanout.DEADLINE:
            return self._out_of_time(deadline_s)
        parking = self._admission.parking()
        return StepResult(parked=parking) if parking else StepResult(given_back=reason)

    def _out_of_time(self, deadline_s: float) -> StepResult:
        rows = [*self._work.known, *self._work.rows]
        ended = sum(row.status in WORK_TERMINAL for row in rows)
        first = next((row for row in self._work.rows if row.status not in WORK_TERMINAL), None)
        work = counted(len(rows), WORK_TABLES[self._lease.step].noun)
        return StepResult(
            failure=Failure(
                code=ErrorCode.DEADLINE_EXCEEDED,
                message=f"{self._lease.step} used up its {deadline_s:.0f} s with {ended} of"
                f" {work} ended; waits that do not count are left out;"
                " a retry goes on from there",
                encounter_id=getattr(first, "healthcare_encounter_id", None),
                batch_index=getattr(first, "batch_index", None),
            )
        )

    def _begin_with_what_is_known(self) -> None:
        """Take in what earlier runs left: failures of an outage, rows whose parts are all there."""
        self._policy.give_back_last_outage()
        for row in self._pieces.rows_answered:
            _begin(self._touch(row.id))
            self._end_row(row)

    def _admit(self, item: fanout.Item[Key, Hashable], now: float) -> float | None:
        """Ask for a start; under a lease whose time is over, renew it first or stop."""
        # A machine that has slept does not know that somebody else has the job by now.
        if time.monotonic() - self._beat_at > scaled(settings.LEASE_S):
            self._beat(time.monotonic())
        return self._policy.admit(item, now)

    def _call(self, item: fanout.Item[Key, Hashable], attempt: int, cancel: Cancel) -> Answer:
        piece = self._pieces[item.key]
        request = replace(self._work.request(piece), on_send=lambda: self._admission.sent(item.key))
        self._ledger.asked(item.key, request)
        try:
            reply = self._provider.generate(request)
        except CallError as error:
            if error.code is ErrorCode.REPLY_MISMATCH:
                _alarm(self._lease, piece)
            raise
        try:
            accepted = self._work.accept(piece, reply.output)
        except PipelineError as error:
            raise CallError(error.message, code=error.code, details=reply.details) from None
        except Exception as error:
            # Ours to mend; the call has cost its tokens all the same.
            raise CallError(
                f"unexpected {type(error).__name__} in a call",
                code=ErrorCode.INTERNAL_ERROR,
                details=reply.details,
            ) from error
        return Answer(output=accepted.output, counts=accepted.counts, details=reply.details)

    def _record(self, event: fanout.Event[Key, Hashable, Answer]) -> None:
        match event:
            case fanout.Started():
                row = self._touch(event.key[0])
                if row.status != WorkStatus.PROCESSING:
                    _begin(row)
                row.status = WorkStatus.PROCESSING
                self._ledger.started(event)
                self._work.started(row, self._flush)
            case fanout.AttemptFailed():
                piece = self._piece(event.key)
                entry = self._ledger.failed(piece, event, as_call_error(event.error), self._flush)
                self._tally.recorded(piece, entry)
            case fanout.Succeeded():
                self._admission.succeeded(event.key, event.result.details)
                piece = self._piece(event.key)
                is_first = event.key not in self._pieces.accepted
                self._ledger.succeeded(piece, event, self._flush, accepted=is_first)
                self._pieces.accepted.add(event.key)
                self._tally.answered(piece)
                answer = Accepted(output=event.result.output, counts=event.result.counts)
                if self._pieces.answered(piece, answer):
                    self._end_row(piece.row)
            case fanout.Failed():
                piece = self._piece(event.key)
                self._admission.ended(event.key)
                if self._pieces.failed(piece, event.error):
                    self._end_row(piece.row)
            case fanout.Replaced():
                self._admission.ended(event.key)
            case fanout.LateReply():
                self._ledger.late(self._piece(event.key), event, self._flush)
            case fanout.Returned():
                piece = self._piece(event.key)
                piece.row.status = WorkStatus.PENDING
                if event.call_no is not None:
                    self._admission.cut(event.key)
                    self._ledger.cut(piece, event.call_no, self._flush)
            case fanout.GroupSettled():
                self._settle(event.group)
            case _:
                return

    def _end_row(self, row: Any) -> None:
        """End a row of which no piece is open."""
        failure = self._pieces.failure(row)
        if failure is not None:
            part, error = failure
            self._ledger.gave_up(row, error, part)
            _end(row, WorkStatus.FAILED)
            return
        accepted = self._pieces.output(row)
        row.had_transient_failure = bool(row.transient_error_history)
        row.error_code = row.error_message = row.error_context = None
        _end(row, WorkStatus.SUCCEEDED)
        row.output = accepted.output
        for column, count in accepted.counts.items():
            setattr(row, column, count)

    def _piece(self, key: Key) -> Piece:
        self._touch(key[0])
        return self._pieces[key]

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
        if self._unwritten:
            DEADLINE.extend(scaled(settings.LEASE_S))
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
            self._is_cancelled |= transitions.heartbeat(self._lease)
        except (OperationalError, InterfaceError) as error:
            if not is_away(error):
                raise
            self._database_away(error)
        else:
            self._beat_at = now

    def _gives_way(self) -> bool:
        try:
            return self._preemption.is_due()
        except (OperationalError, InterfaceError) as error:
            if not is_away(error):
                raise
            self._database_away(error)
            return False

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


def _alarm(lease: Lease, piece: Piece) -> None:
    """Say aloud that a reply of another request came, which could be another patient's."""
    logger.error(
        "reply_mismatch job=%s work=%s part=%s: a reply of another request was thrown away",
        lease.job_id,
        piece.row.id,
        piece.name or "-",
        extra={"action": "reply_mismatch", **lease.log_context()},
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
