"""The RQ entry point: claim a job, run its step, write how the step ended.

An entry is a wake-up, not an order: the worker claims the best waiting row of the pass, and the
row alone says what is due.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from threading import Event

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from medproc.telemetry import errors
from medproc.timing import scaled
from pipeline.core.db_errors import is_away, unless_away
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode, LeaseLostError, LeaseUnrenewedError, PipelineError
from pipeline.core.redaction import redacted
from pipeline.core.server_faults import FileStoreError, explain, fault_of
from pipeline.core.states import CALLING_STEPS, Step
from pipeline.documents import storage
from pipeline.execution.admission import limiter_of
from pipeline.execution.heartbeat import REPEAT_SHARE
from pipeline.execution.preemption import PREEMPTED
from pipeline.execution.reuse.conditions import Conditions, conditions_of
from pipeline.execution.reuse.extractions import remember
from pipeline.execution.shutdown import on_stop, stop_requested
from pipeline.execution.step_result import (
    CANCELLED,
    OUT_OF_TIME,
    SIGTERM,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepParked,
    StepResult,
)
from pipeline.execution.step_trace import trace_pass
from pipeline.execution.worker_settings import own_settings
from pipeline.operations import liveness
from pipeline.operations.rate_limit_counts import copy_counts_of
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider, provider_for
from pipeline.queueing.queues import (
    enqueue_step,
    enqueue_steps,
    is_first_to_say,
    workers_beside,
)
from pipeline.queueing.record_places import give_on, settle_and_wake
from pipeline.stages.registry import PASSES, next_step
from pipeline.transitions import (
    Failure,
    Lease,
    board,
    cancel_asked,
    claim,
    complete_step,
    confirm_wait,
    fail_step,
    fenced,
    note_settings,
    park,
    renew_lease,
    requeue_interrupted,
    retry_later,
    with_lost_work,
)
from pipeline.transitions.rollup import Leaving, settle
from pipeline.workers.continuation import GoingOn, step_to_continue
from pipeline.workers.identity import served_beside, worker_identity
from pipeline.workers.refused_steps import REASON
from pipeline.workers.shared_step import SHARED_STEP

logger = logging.getLogger(__name__)

STORE_REFUSED = "the file store refused"


def run_step(step: str) -> None:
    """Claim the best waiting job of a pass, run its step, and write how it ended.

    After a completed step, the process can go on with the next pass (`continuation`). If PostgreSQL
    refuses, the worker requeues the step later (`refused_steps`).
    """
    try:
        _warn_of_scheduler()
        going_on = _run_best(Step(step))
        # A horse runs each pass once at most, so that no memory of a horse grows without end.
        for left in reversed(range(len(Step) - 1)):
            if going_on is not None:
                going_on = _go_on(going_on, may_continue=left > 0)
    except (DatabaseError, InterfaceError) as error:
        if not is_away(error):
            raise
        SHARED_STEP.note_refusal(True)
        if is_first_to_say(fault_of(error) or "database"):
            logger.error("%s", explain(error), extra={"action": "database_refuses"})
        connection.close()


def _run_best(step: Step) -> GoingOn | None:
    """Run the best waiting job of a pass; return with what the process goes on."""
    asked_at = time.monotonic()
    lease = _claimed(step)
    return None if lease is None else _run_claimed(lease, asked_at, may_continue=True)


def _go_on(going_on: GoingOn, *, may_continue: bool) -> GoingOn | None:
    """Run the best waiting job of the next pass, as a horse of its own would do.

    If nothing is claimed, the wake-ups that were left out are sent.
    """
    asked_at = time.monotonic()
    lease = None
    try:
        if not stop_requested():
            lease = _claimed(going_on.step)
    finally:
        _send_left_out(going_on, lease)
    return None if lease is None else _run_claimed(lease, asked_at, may_continue=may_continue)


def _send_left_out(going_on: GoingOn, claimed: Lease | None) -> None:
    """Send the wake-ups in whose place nothing was claimed."""
    if claimed is None:
        enqueue_steps([going_on.due])
    place = going_on.place
    if place is not None and (claimed is None or claimed.record_batch_id != place[0]):
        give_on([place])


def _claimed(step: Step) -> Lease | None:
    return claim(
        step,
        worker_identity(),
        named_provider(ProviderConfig.of_settings()),
        others=served_beside(step.value),
        has_room=_has_room,
    )


def _run_claimed(lease: Lease, asked_at: float, *, may_continue: bool) -> GoingOn | None:
    going_on: GoingOn | None = None
    SHARED_STEP.claimed(lease.job_id, lease.gen, asked_at)
    _log("step_started", lease)
    began_at = timezone.now()
    deadline = StepDeadline(
        scaled(settings.STEP_DEADLINE_MIN_S), publish=SHARED_STEP.publish, sign=SHARED_STEP.sign
    )
    try:
        result = _run(lease, deadline)
        if isinstance(result, StepCompleted) and may_continue:
            result = replace(result, continues_with=step_to_continue(lease))
        result = _end(lease, deadline, result)
        if isinstance(result, StepCompleted) and result.continues_with is not None:
            going_on = GoingOn.after(lease, result.continues_with)
        trace_pass(lease, began_at, _outcome(result), has_failed=isinstance(result, StepFailed))
        _copy_counts(lease)
        return going_on
    except LeaseLostError as error:
        SHARED_STEP.note_refusal(isinstance(error, LeaseUnrenewedError))
        _log("lease_lost", lease)
        return None
    except BaseException:
        if going_on is not None:
            _send_left_out(going_on, None)
        raise
    finally:
        deadline.close()
        SHARED_STEP.clear_lease()


def _has_room(step: Step) -> bool:
    """Return whether a job that hung before may run: it never takes the last idle worker.

    A worker that is alone with its pass runs the job, because nothing else waits.
    """
    beside = workers_beside(step.value, worker_identity())
    return beside is not None and (beside.idle > 0 or beside.alive == 0)


def _warn_of_scheduler() -> None:
    """Say, once a minute over all workers, that no clock ticks: nothing is recovered then."""
    problems = liveness.scheduler_problems(liveness.last_task_runs())
    if problems and is_first_to_say("clock"):
        logger.warning("%s", "; ".join(problems), extra={"action": "scheduler_silent"})


def _run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Run the step; while a server is away, again after 10, 20 and 40 s (requirement 44)."""
    woken = Event()
    forget = on_stop(woken.set)
    try:
        for attempt in Retrying(
            retry=retry_if_exception(_is_server_away),
            wait=wait_exponential(multiplier=scaled(10.0)),
            stop=stop_after_attempt(4),
            before_sleep=lambda state: _before_wait(state, deadline),
            sleep=lambda seconds: _wait(seconds, woken, lease, deadline),
            reraise=True,
        ):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    asked_at = time.monotonic()
                    if _renewed_again(lease, deadline):
                        return StepInterrupted(reason=CANCELLED)
                    deadline.sign_of_life(asked_at)
                    if stop_requested():
                        return StepInterrupted(reason=SIGTERM)
                with fenced(lease):
                    note_settings(lease, own_settings())
                    conditions = conditions_of(lease.step)
                    parking = board(lease, conditions.as_columns())
                if parking is not None:
                    return StepParked(parking=parking)
                result = _or_requeued(lease, deadline, PASSES[lease.step](lease, deadline))
                return _remembered(lease, conditions, result)
        raise AssertionError("the last attempt returns or raises")
    except LeaseLostError:
        raise
    except PipelineError as error:
        if isinstance(error, FileStoreError) and storage.fault() is not None:
            return StepInterrupted(reason=STORE_REFUSED)
        if error.code is ErrorCode.CANCELLED:
            return StepInterrupted(reason=CANCELLED)
        failed = StepFailed(
            failure=Failure(code=error.code, message=error.message),
            is_out_of_time=error.code is ErrorCode.DEADLINE_EXCEEDED,
        )
        return _or_requeued(lease, deadline, failed)
    except Exception as error:  # noqa: BLE001 - whatever it is, the job must end as failed
        if is_away(error) and _database_refuses(lease, deadline):
            return StepInterrupted(reason=REASON)
        return _broken(lease, error)
    finally:
        forget()


