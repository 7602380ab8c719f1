"""The RQ worker: one forked horse per entry, JSON entries only, a drain at the first SIGTERM.

Whenever the parent forks, it has one thread, and no database connection or provider client. The
worker survives a Redis that refuses. SIGTERM lets a step drain and requeues the step. SIGKILL or a
crash ends the step without a write; the parent then expires the lease of the step.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from django.db import connections
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue
from rq import Worker as RQWorker
from rq.exceptions import DequeueTimeout
from rq.executions import Execution
from rq.job import Job
from rq.timeouts import BaseDeathPenalty, HorseMonitorTimeoutException
from rq.worker import WorkerStatus
from rq.worker_registration import register

from medproc import telemetry
from medproc.db_pool import use_no_pool
from medproc.timing import scaled
from pipeline.core.redaction import redacted
from pipeline.core.server_faults import FaultLog, explain
from pipeline.documents import scratch
from pipeline.execution.shutdown import grace_s, request_stop
from pipeline.queueing.queues import StepEntry, StepQueue, json_only, worker_connection
from pipeline.workers import memory, stuck_steps
from pipeline.workers.horse_watch import HorseEnd, SilenceWatch, expire_leases_of, note_hang
from pipeline.workers.identity import renew_identity, serve, worker_identity
from pipeline.workers.refused_steps import requeue_steps_of
from pipeline.workers.shared_step import SHARED_STEP
from pipeline.workers.warming import EngineWarmth

logger = logging.getLogger(__name__)

WORKER_TTL_S = 60
MONITORING_INTERVAL_S = 10
"""Seconds between two RQ heartbeats of a busy worker; an idle worker sends one every second."""
GRACE_MARGIN_S = 5.0
"""Seconds beyond the step's grace period in which the horse writes its last flush."""
STUCK_S = 10.0
"""Seconds beyond the step's deadline in which the horse ends the step itself."""
DUPLICATE_S = 0.5
"""Two signals within this time are one stop: the terminal or systemd signals every process, and a
supervisor passes the signal on. Less than the pool's value, so that its second stop is heard."""
LOOK_S = 0.5
"""Seconds between two looks at the horse."""
MEMORY_S = 5.0
"""Seconds between two reports of the memory of an idle worker."""
FLUSH_S = 0.005
REDIS_WAIT_MAX_S = 2.0

ExcInfo = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]


class StepFailedError(Exception):
    """A step raised; carries only what Redis and logs may keep."""


class NoAlarm(BaseDeathPenalty):
    """No timeout: RQ's timeout raises in the main thread at any point, even during a flush."""

    def setup_death_penalty(self) -> None:
        """Arm no alarm."""

    def cancel_death_penalty(self) -> None:
        """Disarm no alarm."""


