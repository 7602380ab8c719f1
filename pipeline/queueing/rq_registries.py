"""The contents of the RQ queues in Redis, read and repaired: entries, executions, failed entries.

Each read and each repair has a limit and takes a few round trips, whatever it finds. All of them
raise RedisError if Redis does not answer. RQ's own clean-up runs only between jobs and at most
every ten minutes, so this module does not rely on it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from rq.defaults import RQ_KEY_PREFIX
from rq.executions import WORKER_EXECUTIONS_KEY_TEMPLATE, ExecutionRegistry
from rq.job import Job
from rq.registry import FailedJobRegistry, StartedJobRegistry

from pipeline.queueing.queues import (
    ALL_QUEUES,
    FAILURE_TTL_S,
    QUEUES,
    SILENT_S,
    StepQueue,
    producer,
)

LOOK_LIMIT = 1_000
"""Entries of a queue that one read covers, from its front. The other entries are only counted."""
FORGET_LIMIT = 20_000
"""Entries of a queue among which those of an erased job are searched."""
CLEAN_LIMIT = 1_000
"""Entries of a registry that one clean-up covers."""
_SCAN = 1_000
"""Keys that one step of a search in Redis reads."""
_OURS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-(\w+)-\d+(?:-[0-9a-f]{8})?")


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The entries of one queue."""

    count: int
    """All entries of the queue, also those beyond the limit."""
    entries: tuple[str, ...]
    """Ids of the wake-ups, in the order of the queue."""
    broken: tuple[str, ...]
    """Ids in the queue whose entry is gone from Redis; they wake no worker."""


def look(queues: Iterable[str] = QUEUES, limit: int = LOOK_LIMIT) -> dict[str, Waiting]:
    """Read the entries of each queue, in one round trip."""
    names = list(queues)
    with producer().pipeline(transaction=False) as pipe:
        for name in names:
            key = _queue_key(name)
            pipe.llen(key)
            # In the order of the list; each id comes with a field of its hash, or None without one.
            pipe.sort(key, start=0, num=limit, by="nosort", get=["#", _job_key("*->origin")])
        answers = pipe.execute()
    found: dict[str, Waiting] = {}
    for name, count, flat in zip(names, answers[::2], answers[1::2], strict=True):
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        ids = [(entry.decode(errors="replace"), origin is not None) for entry, origin in pairs]
        found[name] = Waiting(
            count=int(count),
            entries=tuple(entry for entry, whole in ids if whole and _is_of(name, entry)),
            broken=tuple(entry for entry, whole in ids if not whole),
        )
    return found


def remove(entries: Mapping[str, Sequence[str]]) -> int:
    """Remove these ids from their queues; return how many were removed."""
    with producer().pipeline(transaction=False) as pipe:
        for name, ids in entries.items():
            for entry in ids:
                pipe.lrem(_queue_key(name), 1, entry)
        for ids in entries.values():
            for entry in ids:
                # A worker that popped the entry at this moment can still read the entry.
                pipe.expire(_job_key(entry), FAILURE_TTL_S)
        answers = pipe.execute()
    return sum(int(count) for count in answers[: sum(map(len, entries.values()))])


def forget(job_ids: Iterable[UUID]) -> None:
    """Delete every wake-up of these jobs, waiting or failed; the jobs have ended."""
    client = producer()
    for job_id in job_ids:
        prefix = _job_key("")
        keys = list(client.scan_iter(match=f"{prefix}{job_id}-*", count=_SCAN))
        # A queue can name an entry whose hash is gone.
        waiting = [
            (name, entry)
            for name, found in look(limit=FORGET_LIMIT).items()
            for entry in (*found.entries, *found.broken)
            if entry.startswith(f"{job_id}-")
        ]
        with client.pipeline(transaction=False) as pipe:
            for name, entry in waiting:
                pipe.lrem(_queue_key(name), 0, entry)
            for key in keys:
                entry = key.decode().removeprefix(prefix)
                for name in QUEUES:
                    pipe.zrem(_failed_key(name), entry)
                pipe.delete(key)
            pipe.execute()


def clean(queues: Iterable[str] = ALL_QUEUES) -> int:
    """Remove executions of lost workers and failed entries without a hash; count them.

    An entry without its hash is no error; it is removed and the next one follows.
    """
    names = list(queues)
    now = time.time()
    with producer().pipeline(transaction=False) as pipe:
        for name in names:
            pipe.zrange(_started_key(name), 0, CLEAN_LIMIT - 1, withscores=True)
            key = _failed_key(name)
            pipe.zremrangebyscore(key, 0, now)
            pipe.sort(key, start=0, num=CLEAN_LIMIT, by="nosort", get=["#", _job_key("*->origin")])
        answers = pipe.execute()
    started = {
        name: [(member.decode(errors="replace"), score) for member, score in members]
        for name, members in zip(names, answers[::3], strict=True)
    }
    gone = {
        name: [entry for entry, origin in zip(flat[::2], flat[1::2], strict=True) if origin is None]
        for name, flat in zip(names, answers[2::3], strict=True)
    }
    orphans = _orphans(started, now)
    with producer().pipeline(transaction=False) as pipe:
        for name, failed in gone.items():
            if failed:
                pipe.zrem(_failed_key(name), *failed)
        for name, member, worker in orphans:
            job_id, _, execution_id = member.partition(":")
            pipe.zrem(_started_key(name), member)
            pipe.delete(_execution_key(member))
            pipe.zrem(ExecutionRegistry.key_template.format(job_id), execution_id)
            pipe.srem(WORKER_EXECUTIONS_KEY_TEMPLATE.format(worker), member)
            pipe.expire(_job_key(job_id), FAILURE_TTL_S)
        pipe.execute()
    expired = sum(int(count) for count in answers[1::3])
    return len(orphans) + sum(map(len, gone.values())) + expired


def _orphans(
    started: Mapping[str, Sequence[tuple[str, float]]], now: float
) -> list[tuple[str, str, str]]:
    """Return queue, member and worker of each execution whose worker is gone."""
    members = [(name, member, score) for name, found in started.items() for member, score in found]
    if not members:
        return []
    with producer().pipeline(transaction=False) as pipe:
        for _, member, _ in members:
            pipe.exists(_job_key(member.partition(":")[0]))
            pipe.hmget(_execution_key(member), "last_heartbeat", "worker_name")
        answers = pipe.execute()
    found = []
    for (name, member, score), exists, (beat, worker) in zip(
        members, answers[::2], answers[1::2], strict=True
    ):
        silent = beat is None or float(beat) < now - SILENT_S
        if score < now or not exists or silent:
            found.append((name, member, (worker or b"").decode(errors="replace")))
    return found


def _is_of(queue: str, entry: str) -> bool:
    matched = _OURS.fullmatch(entry)
    return matched is not None and matched[1] == queue


def _queue_key(name: str) -> str:
    return f"{StepQueue.redis_queue_namespace_prefix}{name}"


def _job_key(entry: str) -> str:
    return f"{Job.redis_job_namespace_prefix}{entry}"


def _execution_key(member: str) -> str:
    return f"{RQ_KEY_PREFIX}:execution:{member}"


def _started_key(name: str) -> str:
    return StartedJobRegistry.key_template.format(name)


def _failed_key(name: str) -> str:
    return FailedJobRegistry.key_template.format(name)
