"""Steps that behave well and badly, run by real workers in place of `pipeline.workers.run_step`.

`STEP_DOES` names the behaviour. `STEP_SEEN` names the report, a file with one JSON object per line.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import rq
from django.db import OperationalError, connection

from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.core.states import Step
from pipeline.documents import storage
from pipeline.execution.heartbeat import Heartbeat, call_with_lease
from pipeline.execution.shutdown import grace_left, on_stop, request_stop, stop_requested
from pipeline.execution.step_result import SIGTERM, StepCompleted, StepInterrupted, StepResult
from pipeline.models import ShellFile
from pipeline.providers.local.assertions import cues
from pipeline.queueing.queues import QUEUES, entry_id, push, suspend
from pipeline.stages import registry
from pipeline.transitions import Lease, claim, renew_lease
from pipeline.workers import run_step as real_run_step
from pipeline.workers.continuation import GoingOn
from pipeline.workers.identity import worker_identity
from pipeline.workers.shared_step import SHARED_STEP

STOPS, HOLDS_THE_INTERPRETER = "records/stops", "records/holds"
"""Keys of records whose step hangs: its process is stopped, or is deaf in C code."""
PAUSES = "records/pauses"
"""Key of a record whose step is stopped, and ends well once its process continues."""
HEALTHY_S = 0.2
"""The work of a healthy step takes time, so that a worker is busy meanwhile."""
PATIENT = "Jane Doe, born 1961-02-03"


def run_step(step: str) -> None:
    """Report the start of the step and do what `STEP_DOES` says."""
    entry = rq.get_current_job()
    assert entry is not None
    seen(event="began", step=step, entry=entry.id, pid=os.getpid(), identity=worker_identity())
    BEHAVIOURS[os.environ["STEP_DOES"]]()


def seen(**facts: Any) -> None:
    """Append an event to the report in one write."""
    with Path(os.environ["STEP_SEEN"]).open("a") as report:
        report.write(json.dumps({"at": time.time(), **facts}) + "\n")


def drain() -> None:
    """Work until a stop request, like an executor that waits for its calls."""
    woken = threading.Event()
    on_stop(woken.set)
    woken.wait()
    seen(event="drained", stop_requested=stop_requested(), grace_left=grace_left())


def ignore_stop() -> None:
    """Hang, and ignore every stop request."""
    threading.Event().wait()


def leave_a_thread() -> None:
    """Return while a non-daemon thread hangs in a call."""
    threading.Thread(target=threading.Event().wait).start()
    seen(event="returned")


def fail() -> None:
    """Raise an error with a document's text in the message and in the cause."""
    try:
        json.loads(PATIENT)
    except ValueError as error:
        raise PipelineError(PATIENT, code=ErrorCode.DB_ERROR) from error


def report_alarms() -> None:
    """Report whether an alarm is armed while the step runs."""
    seen(event="alarm", left=signal.getitimer(signal.ITIMER_REAL)[0])


def report_connections() -> None:
    """Report which connections the horse uses."""
    entry = rq.get_current_job()
    assert entry is not None
    report_backend("database")
    seen(event="redis", name=entry.connection.client_getname())


