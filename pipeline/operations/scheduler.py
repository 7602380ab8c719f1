"""The scheduler: runs each periodic task in a child process that can be killed, until a stop.

The parent has no connection and no thread. A child takes an advisory lock of its session, so of
several schedulers one works at a time, and a scheduler or child that dies leaves no lock. A tick
works without Redis; a later tick then sends the wake-ups.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection as waiting
from multiprocessing import get_context
from types import FrameType

from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string

from medproc import telemetry
from medproc.db_pool import use_no_pool
from medproc.timing import scaled
from pipeline.core.redaction import redacted
from pipeline.core.server_faults import SAY_EVERY_S, fault_of, line_of
from pipeline.operations import operator_actions, schedule
from pipeline.operations.rate_limit_counts import copy_all_counts
from pipeline.transitions import place_review_items
from pipeline.transitions.metric_counts import fold_counts
from pipeline.transitions.stale import STALE_S

logger = logging.getLogger(__name__)

LOCK = int.from_bytes(b"medproc", "big")
"""Key of the advisory lock; a database has one active scheduler."""
DEADLINE_S = 60.0
"""Seconds after which a task is killed; its statements time out a little earlier."""
ORPHAN_FACTOR = 1.5
"""Number of deadlines after which a child whose parent has died ends itself."""
PLACED_AT_ONCE = 5_000
"""Review items of each kind that one tick moves at most."""
SLACK = 0.8
"""Part of a task's interval after which another scheduler's run counts for this scheduler too."""

BUSY, EARLY, FAILED, REFUSED = 3, 4, 1, 5
"""Exit codes of a child: another scheduler works, it has just worked, the task failed, or
PostgreSQL refused."""


@dataclass(frozen=True, kw_only=True)
class PeriodicTask:
    """A task with an interval; `act` returns a line to log, or an empty string."""

    name: str
    run: Callable[[], str]
    interval_s: float
    """Seconds between two runs, in this process's clock."""


_after_refusal = False
"""In a child: PostgreSQL has refused since the last good run of the reconciler."""


def _reconcile() -> str:
    # While PostgreSQL refuses, no worker can renew its lease. Live workers requeue their steps
    # within seconds afterwards; the reconciler would count a crash of each.
    tick = operator_actions.jobs_reconcile(spares_expired=_after_refusal)
    return tick.summary if tick.changed else ""


def _reset_stale_batches() -> str:
    # The reset recovers expired leases first. After a refusal they belong to live workers.
    if _after_refusal:
        return ""
    reset = operator_actions.stale_batches_reset(scaled(STALE_S))
    return f"{len(reset)} stale reset" if reset else ""


def _settle_record_batches() -> str:
    settled = operator_actions.record_batches_settle()
    return f"settled {settled}" if settled else ""


def _detect_incidents() -> str:
    tick = operator_actions.incidents_detect()
    copy_all_counts()
    said = f"opened {len(tick.opened)}, closed {len(tick.closed)}, probes {len(tick.due)}"
    return said if tick.changed else ""


def _place_review_items() -> str:
    placed = place_review_items(PLACED_AT_ONCE)
    return f"placed {placed}" if placed else ""


def _fold_counts() -> str:
    fold_counts()
    return ""


_OWN: dict[str, Callable[[], str]] = {
    schedule.RECONCILE: _reconcile,
    schedule.SETTLE_RECORD_BATCHES: _settle_record_batches,
    schedule.DETECT_INCIDENTS: _detect_incidents,
    schedule.RESET_STALE: _reset_stale_batches,
    schedule.PLACE_REVIEW_ITEMS: _place_review_items,
    schedule.FOLD_COUNTS: _fold_counts,
}


def periodic_tasks() -> tuple[PeriodicTask, ...]:
    """Return the periodic tasks; `schedule` has the interval of each."""
    others = {name: import_string(run) for name, (_, run) in settings.PERIODIC_TASKS.items()}
    return tuple(
        PeriodicTask(name=name, run=run, interval_s=schedule.interval_s(name))
        for name, run in {**_OWN, **others}.items()
    )


