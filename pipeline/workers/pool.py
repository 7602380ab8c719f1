"""The pool: a number of workers of each kind, each restarted when it dies, until a stop signal.

The parent only forks, waits and passes signals on. It has no thread, no connection and no client,
so a child inherits nothing that two processes would share.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from types import FrameType

from django.conf import settings
from redis.exceptions import RedisError

from medproc.db_pool import use_no_pool
from pipeline.core.server_faults import FaultLog, explain
from pipeline.queueing.queues import RECORD_QUEUES, producer, queue_depths
from pipeline.workers.rq_worker import REDIS_WAIT_MAX_S, Worker
from pipeline.workers.warming import warm, warm_engine

logger = logging.getLogger(__name__)

BACKOFF_BASE_S = 0.1
BACKOFF_CAP_S = 30.0
STEADY_S = 10.0
"""Seconds after which a worker counts as well started; its next death starts the backoff at
`BACKOFF_BASE_S`."""
LOOK_S = 1.0
DUPLICATE_S = 1.0
"""Two signals within this time are one stop: the terminal and a supervisor may both send it."""


@dataclass
class Seat:
    """A place in the pool, occupied by one worker after the other."""

    queues: tuple[str, ...]
    process: ForkProcess | None = None
    started_at: float = 0.0
    deaths: int = 0
    """Deaths in a row; a death after `STEADY_S` is the first death of a new count."""
    due_at: float = field(default=0.0)
    done: bool = False
    """True after the last worker: in a burst, its queues are empty."""

    def next_delay_s(self, lived_s: float) -> float:
        """Count a death and return the seconds until the next worker starts."""
        self.deaths = 1 if lived_s >= STEADY_S else self.deaths + 1
        return float(min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** (self.deaths - 1)))


class WorkerPool:
    """Keeps its seats filled. The first stop drains all workers, the second kills their horses."""

    worker_class: type[Worker] = Worker

    def __init__(self, seats: Sequence[tuple[str, ...]], *, burst: bool = False) -> None:
        self.seats = [Seat(queues) for queues in seats]
        self.burst = burst
        self._pid = os.getpid()
        self._stops = 0
        self._stopped_at = 0.0
        self._exit_code = 0
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)

    def run(self) -> int:
        """Keep the workers running until a stop, or in a burst until no entry is left.

        Returns 0 if every worker has drained, 1 if a worker had to be killed.
        """
        warm()
        use_no_pool()
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        logger.info("pool %s: %s workers", self._pid, len(self.seats))
        while True:
            self._reap()
            if self._stops == 0:
                self._fill()
            running = [seat.process for seat in self.seats if seat.process]
            if not running and (self._stops or self._burst_is_over()):
                break
            sentinels = [process.sentinel for process in running]
            if connection.wait([*sentinels, self._wake_r], self._timeout()) and self._woken():
                self._pass_on()
        logger.info("pool %s: all workers have left", self._pid)
        return self._exit_code

    def _fill(self) -> None:
        for seat in self.seats:
            if seat.process is None and not seat.done and time.monotonic() >= seat.due_at:
                # The seats of the pages come first, and do not wait for the engine.
                if not {*seat.queues}.isdisjoint(RECORD_QUEUES):
                    warm_engine()
                seat.started_at = time.monotonic()
                sys.stdout.flush()
                seat.process = get_context("fork").Process(target=self._work, args=(seat.queues,))
                seat.process.start()
                logger.info("pool %s: worker %s starts", self._pid, seat.process.pid)

    def _reap(self) -> None:
        for seat in self.seats:
            if seat.process is None or seat.process.exitcode is None:
                continue
            pid, code = seat.process.pid, seat.process.exitcode
            seat.process.close()
            seat.process = None
            if self._stops:
                # A worker without its own handlers yet is ended by the signal itself.
                self._exit_code |= code not in (0, -signal.SIGTERM)
            elif self.burst and code == 0:
                seat.done = True
            else:
                delay_s = seat.next_delay_s(time.monotonic() - seat.started_at)
                seat.due_at = time.monotonic() + delay_s
                logger.warning(
                    "pool %s: worker %s died (%s), another in %.1f s", self._pid, pid, code, delay_s
                )

    def _burst_is_over(self) -> bool:
        """Return whether all queues are empty; a step can wake a pass whose worker has exited."""
        if not self.burst or any(not seat.done for seat in self.seats):
            return False
        queues = {queue for seat in self.seats for queue in seat.queues}
        try:
            waiting = any(queue_depths(queues).values())
        except RedisError as error:
            logger.error("pool %s: %s", self._pid, explain(error))
            self._exit_code = 1
            return True
        finally:
            forget_connections()
        for seat in self.seats:
            seat.done = not waiting
        return not waiting

    def _timeout(self) -> float:
        """Return the seconds until the next check: until the next start, at most one second.

        A horse that outlives its worker keeps the worker's sentinel open, so a worker's death is
        sometimes found only by a check.
        """
        due = [s.due_at for s in self.seats if s.process is None and not s.done]
        if self._stops or not due:
            return LOOK_S
        return min(LOOK_S, max(0.0, min(due) - time.monotonic()))

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # a child without its own handlers yet; it has no work
        with suppress(BlockingIOError):
            os.write(self._wake_w, b"!")

    def _woken(self) -> bool:
        if self._wake_r not in connection.wait([self._wake_r], 0):
            return False
        os.read(self._wake_r, 64)
        return True

    def _pass_on(self) -> None:
        if self._stops and time.monotonic() - self._stopped_at < DUPLICATE_S:
            return
        self._stops += 1
        self._stopped_at = time.monotonic()
        verb = "drain" if self._stops == 1 else "are killed"
        logger.info("pool %s: stop %s, workers %s", self._pid, self._stops, verb)
        for seat in self.seats:
            if seat.process and seat.process.pid:
                with suppress(ProcessLookupError):
                    os.kill(seat.process.pid, signal.SIGTERM)

    def _work(self, queues: tuple[str, ...]) -> None:
        """Run as a worker; this is called in the child."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # A process group of its own, so that a terminal's Ctrl-C comes only through the pool.
        os.setpgid(0, 0)
        os.close(self._wake_r)
        os.close(self._wake_w)
        # People wait for each page of the console; a step can wait a moment.
        os.nice(settings.WORKER_NICE)
        faults = FaultLog()
        while os.getppid() == self._pid:
            try:
                worker = self.worker_class.on(queues)
                worker.pool_pid = self._pid
                sys.exit(worker.run(burst=self.burst))
            except RedisError as error:
                if line := faults.line_if_due(error):
                    logger.error("worker %s: %s", os.getpid(), line)
                if self.burst:
                    sys.exit(1)
                time.sleep(REDIS_WAIT_MAX_S)


def refusal_of_redis() -> RedisError | None:
    """Return the error with which Redis refuses to answer now, or None if Redis answers."""
    try:
        producer().ping()
    except RedisError as error:
        return error
    finally:
        forget_connections()
    return None


def forget_connections() -> None:
    """Close all connections that a fork would share."""
    producer().connection_pool.disconnect()
