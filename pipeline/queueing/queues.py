"""The queues: the only code that enqueues, and the definition of a valid entry.

An entry is a wake-up, never an order. The `job_queue` row is the truth, so a lost or doubled entry
costs time and nothing else. Entries contain ids only, as JSON; any other entry is refused and not
executed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from secrets import token_hex
from threading import Lock
from typing import Any, ClassVar
from uuid import UUID, uuid4

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django_rq import get_connection
from redis import Redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue
from rq.exceptions import DeserializationError, InvalidJobOperation
from rq.job import Job
from rq.serializers import JSONSerializer, resolve_serializer
from rq.suspension import WORKERS_SUSPENDED
from rq.utils import as_text, now, utcparse
from rq.worker import WorkerStatus
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from pipeline.core.server_faults import explain
from pipeline.core.states import Step
from pipeline.core.types import Due

logger = logging.getLogger(__name__)

RUN_STEP = "pipeline.workers.run_step.run_step"
QUEUES: tuple[str, ...] = tuple(Step.values)
"""One queue per pass, with the pass's name, in the order in which a record goes through them."""
PAGES_QUEUES: tuple[str, ...] = (Step.PAGES.value,)
RECORD_QUEUES: tuple[str, ...] = tuple(q for q in reversed(QUEUES) if q not in PAGES_QUEUES)
"""Every pass after the pages. Later passes come first, so that started records finish before new
records start (requirement 36)."""
WEBHOOKS = "webhooks"
SIDE_QUEUES: tuple[str, ...] = tuple(settings.SIDE_QUEUES)
"""Queues of the applications above the pipeline. An entry has no argument: the worker calls the
function of `settings.SIDE_QUEUES`."""
ALL_QUEUES = (*QUEUES, *SIDE_QUEUES)

FAILURE_TTL_S = 600
"""Seconds for which RQ keeps a failed entry; the evidence is in the row, not in Redis."""
NO_TIMEOUT = -1
"""RQ's own timeout raises at any point of the code; the step enforces its own deadline instead."""
SILENT_S = 45.0
"""Seconds without a heartbeat after which a worker counts as lost; a busy worker sends one every
10 s. Not scaled by TIME_SCALE, because RQ's own times are not."""
IDLE_SILENT_S = 10.0
"""The same for an idle worker, which sends a heartbeat every second."""
ENQUEUE_TIMEOUT_S = 1.0
"""With one repetition, a Redis that hangs delays a request by little more than two seconds."""
SUSPENSION = "no worker begins a step after manage.py rqsuspend; manage.py rqresume ends this"
"""The problem that `health` and the overview report while the workers are suspended."""
_IGNORED_FIELDS = (b"success_callback", b"failure_callback", b"stopped_callback", b"webhooks")


class StepEntry(Job):
    """An entry of a queue: `RUN_STEP` with one step's name, in JSON, and nothing else.

    An entry of a side queue is its function without an argument.
    """

    entry_point: ClassVar[str] = RUN_STEP

    def __init__(
        self, entry: str | None = None, connection: Redis | None = None, serializer: Any = None
    ) -> None:
        super().__init__(entry, connection, serializer=json_only(serializer))

    def restore(self, raw_data: Any) -> Any:
        """Read the entry; ignore all fields that we never write (callbacks, webhooks, retries)."""
        kept = {key: raw for key, raw in raw_data.items() if not key.startswith(_IGNORED_FIELDS)}
        super().restore(kept)
        self.timeout, self.result_ttl, self.failure_ttl = NO_TIMEOUT, 0, FAILURE_TTL_S

    def is_ours(self) -> bool:
        """Return whether the entry may run.

        JSON alone is not enough: a writer of Redis could name any importable function.
        """
        try:
            call = [self.func_name, self.instance, self.args, self.kwargs]
        except DeserializationError:
            return False
        return call in [[entry, None, args, {}] for entry, args in map(_call, ALL_QUEUES)]

    def perform(self) -> Any:
        """Run the step; raises InvalidJobOperation for a foreign entry."""
        if not self.is_ours():
            raise InvalidJobOperation("not a valid entry")
        return super().perform()


class StepQueue(Queue):
    """A queue of `StepEntry` that always uses JSON."""

    job_class = StepEntry

    def __init__(self, name: str, *, serializer: Any = None, **kwargs: Any) -> None:
        super().__init__(name, serializer=json_only(serializer), **kwargs)


