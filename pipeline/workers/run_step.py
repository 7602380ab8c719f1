"""The RQ entry point: claim a job, run its step, write how the step ended.

An entry is a wake-up, not an order: whoever is woken claims
the best waiting row of the pass, and the row alone says what is due.
"""

from __future__ import annotations

import logging
from threading import Event

from django.conf import settings
from django.db import DatabaseError, connection
from tenacity import (
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from medproc.timing import scaled
from pipeline.core.db_errors import is_away
from pipeline.core.deadline import DEADLINE
from pipeline.core.errors import ErrorCode, LeaseLostError, PipelineError
from pipeline.core.redaction import scrubbed
from pipeline.core.states import Step
from pipeline.execution.preemption import PREEMPTED
from pipeline.execution.shutdown import on_stop, stop_requested
from pipeline.execution.step_result import StepResult
from pipeline.operations import liveness
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider
from pipeline.queueing.queues import enqueue_step, enqueue_steps, is_first_to_say
from pipeline.stages.registry import PASSES, next_step
from pipeline.transitions import (
    Failure,
    Lease,
    cancel_asked,
    claim,
    complete_step,
    fail_step,
    fenced,
    heartbeat,
    park,
    requeue_interrupted,
    retry_later,
)
from pipeline.transitions.rollup import Leaving, settle
from pipeline.workers.identity import served_beside, worker_identity

logger = logging.getLogger(__name__)


def run_step(step: str) -> None:
    """Claim the best waiting job of a pass, run its step, and write how it ended."""
    _warn_of_scheduler()
    lease = claim(
        Step(step),
        worker_identity(),
        named_provider(ProviderConfig.of_settings()),
        others=served_beside(step),
    )
    if lease is None:
        return
    _log("step_started", lease)
    DEADLINE.allow(scaled(settings.STEP_DEADLINE_MIN_S))
    try:
        _end(lease, _run(lease))
    except LeaseLostError:
        _log("lease_lost", lease)
    finally:
        DEADLINE.forget()


def _warn_of_scheduler() -> None:
    """Say, once a minute over all workers, that no clock ticks: nothing is recovered then."""
    problems = liveness.scheduler_problems(liveness.last_task_runs())
    if problems and is_first_to_say("clock"):
        logger.warning("%s", "; ".join(problems), extra={"action": "scheduler_silent"})


def _run(lease: Lease) -> StepResult:
    """Run the step; while the database is away, again after 10, 20 and 40 s (`spec.md` 44)."""
    woken = Event()
    forget = on_stop(woken.set)
    try:
        for attempt in Retrying(
            retry=retry_if_exception(is_away),
            wait=wait_exponential(multiplier=scaled(10.0)),
            stop=stop_after_attempt(4),
            before_sleep=lambda _: connection.close(),
            sleep=sleep_using_event(woken),
            reraise=True,
        ):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    if heartbeat(lease):
                        return StepResult(given_back="cancelled")
                    if stop_requested():
                        return StepResult(given_back="sigterm")
                return PASSES[lease.step](lease)
        raise AssertionError("the last attempt returns or raises")
    except LeaseLostError:
        raise
    except PipelineError as error:
        if error.code is ErrorCode.CANCELLED:
            return StepResult(given_back="cancelled")
        return StepResult(failure=Failure(code=error.code, message=error.message))
    except Exception as error:  # noqa: BLE001 - whatever it is, the job must end as failed
        return _broken(lease, error)
    finally:
        forget()


def _end(lease: Lease, result: StepResult) -> None:
    """Write the end of a step; one that cannot be written fails the job, and never strands it.

    A COMMIT of unknown outcome is repeated on a fresh connection as long as the lease lives: if it
    did go through, the fence stops the second one.
    """
    # What was paid for is written as long as the lease lives, also when the step's time is up.
    DEADLINE.extend(scaled(settings.LEASE_S))
    try:
        for attempt in Retrying(
            retry=retry_if_exception(is_away),
            wait=wait_exponential(multiplier=scaled(1.0), max=scaled(10.0)),
            stop=stop_after_delay(scaled(settings.LEASE_S)),
            before_sleep=lambda _: connection.close(),
            reraise=True,
        ):
            with attempt:
                _write_end(lease, result)
    except LeaseLostError:
        raise
    except Exception as error:
        if is_away(error):
            raise
        result = _broken(lease, error)
        _write_end(lease, result)
    _log("step_ended", lease, outcome=_outcome(result))


def _broken(lease: Lease, error: Exception) -> StepResult:
    logger.error(
        "step failed: %s",
        scrubbed(error),
        extra={"action": "step_crashed", **lease.log_context()},
    )
    code = ErrorCode.DB_ERROR if isinstance(error, DatabaseError) else ErrorCode.INTERNAL_ERROR
    return StepResult(failure=Failure(code=code, message=f"unexpected {type(error).__name__}"))


def _write_end(lease: Lease, result: StepResult) -> None:
    with fenced(lease):
        result.publish()
        has_ended = False
        if result.given_back is not None:
            was_preempted = result.given_back == PREEMPTED
            _wake(lease, lease.step, requeue_interrupted(lease, preempted=was_preempted))
        elif result.parked is not None:
            park(lease, result.parked)
        elif result.failure is not None:
            has_ended = not retry_later(lease, result.failure)
            if has_ended:
                fail_step(lease, result.failure)
        else:
            following = next_step(lease.step)
            dispatch_no = complete_step(lease, following)
            has_ended = following is None
            if following is not None and dispatch_no is not None:
                _wake(lease, following, dispatch_no)
        # Whatever the job would wait for, an operator's wish goes first; a wake-up finds nothing.
        has_ended |= cancel_asked(lease)
        event = f"{lease.step}: {_outcome(result)}"
        enqueue_steps(settle([Leaving.by(lease, event, has_ended=has_ended)]))


def _wake(lease: Lease, step: Step, dispatch_no: int) -> None:
    enqueue_step(lease.job_id, step.value, dispatch_no)


def _outcome(result: StepResult) -> str:
    if result.given_back is not None:
        return f"given back ({result.given_back})"
    if result.parked is not None:
        return f"parked ({result.parked.reason})"
    return result.failure.code if result.failure else "completed"


def _log(action: str, lease: Lease, **extra: str) -> None:
    words = " ".join(f"{k}={v}" for k, v in {**lease.log_context(), **extra}.items())
    logger.info("%s %s", action, words, extra={"action": action, **lease.log_context()})
