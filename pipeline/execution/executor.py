"""The step executor: the one thread of a provider step that decides and touches the database.

The executor turns the fan-out's events into verbs of work items, and has the changes written in
flushes: dispatch first, write second. Call threads render requests and check replies only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Generic

from django.conf import settings
from django.utils import timezone

from medproc.timing import scaled
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import (
    OUTAGE_CODES,
    CallError,
    ErrorCode,
    LeaseLostError,
    PipelineError,
)
from pipeline.core.labels import counted
from pipeline.core.states import WORK_TERMINAL, WorkStatus
from pipeline.execution import fanout
from pipeline.execution.admission import UNLIMITED, StepAdmission
from pipeline.execution.attempt_budget import AttemptBudget
from pipeline.execution.call_log import CallLog
from pipeline.execution.failed_call import CallItem, StepPolicy, as_call_error
from pipeline.execution.heartbeat import Heartbeat
from pipeline.execution.preemption import PREEMPTED, Preemption
from pipeline.execution.reuse.replies import StepReplies
from pipeline.execution.shutdown import grace_left, grace_s, on_stop
from pipeline.execution.split_plan import SplitPlan
from pipeline.execution.splits import Split, SplitKey
from pipeline.execution.step_result import (
    CANCELLED,
    SIGTERM,
    AllItemsEnded,
    ExecutorResult,
    StepFailed,
    StepInterrupted,
    StepParked,
)
from pipeline.execution.step_time import slots_of, step_time_s
from pipeline.execution.step_work import AcceptedReply, GroupPublisher, StepWork, W
from pipeline.execution.step_writer import FLUSH_S, StepWriter
from pipeline.models import selectors
from pipeline.models.work_tables import WORK_TABLES
from pipeline.providers.base import Provider, Reply
from pipeline.transitions import Failure, Lease

logger = logging.getLogger(__name__)


def run(
    lease: Lease,
    work: StepWork[W],
    provider: Provider,
    *,
    deadline: StepDeadline,
    publisher: GroupPublisher[W] | None = None,
) -> ExecutorResult:
    """Call the provider for every row and record all that happens.

    1. Takes the replies that earlier records with the same bytes got (`reuse.replies`).
    2. Waits for another record of the same bytes that asks for the lacking replies now.
    3. Gives the step its time from now: `step_time.step_time_s`.
    4. Returns AllItemsEnded when each row has ended.
    5. Returns how the step ended where some rows have not: interrupted, parked, or failed with
       DEADLINE_EXCEEDED. A later run asks for the remaining rows.

    Raises LeaseLostError, with nothing more written, when another worker has the job.
    """
    replies = StepReplies(lease, work, provider)
    for part in replies.take(deadline, publisher):
        reused = StepExecutor(lease, part, provider, deadline, publisher, replies)
        result = reused.run(step_time_s((), provider))
        if not isinstance(result, AllItemsEnded):
            return result
    parking = replies.wait()
    if parking is not None:
        return StepParked(parking=parking)
    step = StepExecutor(lease, replies.left, provider, deadline, publisher, replies)
    jobs = 1 if provider.name == UNLIMITED else selectors.provider_jobs()
    return step.run(step_time_s(step.sizes, provider, jobs=jobs))


class StepExecutor(Generic[W]):
    """One run of the calls of one step."""

    def __init__(
        self,
        lease: Lease,
        work: StepWork[W],
        provider: Provider,
        deadline: StepDeadline,
        publisher: GroupPublisher[W] | None = None,
        replies: StepReplies[W] | None = None,
    ) -> None:
        self._lease = lease
        self._work = work
        self._replies = replies
        self._provider = provider
        self._deadline = deadline
        self._splits = SplitPlan(work)
        self._budget = AttemptBudget(work.rows, OUTAGE_CODES)
        self._admission = StepAdmission(lease, provider)
        self._call_log = CallLog(lease, provider)
        self._heartbeat = Heartbeat(lease, deadline)
        self._writer = StepWriter(
            lease,
            WORK_TABLES[lease.step].model,
            {row.id: row for row in (*work.known, *work.rows)},
            self._heartbeat,
            deadline,
            publisher,
            is_reuse=bool(work.known) and not work.rows,
        )
        self._policy = StepPolicy(
            lease,
            work,
            self._splits,
            self._budget,
            self._admission,
            deadline,
            self._writer.touch,
        )
        self._preemption = Preemption(lease)

    @property
    def sizes(self) -> list[float]:
        """The estimated input tokens of each call that is left."""
        return [self._work.size_of(split) for split in self._splits.open]

    def run(self, deadline_s: float) -> ExecutorResult:
        """Run until every row has ended, or the step must stop."""
        self._deadline.restart(deadline_s)
        limits = self._limits()
        self._resume()
        items = [self._policy.item(split) for split in self._splits.open]
        # Reading the pages and planning have used up some of the lease. This stores the deadline.
        self._heartbeat.renew()
        with fanout.FanOut(
            items,
            call=self._call,
            decide=self._policy.decide,
            groups=self._work.groups,
            admit_many=self._admit_many,
            limits=limits,
            deadline=self._deadline,
        ) as fan_out:
            forget = on_stop(lambda: fan_out.stop(SIGTERM, grace_s=grace_left()))
            try:
                reason = self._follow(fan_out, limits)
            except LeaseLostError:
                raise
            except Exception:
                # Whatever broke, the answers that were paid for are kept.
                self._writer.rescue()
                raise
            finally:
                forget()
                self._admission.close()
        self._writer.write_all(limits.tick_s)
        return self._result(reason, deadline_s)

    def _limits(self) -> fanout.Limits:
        return fanout.Limits(
            # The setting has the name of Pass 1, and is for every pass that calls the provider.
            groups=settings.PASS1_ENCOUNTER_LIMIT,
            calls=slots_of(self._provider),
            call_deadline_s=scaled(settings.CALL_DEADLINE_S),
            grace_s=grace_s(),
            tick_s=min(FLUSH_S, scaled(settings.HEARTBEAT_S)) / 2,
        )

    def _resume(self) -> None:
        """Refund failures of an outage that is over, and end rows whose splits are all answered."""
        self._policy.refund_last_outage()
        for row in self._splits.answered_rows:
            self._writer.touch(row)
            row.begin(timezone.now())
            self._end_row(row)

    def _follow(
        self, fan_out: fanout.FanOut[SplitKey, Hashable, AcceptedReply], limits: fanout.Limits
    ) -> str | None:
        """Record the events of the fan-out; return why it stopped, or None when all has ended."""
        reason: str | None = None
        if self._heartbeat.is_cancelled:
            fan_out.stop(CANCELLED)
        for event in fan_out.events():
            if isinstance(event, fanout.Stopped) and event.returned:
                reason = event.reason
            self._record(event)
            was_cancelled = self._heartbeat.is_cancelled
            self._writer.keep_up()
            if self._heartbeat.is_cancelled and not was_cancelled:
                fan_out.stop(CANCELLED)
            elif fan_out.stop_reason is None and self._is_preempted():
                fan_out.stop(PREEMPTED, grace_s=limits.call_deadline_s)
        return reason

    def _result(self, reason: str | None, deadline_s: float) -> ExecutorResult:
        if reason is None:
            return AllItemsEnded()
        # Also at the deadline: the last calls can show that the provider refuses every call.
        if parking := self._admission.open_and_park():
            return StepParked(parking=parking)
        if reason == fanout.DEADLINE:
            return self._out_of_time(deadline_s)
        return StepInterrupted(reason=reason)

    def _out_of_time(self, deadline_s: float) -> StepFailed:
        rows = [*self._work.known, *self._work.rows]
        ended = sum(row.status in WORK_TERMINAL for row in rows)
        first = next((row for row in self._work.rows if row.status not in WORK_TERMINAL), None)
        items = counted(len(rows), WORK_TABLES[self._lease.step].noun)
        return StepFailed(
            failure=Failure(
                code=ErrorCode.DEADLINE_EXCEEDED,
                message=f"{self._lease.step} used up its {deadline_s:.0f} s with {ended} of"
                f" {items} ended; waits that do not count are left out;"
                f" a retry goes on from there; {self._policy.waits.in_words(time.monotonic())}",
                encounter_id=first.encounter_id if first else None,
                batch_index=first.number_in_encounter if first else None,
            ),
            is_out_of_time=True,
        )

    def _admit_many(
        self, items: Sequence[CallItem], now: float
    ) -> tuple[int, float | fanout.Park | None]:
        # A machine that has slept does not know that another worker has claimed the job.
        self._heartbeat.renew_when_overdue()
        return self._policy.admit_many(items, now)

    def _call(
        self, item: CallItem, attempt: int, cancel: fanout.CancelEvent
    ) -> AcceptedReply | fanout.Unchecked[AcceptedReply]:
        """Ask the provider about one split. Runs in a call thread; touches no row."""
        noting_sent = self._admission.noting_sent(item.key)
        split = self._splits[item.key]
        encounter_id = split.row.encounter_id
        request = replace(
            self._work.request(split),
            encounter_id=encounter_id.hex if encounter_id else "",
            on_send=lambda: self._heartbeat.await_lease(cancel),
            on_sent=noting_sent,
        )
        self._call_log.note_prompt(item.key, request)
        if self._replies is not None:
            self._replies.note(split, request)
        try:
            reply = self._provider.generate(request)
        except CallError as error:
            if error.code in {ErrorCode.REPLY_MISMATCH, ErrorCode.ENCOUNTER_NOT_FOUND}:
                _log_mismatch(self._lease, split, error.code)
            raise
        # The check computes for milliseconds; the next call need not wait for its end.
        return fanout.Unchecked(lambda: self._checked(split, reply))

    def _checked(self, split: Split[W], reply: Reply) -> AcceptedReply:
        """Check a reply. Runs in the thread of the call; touches no row."""
        try:
            accepted = self._work.accept(split, reply.output)
            kept = self._replies.compressed(reply.output) if self._replies else b""
            return replace(accepted, details=reply.details, kept=kept)
        except PipelineError as error:
            raise CallError(error.message, code=error.code, details=reply.details) from None
        except Exception as error:
            # The fault is ours; the call has cost its tokens all the same.
            raise CallError(
                f"unexpected {type(error).__name__} in a call",
                code=ErrorCode.INTERNAL_ERROR,
                details=reply.details,
            ) from error

    def _record(self, event: fanout.Event[SplitKey, Hashable, AcceptedReply]) -> None:
        match event:
            case fanout.Started():
                row = self._touched(event.key).row
                if row.status != WorkStatus.PROCESSING:
                    row.begin(timezone.now())
                self._policy.waits.begin_call(time.monotonic())
                self._call_log.started(event)
                self._writer.start(row)
            case fanout.AttemptFailed():
                self._policy.waits.end_call(time.monotonic())
                split = self._touched(event.key)
                error = as_call_error(event.error)
                position = self._call_log.failed(split, event, error, self._writer.flush)
                self._budget.record(split, position)
            case fanout.Succeeded():
                self._record_reply(event)
            case fanout.Failed():
                split = self._touched(event.key)
                self._admission.ended(event.key)
                if self._splits.fail(split, event.error):
                    self._end_row(split.row)
            case fanout.Replaced():
                self._admission.ended(event.key)
            case fanout.LateReply():
                self._call_log.late(self._touched(event.key), event, self._writer.flush)
            case fanout.Returned():
                split = self._touched(event.key)
                split.row.interrupt()
                if event.call_no is not None:
                    self._admission.cut(event.key)
                    self._call_log.cut(split, event.call_no, self._writer.flush)
            case fanout.GroupSettled():
                self._writer.settle(event.group)
            case fanout.Tick():
                self._admission.flush()
            case _:
                return

    def _record_reply(self, event: fanout.Succeeded[SplitKey, AcceptedReply]) -> None:
        self._policy.waits.end_call(time.monotonic())
        self._admission.succeeded(event.key, event.result.details)
        split = self._touched(event.key)
        is_first = event.key not in self._splits.accepted
        if is_first:
            self._deadline.note_progress()
        self._call_log.succeeded(split, event, self._writer.flush, accepted=is_first)
        self._splits.accepted.add(event.key)
        self._budget.answer(split)
        if self._splits.answer(split, event.result):
            self._end_row(split.row)

    def _end_row(self, row: W) -> None:
        """End a row of which no split is open."""
        failure = self._splits.failure(row)
        if failure is None:
            reply = self._splits.output(row)
            row.succeed(reply.output, reply.counts, timezone.now())
            if self._replies is not None:
                self._replies.keep(row, self._splits.take_kept(row), self._writer.flush)
            self._splits.forget(row)
            return
        name, error = failure
        code, message = _reason_of(error)
        row.fail(code, message, timezone.now(), split=name)

    def _touched(self, key: SplitKey) -> Split[W]:
        """Return a split whose row is about to change."""
        split = self._splits[key]
        self._writer.touch(split.row)
        return split

    def _is_preempted(self) -> bool:
        is_due = False
        with self._heartbeat.unless_away("the look for smaller records"):
            is_due = self._preemption.is_due()
        return is_due  # noqa: RET504 - the block may be left undone


def _reason_of(error: BaseException) -> tuple[ErrorCode, str]:
    """Return the code and message of a split that failed for good."""
    match error:
        case fanout.DeadlineExceeded():
            return ErrorCode.DEADLINE_EXCEEDED, (
                f"the next retry was due in {error.delay_s:.1f} s,"
                f" but the step had {error.remaining_s:.1f} s left"
            )
        case PipelineError():
            return error.code, error.message
        case _:
            return ErrorCode.INTERNAL_ERROR, f"unexpected {type(error).__name__}"


def _log_mismatch(lease: Lease, split: Split[W], code: ErrorCode) -> None:
    """Log loudly that a reply belongs elsewhere: it could be another patient's."""
    is_foreign = code is ErrorCode.ENCOUNTER_NOT_FOUND
    logger.error(
        "%s job=%s work=%s split=%s: a reply %s was thrown away",
        code.value.lower(),
        lease.job_id,
        split.row.id,
        split.name or "-",
        "that names another encounter" if is_foreign else "of another request",
        extra={"action": code.value.lower(), **lease.log_context()},
    )