def report_backend(event: str) -> None:
    """Report the server process behind this process's database connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    seen(event=event, backend=backend, pools=len(getattr(connection, "_connection_pools", ())))


def hang_beyond_deadline() -> None:
    """Claim a job and hang so that no thread of this process can end the step."""
    lease = claim(Step.PASS1, worker_identity())
    if lease is not None:
        StepDeadline(0.1, publish=SHARED_STEP.publish)
        renew_lease(lease, 0.1)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        threading.Event().wait()


def claim_and_run() -> None:
    """Run the real entry point, on a pass that hangs for the records of `POISON` alone."""
    entry = rq.get_current_job()
    assert entry is not None
    registry.PASSES[Step(entry.origin)] = _pass_that_can_hang
    real_run_step.run_step(entry.origin)


def _pass_that_can_hang(lease: Lease, deadline: StepDeadline) -> StepResult:
    key = ShellFile.objects.values_list("storage_key", flat=True).get(id=lease.shell_file_id)
    seen(event="claimed", job=str(lease.job_id), key=key, pid=os.getpid())
    if key in {STOPS, PAUSES}:
        os.kill(os.getpid(), signal.SIGSTOP)
    if key == PAUSES:
        time.sleep(HEALTHY_S)  # the simulated work of the step
        return StepCompleted()
    if key == HOLDS_THE_INTERPRETER:
        # PyDLL keeps the interpreter's lock during the call, so no other thread runs either.
        ctypes.PyDLL(None).pause()
    # The sleep is the simulated work of the step.
    call_with_lease(lease, deadline, lambda: time.sleep(HEALTHY_S))
    seen(event="done", job=str(lease.job_id))
    return StepCompleted(publish=lambda: None)


def report_warmth() -> None:
    """Report whether the process has inherited the compiled patterns of the local engine."""
    seen(event="warmth", pid=os.getpid(), compiled=cues._phrases.cache_info().currsize)


def die_with_a_copy() -> None:
    """Copy the one stored file from the bucket, and be killed while the copy is in use."""
    with storage.local_path(ShellFile.objects.values_list("storage_key", flat=True).get()) as path:
        seen(event="copied", path=str(path), size=path.stat().st_size)
        os.kill(os.getpid(), signal.SIGKILL)


def wake_next() -> None:
    """Wake the next pass, as a completed step does."""
    entry = rq.get_current_job()
    assert entry is not None
    after = QUEUES[QUEUES.index(entry.origin) + 1 :]
    if after:
        push(after[0], entry_id(uuid4(), after[0], 1))


def renew() -> None:
    """Run the real step with a pass that renews its lease until a stop request."""
    registry.PASSES[Step.PASS1] = _renewing
    real_run_step.run_step(Step.PASS1.value)


def _renewing(lease: Lease, deadline: StepDeadline) -> StepInterrupted:
    heartbeat = Heartbeat(lease, deadline)
    seen(event="renewing", gen=lease.gen)
    while not stop_requested():
        heartbeat.renew_when_due()
        time.sleep(0.05)  # the pause between two looks for a stop request
    return StepInterrupted(reason=SIGTERM)


def pass_on() -> None:
    """Run the real entry point on passes that complete at once, and report each pass."""
    _pass_on(lambda: None)


def be_overtaken() -> None:
    """The same; a wake-up that the worker prefers arrives in the first pass."""
    _pass_on(lambda: push("pass3", entry_id(uuid4(), "pass3", 1)))


def be_suspended() -> None:
    """The same; an operator suspends the workers in the first pass."""
    _pass_on(suspend)


def leave_a_call() -> None:
    """The same; a thread of the first pass hangs."""
    _pass_on(lambda: threading.Thread(target=threading.Event().wait, daemon=True).start())


def be_stopped() -> None:
    """The same; the process is asked to stop in the first pass."""
    _pass_on(request_stop)


def die_between_passes() -> None:
    """The same; the process is killed between the commit of a pass and the claim of the next."""

    def die(going_on: GoingOn, *, may_continue: bool) -> None:
        seen(event="continues", step=going_on.step)
        os.kill(os.getpid(), signal.SIGKILL)

    real_run_step._go_on = die
    _pass_on(lambda: None)


def lose_the_connection() -> None:
    """The same; the first pass ends with a connection that PostgreSQL has closed."""

    def close() -> None:
        with connection.cursor() as cursor, suppress(OperationalError):
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    _pass_on(close)


def _pass_on(during_the_first: Callable[[], object]) -> None:
    def stage(lease: Lease, deadline: StepDeadline) -> StepResult:
        seen(event="ran", step=lease.step, pid=os.getpid())
        if lease.step is Step.PASS05:
            during_the_first()
        return StepCompleted()

    entry = rq.get_current_job()
    assert entry is not None
    registry.PASSES.update(dict.fromkeys(registry.PASSES, stage))
    real_run_step.run_step(entry.origin)


BEHAVIOURS = {
    "pass_on": pass_on,
    "be_overtaken": be_overtaken,
    "be_suspended": be_suspended,
    "be_stopped": be_stopped,
    "leave_a_call": leave_a_call,
    "die_between_passes": die_between_passes,
    "lose_the_connection": lose_the_connection,
    "renew": renew,
    "claim_and_run": claim_and_run,
    "hang_beyond_deadline": hang_beyond_deadline,
    "wake_next": wake_next,
    "die_with_a_copy": die_with_a_copy,
    "nothing": lambda: None,
    "drain": drain,
    "ignore_stop": ignore_stop,
    "leave_a_thread": leave_a_thread,
    "fail": fail,
    "report_alarms": report_alarms,
    "report_warmth": report_warmth,
    "report_connections": report_connections,
}
