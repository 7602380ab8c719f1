"""The kill loop: processes die at random, seeded moments while records keep coming.

Each kill hits a horse, its worker, or both. In a fourth kind the worker dies and its horse sleeps
until a different worker has the job.
"""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import OperationalError, transaction

from medproc.timing import scaled
from pipeline.core.states import JobStatus
from pipeline.models import Job, ProviderCall
from tests.chaos.environment import LEASE_S, PATIENCE_S, RECONCILE_S, ChaosEnvironment
from tests.chaos.proof import ChaosObservations
from tests.support.rows import crashes_of
from tests.support.workers import WorkerCommand, children, until

HORSE, WORKER, BOTH, ASLEEP = "horse", "worker", "both", "asleep"
WEIGHTS = {HORSE: 4, WORKER: 2, BOTH: 3, ASLEEP: 1}
OPEN = 5
"""Records in progress at any moment."""
SEATS = 7
"""Workers in each of two pools: more than records, although a pool delays the restart of a worker
that died soon. So a job waits only for the scheduler, never for a worker."""
LONGEST_PAUSE_S = 0.8
ON_ITS_WAY_S = 0.05
"""Seconds that a request of a dead process may need to reach the emulator."""
AGAIN = 0.35
"""Share of kills that hit the last job again: some jobs must crash three times."""


@dataclass
class Stranded:
    """A job whose horse was killed or put to sleep."""

    job_id: UUID
    gen: int
    how: str
    at: datetime
    sleeper: int | None = None
    calls: int = 0
    """Calls of this lease when the horse fell asleep."""
    back_s: float | None = None
    """Seconds until the job waited in its queue again, or was dead."""
    at_work_s: float | None = None
    """Seconds until a worker had the job again, or the job was dead."""


@dataclass
class KillLoop:
    """One run of the kill loop, with its observations."""

    chaos: ChaosEnvironment
    rng: random.Random
    pools: Sequence[WorkerCommand]
    observations: ChaosObservations
    kills: Counter[str] = field(default_factory=Counter)
    stranded: list[Stranded] = field(default_factory=list)
    late_writes: int = 0

    def run(self, count: int) -> None:
        """Kill until `count` processes of steps have been hit."""
        while self.kills.total() < count:
            self.chaos.keep_coming(OPEN)
            self._pause(self.rng.uniform(0, LONGEST_PAUSE_S))
            victim = self._victim()
            if victim is not None:
                self._hit(*victim)
                self.observations.look()

    def settle(self) -> None:
        """Wait until each stranded job is in progress again, or dead."""
        until(self._all_back, PATIENCE_S)

    def figures(self) -> dict[str, Any]:
        """Return the numbers of kills, the times of recovery and the findings."""
        jobs = self.chaos.jobs(self.observations.received)
        noted = {(job.id, crash["lease_gen"]) for job in jobs for crash in crashes_of(job)}
        missed = [each for each in self.stranded if (each.job_id, each.gen) not in noted]
        findings = [f"a crash of job {each.job_id} is not counted" for each in missed]
        if self.late_writes:
            findings.append(f"{self.late_writes} late writes of a horse whose lease was taken")
        dead = sum(job.status == JobStatus.DEAD for job in jobs)
        return {
            **{f"kills {kind}": self.kills[kind] for kind in WEIGHTS},
            "stranded": len(self.stranded),
            "crashes counted": len(noted),
            "dead letters": dead,
            "back p95 s": _p95([each.back_s for each in self.stranded]),
            "at work p95 s": _p95([each.at_work_s for each in self.stranded]),
            "lease + scan s": scaled(LEASE_S + RECONCILE_S),
            "findings": findings,
        }

    def _pause(self, seconds: float) -> None:
        ends = time.monotonic() + seconds

        def is_over() -> bool:
            self._all_back()
            return time.monotonic() >= ends

        until(is_over, seconds + PATIENCE_S)

    def _victim(self) -> tuple[int, int] | None:
        """Return a worker and its horse, if a horse runs."""
        pairs = [
            (worker, horse)
            for pool in self.pools
            for worker in children(pool.pid)
            for horse in children(worker)
        ]
        if not pairs:
            return None
        if self.stranded and self.rng.random() < AGAIN:
            last = Job.objects.get(id=self.stranded[-1].job_id)
            same = [pair for pair in pairs if f"-{pair[0]}-" in (last.worker_id or "")]
            if last.status == JobStatus.PROCESSING and same:
                return same[0]
        return self.rng.choice(pairs)

    def _hit(self, worker: int, horse: int) -> None:
        kind = self.rng.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        known = {(each.job_id, each.gen) for each in self.stranded}
        held = [job for job in held_by(worker) if (job.id, job.lease_gen) not in known]
        sleeper = None
        at = datetime.now(UTC)
        if kind != HORSE:
            _kill(worker)
        if kind in {HORSE, BOTH}:
            _kill(horse)
            until(lambda: not _runs(horse))
        elif kind == ASLEEP:
            # Wait for the worker's end first: the kernel wakes and ends an orphaned, stopped group.
            until(lambda: _parent_of(horse) != worker)
            sleeper = horse if held and _asleep(horse, held[0]) else None
            kind = ASLEEP if sleeper else WORKER
        self.kills[kind] += 1
        if kind == WORKER:
            return
        for job in held:
            now = Job.objects.filter(id=job.id, lease_gen=job.lease_gen)
            if now.filter(status=JobStatus.PROCESSING).exists():
                calls = ProviderCall.objects.filter(
                    processing_session__shell_file=job.shell_file_id, lease_gen=job.lease_gen
                ).count()
                self.stranded.append(
                    Stranded(job.id, job.lease_gen, kind, at, sleeper=sleeper, calls=calls)
                )
            elif _crash_of(Job.objects.get(id=job.id), job.lease_gen):
                # The scheduler was faster than this look.
                self.stranded.append(Stranded(job.id, job.lease_gen, kind, at))

    def _all_back(self) -> bool:
        waiting = [each for each in self.stranded if each.at_work_s is None]
        jobs = {job.id: job for job in Job.objects.filter(id__in=[w.job_id for w in waiting])}
        for each in waiting:
            self._look_at(each, jobs[each.job_id])
        return all(each.at_work_s is not None for each in self.stranded)

    def _look_at(self, each: Stranded, job: Job) -> None:
        crash = _crash_of(job, each.gen)
        if crash is None:
            return
        if each.back_s is None:
            taken = datetime.fromisoformat(crash["at"])
            each.back_s = (taken - each.at).total_seconds()
            if each.sleeper:
                self._wake(each, job)
        if job.status == JobStatus.DEAD:
            each.at_work_s = each.back_s
        elif job.lease_gen == each.gen + 2 and job.step_started_at:
            each.at_work_s = (job.step_started_at - each.at).total_seconds()
        elif job.lease_gen > each.gen + 2:
            # The job was claimed and hit again between two looks.
            each.at_work_s = (datetime.now(UTC) - each.at).total_seconds()

    def _wake(self, each: Stranded, job: Job) -> None:
        """Wake a horse whose job was taken, and count its writes."""
        assert each.sleeper is not None
        horse = each.sleeper
        woken = time.time()
        os.kill(horse, signal.SIGCONT)
        until(lambda: not _runs(horse))
        self.observations.awake.append((job.shell_file_id, woken, time.time() + ON_ITS_WAY_S))
        calls = ProviderCall.objects.filter(
            processing_session__shell_file=job.shell_file_id, lease_gen=each.gen
        ).count()
        self.late_writes += calls - each.calls


