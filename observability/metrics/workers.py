"""The workers: their state in Redis, and the job that each holds by a lease in the database.

This module only reads, with short timeouts. Without Redis only the leases are shown, and the page
says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import redis
from django.conf import settings
from django.utils import timezone
from rq.suspension import WORKERS_SUSPENDED
from rq.utils import utcparse
from rq.worker import WorkerStatus
from rq.worker_registration import REDIS_WORKER_KEYS

from observability.metrics.worker_memory import HostMemory, WorkerMemory, hosts
from pipeline.core.labels import PASS_TITLES, plural
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job
from pipeline.models.selectors import WorkDone, work_done
from pipeline.models.work_tables import WORK_TABLES
from pipeline.ratelimit.limiter import limiter_client

SILENT_S = 60.0
"""Seconds of silence after which a worker is in error; a worker sends a sign every ten seconds."""
LEASES_READ = 60
GONE = "gone"
"""The state of a worker that holds an expired lease and that Redis does not know."""


class WorkerCondition(StrEnum):
    """The state of a worker."""

    IDLE = "idle"
    BUSY = "busy"
    ERROR = "error"
    """The worker is silent, or the job that it holds has lost its lease."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A job that a worker holds."""

    job_id: UUID
    shell_file_id: UUID
    step: Step
    since: datetime | None
    beat_at: datetime | None
    lease_expires_at: datetime | None
    done: int = 0
    total: int = 0
    noun: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether the lease has not expired."""
        return self.lease_expires_at is not None and self.lease_expires_at > timezone.now()

    @property
    def title(self) -> str:
        """Return the pass with its progress: `Pass 1, 18 of 42 batches`."""
        count = f", {self.done} of {self.total} {self.noun}" if self.total else ""
        return f"{PASS_TITLES[self.step]}{count}"


@dataclass(frozen=True, kw_only=True)
class WorkerView:
    """One worker, as known from Redis, from its leases, or from both."""

    name: str
    state: str
    """A `WorkerCondition`, or `GONE`."""
    is_in_redis: bool = True
    host: str = ""
    pid: int | None = None
    queues: tuple[str, ...] = ()
    beat_at: datetime | None = None
    held: Held | None = None
    memory: WorkerMemory | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the worker has sent a sign of life in time."""
        return self.state in {WorkerCondition.IDLE, WorkerCondition.BUSY}


@dataclass(frozen=True, kw_only=True)
class WorkerFleet:
    """All workers."""

    workers: Sequence[WorkerView]
    """One entry for each held job, and one for each worker without a job."""
    is_redis_away: bool
    is_suspended: bool = False
    """Whether `rqsuspend` keeps the workers from beginning a step."""
    is_capped: bool = False
    """Whether more jobs are held than were read."""

    @property
    def alive(self) -> int:
        """The number of workers that have sent a sign of life in time."""
        return len({worker.name for worker in self.workers if worker.is_alive})

    @property
    def hosts(self) -> Sequence[HostMemory]:
        """The memory of each host with live workers that report their memory."""
        live = {worker.name: worker for worker in self.workers if worker.is_alive}
        return hosts((each.host, each.memory) for each in live.values() if each.memory is not None)

    @property
    def number(self) -> int:
        """The number of workers shown."""
        return len({worker.name for worker in self.workers})


def worker_fleet() -> WorkerFleet:
    """Read the workers, in two statements and two round trips to Redis."""
    held = _held()
    shown = held[:LEASES_READ]
    known, is_suspended = _in_redis()
    names = {name for name, _ in shown}
    found = [_holder(name, job, (known or {}).get(name)) for name, job in shown]
    found += [
        _worker(name, facts, None) for name, facts in (known or {}).items() if name not in names
    ]
    return WorkerFleet(
        workers=sorted(found, key=lambda worker: (worker.held is None, worker.name)),
        is_redis_away=known is None,
        is_suspended=is_suspended,
        is_capped=len(held) > len(shown),
    )