def json_only(serializer: Any) -> type[JSONSerializer]:
    """Return the JSON serializer; raise ImproperlyConfigured if another serializer is given.

    Unpickling an entry would run code that a writer of Redis has chosen.
    """
    if serializer is not None and resolve_serializer(serializer) is not JSONSerializer:
        raise ImproperlyConfigured("queue entries are JSON; no other serializer is accepted")
    return JSONSerializer


def entry_id(job_id: UUID | str, step: str, dispatch_no: int) -> str:
    """Return the id of a wake-up; `dispatch_no` makes the id unique, so no id is used twice."""
    return f"{job_id}-{step}-{dispatch_no}"


def _entry_of(due: Due) -> str:
    """Return the id of the wake-up of a job that is due.

    A wake-up that is sent again needs an id of its own: the worker that ends the first entry
    deletes its hash in Redis, and an entry without a hash wakes no worker.
    """
    entry = entry_id(due.job_id, due.step.value, due.dispatch_no)
    return f"{entry}-{token_hex(4)}" if due.is_sent_again else entry


def enqueue_step(
    job_id: UUID | str, step: str, dispatch_no: int, *, using: str | None = None
) -> None:
    """Wake a worker for the step after the transaction commits; never raises for Redis.

    Not `unique`: RQ refuses an id as long as a lost entry's hash exists. A second entry for the
    same job is harmless, because it finds nothing to claim.
    """
    queue = Step(step).value
    entry = entry_id(job_id, queue, dispatch_no)

    def send() -> None:
        push(queue, entry)

    transaction.on_commit(send, using=using, robust=True)


def enqueue_steps(due: Iterable[Due], *, using: str | None = None) -> None:
    """Wake a worker for each job in `due` after the transaction commits.

    One round trip per queue, so that a Redis that hangs delays many jobs no longer than one.
    """
    entries: dict[str, list[str]] = {}
    for each in due:
        entries.setdefault(each.step.value, []).append(_entry_of(each))

    def send() -> None:
        for queue, found in entries.items():
            push(queue, *found)

    if entries:
        transaction.on_commit(send, using=using, robust=True)


def wake(queue: str) -> None:
    """Wake a worker of a side queue after the transaction commits; never raises for Redis."""

    def send() -> None:
        push(queue, f"{queue}-{uuid4()}")

    transaction.on_commit(send, robust=True)


def wake_if_idle(queue: str) -> None:
    """Wake a worker of a side queue now, unless a wake-up waits; never raises for Redis."""
    try:
        if queue_depths([queue])[queue]:
            return
    except (RedisError, OSError) as error:
        logger.warning("queue %s cannot be read: %s", queue, explain(error))
        return
    push(queue, f"{queue}-{uuid4()}")


def push(queue: str, *entries: str) -> None:
    """Put wake-ups into their queue now; an unreachable Redis is logged, never raised."""
    function, args = _call(queue)
    try:
        StepQueue(queue, connection=producer()).enqueue_many(
            [
                Queue.prepare_data(
                    function,
                    args=args,
                    job_id=entry,
                    description=entry,
                    timeout=NO_TIMEOUT,
                    result_ttl=0,
                    failure_ttl=FAILURE_TTL_S,
                )
                for entry in entries
            ]
        )
    except (RedisError, OSError) as error:
        # The rows stay claimable, and the reconciler sends the missing wake-ups.
        more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
        logger.error("wake-up %s%s was not sent: %s", entries[0], more, explain(error))


def queue_depths(queues: Iterable[str] = QUEUES) -> dict[str, int]:
    """Count the waiting entries of each queue; raises RedisError if Redis does not answer."""
    names = list(queues)
    with producer().pipeline(transaction=False) as pipe:
        for name in names:
            pipe.llen(f"{Queue.redis_queue_namespace_prefix}{name}")
        return dict(zip(names, pipe.execute(), strict=True))


def nothing_waits_in(queues: Iterable[str]) -> bool:
    """Return whether no entry waits in the queues.

    False while the workers are suspended, and if Redis does not answer.
    """
    try:
        with producer().pipeline(transaction=False) as pipe:
            pipe.exists(WORKERS_SUSPENDED)
            for name in queues:
                pipe.llen(f"{Queue.redis_queue_namespace_prefix}{name}")
            return not any(pipe.execute())
    except (RedisError, OSError):
        return False


