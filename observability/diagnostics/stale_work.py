"""The evidence for a reset: the worker of a job, and whether the worker still lives.

This module only reads: rows, leases, the workers in Redis, and, for workers of this host, whether
their process exists.
"""

from __future__ import annotations

import os
import re
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from observability.metrics.workers import WorkerFleet, WorkerView
from pipeline.core.labels import counted
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job
from pipeline.operations import operator_actions
from pipeline.transitions.history import Crash, crashes
from pipeline.transitions.recovery import CRASH_LIMIT
from pipeline.transitions.stale import JOBS_LIMIT

EXPIRED_READ = 50
_NAME = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-[0-9a-f]{8}")
"""`<WORKER_ID>-<pid>-<random>`, the format of a worker's name."""


@dataclass(frozen=True, kw_only=True)
class WorkerEvidence:
    """A worker that a row names, and the facts known about the worker."""

    name: str
    registered: str
    process: str
    is_gone: bool
    """Whether no evidence shows that the worker lives."""


@dataclass(frozen=True, kw_only=True)
class StaleJob:
    """A job with rows that no worker processes, and the evidence for that."""

    job_id: UUID
    shell_file_id: UUID
    step: Step
    status: JobStatus
    rows: str
    """`3 batches, 1 chunk`"""
    oldest_at: datetime
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    lease_gen: int
    crash_count: int
    worker: WorkerEvidence | None

    @property
    def effect(self) -> str:
        """The effect of a reset."""
        if self.status is not JobStatus.PROCESSING:
            then = f"the job stays as it is: {self.status}"
        elif self.crash_count + 1 < CRASH_LIMIT:
            then = (
                "the lease gets a new number, so its worker can write no more; the job goes back"
                f" to the queue, with crash {self.crash_count + 1} of {CRASH_LIMIT} counted"
            )
        else:
            then = f"the job becomes dead: this is crash {CRASH_LIMIT} of {CRASH_LIMIT}"
        return f"{self.rows} back to waiting, attempts kept; {then}"


@dataclass(frozen=True, kw_only=True)
class ExpiredLease:
    """A running job whose lease has expired; the scheduler requeues the job by itself."""

    job_id: UUID
    shell_file_id: UUID
    step: Step
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    crash_count: int
    worker: WorkerEvidence | None


@dataclass(frozen=True, kw_only=True)
class StaleEvidence:
    """The stale jobs, and the expired leases that the scheduler has not handled yet."""

    stale: Sequence[StaleJob]
    expired_leases: Sequence[ExpiredLease]
    is_redis_away: bool
    is_capped: bool
    """Whether more jobs are stale than are shown."""


def evidence(older_s: float, known: WorkerFleet) -> StaleEvidence:
    """Read the work that was untouched for `older_s` seconds; a constant number of statements."""
    rows = operator_actions.stale_batches_reset(older_s, dry_run=True, jobs=JOBS_LIMIT + 1)
    jobs = {
        job.id: job
        for job in Job.objects.filter(id__in={row.job_id for row in rows}).defer("error_details")
    }
    late = list(
        Job.objects.filter(status=JobStatus.PROCESSING, lease_expires_at__lte=timezone.now())
        .defer("error_details")
        .order_by("lease_expires_at", "id")[:EXPIRED_READ]
    )
    workers = {worker.name: worker for worker in known.workers if worker.is_in_redis}
    stale = []
    for job_id, job in sorted(jobs.items(), key=lambda pair: str(pair[0])):
        own = [row for row in rows if row.job_id == job_id]
        kinds = Counter(sorted(row.kind for row in own))
        stale.append(
            StaleJob(
                job_id=job_id,
                shell_file_id=job.shell_file_id,
                step=Step(job.current_step),
                status=JobStatus(job.status),
                rows=", ".join(counted(number, kind) for kind, number in kinds.items()),
                oldest_at=min(row.started_at for row in own),
                heartbeat_at=job.heartbeat_at,
                lease_expires_at=job.lease_expires_at,
                lease_gen=job.lease_gen,
                crash_count=job.crash_count,
                worker=evidence_of(job.worker_id, workers, is_redis_away=known.is_redis_away),
            )
        )
    return StaleEvidence(
        stale=sorted(stale, key=lambda each: each.oldest_at)[:JOBS_LIMIT],
        expired_leases=[
            ExpiredLease(
                job_id=job.id,
                shell_file_id=job.shell_file_id,
                step=Step(job.current_step),
                heartbeat_at=job.heartbeat_at,
                lease_expires_at=job.lease_expires_at,
                crash_count=job.crash_count,
                worker=evidence_of(job.worker_id, workers, is_redis_away=known.is_redis_away),
            )
            for job in late
        ],
        is_redis_away=known.is_redis_away,
        is_capped=len(stale) > JOBS_LIMIT,
    )