def kill_loop(chaos: ChaosEnvironment, count: int, seed: int) -> dict[str, Any]:
    """Run the kill loop with `count` kills; return the figures and the findings."""
    observations = ChaosObservations(chaos)
    began = time.monotonic()
    with chaos.workers(SEATS) as first, chaos.workers(SEATS) as second:
        loop = KillLoop(chaos, random.Random(seed), (first, second), observations)
        loop.run(count)
        loop.settle()
        ended = observations.close()
        for pool in loop.pools:
            assert not pool.has_ended
    figures = loop.figures()
    findings = [*figures.pop("findings"), *ended.pop("findings")]
    return {**figures, **ended, "took s": round(time.monotonic() - began, 1), "findings": findings}


def held_by(worker: int) -> list[Job]:
    """Return the jobs whose lease this worker's horse holds."""
    rows = Job.objects.filter(status=JobStatus.PROCESSING, worker_id__contains=f"-{worker}-")
    return list(rows)


def _crash_of(job: Job, gen: int) -> dict[str, Any] | None:
    """Return the recorded crash of this lease."""
    return next((crash for crash in crashes_of(job) if crash["lease_gen"] == gen), None)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def _runs(pid: int) -> bool:
    """Return whether a process exists and is no zombie; its parent may be dead and reap nothing."""
    return _stat(pid)[:1] not in ([], ["Z"])


def _parent_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _asleep(horse: int, held: Job) -> bool:
    """Stop a horse while it holds no lock of its job; return whether it still has the job."""

    def is_stopped() -> bool:
        if not _runs(horse):
            return True
        os.kill(horse, signal.SIGSTOP)
        try:
            with transaction.atomic():
                Job.objects.select_for_update(nowait=True).get(id=held.id)
        except OperationalError:
            os.kill(horse, signal.SIGCONT)
            return False
        return True

    until(is_stopped)
    is_held = Job.objects.filter(
        id=held.id, lease_gen=held.lease_gen, status=JobStatus.PROCESSING
    ).exists()
    if _runs(horse) and not is_held:
        os.kill(horse, signal.SIGCONT)
    return is_held and _runs(horse)


def _p95(seconds: Sequence[float | None]) -> float | None:
    known = sorted(each for each in seconds if each is not None)
    return round(known[math.ceil(0.95 * len(known)) - 1], 2) if known else None