class Worker(RQWorker):
    """Pops wake-ups and runs each one in a horse.

    The first SIGTERM or SIGINT is passed to the horse, which drains. A horse that exceeds the grace
    period, and any horse at the second signal, is killed with its children.
    """

    death_penalty_class = NoAlarm
    job_class: type[Job] = StepEntry
    queue_class: type[Queue] = StepQueue
    log_result_lifespan = False
    dequeue_timeout = 1
    """Seconds of one blocking pop, and so the time that an idle worker needs to exit. A signal
    does not interrupt the pop, because an entry that Redis has handed over would be lost."""
    connection_timeout = 3

    def __init__(
        self, queues: Any, name: str | None = None, *, serializer: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(
            queues,
            name or renew_identity(),
            serializer=json_only(serializer),
            **{
                "worker_ttl": WORKER_TTL_S,
                "job_monitoring_interval": MONITORING_INTERVAL_S,
                "log_job_description": False,
                "default_result_ttl": 0,
                **kwargs,
            },
        )
        self.pool_pid: int | None = None
        """The pool that started this worker; the worker exits after its pool."""
        self._stopped_at = 0.0
        self._kill_at: float | None = None
        self._drained = True
        self._horse_end: HorseEnd | None = None
        self._horse_status: int | None = None
        """The end of the last horse, in the format of `os.wait4`."""
        self._stuck = False
        self._faults = FaultLog()
        self._memory_at = 0.0
        self._peak_kib = 0
        """The memory of this worker's largest step."""
        self._silence = SilenceWatch()
        self._warmth = EngineWarmth()

    @classmethod
    def on(cls, queues: tuple[str, ...]) -> Worker:
        """Make a new worker for the named queues, in order of preference."""
        connection = worker_connection()
        return cls([cls.queue_class(name, connection=connection) for name in queues])

    def run(self, *, burst: bool = False) -> int:
        """Work until a stop, or in a burst until the queues are empty.

        Returns the exit code: 1 if a horse exceeded its grace period and was killed, else 0.
        While Redis refuses, the worker waits.
        """
        SHARED_STEP.renew()
        use_no_pool()
        serve(self.queue_names())
        logger.info("worker %s: waits for %s", self.name, ", ".join(self.queue_names()))
        # Level WARNING, because RQ's own info lines only repeat ours.
        self.work(burst=burst, logging_level="WARNING")
        logger.info("worker %s: leaves", self.name)
        return 0 if self._drained else 1

    # Signals

    def bootstrap(self, *args: Any, **kwargs: Any) -> None:
        """Register after the handlers are in place. RQ registers first, so a signal in between
        would kill a registered worker, and its name would stay in Redis."""
        self._install_signal_handlers()
        unannotated: Any = super()
        unannotated.bootstrap(*args, **kwargs)

    def register_birth(self) -> None:
        """Register in Redis; while Redis refuses, wait until a stop."""
        wait_s = 0.25
        unannotated: Any = super()
        while not self._should_leave():
            try:
                unannotated.register_birth()
            except RedisError as error:
                self._say(error)
                time.sleep(wait_s)
                wait_s = min(wait_s * 2, REDIS_WAIT_MAX_S)
            else:
                return

    def _say(self, error: RedisError) -> None:
        """Log why Redis refuses, at most once a minute."""
        if line := self._faults.line_if_due(error):
            logger.warning("worker %s: %s", self.name, line, extra={"action": "redis_refuses"})

    def _install_signal_handlers(self) -> None:
        if not self._stop_requested:
            signal.signal(signal.SIGINT, self.request_stop)
            signal.signal(signal.SIGTERM, self.request_stop)

    def request_stop(self, signum: int | None = None, frame: FrameType | None = None) -> None:
        """Exit after this step, and let the horse drain; does no input or output."""
        self._stop_requested = True
        if os.getpid() != self.pid:
            return  # a horse without its own handlers yet; it checks the flag there
        self._stopped_at = time.monotonic()
        self._kill_at = self._stopped_at + grace_s() + scaled(GRACE_MARGIN_S)
        signal.signal(signal.SIGINT, self.request_force_stop)
        signal.signal(signal.SIGTERM, self.request_force_stop)
        self._drain_horse()

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """Kill the horse with its children and exit with code 1."""
        if time.monotonic() - self._stopped_at < DUPLICATE_S:
            return
        if self._horse_pid:
            self.kill_horse()
            self.wait_for_horse()
        raise SystemExit(1)

    def setup_work_horse_signals(self) -> None:
        """Let SIGTERM set the stop flag; the parent passes Ctrl-C on."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda signum, frame: request_stop())
        if self._stop_requested:
            request_stop()

    def _drain_horse(self) -> None:
        if self._horse_pid:
            with suppress(ProcessLookupError):
                os.kill(self._horse_pid, signal.SIGTERM)

    # The parent

    def subscribe(self) -> None:
        """Listen to no commands: the thread would be forked, and anyone could stop a job."""

    def clean_group_registries(self) -> None:
        """Clean no groups, because there are none."""

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Send RQ's heartbeat, which keeps the worker registered in Redis.

        RQ's heartbeat does not renew the lease of the job; the horse does that. A Redis that
        refuses is ignored, because the next pop reports it. The heartbeat carries the memory of the
        worker, its step and its host.
        """
        try:
            super().heartbeat(timeout, pipeline)
            self._report_memory(self.connection if pipeline is None else pipeline)
        except RedisError:
            logger.debug("worker %s: no RQ heartbeat, Redis refuses", self.name)

    def _report_memory(self, connection: Any) -> None:
        # An idle worker sends a heartbeat every second, and its memory hardly changes.
        if time.monotonic() - self._memory_at < MEMORY_S:
            return
        figures = memory.report(os.getpid(), self._horse_pid or None, self._peak_kib)
        if figures:
            connection.hset(self.key, mapping=figures)
            self._memory_at, self._peak_kib = time.monotonic(), figures["peak_kib"]

    def maintain_heartbeats(self, job: Job, execution: Execution) -> None:
        """Send RQ's heartbeats of worker and entry, if Redis answers; renew no lease of a job."""
        try:
            super().maintain_heartbeats(job, execution)
        except RedisError as error:
            self._say(error)

    def check_for_suspension(self, burst: bool) -> None:
        """Wait while the queues are suspended; continue if Redis does not answer."""
        try:
            super().check_for_suspension(burst)
        except RedisError:
            logger.debug("worker %s: Redis refuses", self.name)

    def run_maintenance_tasks(self) -> None:
        """Clean RQ's registries; without Redis do nothing until the next time."""
        try:
            unannotated: Any = super()
            unannotated.run_maintenance_tasks()
        except RedisError:
            logger.debug("worker %s: no maintenance, Redis refuses", self.name)

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Pop the next entry; None if the worker should exit, or in a burst finds no more."""
        wait_s = 0.25
        while not self._should_leave():
            try:
                self.set_state(WorkerStatus.IDLE)
                self._stay_registered()
                if self.should_run_maintenance_tasks:
                    self.run_maintenance_tasks()
                found = self.queue_class.dequeue_any(
                    self._ordered_queues,
                    timeout,
                    connection=self.connection,
                    job_class=self.job_class,
                    serializer=self.serializer,
                    death_penalty_class=self.death_penalty_class,
                )
            except DequeueTimeout:
                continue
            except RedisError as error:
                # Also a full or read-only Redis: a worker that exits would only be started again.
                self._say(error)
                time.sleep(wait_s)
                wait_s = min(wait_s * 2, REDIS_WAIT_MAX_S)
                continue
            self._faults.forget()
            if found is None:
                return None
            job, queue = found
            if self._should_leave():
                self._return_entry(job, queue)
                return None
            return job, queue
        return None

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run the entry in a horse and wait for its end; refuse a foreign entry."""
        try:
            if isinstance(job, StepEntry) and job.is_ours():
                for step in job.args:
                    self._warmth.prepare(step)
                logger.info("worker %s: %s begins", self.name, job.id)
                super().execute_job(job, queue)
                logger.info("worker %s: %s ends", self.name, job.id)
            else:
                logger.error("worker %s: %s refused: not a valid entry", self.name, job.id)
                self._drop(job, queue)
        except RedisError as error:
            # The horse has ended or never started; its result is in its row.
            self._say(error)
        finally:
            self.executions.clear()
            if self._stuck:
                # Before its lease is released: the step missed its deadline and did not crash.
                self._stuck = False
                stuck_steps.end_steps_of(worker_identity())
            if SHARED_STEP.is_refused:
                # Before its lease is released, too: PostgreSQL refused, and no process crashed.
                requeue_steps_of(worker_identity(), self._waits_for_postgres)
                SHARED_STEP.note_refusal(False)
        if self._horse_status:
            expire_leases_of(self.name)
            scratch.delete_abandoned_copies()

    def _waits_for_postgres(self) -> bool:
        """Stay registered while PostgreSQL refuses; return False after a stop."""
        self.heartbeat()
        return not self._should_leave()

    def fork_work_horse(self, job: Job, queue: Queue) -> None:
        """Fork; a stop that arrives before the horse's pid is known is passed on afterwards."""
        self._horse_status = None
        self._silence.begin()
        SHARED_STEP.publish(None)
        SHARED_STEP.clear_lease()
        # Close here, because the horse would close the parent's sockets with a protocol message,
        # and would share the connections of a pool.
        use_no_pool()
        # Flush, because the horse would print the parent's buffer again.
        sys.stdout.flush()
        super().fork_work_horse(job, queue)
        # The horse does the same; the first one wins. Without it a kill could hit our own group.
        with suppress(OSError):
            os.setpgid(self._horse_pid, self._horse_pid)
        if self._stop_requested:
            self._drain_horse()

    def wait_for_horse(self) -> tuple[int | None, int | None, Any]:
        """Wait for the horse's end; kill a horse that exceeds its grace period or its deadline.

        Raises HorseMonitorTimeoutException after each monitoring interval, for RQ's heartbeat.
        """
        if self._horse_end is None:
            self._horse_end = HorseEnd(self._horse_pid)
        end = self._horse_end
        due = time.monotonic() + self.job_monitoring_interval
        while end.is_alive():
            self._end_silent_horse()
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                logger.warning("worker %s: the horse exceeded its grace period", self.name)
                self._kill_at = None
                self._drained = False
                self.kill_horse()
            left_s = SHARED_STEP.left_s
            is_late = left_s is not None and left_s < -max(1.0, scaled(STUCK_S))
            if is_late and not self._stuck and not self._silence.is_lenient:
                logger.error(
                    "worker %s: the horse hangs beyond the deadline; the worker kills the horse",
                    self.name,
                    extra={"action": "horse_stuck"},
                )
                self._stuck = True
                self.kill_horse()
            if time.monotonic() >= due:
                raise HorseMonitorTimeoutException
            sign_left_s = SHARED_STEP.sign_left_s
            end.join(LOOK_S if sign_left_s is None else min(LOOK_S, max(0.01, sign_left_s)))
        self._horse_end = None
        self._horse_status = end.status
        if end.usage is not None and sys.platform == "linux":
            # In KiB on Linux; the largest process of the step, its children included.
            self._peak_kib = max(self._peak_kib, end.usage.ru_maxrss)
            self._memory_at = 0.0
        return end.pid, end.status, end.usage

    def _end_silent_horse(self) -> None:
        """Kill a horse that hangs, and note the hang in its job's row."""
        if not self._silence.is_first_silence():
            return
        lease = SHARED_STEP.lease
        logger.error(
            "worker %s: the horse gives no sign of life%s; the worker kills the horse",
            self.name,
            " and its lease ends" if lease else "",
            extra={"action": "horse_hung"},
        )
        self.kill_horse()
        if lease is not None:
            note_hang(*lease, self.name)

    def teardown(self) -> None:
        """Unregister, if Redis answers; an exiting worker does not wait for a Redis that hangs."""
        self.connection.set_retry(Retry(NoBackoff(), 0))
        try:
            unannotated: Any = super()
            unannotated.teardown()
        except RedisError as error:
            logger.warning("worker %s: leaves: %s", self.name, explain(error))

    def _should_leave(self) -> bool:
        if self.pool_pid is not None and os.getppid() != self.pool_pid:
            logger.warning("worker %s: its pool is gone, the worker exits", self.name)
            self._stop_requested = True
        return bool(self._stop_requested)

    def _stay_registered(self) -> None:
        """Send RQ's heartbeat, and register again if Redis was emptied."""
        self.heartbeat()
        if not self.connection.sismember(self.redis_workers_keys, self.key):
            with self.connection.pipeline() as pipe:
                register(self, pipe)
                pipe.hset(self.key, mapping=self.serialize())
                pipe.expire(self.key, self.worker_ttl + 60)
                pipe.execute()

    def _return_entry(self, job: Job, queue: Queue) -> None:
        """Return an entry that was popped during the exit to its queue, if Redis answers."""
        try:
            with self.connection.pipeline() as pipe:
                pipe.lrem(queue.intermediate_queue_key, 1, job.id)
                queue.push_job_id(job.id, pipeline=pipe, at_front=True)
                pipe.execute()
        except RedisError as error:
            # The pool would start another worker, which knows of no stop. The reconciler sends
            # another wake-up.
            self._say(error)

    def _drop(self, job: Job, queue: Queue) -> None:
        with self.connection.pipeline() as pipe:
            pipe.lrem(queue.intermediate_queue_key, 1, job.id)
            pipe.delete(job.key)
            pipe.execute()

    # The horse

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        """Run the step and exit by `os._exit`, whatever its threads do; never returns."""
        connections.close_all()
        super().main_work_horse(job, queue)

    def perform_job(self, job: Job, queue: Queue, execution: Execution) -> bool:
        """Run the step and settle its entry in Redis; the results are committed by then."""
        try:
            return super().perform_job(job, queue, execution)
        except RedisError as error:
            # Only the entry in Redis is unsettled; the reconciler removes it.
            self._say(error)
            return False
        finally:
            telemetry.flush()
            _flush_within(FLUSH_S)

    def _finalize_failure(
        self, job: Job, queue: Queue, execution: Execution, exc_info: ExcInfo
    ) -> None:
        """Record a failure without any value of a document."""
        error = exc_info[1]
        if error is not None:
            telemetry.errors.report(error, step=queue.name)
        said = StepFailedError(redacted(error) if error else "unknown")
        super()._finalize_failure(job, queue, execution, (StepFailedError, said, None))


def _flush_within(seconds: float) -> None:
    """Flush the output, unless a thread that hangs in a write holds the stream's lock."""

    def flush() -> None:
        sys.stdout.flush()
        sys.stderr.flush()

    thread = threading.Thread(target=flush, daemon=True)
    thread.start()
    thread.join(seconds)
