"""The workers: what Redis knows of them, and which job each holds by the leases in the database.

Imports the pipeline's models and rq's registry. Reads only, with short timeouts: without Redis the
leases are shown alone, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import redis
from django.conf import settings
from django.utils import timezone
from rq.utils import utcparse
from rq.worker_registration import REDIS_WORKER_KEYS

from pipeline.gate.gate import gate_client
from pipeline.models import Job
from pipeline.selectors import Progress, progress
from pipeline.states import JobStatus, Step
from pipeline.words import PASS_TITLES

LEASES_READ = 60
SILENT_S = 90.0
"""A worker without a heartbeat for so long is taken for dead; a busy one has one every 10 s."""


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
        """Whether the lease still holds."""
        return self.lease_expires_at is not None and self.lease_expires_at > timezone.now()

    @property
    def title(self) -> str:
        """Return the pass with its progress: `Pass 1, 18 of 42 batches`."""
        count = f", {self.done} of {self.total} {self.noun}" if self.total else ""
        return f"{PASS_TITLES[self.step]}{count}"


@dataclass(frozen=True, kw_only=True)
class WorkerView:
    """One worker, from Redis, from its leases, or from both."""

    name: str
    state: str
    """idle, busy, silent (no heartbeat in Redis), or gone (its lease has expired)."""
    is_in_redis: bool = True
    host: str = ""
    pid: int | None = None
    queues: tuple[str, ...] = ()
    beat_at: datetime | None = None
    held: Held | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it has given a sign of life in time."""
        return self.state in {"idle", "busy"}


@dataclass(frozen=True, kw_only=True)
class Crew:
    """All workers."""

    workers: Sequence[WorkerView]
    is_redis_away: bool

    @property
    def alive(self) -> int:
        """How many have given a sign of life in time."""
        return sum(worker.is_alive for worker in self.workers)


def crew() -> Crew:
    """Read the workers; six statements and two round trips."""
    held = _held()
    known = _in_redis()
    found = [_worker(name, facts, held.pop(name, None)) for name, facts in (known or {}).items()]
    found += [
        WorkerView(
            name=name,
            state="busy" if job.is_alive else "gone",
            is_in_redis=False,
            beat_at=job.beat_at,
            held=job,
        )
        for name, job in held.items()
    ]
    return Crew(
        workers=sorted(found, key=lambda worker: (worker.held is None, worker.name)),
        is_redis_away=known is None,
    )


def _held() -> dict[str, Held]:
    jobs = list(
        Job.objects.filter(status=JobStatus.PROCESSING)
        .only(
            "shell_file_id", "current_step", "worker_id", "step_started_at", "heartbeat_at",
            "lease_expires_at",
        )
        .order_by("id")[:LEASES_READ]
    )  # fmt: skip
    far = progress([job.shell_file_id for job in jobs])
    return {str(job.worker_id): _job(job, far.get(job.shell_file_id)) for job in jobs}


def _job(job: Job, far: Progress | None) -> Held:
    step = Step(job.current_step)
    done, total, noun = 0, 0, ""
    if far is not None and step is Step.PAGES:
        done, total, noun = far.pages_read, far.page_count or 0, "pages"
    elif far is not None and step is Step.PASS05:
        done, total, noun = far.chunks_done, far.chunks_total, "chunks"
    elif far is not None and step is Step.PASS1:
        done, total, noun = far.batches_done, far.batches_total, "batches"
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


def _in_redis() -> dict[str, Mapping[str, str]] | None:
    """Return what Redis knows of each worker, by name; None where Redis is away."""
    try:
        with gate_client(settings.REDIS_URL) as client:
            keys = sorted(client.smembers(REDIS_WORKER_KEYS))
            asked = client.pipeline(transaction=False)
            for key in keys:
                asked.hgetall(key)
            answers = asked.execute()
    except redis.RedisError:
        return None
    return {
        key.decode().rsplit(":", 1)[-1]: {k.decode(): v.decode() for k, v in facts.items()}
        for key, facts in zip(keys, answers, strict=True)
        if facts
    }


def _worker(name: str, facts: Mapping[str, str], held: Held | None) -> WorkerView:
    beat = utcparse(facts["last_heartbeat"]) if facts.get("last_heartbeat") else None
    is_silent = beat is None or (timezone.now() - beat).total_seconds() > SILENT_S
    return WorkerView(
        name=name,
        state="silent" if is_silent else "busy" if held else "idle",
        host=facts.get("hostname", ""),
        pid=int(facts["pid"]) if facts.get("pid") else None,
        queues=tuple(q for q in facts.get("queues", "").split(",") if q),
        beat_at=beat,
        held=held,
    )