def known_workers() -> tuple[list[WorkerView] | None, bool]:
    """Return the workers as Redis alone knows them, and whether they are suspended.

    The workers are None if Redis does not answer. No statement; two round trips to Redis.
    """
    known, is_suspended = _in_redis()
    if known is None:
        return None, False
    return [_worker(name, facts, None) for name, facts in sorted(known.items())], is_suspended


def _held() -> list[tuple[str, Held]]:
    """Return each held job with its worker's name, at most one more than is shown.

    A worker that was declared lost but still works can hold two jobs for a while; each is a row.
    """
    jobs = list(
        Job.objects.filter(status=JobStatus.PROCESSING)
        .select_related("shell_file")
        .only(
            "shell_file__pages_read", "shell_file__page_count", "current_step", "worker_id",
            "step_started_at", "heartbeat_at", "lease_expires_at",
        )
        .order_by("id")[: LEASES_READ + 1]
    )  # fmt: skip
    done = work_done([job.shell_file_id for job in jobs])
    return [(str(job.worker_id), _job(job, done.get(job.shell_file_id, {}))) for job in jobs]


def _job(job: Job, work: Mapping[Step, WorkDone]) -> Held:
    step = Step(job.current_step)
    done, total, noun = 0, 0, ""
    if step is Step.PAGES:
        done, total, noun = job.shell_file.pages_read, job.shell_file.page_count or 0, "pages"
    elif step in WORK_TABLES:
        done, total = work.get(step, WorkDone())
        noun = plural(WORK_TABLES[step].noun)
    return Held(
        job_id=job.id,
        shell_file_id=job.shell_file_id,
        step=step,
        since=job.step_started_at,
        beat_at=job.heartbeat_at,
        lease_expires_at=job.lease_expires_at,
        done=done,
        total=total,
        noun=noun,
    )


def _in_redis() -> tuple[dict[str, Mapping[str, str]] | None, bool]:
    """Return the Redis entry of each worker, by name, and whether the workers are suspended.

    The entries are None if Redis does not answer.
    """
    try:
        with limiter_client(settings.REDIS_URL) as client:
            keys = sorted(client.smembers(REDIS_WORKER_KEYS))
            asked = client.pipeline(transaction=False)
            for key in keys:
                asked.hgetall(key)
            asked.exists(WORKERS_SUSPENDED)
            *answers, is_suspended = asked.execute()
    except redis.RedisError:
        return None, False
    entries: dict[str, Mapping[str, str]] = {
        key.decode().rsplit(":", 1)[-1]: {k.decode(): v.decode() for k, v in facts.items()}
        for key, facts in zip(keys, answers, strict=True)
        if facts
    }
    return entries, bool(is_suspended)


def _holder(name: str, job: Held, facts: Mapping[str, str] | None) -> WorkerView:
    """Return the worker of a held job, with its Redis entry if there is one."""
    if facts is not None:
        return _worker(name, facts, job)
    return WorkerView(
        name=name,
        state=WorkerCondition.BUSY if job.is_alive else GONE,
        is_in_redis=False,
        beat_at=job.beat_at,
        held=job,
    )


def _worker(name: str, facts: Mapping[str, str], held: Held | None) -> WorkerView:
    beat = utcparse(facts["last_heartbeat"]) if facts.get("last_heartbeat") else None
    is_silent = beat is None or (timezone.now() - beat).total_seconds() > SILENT_S
    # The state in Redis counts too, because the worker's job may be beyond the limit of reads.
    is_busy = held is not None or facts.get("state") == WorkerStatus.BUSY
    if is_silent or (held is not None and not held.is_alive):
        state = WorkerCondition.ERROR
    else:
        state = WorkerCondition.BUSY if is_busy else WorkerCondition.IDLE
    return WorkerView(
        name=name,
        state=state,
        host=facts.get("hostname", ""),
        pid=int(facts["pid"]) if facts.get("pid") else None,
        queues=tuple(q for q in facts.get("queues", "").split(",") if q),
        beat_at=beat,
        held=held,
        memory=WorkerMemory.of(facts),
    )
