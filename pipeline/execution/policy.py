"""The policy of a provider step: when a call may start, and what follows from one that failed.

Imports `admission`, `pieces`, `tally`, `retry_policy`. Owner thread only; it touches no row's state
but what the tally shows of it. What comes of a failure depends on its budget: another call, the
halves of the pages, a parked job, or the end of the piece.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Hashable, Sequence
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings

from pipeline.core.deadline import DEADLINE
from pipeline.core.errors import Budget, CallError, ErrorCode, PipelineError
from pipeline.core.redaction import scrubbed
from pipeline.execution import fanout, retry_policy
from pipeline.execution.admission import OUTAGE_CODES, Admission
from pipeline.execution.attempt_budget import Tally
from pipeline.execution.split_plan import Pieces
from pipeline.execution.splits import Key, Piece
from pipeline.providers.prompts import PROMPT_VERSION
from pipeline.ratelimit import Reported
from pipeline.transitions import Lease

logger = logging.getLogger(__name__)


class Sizing(Protocol):
    """What a pass says of the size of its pieces."""

    def group_of(self, row: Any) -> Hashable:
        """Return what settles together with this row."""
        ...

    def size_of(self, piece: Piece) -> int:
        """Return the input tokens of its call by estimate; the largest goes first."""
        ...


class Policy:
    """Decides for one step."""

    def __init__(
        self,
        lease: Lease,
        work: Sizing,
        pieces: Pieces,
        tally: Tally,
        admission: Admission,
    ) -> None:
        self._lease = lease
        self._work = work
        self._pieces = pieces
        self._tally = tally
        self._admission = admission
        self._random = random.Random()
        self._run: fanout.FanOut[Key, Hashable, Any] | None = None
        self._deadline_at = self._held_until = 0.0
        self._changed: set[UUID] = set()

    def follow(self, run: fanout.FanOut[Key, Hashable, Any], deadline_at: float) -> None:
        """Decide for this run, which has until then by `time.monotonic`."""
        self._run = run
        self._deadline_at = deadline_at

    def take_changed(self) -> set[UUID]:
        """Return the rows that were given attempts back since the last time."""
        changed, self._changed = self._changed, set()
        return changed

    def item(self, piece: Piece) -> fanout.Item[Key, Hashable]:
        """Return a piece as the fan-out takes it."""
        return fanout.Item(
            key=piece.key,
            group=self._work.group_of(piece.row),
            size=self._work.size_of(piece),
            attempts=self._tally.attempts(piece),
        )

    def admit(self, item: fanout.Item[Key, Hashable], now: float) -> float | None:
        """Ask for a start; return the seconds until the next ask, or None to go."""
        wait = self._admission.ask(item.key, int(item.size), PROMPT_VERSION)
        self._give_back_outage()
        if wait is None:
            return None
        seconds, is_left_out = wait
        if is_left_out:
            self._leave_out(seconds)
        if self._admission.cause is not None and self._run is not None:
            self._run.stop("parked")
        return seconds

    def _leave_out(self, seconds: float) -> None:
        """Move the step's deadline by a wait that does not count (`spec.md` point 26)."""
        now = time.monotonic()
        until = now + seconds
        added = until - max(now, self._held_until)
        if added > 0 and self._run is not None:
            self._held_until = until
            self._deadline_at += added
            self._run.extend_deadline(added)
            DEADLINE.extend(added)

    def decide(
        self, item: fanout.Item[Key, Hashable], attempt: int, error: BaseException, now: float
    ) -> fanout.Decision[Key, Hashable]:
        """Report a failed call to the gate, and decide what follows."""
        failed = as_call_error(error)
        if failed.code is ErrorCode.INTERNAL_ERROR:
            logger.error(
                "call failed: %s",
                scrubbed(error.__cause__ if isinstance(error.__cause__, Exception) else error),
                extra={"action": "call_crashed", **self._lease.log_context()},
            )
        piece = self._pieces[item.key]
        reported = self._admission.failed(item.key, failed)
        at = time.time()
        self._give_back_outage()
        decision = self._decided(piece, failed, reported)
        spends = isinstance(decision, fanout.Retry | fanout.Fail) and decision.spends_attempt
        self._tally.failed(piece, failed.code, at, spends=spends)
        return decision

    def _decided(
        self, piece: Piece, failed: CallError, reported: Reported
    ) -> fanout.Decision[Key, Hashable]:
        match failed.policy.budget:
            case Budget.PARK:
                self._admission.stop_for(failed)
                return fanout.Park(reason="parked")
            case Budget.SPLIT:
                halves = self._pieces.split(piece)
                if halves:
                    return fanout.Replace(items=tuple(self.item(half) for half in halves))
                return fanout.Fail(spends_attempt=False)
        if failed.code in OUTAGE_CODES and reported.failing_since is not None:
            if self._admission.cause is not None:
                return fanout.Park(reason="parked")
            self._leave_out(reported.opens_in_s)
            return fanout.Retry(delay_s=reported.opens_in_s, spends_attempt=False)
        verdict = self._verdict(piece, failed)
        if verdict.delay_s is None and failed.code in OUTAGE_CODES:
            # The outage may have ended while this piece waited; what it spent in it does not count.
            self.give_back_last_outage()
            verdict = self._verdict(piece, failed)
        if verdict.delay_s is None:
            return fanout.Fail(
                error=PipelineError(verdict.message or failed.message, code=verdict.code),
                spends_attempt=verdict.spends_attempt,
            )
        delay_s = verdict.delay_s
        if failed.code is ErrorCode.RATE_LIMIT and self._admission.limiter is not None:
            delay_s = max(reported.opens_in_s, failed.details.retry_after_s or 0.0)
            # A cooldown that the step cannot outlast fails now; any other is left out of its time.
            if delay_s <= self._deadline_at - time.monotonic():
                self._leave_out(reported.opens_in_s)
        return fanout.Retry(delay_s=delay_s, spends_attempt=verdict.spends_attempt)

    def _verdict(self, piece: Piece, failed: CallError) -> retry_policy.Verdict:
        return retry_policy.decide(
            failed.code,
            attempts=self._tally.attempts(piece),
            waits=self._tally.waits(piece.row),
            max_attempts=piece.row.max_attempts,
            hint_s=failed.details.retry_after_s,
            rng=self._random,
            limits=retry_policy.RetryLimits(
                max_waits=settings.RATE_LIMIT_BUDGET, scale=settings.TIME_SCALE
            ),
        )

    def _give_back_outage(self) -> None:
        if self._admission.failing_since is not None:
            self._given_back(self._tally.give_back(self._admission.failing_since))

    def give_back_last_outage(self) -> None:
        """Give back what failed in the last outage that is over."""
        if self._tally.has_outage_failures and (outage := self._admission.last_outage()):
            self._given_back(self._tally.give_back(*outage))

    def _given_back(self, rows: Sequence[Any]) -> None:
        self._changed.update(row.id for row in rows)


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