def check_writes() -> None:
    """Write a key that expires at once; raises RedisError if Redis does not accept writes."""
    producer().set("medproc:check", 1, px=1)


def queues_served() -> frozenset[str]:
    """Return the queues that a live worker listens to; raises RedisError if Redis does not answer.

    A killed worker stays in the registry, but its own key expires; so only the keys count.
    """
    with producer().pipeline(transaction=False) as pipe:
        for name in QUEUES:
            pipe.smembers(WORKERS_BY_QUEUE_KEY % name)
        registered = dict(zip(QUEUES, pipe.execute(), strict=True))
        keys = sorted(set().union(*registered.values()))
        for key in keys:
            pipe.exists(key)
        alive = {key for key, there in zip(keys, pipe.execute(), strict=True) if there}
    return frozenset(name for name, workers in registered.items() if workers & alive)


@dataclass(frozen=True)
class WorkersBeside:
    """The other workers that listen to a queue."""

    alive: int
    idle: int
    """The live workers that can take an entry at once."""


def workers_beside(queue: str, name: str) -> WorkersBeside | None:
    """Count the workers of a queue beside the worker `name`; None if Redis does not answer.

    A killed worker sends no heartbeat, so only recent heartbeats count.
    """
    try:
        keys = producer().smembers(WORKERS_BY_QUEUE_KEY % queue)
        others = sorted(key for key in map(as_text, keys) if key.rpartition(":")[2] != name)
        with producer().pipeline(transaction=False) as pipe:
            for key in others:
                pipe.hmget(key, "state", "last_heartbeat")
            answers = pipe.execute()
    except (RedisError, OSError):
        return None
    alive = idle = 0
    for state, beat in answers:
        silent_s = (now() - utcparse(beat.decode())).total_seconds() if beat else math.inf
        alive += silent_s < SILENT_S
        idle += silent_s < IDLE_SILENT_S and state == WorkerStatus.IDLE.encode()
    return WorkersBeside(alive=alive, idle=idle)


def suspend(seconds: int | None = None) -> None:
    """Let no worker take an entry, for so many seconds or until `resume`.

    One command with its expiry: a death in between would leave a suspension without an end.
    Raises RedisError if Redis does not answer.
    """
    producer().set(WORKERS_SUSPENDED, 1, ex=seconds)


def resume() -> bool:
    """End a suspension; return whether there was one. Raises RedisError."""
    return bool(producer().delete(WORKERS_SUSPENDED))


def suspended() -> bool:
    """Return whether the workers are suspended; raises RedisError if Redis does not answer."""
    return bool(producer().exists(WORKERS_SUSPENDED))


def is_first_to_say(what: str, every_s: int = 60) -> bool:
    """Return whether no process has logged this in the last seconds; True without Redis."""
    try:
        return bool(producer().set(f"medproc:said:{what}", 1, nx=True, ex=every_s))
    except (RedisError, OSError):
        return True


def _call(queue: str) -> tuple[str, list[str]]:
    """Return the function of the entries of a queue, and its arguments."""
    if queue in settings.SIDE_QUEUES:
        return settings.SIDE_QUEUES[queue], []
    return StepEntry.entry_point, [queue]


_MAKING = Lock()


def producer() -> Redis:
    """Return this process's client for short commands: limited in time, and repeated once."""
    # Without the lock, two threads could make two clients. Only one is kept, and the end of the
    # other closes the connection that its thread still uses. Later calls take no lock, so that a
    # fork never inherits a held one.
    if _client.cache_info().currsize:
        return _client()
    with _MAKING:
        return _client()


@cache
def _client() -> Redis:
    client: Redis = get_connection(QUEUES[0])
    client.connection_pool.connection_kwargs.update(
        socket_timeout=ENQUEUE_TIMEOUT_S, socket_connect_timeout=ENQUEUE_TIMEOUT_S
    )
    client.set_retry(Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.2), 1))
    return client


def worker_connection() -> Redis:
    """Return a new client for one worker, which blocks in it; RQ sets its socket timeout."""
    client: Redis = get_connection(QUEUES[0])
    client.set_retry(Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.2), 1))
    return client
