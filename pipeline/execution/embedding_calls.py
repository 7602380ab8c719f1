"""The calls of the optional embedder: vectors for texts, in a step that has no work items.

The executor thread asks the rate limiter, decides and writes; call threads call the provider. A
failure never fails or parks the step: the calls of the step end, and its caller goes on without the
missing vectors. One transaction behind the fence writes a call together with its vectors.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from medproc.telemetry import errors
from medproc.timing import scaled
from pipeline.codes.search import vectors
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import Budget, CallDetails, CallError, ErrorCode, LeaseLostError
from pipeline.core.redaction import redacted
from pipeline.execution import backoff, fanout
from pipeline.execution.admission import StepAdmission
from pipeline.execution.call_log import call_row, storable_details
from pipeline.execution.failed_call import as_call_error
from pipeline.execution.heartbeat import Heartbeat
from pipeline.execution.recent_calls import RecentStarts, window_of
from pipeline.execution.shutdown import grace_left, grace_s, on_stop
from pipeline.execution.splits import SplitKey
from pipeline.execution.step_result import CANCELLED, SIGTERM, StepInterrupted
from pipeline.execution.step_time import slots_of
from pipeline.execution.step_trace import StepTrace
from pipeline.execution.step_waits import REASONS
from pipeline.execution.step_writer import FLUSH_S
from pipeline.models import OUTCOME_LATE, OUTCOME_OK, ProviderCall
from pipeline.models.code_index import EMBEDDING_DIMENSIONS
from pipeline.providers.base import EmbeddingProvider, EmbeddingReply, EmbeddingRequest
from pipeline.providers.pricing import embedding_cost_usd
from pipeline.providers.prompts import estimate_tokens
from pipeline.transitions import Lease, fenced, insert_calls

logger = logging.getLogger(__name__)

BATCH_TEXTS = 100
"""Texts of one call; the service refuses more (400, "at most 100 requests can be in one batch")."""
CALLS_AT_ONCE = 8
"""Calls in flight of one step: they bound the memory for replies, of about 5 MB each."""
CALL_S = 30.0
"""The longest call, in unscaled seconds; the vectors of a hundred short texts take about one."""
PATIENCE_S = 30.0
"""Unscaled seconds without an answered call after which a step gives its embedder up."""
GIVEN_UP = "given up"
"""Why the fan-out stops if the step goes on without the missing vectors."""
PROMPT_VERSION = "embedding"
"""Names the kind of call to the rate limiter, which learns a correction of tokens for each kind."""

_Item: TypeAlias = fanout.Item[SplitKey, str]
_Event: TypeAlias = fanout.Event[SplitKey, str, EmbeddingReply]
_REASONS = {
    fanout.DEADLINE: "the time of the step was used up",
    "written_off": f"calls failed with {ErrorCode.API_TIMEOUT}",
}
_STOPS = frozenset({SIGTERM, CANCELLED})


@dataclass(frozen=True, kw_only=True)
class TextVectors:
    """The vectors that could be had."""

    found: dict[str, Sequence[float]] = field(repr=False)
    """By text; texts are PHI."""
    reason: str = ""
    """Why some are missing, in words without PHI; empty if none is missing."""


class EmbeddingCalls:
    """The embedding calls of one step. The first lasting failure ends all calls."""

    def __init__(
        self,
        lease: Lease,
        provider: EmbeddingProvider,
        deadline: StepDeadline,
        heartbeat: Heartbeat,
    ) -> None:
        self._lease = lease
        self._provider = provider
        self._deadline = deadline
        self._heartbeat = heartbeat
        self._starts = RecentStarts(window_of(provider))
        """The calls of all groups: a lost Redis is armed with them."""
        self._random = random.Random()
        self._reason = ""
        """Why the step makes no more calls."""
        self._calls_made: int | None = None
        """Calls of the record in this pass, of earlier runs too."""
        self._batches = 0

    def vectors(self, texts: Iterable[str]) -> TextVectors | StepInterrupted:
        """Return the vectors of these texts. The provider is asked for unknown vectors only.

        Returns StepInterrupted where the worker stops or the job is cancelled. Raises
        LeaseLostError when another worker has the job.
        """
        wanted = set(texts)
        found = vectors.known(self._provider.model, wanted)
        unknown = sorted(wanted - found.keys())
        if unknown and not self._reason:
            stopped = self._ask(unknown)
            if stopped in _STOPS:
                return StepInterrupted(reason=stopped)
            # Read again, so that every record orders by the stored, rounded vector.
            found |= vectors.known(self._provider.model, unknown)
        missing = len(wanted) > len(found)
        return TextVectors(found=found, reason=self._reason if missing else "")

    def _ask(self, texts: Sequence[str]) -> str:
        """Ask for the vectors of texts; return why the calls stopped, or "" if all were answered.

        The fence of the first write refuses a worker that has lost its lease.
        """
        if self._calls_made is None:
            self._calls_made = ProviderCall.objects.filter(
                processing_session=self._lease.session_id, step=self._lease.step
            ).count()
        admission = StepAdmission(self._lease, self._provider, self._starts)
        run = _EmbeddingRun(self._lease, self._provider, admission, self._deadline, self._heartbeat)
        run.calls_made = self._calls_made
        for at in range(0, len(texts), BATCH_TEXTS):
            self._batches += 1
            run.add(f"e{self._batches}", tuple(texts[at : at + BATCH_TEXTS]))
        stopped = run.run(self._random)
        self._calls_made = run.calls_made
        self._reason = run.reason
        if stopped and stopped not in _STOPS:
            self._reason = self._reason or _REASONS.get(stopped, f"the calls stopped: {stopped}")
            logger.warning(
                "the embedder was given up: %s",
                self._reason,
                extra={"action": "embedder_given_up", **self._lease.log_context()},
            )
        return stopped


class _EmbeddingRun:
    """One fan-out over batches of texts, and what it has to write."""

    def __init__(
        self,
        lease: Lease,
        provider: EmbeddingProvider,
        admission: StepAdmission,
        deadline: StepDeadline,
        heartbeat: Heartbeat,
    ) -> None:
        self._lease = lease
        self._provider = provider
        self._deadline = deadline
        self._heartbeat = heartbeat
        self._admission = admission
        self._trace = StepTrace.of(lease)
        self._texts: dict[SplitKey, tuple[str, ...]] = {}
        self._queue_wait_ms: dict[int, int] = {}
        self._began: dict[int, float] = {}
        self._rows: list[dict[str, object]] = []
        self._vectors: dict[str, Sequence[float]] = {}
        self._wrote_at = time.monotonic()
        self._silent_since: float | None = None
        """When the first call failed or was refused since the last answered one."""
        self.calls_made = 0
        self.reason = ""

    def add(self, name: str, texts: tuple[str, ...]) -> None:
        """Add the texts of one call."""
        self._texts[self._lease.session_id, name] = texts

    def run(self, rng: random.Random) -> str:
        """Make the calls; return why they stopped, or "" if all were answered."""
        self._random = rng
        limits = fanout.Limits(
            groups=1,
            calls=min(slots_of(self._provider), CALLS_AT_ONCE),
            call_deadline_s=scaled(min(CALL_S, settings.CALL_DEADLINE_S)),
            grace_s=grace_s(),
            tick_s=min(FLUSH_S, scaled(settings.HEARTBEAT_S)) / 2,
        )
        items = [
            fanout.Item(key=key, group="", size=float(sum(map(estimate_tokens, texts))))
            for key, texts in self._texts.items()
        ]
        with fanout.FanOut(
            items,
            call=self._call,
            decide=self._decide,
            admit=self._admit,
            limits=limits,
            deadline=self._deadline,
        ) as fan_out:
            forget = on_stop(lambda: fan_out.stop(SIGTERM, grace_s=grace_left()))
            try:
                stopped = self._follow(fan_out)
            except LeaseLostError:
                raise
            except Exception:
                # Whatever broke, the vectors that were paid for are kept.
                with suppress(DatabaseError, InterfaceError):
                    self._write()
                raise
            finally:
                forget()
                self._admission.close()
        self._write_all(limits.tick_s)
        return stopped

    def _follow(self, fan_out: fanout.FanOut[SplitKey, str, EmbeddingReply]) -> str:
        stopped = ""
        for event in fan_out.events():
            self._record(event)
            if isinstance(event, fanout.Stopped) and event.returned:
                stopped = event.reason
            if isinstance(event, fanout.Failed):
                # The next retry was due after the soft end of the step.
                fan_out.stop(fanout.DEADLINE)
                stopped = fanout.DEADLINE
            if time.monotonic() - self._wrote_at >= FLUSH_S:
                self._write()
            self._heartbeat.renew_when_due()
            if self._heartbeat.is_cancelled:
                fan_out.stop(CANCELLED)
        return stopped

    def _admit(self, item: _Item, now: float) -> float | fanout.Park | None:
        self._heartbeat.renew_when_overdue()
        wait = self._admission.ask(item.key, int(item.size), PROMPT_VERSION)
        if wait is None:
            return None
        if self._admission.must_park or self._is_too_long(now, wait.seconds):
            return self._give_up(f"the calls waited for {REASONS[wait.why]}")
        if wait.is_left_out:
            self._deadline.leave_out(wait.seconds, now=now)
        return wait.seconds

    def _call(self, item: _Item, _attempt: int, cancel: fanout.CancelEvent) -> EmbeddingReply:
        """Ask for the vectors of one batch. Runs in a call thread; touches no row."""
        return self._provider.embed(
            EmbeddingRequest(
                texts=self._texts[item.key],
                dimensions=EMBEDDING_DIMENSIONS,
                deadline_s=scaled(min(CALL_S, settings.CALL_DEADLINE_S)),
                on_send=lambda: self._heartbeat.await_lease(cancel),
                on_sent=self._admission.noting_sent(item.key),
            )
        )

    def _decide(
        self, item: _Item, _attempt: int, error: BaseException, now: float
    ) -> fanout.Decision[SplitKey, str]:
        failed = as_call_error(error)
        if failed.code is ErrorCode.INTERNAL_ERROR:
            logger.error(
                "call failed: %s",
                redacted(error if isinstance(error, Exception) else failed),
                extra={"action": "call_crashed", **self._lease.log_context()},
            )
            errors.report(error, step=self._lease.step.value)
        reported = self._admission.failed(item.key, failed)
        if failed.policy.budget is Budget.PARK:
            # Opens the incident, which holds the calls of other steps. This step does not park.
            self._admission.park_for(failed)
            return self._give_up(f"a call failed with {failed.code}")
        retry = backoff.decide(
            failed.code,
            attempts=item.attempts,
            limited_calls=item.free_retries,
            max_attempts=settings.PASS1_MAX_RETRIES,
            hint_s=failed.details.retry_after_s,
            rng=self._random,
            limits=backoff.RetryLimits(
                max_limited_calls=settings.RATE_LIMIT_BUDGET, scale=settings.TIME_SCALE
            ),
        )
        if retry.delay_s is None:
            return self._give_up(f"a call failed with {failed.code}")
        delay_s = max(retry.delay_s, reported.starts_in_s or 0.0)
        if self._is_too_long(now, delay_s):
            return self._give_up(f"a call failed with {failed.code}")
        return fanout.Retry(delay_s=delay_s, spends_attempt=retry.spends_attempt)

    def _give_up(self, reason: str) -> fanout.Park:
        self.reason = self.reason or reason
        return fanout.Park(reason=GIVEN_UP)

    def _is_too_long(self, now: float, seconds: float) -> bool:
        """Return whether so many more seconds would exceed the patience of the step."""
        if self._silent_since is None:
            self._silent_since = now
        return now + seconds - self._silent_since > scaled(PATIENCE_S)

    def _record(self, event: _Event) -> None:
        match event:
            case fanout.Started():
                self._queue_wait_ms[event.call_no] = int(event.queue_wait_s * 1000)
                self._began[event.call_no] = time.monotonic()
            case fanout.Succeeded():
                self._silent_since = None
                self._admission.succeeded(event.key, event.result.details)
                texts = self._texts[event.key]
                self._vectors |= dict(zip(texts, event.result.vectors, strict=True))
                self._add(event.call_no, event.duration_s, event.result.details, OUTCOME_OK)
            case fanout.AttemptFailed():
                failed = as_call_error(event.error)
                self._add_failed(event.call_no, event.duration_s, failed)
            case fanout.LateReply():
                self._add_late(event)
            case fanout.Failed():
                self._admission.ended(event.key)
            case fanout.Tick():
                self._admission.flush()
            case fanout.Returned() if event.call_no is not None:
                self._admission.cut(event.key)
                began = self._began.get(event.call_no, time.monotonic())
                cut = CallError("given up when the step stopped", code=ErrorCode.CANCELLED)
                self._add_failed(event.call_no, time.monotonic() - began, cut)
            case _:
                return

    def _add_failed(self, call_no: int, duration_s: float, error: CallError) -> None:
        self._add(call_no, duration_s, error.details, error.code, error.message)

    def _add_late(self, event: fanout.LateReply[SplitKey, EmbeddingReply]) -> None:
        if event.result is not None:
            details = event.result.details
        elif isinstance(event.error, CallError):
            details = event.error.details
        else:
            return
        self._add(event.call_no, event.duration_s, details, OUTCOME_LATE, "came too late")

    def _add(
        self,
        call_no: int,
        duration_s: float,
        details: CallDetails,
        outcome: str,
        message: str | None = None,
    ) -> None:
        self.calls_made += 1
        details = storable_details(details)
        row = call_row(self._lease, self._provider, details, duration_s=duration_s)
        row |= {
            "attempt": self.calls_made,
            "outcome": outcome,
            "accepted": outcome == OUTCOME_OK,
            "message": message,
            "queue_wait_ms": self._queue_wait_ms.pop(call_no, 0),
            "cost_usd": str(embedding_cost_usd(details)),
        }
        self._began.pop(call_no, None)
        self._rows.append(row)

    def _write(self) -> None:
        """Write what there is, unless PostgreSQL is away."""
        self._wrote_at = time.monotonic()
        if not self._rows:
            return
        with self._heartbeat.unless_away("a write"):
            with fenced(self._lease):
                insert_calls(self._rows)
                vectors.keep(self._provider.model, self._vectors)
            if self._vectors:
                self._deadline.note_progress()
            if self._trace is not None:
                self._trace.written(self._rows)
            self._rows, self._vectors = [], {}

    def _write_all(self, pause_s: float) -> None:
        """Write what is left, as often as it takes; raises LeaseLostError where it takes long."""
        self._write()
        while self._rows:
            time.sleep(pause_s)
            self._heartbeat.renew_when_due()
            self._write()
