"""What follows from a failed call: the one place that decides.

The code's budget decides first: PARK parks the job, SPLIT halves the pages. If the circuit breaker
is open, a failure of the outage costs nothing. Otherwise `backoff` decides: an ordinary retry, or
the end of the split. The same object admits calls. Only the executor thread decides.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from hashlib import sha256
from typing import Generic, TypeAlias

from django.conf import settings

from medproc.telemetry import errors
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import (
    OUTAGE_CODES,
    SAME_REPLY_CODES,
    Budget,
    CallError,
    ErrorCode,
    PipelineError,
)
from pipeline.core.redaction import redacted
from pipeline.execution import backoff, fanout
from pipeline.execution.admission import StepAdmission
from pipeline.execution.attempt_budget import AttemptBudget
from pipeline.execution.split_plan import SplitPlan
from pipeline.execution.splits import Split, SplitKey
from pipeline.execution.step_waits import StepWaits
from pipeline.execution.step_work import StepWork, W
from pipeline.models.work_item import WorkItem
from pipeline.providers.prompts import PROMPT_VERSION
from pipeline.ratelimit import Reported, Why
from pipeline.transitions import Lease

logger = logging.getLogger(__name__)

CallItem: TypeAlias = fanout.Item[SplitKey, Hashable]
CallDecision: TypeAlias = fanout.Decision[SplitKey, Hashable]

PARKED = "parked"
"""The reason why the fan-out stops if the step must wait for the provider."""


class StepPolicy(Generic[W]):
    """The decisions of one step. `touch` receives each row that a refund has changed."""

    def __init__(
        self,
        lease: Lease,
        work: StepWork[W],
        splits: SplitPlan[W],
        budget: AttemptBudget,
        admission: StepAdmission,
        deadline: StepDeadline,
        touch: Callable[[WorkItem], None],
    ) -> None:
        self._lease = lease
        self._work = work
        self._splits = splits
        self._budget = budget
        self._admission = admission
        self._deadline = deadline
        self._touch = touch
        self.waits = StepWaits()
        """What the step waited for."""
        self._unusable: dict[SplitKey, bytes] = {}
        """Digest of the last reply that could not be read. A split always has the same prompt."""
        self._random = random.Random()

    def item(self, split: Split[W]) -> CallItem:
        """Return a split as the fan-out takes it."""
        return fanout.Item(
            key=split.key,
            group=self._work.group_of(split.row),
            size=self._work.size_of(split),
            attempts=self._budget.attempts(split),
        )

    def admit_many(
        self, items: Sequence[CallItem], now: float
    ) -> tuple[int, float | fanout.Park | None]:
        """Ask for starts; return how many items start, and why the next item does not.

        The reason is the seconds until the next ask, the end of the run, or None if all start.
        """
        if self.waits.is_refused:
            self._deadline.leave_out_until(now)
        sizes = [(item.key, int(item.size)) for item in items]
        started, wait = self._admission.ask_many(sizes, PROMPT_VERSION)
        self._refund_open_outage()
        if started:
            self.waits.ask(None, now)
        if wait is None:
            return started, None
        self.waits.ask(wait.why, now)
        if wait.is_left_out:
            self._deadline.leave_out(wait.seconds, now=now)
        parks = self._admission.must_park
        return started, fanout.Park(reason=PARKED) if parks else wait.seconds

    def decide(
        self, item: CallItem, _attempt: int, error: BaseException, now: float
    ) -> CallDecision:
        """Report a failed call to the limiter, and decide what follows.

        The fan-out numbers attempts by item; here the attempt budget of the split counts.
        """
        failed = as_call_error(error)
        if failed.code is ErrorCode.INTERNAL_ERROR:
            logger.error(
                "call failed: %s",
                redacted(error.__cause__ if isinstance(error.__cause__, Exception) else error),
                extra={"action": "call_crashed", **self._lease.log_context()},
            )
            errors.report(error, step=self._lease.step.value)
        split = self._splits[item.key]
        reported = self._admission.failed(item.key, failed)
        at = time.time()
        self._refund_open_outage()
        decision = self._decision(split, failed, reported, now)
        spends = isinstance(decision, fanout.Retry | fanout.Fail) and decision.spends_attempt
        self._budget.fail(split, failed.code, at, spends=spends)
        return decision

    def refund_last_outage(self) -> None:
        """Refund the attempts that failed in the last outage that is over."""
        if self._budget.has_refundable and (outage := self._admission.last_outage()):
            self._touch_all(self._budget.refund(*outage))

    def _decision(
        self, split: Split[W], failed: CallError, reported: Reported, now: float
    ) -> CallDecision:
        match failed.policy.budget:
            case Budget.PARK:
                self._admission.park_for(failed)
                return fanout.Park(reason=PARKED)
            case Budget.SPLIT:
                halves = self._splits.halve(split)
                if halves:
                    return fanout.Replace(items=tuple(self.item(half) for half in halves))
                return fanout.Fail(spends_attempt=False)
        if failed.code in OUTAGE_CODES and reported.is_breaker_open:
            if self._admission.must_park:
                return fanout.Park(reason=PARKED)
            self._deadline.leave_out(reported.starts_in_s, now=now)
            self.waits.hold(Why.BREAKER, reported.starts_in_s, now)
            return fanout.Retry(delay_s=reported.starts_in_s, spends_attempt=False)
        return self._retry_or_fail(split, failed, reported, now)

    def _retry_or_fail(
        self, split: Split[W], failed: CallError, reported: Reported, now: float
    ) -> fanout.Retry | fanout.Fail:
        retry = self._retry_decision(split, failed)
        if self._is_the_same_reply(split, failed) and retry.delay_s is not None:
            message = f"the same unusable reply came twice: {failed.message}"
            return fanout.Fail(
                error=PipelineError(message, code=failed.code),
                spends_attempt=retry.spends_attempt,
            )
        if retry.delay_s is None and failed.code in OUTAGE_CODES:
            # The outage may have ended while this split waited; attempts spent in the outage are
            # refunded before the split fails for good.
            self.refund_last_outage()
            retry = self._retry_decision(split, failed)
        if retry.delay_s is None:
            return fanout.Fail(
                error=PipelineError(retry.message or failed.message, code=retry.code),
                spends_attempt=retry.spends_attempt,
            )
        delay_s = retry.delay_s
        if failed.code is ErrorCode.RATE_LIMIT and self._admission.limiter is not None:
            delay_s = max(reported.starts_in_s, failed.details.retry_after_s or 0.0)
            # The fan-out fails a split whose cooldown outlasts a whole step. The step's deadline
            # must not move for such a cooldown.
            if delay_s <= max(self._deadline.ends_at - now, self._deadline.soft_s):
                self._deadline.leave_out(reported.starts_in_s, now=now)
                self.waits.hold(Why.COOLDOWN, reported.starts_in_s, now)
        return fanout.Retry(delay_s=delay_s, spends_attempt=retry.spends_attempt)

    def _retry_decision(self, split: Split[W], failed: CallError) -> backoff.RetryDecision:
        return backoff.decide(
            failed.code,
            attempts=self._budget.attempts(split),
            limited_calls=self._budget.limited_calls(split.row),
            max_attempts=split.row.max_attempts,
            hint_s=failed.details.retry_after_s,
            rng=self._random,
            limits=backoff.RetryLimits(
                max_limited_calls=settings.RATE_LIMIT_BUDGET, scale=settings.TIME_SCALE
            ),
        )

    def _is_the_same_reply(self, split: Split[W], failed: CallError) -> bool:
        """Whether the model gave this unusable text to the same prompt before, in this run."""
        text = failed.details.raw_reply
        if failed.code not in SAME_REPLY_CODES or not text:
            return False
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        before = self._unusable.get(split.key)
        self._unusable[split.key] = digest
        return before == digest

    def _refund_open_outage(self) -> None:
        if self._admission.outage_since is not None:
            self._touch_all(self._budget.refund(self._admission.outage_since))

    def _touch_all(self, rows: Iterable[WorkItem]) -> None:
        for row in rows:
            self._touch(row)


def as_call_error(error: BaseException) -> CallError:
    """Return the failure of a call as a CallError; the message is ours, never a library's."""
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