def _remembered(lease: Lease, conditions: Conditions, result: StepResult) -> StepResult:
    """Let a completed step be noted for a reuse under the conditions at its start.

    A code system that is loaded during the step belongs to the next pass.
    """
    if not isinstance(result, StepCompleted):
        return result
    publish = result.publish

    def publish_and_remember() -> None:
        publish()
        remember(lease, conditions)

    return StepCompleted(publish=publish_and_remember)


def _or_requeued(lease: Lease, deadline: StepDeadline, result: StepResult) -> StepResult:
    """Return the result, or the requeue of a step that is out of time and has progressed.

    The requeue costs no crash and no retry. A step without progress since its claim fails, so a
    step that hangs at the same place is not requeued again and again.
    """
    if not isinstance(result, StepFailed) or not result.is_out_of_time:
        return result
    if not deadline.has_progressed:
        return result
    message = result.failure.message
    _log("step_out_of_time", lease, message=message)
    return StepInterrupted(reason=OUT_OF_TIME, message=message)


def _renewed_again(lease: Lease, deadline: StepDeadline) -> bool:
    """Renew the lease after PostgreSQL refused; return whether the job is to be cancelled."""
    try:
        return renew_lease(lease, deadline.left_s)
    except LeaseLostError as error:
        raise LeaseUnrenewedError(error.message) from None