class PeriodicScheduler:
    """Runs the periodic tasks when they are due, one after the other."""

    def __init__(
        self, todo: Sequence[PeriodicTask] | None = None, *, deadline_s: float = DEADLINE_S
    ) -> None:
        self._tasks = periodic_tasks() if todo is None else todo
        self._deadline_s = deadline_s
        self._due_at = dict.fromkeys((task.name for task in self._tasks), 0.0)
        self._stopped = False
        self._was_refused = False
        """Whether PostgreSQL has refused since the last good run of the reconciler."""
        self._refusal_said_at = -SAY_EVERY_S
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)

    def run(self) -> None:
        """Run tasks until SIGTERM or SIGINT, which kill a running task and roll it back."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        telemetry.prepare()
        logger.info("scheduler %s: %s", os.getpid(), ", ".join(task.name for task in self._tasks))
        while not self._stopped:
            task = min(self._tasks, key=lambda each: self._due_at[each.name])
            self._wait(self._due_at[task.name] - time.monotonic())
            if not self._stopped:
                self._due_at[task.name] = time.monotonic() + task.interval_s
                self._tick(task)
        logger.info("scheduler %s: leaves", os.getpid())

    def _tick(self, task: PeriodicTask) -> None:
        # Close the connections: two processes on one connection would get each other's replies.
        use_no_pool()
        sys.stdout.flush()
        says = time.monotonic() - self._refusal_said_at >= SAY_EVERY_S
        child = get_context("fork").Process(
            target=_child, args=(task, self._deadline_s, self._was_refused, says), name=task.name
        )
        child.start()
        ends = time.monotonic() + self._deadline_s
        while child.exitcode is None and not self._stopped and time.monotonic() < ends:
            waiting.wait([child.sentinel, self._wake_r], ends - time.monotonic())
        if child.exitcode is None:
            if not self._stopped:
                logger.error("scheduler: %s took more than %.0f s", task.name, self._deadline_s)
            child.kill()
        child.join()
        if child.exitcode == REFUSED:
            self._was_refused = True
            self._refusal_said_at = time.monotonic() if says else self._refusal_said_at
        elif child.exitcode == 0 and task.name == schedule.RECONCILE:
            self._was_refused = False
        if not self._stopped and child.exitcode not in (0, BUSY, EARLY, REFUSED):
            logger.error(
                "scheduler: %s ended with exit code %s",
                task.name,
                child.exitcode,
                extra={"action": "periodic_task_died", "periodic_task": task.name},
            )
        child.close()

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            waiting.wait([self._wake_r], seconds)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self._stopped = True
        with suppress(BlockingIOError):
            os.write(self._wake_w, b"!")


def run_task(task: PeriodicTask, *, deadline_s: float = DEADLINE_S) -> int:
    """Run a task once unless another scheduler runs it; return the exit code of the child."""
    with _alone(deadline_s) as is_ours:
        if not is_ours:
            return BUSY
        if not _begin(task):
            return EARLY
        try:
            said = task.run()
        except Exception as error:
            _end(task, f"failed: {type(error).__name__}")
            raise
        _end(task, "ok")
    if said:
        logger.info(
            "scheduler: %s: %s",
            task.name,
            said,
            extra={"action": "periodic_task", "periodic_task": task.name},
        )
    return 0


def _child(task: PeriodicTask, deadline_s: float, after_refusal: bool, says: bool) -> None:
    """Run the child of one tick; with `says`, log why PostgreSQL refuses."""
    global _after_refusal
    _after_refusal = after_refusal
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # SIGALRM ends the child even if the child hangs and its parent, which should kill it, is dead.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, deadline_s * ORPHAN_FACTOR)
    # A terminal's Ctrl-C reaches the child too; the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = run_task(task, deadline_s=deadline_s)
    except Exception as error:  # noqa: BLE001 - whatever the error, the next tick comes
        fault = fault_of(error)
        # A Redis that refuses stops no recovery of rows, and no renewal of a lease.
        refuses = fault is not None and fault.is_of_postgres
        code = REFUSED if refuses else FAILED
        if fault is None or not refuses:
            why = line_of(fault) if fault and fault.is_of_storage else redacted(error)
            logger.error("scheduler: %s failed: %s", task.name, why)
            if fault is None:
                telemetry.errors.report(error, step=task.name)
        elif says:
            logger.error("scheduler: no periodic task runs: %s", line_of(fault))
    telemetry.flush()
    sys.exit(code)


@contextmanager
def _alone(deadline_s: float) -> Iterator[bool]:
    """Hold the scheduler's lock in this session; yield False if another session holds it."""
    with connection.cursor() as cursor:
        # So the server also ends the statement of a killed child, and with it the session's lock.
        cursor.execute("SET client_connection_check_interval = '1s'")
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [_ms(deadline_s)])
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        (is_ours,) = cursor.fetchone()
    try:
        yield is_ours
    finally:
        # The lock belongs to the session, so closing the session releases it on every way out.
        connection.close()


def _ms(seconds: float) -> str:
    return str(max(1, int(seconds * 1000 * 0.9)))


def _begin(task: PeriodicTask) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO periodic_task_runs (name, started_at, outcome)"
            " VALUES (%(name)s, clock_timestamp(), 'running')"
            " ON CONFLICT (name) DO UPDATE SET started_at = clock_timestamp(),"
            " finished_at = NULL, outcome = 'running'"
            " WHERE periodic_task_runs.started_at"
            " <= clock_timestamp() - make_interval(secs => %(interval)s)"
            # A run that was killed is repeated at once.
            " OR periodic_task_runs.finished_at IS NULL",
            {"name": task.name, "interval": task.interval_s * SLACK},
        )
        return bool(cursor.rowcount == 1)


def _end(task: PeriodicTask, outcome: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE periodic_task_runs SET finished_at = clock_timestamp(), outcome = %(outcome)s,"
            " last_ok_at = CASE WHEN %(outcome)s = 'ok' THEN clock_timestamp() ELSE last_ok_at END"
            " WHERE name = %(name)s",
            {"outcome": outcome, "name": task.name},
        )
