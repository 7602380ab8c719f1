"""Who holds a job, and whether there is somebody behind the name: what a reset rests on.

Imports the crew, the pipeline's models and its services. Reads only: rows, leases, what Redis knows
of workers, and, for workers of this host, whether their process is there.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from observability.metrics.workers import Crew, WorkerView
from pipeline.core.labels import counted
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job
from pipeline.operations import services
from pipeline.transitions.recovery import CRASH_LIMIT
from pipeline.transitions.stale import JOBS_LIMIT

OVERDUE_READ = 50
_NAME = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-[0-9a-f]{8}")
"""`<WORKER_ID>-<pid>-<random>`, as a worker names itself."""


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A worker that a row names, and what is known of it."""

    name: str
    registered: str
    process: str
    is_gone: bool
    """Nothing speaks for it any more."""


@dataclass(frozen=True, kw_only=True)
class StaleJob:
    """A job with rows that nobody works on, and why that is believed."""

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
    owner: Owner | None

    @property
    def effect(self) -> str:
        """What a reset would do."""
        if self.status is not JobStatus.PROCESSING:
            then = f"the job stays as it is: {self.status}"
        elif self.crash_count + 1 < CRASH_LIMIT:
            then = (
                "the lease gets a new number, so its worker can write nothing more; the job goes"
                f" back in line, with lost worker {self.crash_count + 1} of {CRASH_LIMIT} counted"
            )
        else:
            then = f"the job is dead then: this is its lost worker {CRASH_LIMIT} of {CRASH_LIMIT}"
        return f"{self.rows} back to waiting, attempts kept; {then}"


@dataclass(frozen=True, kw_only=True)
class Overdue:
    """A running job whose lease has run out: the clock takes it back by itself."""

    job_id: UUID
    shell_file_id: UUID
    step: Step
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    crash_count: int
    owner: Owner | None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is stale, and what the clock has yet to take back."""

    stale: Sequence[StaleJob]
    overdue: Sequence[Overdue]
    is_redis_away: bool
    is_capped: bool
    """Whether more is stale than is shown."""


def evidence(older_s: float, known: Crew) -> Evidence:
    """Read what nobody has worked on for so long; a constant number of statements."""
    rows = services.stale_batches_reset(older_s, dry_run=True, jobs=JOBS_LIMIT + 1)
    jobs = {
        job.id: job
        for job in Job.objects.filter(id__in={row.job_id for row in rows}).defer("error_details")
    }
    late = list(
        Job.objects.filter(status=JobStatus.PROCESSING, lease_expires_at__lte=timezone.now())
        .defer("error_details")
        .order_by("lease_expires_at", "id")[:OVERDUE_READ]
    )
    workers = {worker.name: worker for worker in known.workers if worker.is_in_redis}
    stale = []
    for job_id, job in sorted(jobs.items(), key=lambda pair: str(pair[0])):
        own = [row for row in rows if row.job_id == job_id]
        kinds = {kind: sum(row.kind == kind for row in own) for kind in ("batch", "chunk")}
        stale.append(
            StaleJob(
                job_id=job_id,
                shell_file_id=job.shell_file_id,
                step=Step(job.current_step),
                status=JobStatus(job.status),
                rows=", ".join(counted(number, kind) for kind, number in kinds.items() if number),
                oldest_at=min(row.started_at for row in own),
                heartbeat_at=job.heartbeat_at,
                lease_expires_at=job.lease_expires_at,
                lease_gen=job.lease_gen,
                crash_count=job.crash_count,
                owner=owner(job.worker_id, workers, is_redis_away=known.is_redis_away),
            )
        )
    return Evidence(
        stale=sorted(stale, key=lambda each: each.oldest_at)[:JOBS_LIMIT],
        overdue=[
            Overdue(
                job_id=job.id,
                shell_file_id=job.shell_file_id,
                step=Step(job.current_step),
                heartbeat_at=job.heartbeat_at,
                lease_expires_at=job.lease_expires_at,
                crash_count=job.crash_count,
                owner=owner(job.worker_id, workers, is_redis_away=known.is_redis_away),
            )
            for job in late
        ],
        is_redis_away=known.is_redis_away,
        is_capped=len(stale) > JOBS_LIMIT,
    )


def owner(
    name: str | None, workers: Mapping[str, WorkerView], *, is_redis_away: bool
) -> Owner | None:
    """Say what is known of a worker; a process is looked for on this host alone."""
    if not name:
        return None
    worker = workers.get(name)
    if is_redis_away:
        registered = "not known: Redis is away"
    elif worker is None:
        registered = "not registered any more"
    else:
        registered = f"registered, {worker.state}"
    host, pid = _place(name, worker)
    if pid is None:
        process, is_there = "its name tells no process", None
    elif host != socket.gethostname():
        process, is_there = f"process {pid} on {host}: not to be seen from here", None
    else:
        is_there = _is_worker(pid)
        process = f"process {pid} {'is there' if is_there else 'is gone'}"
    return Owner(
        name=name,
        registered=registered,
        process=process,
        is_gone=is_there is False or (is_there is None and worker is None and not is_redis_away),
    )


def _place(name: str, worker: WorkerView | None) -> tuple[str, int | None]:
    """Return host and process of a worker, as Redis or its name tells."""
    if worker is not None and worker.pid:
        return worker.host, worker.pid
    found = _NAME.fullmatch(name)
    if found is None:
        return "", None
    is_here = found["host"] == settings.WORKER_ID
    return socket.gethostname() if is_here else found["host"], int(found["pid"])


def _is_worker(pid: int) -> bool:
    """Whether a process of that number is there, and is a worker where that can be read."""
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
    # A number that has been given away again says nothing of the worker that had it.
    return b"python" in command or b"rq" in command


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A worker, or its work process, that was lost."""

    at: datetime | None
    name: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Death:
    """How a dead job came to its end."""

    crashes: Sequence[Loss]


def deaths(jobs: Sequence[Job], known: Crew) -> dict[UUID, Death]:
    """Return how these jobs died: the workers that were lost, by their history."""
    workers = {worker.name: worker for worker in known.workers if worker.is_in_redis}
    return {
        job.id: Death(
            crashes=[
                _loss(
                    entry,
                    owner(entry.get("worker_id"), workers, is_redis_away=known.is_redis_away),
                )
                for entry in _history(job)
                if entry.get("event") == "crashed"
            ][-3:]
        )
        for job in jobs
    }


def _loss(entry: Mapping[str, Any], lost: Owner | None) -> Loss:
    """Say what was lost: a worker that is still there has lost the process of this step alone."""
    at = datetime.fromisoformat(entry["at"]) if entry.get("at") else None
    if lost is None:
        return Loss(at=at, name="", words="a worker that is not known")
    if not lost.is_gone:
        words = f"its work process was lost; the worker itself lives: {lost.registered}"
    else:
        words = f"the worker was lost: {lost.registered}; {lost.process}"
    return Loss(at=at, name=lost.name, words=words)


def _history(job: Job) -> list[dict[str, Any]]:
    return list((job.error_details or {}).get("history") or ())