def evidence_of(
    name: str | None, workers: Mapping[str, WorkerView], *, is_redis_away: bool
) -> WorkerEvidence | None:
    """Return the facts about a worker; its process is checked only on this host."""
    if not name:
        return None
    worker = workers.get(name)
    if is_redis_away:
        registered = "unknown: Redis refuses"
    elif worker is None:
        registered = "no longer registered"
    else:
        registered = f"registered, {worker.state}"
    host, pid = _place(name, worker)
    if pid is None:
        process, is_there = "its name contains no process number", None
    elif host != socket.gethostname():
        process, is_there = f"process {pid} on {host}: cannot be checked from here", None
    else:
        is_there = _is_worker(pid)
        process = f"process {pid} {'exists' if is_there else 'is gone'}"
    return WorkerEvidence(
        name=name,
        registered=registered,
        process=process,
        is_gone=is_there is False or (is_there is None and worker is None and not is_redis_away),
    )


def _place(name: str, worker: WorkerView | None) -> tuple[str, int | None]:
    """Return the host and process of a worker, from Redis or from its name."""
    if worker is not None and worker.pid:
        return worker.host, worker.pid
    found = _NAME.fullmatch(name)
    if found is None:
        return "", None
    is_here = found["host"] == settings.WORKER_ID
    return socket.gethostname() if is_here else found["host"], int(found["pid"])


def _is_worker(pid: int) -> bool:
    """Return whether the process exists and, if its command line is readable, is a worker."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True
    # The number may belong to a new process by now, so the command line decides.
    return b"python" in command or b"rq" in command


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A lost worker, or a lost work process of a worker."""

    at: datetime | None
    name: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Death:
    """The events that made a job dead."""

    crashes: Sequence[Loss]


def deaths(jobs: Sequence[Job], known: WorkerFleet) -> dict[UUID, Death]:
    """Return the losses of these dead jobs, from the jobs' history."""
    workers = {worker.name: worker for worker in known.workers if worker.is_in_redis}
    return {
        job.id: Death(
            crashes=[
                _loss(
                    crash,
                    evidence_of(crash.worker_id, workers, is_redis_away=known.is_redis_away),
                )
                for crash in crashes(_history(job))[-CRASH_LIMIT:]
            ]
        )
        for job in jobs
    }


def _loss(crash: Crash, lost: WorkerEvidence | None) -> Loss:
    """Describe a loss: if the worker still lives, only the process of this step was lost."""
    at = datetime.fromisoformat(crash.at) if crash.at else None
    if lost is None:
        return Loss(at=at, name="", words="an unknown worker")
    if crash.has_hung:
        words = "its work process hung, and the worker ended that process"
    elif not lost.is_gone:
        words = f"its work process was lost; the worker itself lives: {lost.registered}"
    else:
        words = f"the worker was lost: {lost.registered}; {lost.process}"
    return Loss(at=at, name=lost.name, words=words)


def _history(job: Job) -> list[dict[str, Any]]:
    return list((job.error_details or {}).get("history") or ())
