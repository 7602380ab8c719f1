"""What waits, and who works on it, now: for the console and whoever watches (`spec.md` point 38).

Imports models, `liveness` and `queues`; reads only. The rows say what is due, Redis who is there;
while Redis is away the rows are still told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from django.utils import timezone
from redis.exceptions import RedisError
from rq.utils import as_text
from rq.worker import WorkerStatus
from rq.worker_registration import REDIS_WORKER_KEYS

from pipeline.core.states import JobStatus, Step
from pipeline.liveness import StepAges, step_ages
from pipeline.models import Job
from pipeline.queues import QUEUES, producer, queue_depths

SILENT_S = 60.0
"""A worker that was not heard of for so long is in error; it beats every ten seconds at least."""


class WorkerCondition(StrEnum):
    """What a worker does."""

    IDLE = "idle"
    BUSY = "busy"
    ERROR = "error"
    """It was not heard of, or the job that it holds has lost its lease."""


@dataclass(frozen=True, kw_only=True)
class QueueState:
    """One pass: its rows, and its wake-ups in Redis."""

    step: Step
    ages: StepAges
    wake_ups: int | None
    """Entries of the queue in Redis; None while Redis is away."""


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """One worker that has registered."""

    name: str
    condition: WorkerCondition
    queues: tuple[str, ...]
    step: Step | None
    """The pass of the job that it holds."""
    heartbeat_s: float | None
    """Seconds since it was last heard of; None where Redis has forgotten it."""


def queue_states() -> list[QueueState]:
    """Return every pass, in the order in which a record walks through them; one statement."""
    ages = step_ages()
    try:
        depths: Mapping[str, int] = queue_depths()
    except (RedisError, OSError):
        depths = {}
    return [
        QueueState(step=step, ages=ages[step], wake_ups=depths.get(step.value)) for step in Step
    ]


def worker_states() -> list[WorkerState]:
    """Return every registered worker of every host, by name. Raises RedisError."""
    held = {
        name: (Step(step), expires)
        for name, step, expires in Job.objects.filter(status=JobStatus.PROCESSING).values_list(
            "worker_id", "current_step", "lease_expires_at"
        )
    }
    client = producer()
    keys = sorted(as_text(key) for key in client.smembers(REDIS_WORKER_KEYS))
    with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.hgetall(key)
        return [
            _worker(key.rpartition(":")[2], facts, held)
            for key, facts in zip(keys, pipe.execute(), strict=True)
        ]


def _worker(
    name: str, facts: Mapping[bytes, bytes], held: Mapping[Any, tuple[Step, datetime]]
) -> WorkerState:
    step, expires = held.get(name, (None, None))
    heard_at = facts.get(b"last_heartbeat")
    silent_s = None
    if heard_at is not None:
        at = datetime.fromisoformat(heard_at.decode().replace("Z", "+00:00"))
        silent_s = (timezone.now() - at.astimezone(UTC)).total_seconds()
    condition = (
        WorkerCondition.BUSY
        if step is not None or facts.get(b"state") == WorkerStatus.BUSY.value.encode()
        else WorkerCondition.IDLE
    )
    is_lost = expires is not None and expires < timezone.now()
    if silent_s is None or silent_s > SILENT_S or is_lost:
        condition = WorkerCondition.ERROR
    queues = tuple(name for name in facts.get(b"queues", b"").decode().split(",") if name)
    return WorkerState(
        name=name,
        condition=condition,
        queues=tuple(queue for queue in queues if queue in QUEUES),
        step=step,
        heartbeat_s=silent_s,
    )