def _database_refuses(lease: Lease, deadline: StepDeadline) -> bool:
    """Return whether PostgreSQL still refuses; otherwise only the step's statement is refused."""
    connection.close()
    try:
        _renewed_again(lease, deadline)
    except (DatabaseError, InterfaceError) as error:
        return is_away(error)
    return False


def _is_server_away(error: BaseException) -> bool:
    """Return whether the step can succeed a little later, when the server accepts it again."""
    return is_away(error) or isinstance(error, FileStoreError)


def _before_wait(state: RetryCallState, deadline: StepDeadline) -> None:
    """Drop the broken connection; the wait for a server is no hang."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, FileStoreError) and is_first_to_say(error.fault):
        logger.error("%s", explain(error), extra={"action": "file_store_refuses"})
    connection.close()
    deadline.sign_of_life(time.monotonic() + state.upcoming_sleep)
    # A wait beyond the deadline would be taken for a hang, too. The rest is for the next attempt.
    needed_s = state.upcoming_sleep + scaled(settings.HEARTBEAT_S)
    deadline.extend(max(0.0, needed_s - deadline.left_s))


def _wait(seconds: float, woken: Event, lease: Lease, deadline: StepDeadline) -> None:
    """Wait until a stop request, and renew the lease once PostgreSQL accepts writes again.

    The wait can outlast both the refusal and the lease. The recovery would then count a crash.
    """
    ends_at = time.monotonic() + seconds
    pause_s = scaled(settings.HEARTBEAT_S) * REPEAT_SHARE
    while (left_s := ends_at - time.monotonic()) > 0 and not woken.wait(min(left_s, pause_s)):
        with unless_away():
            _renewed_again(lease, deadline)


def _end(lease: Lease, deadline: StepDeadline, result: StepResult) -> StepResult:
    """Write the end of a step, and return it.

    An end that cannot be written fails the job, and never strands it.

    A COMMIT of unknown outcome is repeated on a fresh connection as long as the lease lives. The
    fence stops the second COMMIT where the first one went through.
    """
    # What was paid for is written as long as the lease lives, also when the step's time is up.
    deadline.extend(scaled(settings.LEASE_S))
    deadline.sign_of_life(time.monotonic())
    try:
        for attempt in Retrying(
            retry=retry_if_exception(is_away),
            wait=wait_exponential(multiplier=scaled(1.0), max=scaled(10.0)),
            stop=stop_after_delay(scaled(settings.LEASE_S)),
            before_sleep=lambda state: _before_wait(state, deadline),
            reraise=True,
        ):
            with attempt:
                _write_end(lease, result)
    except LeaseLostError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the job must end
        if is_away(error):
            result = _write_once_more(lease, result)
        else:
            result = _broken(lease, error)
            _write_end(lease, result)
    _log("step_ended", lease, outcome=_outcome(result))
    return result


def _write_once_more(lease: Lease, result: StepResult) -> StepResult:
    """Write an end that PostgreSQL has refused for long; return how the step has ended.

    Raises the error of a PostgreSQL that refuses all writes: the worker then requeues the step.
    If PostgreSQL refuses only this end, the job fails: each requeue would meet the same refusal.
    """
    _fence_is_accepted(lease)
    try:
        _write_end(lease, result)
    except (DatabaseError, InterfaceError) as error:
        _fence_is_accepted(lease)
        result = _broken(lease, error)
        _write_end(lease, result)
    return result


def _fence_is_accepted(lease: Lease) -> None:
    """Lock the job's row, which is a write, on a fresh connection. Raises PostgreSQL's error."""
    connection.close()
    with fenced(lease):
        pass


def _copy_counts(lease: Lease) -> None:
    """Copy the counters of the rate limiter, which a loss of Redis would reset."""
    config = ProviderConfig.of_settings() if lease.step in CALLING_STEPS else None
    if lease.step is Step.PASS1_5:
        config = ProviderConfig.of_embedder()
    limiter = None if config is None else limiter_of(provider_for(config))
    if limiter is not None:
        with unless_away():
            copy_counts_of(limiter.state())


def _broken(lease: Lease, error: Exception) -> StepResult:
    errors.report(error, step=lease.step.value)
    logger.error(
        "step failed: %s",
        redacted(error),
        extra={"action": "step_broke", **lease.log_context()},
    )
    code = ErrorCode.DB_ERROR if isinstance(error, DatabaseError) else ErrorCode.INTERNAL_ERROR
    return StepFailed(failure=Failure(code=code, message=f"unexpected {type(error).__name__}"))


def _write_end(lease: Lease, result: StepResult) -> None:
    with fenced(lease):
        has_ended = _write_result(lease, result)
        # A cancellation goes before everything that the job would wait for; a wake-up that was
        # sent already finds nothing.
        has_ended |= cancel_asked(lease)
        event = f"{lease.step}: {_outcome(result)}"
        leaving = [Leaving.by(lease, event, has_ended=has_ended)]
        if isinstance(result, StepCompleted) and result.continues_with:
            # The horse that goes on takes its place again.
            enqueue_steps(settle(leaving))
        else:
            settle_and_wake(leaving)


def _write_result(lease: Lease, result: StepResult) -> bool:
    """Write how the step ended; return whether its job has ended too."""
    match result:
        case StepInterrupted(reason=reason, message=message):
            dispatch_no = requeue_interrupted(lease, preempted=reason == PREEMPTED, message=message)
            enqueue_step(lease.job_id, lease.step.value, dispatch_no)
            return False
        case StepParked(parking=parking):
            park(lease, parking)
            if parking.behind is not None:
                enqueue_steps(confirm_wait(lease, parking.behind))
            return False
        case StepFailed(failure=failure, publish=publish):
            publish()
            if result.is_of_items:
                failure = with_lost_work(lease, failure)
            if retry_later(lease, failure):
                return False
            fail_step(lease, failure)
            return True
        case StepCompleted(publish=publish, continues_with=continues_with):
            publish()
            return _complete(lease, continues_with)


def _complete(lease: Lease, continues_with: Step | None) -> bool:
    following = next_step(lease.step)
    dispatch_no = complete_step(lease, following)
    if following is not None and dispatch_no is not None and continues_with is None:
        enqueue_step(lease.job_id, following.value, dispatch_no)
    return following is None


def _outcome(result: StepResult) -> str:
    match result:
        case StepInterrupted(reason=reason):
            return f"interrupted ({reason})"
        case StepParked(parking=parking):
            return f"parked ({parking.reason})"
        case StepFailed(failure=failure):
            return failure.code
        case StepCompleted():
            return "completed"


def _log(action: str, lease: Lease, **extra: str) -> None:
    words = " ".join(f"{k}={v}" for k, v in {**lease.log_context(), **extra}.items())
    logger.info("%s %s", action, words, extra={"action": action, **lease.log_context()})
