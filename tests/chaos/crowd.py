"""The crowd: many records wait at once, and a process of a worker dies every few seconds.

Every record must complete. A job that crashed twice is spared, because a third crash in a row is a
dead letter by design.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from medproc.timing import scaled
from pipeline.core.states import JOB_TERMINAL, JobStatus
from pipeline.models import Job
from pipeline.stages.intake import Received
from tests.chaos.environment import LEASE_S, PATIENCE_S, RECONCILE_S, ChaosEnvironment, tried
from tests.chaos.kills import held_by
from tests.chaos.proof import CRASHES, ChaosObservations, crashes_in_a_row
from tests.support.rows import crashes_of
from tests.support.workers import WorkerCommand, children, until

WORKERS = 6
KILL_EVERY_S = 2.0
"""Seconds of the wall clock, not scaled."""
PATIENCE_PER_RECORD_S = 5.0


def crowd(chaos: ChaosEnvironment, count: int, seed: int) -> dict[str, Any]:
    """Submit `count` records, then kill until all have ended; return the figures and findings."""
    rng = random.Random(seed)
    observations = ChaosObservations(chaos)
    for _ in range(count):
        chaos.submit()
    began = time.monotonic()
    kills = 0
    with chaos.workers(WORKERS) as pool:
        next_kill = began + KILL_EVERY_S

        def has_ended() -> bool:
            nonlocal kills, next_kill
            if time.monotonic() >= next_kill:
                kills += _kill_one(pool, rng)
                observations.look()
                next_kill += KILL_EVERY_S
            ids = [each.job_id for each in observations.received]
            ended = Job.objects.filter(id__in=ids, status__in=JOB_TERMINAL)
            return tried(ended.count) == count

        until(has_ended, PATIENCE_S + count * PATIENCE_PER_RECORD_S)
        took_s = time.monotonic() - began
        ended = observations.close()
    findings = ended.pop("findings")
    findings += _ends(chaos, observations.received)
    return {
        "kills": kills,
        "kill every s": KILL_EVERY_S,
        **ended,
        "lease + scan s": scaled(LEASE_S + RECONCILE_S),
        "took s": round(took_s, 1),
        "findings": findings,
    }


def _kill_one(pool: WorkerCommand, rng: random.Random) -> int:
    """Kill the horse of a job, or the horse's worker too; return the number of victims."""
    running = {worker: horse for worker in children(pool.pid) for horse in children(worker)[:1]}
    if not running:
        return 0
    worker = rng.choice(sorted(running))
    horse = running[worker]
    # A stopped horse claims no other job between this look and the kill.
    _signal(horse, signal.SIGSTOP)
    held = tried(lambda: held_by(worker))
    if any(crashes_in_a_row(job) >= CRASHES - 1 for job in held):
        _signal(horse, signal.SIGCONT)
        return 0
    if rng.random() < 0.5:
        _signal(worker, signal.SIGKILL)
    _signal(horse, signal.SIGKILL)
    return 1


def _ends(chaos: ChaosEnvironment, received: Sequence[Received]) -> list[str]:
    """Say of each job that did not complete how its step ended each time."""
    return [
        f"job {job.id} is {job.status} with {job.error_code}: "
        + ", ".join(f"{crash['step']} {crash.get('error_code')}" for crash in crashes_of(job))
        for job in chaos.jobs(received)
        if job.status != JobStatus.COMPLETED
    ]


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
