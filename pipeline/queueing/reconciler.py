"""The reconciler: makes rows and wake-ups agree again, with a limited amount of work per tick.

The row is the truth. Expired leases come first, also without Redis; a later tick then sends the
wake-ups. A worker that sees its horse die expires the lease at once (`leases.expire_leases`). Then
the wake-ups are matched with the waiting rows. A tick leaves no state and no lock behind.

A tick costs the same for any number of waiting rows, because a wake-up is for a pass and not for a
row: while a pass has as many wake-ups as one tick can send, no row of the pass needs another one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction
from redis.exceptions import RedisError

from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.labels import counted
from pipeline.core.server_faults import explain
from pipeline.core.types import Due
from pipeline.queueing import rq_registries
from pipeline.queueing.queues import enqueue_steps, entry_id
from pipeline.queueing.record_places import Place, give_on, places_of
from pipeline.queueing.rq_registries import Waiting
from pipeline.transitions import Recovered
from pipeline.transitions.recovery import TAKE_LIMIT
from pipeline.transitions.rollup import Leaving, settle

logger = logging.getLogger(__name__)

TAKE_ROUNDS = 10
"""Transactions per tick: 1,000 expired leases; the next tick takes the rest."""
WAKE_GRACE_S = 5.0
"""The wake-up of a row that is claimable for a shorter time is still on its way."""
WAKE_LIMIT = 1_000
"""Wake-ups per tick."""
ROWS_LIMIT = rq_registries.LOOK_LIMIT
"""Waiting rows of each pass that one tick reads: as many as entries of its queue."""


@dataclass(frozen=True, kw_only=True)
class ReconcilerTick:
    """The result of one tick of the reconciler."""

    recovered: int = 0
    """Jobs with an expired lease that were requeued, or cancelled as requested."""
    dead_lettered: int = 0
    """Jobs that became dead through their last crash."""
    released: int = 0
    """Parked jobs whose time had come."""
    woken: int = 0
    """Waiting jobs that had no wake-up."""
    removed: int = 0
    """Queue entries that belonged to no waiting job."""
    cleaned: int = 0
    """Entries of RQ's registries whose worker is gone."""
    redis_away: bool = False
    """Whether Redis did not answer; the next tick checks the wake-ups then."""

    @property
    def changed(self) -> bool:
        """Whether the tick changed anything."""
        done = (
            self.recovered,
            self.dead_lettered,
            self.released,
            self.woken,
            self.removed,
            self.cleaned,
        )
        return self.redis_away or any(done)

    @property
    def summary(self) -> str:
        """The tick in one line."""
        away = ", Redis is away" if self.redis_away else ""
        return (
            f"{self.recovered} recovered, {self.dead_lettered} dead, {self.released} released,"
            f" {self.woken} woken, {self.removed + self.cleaned} entries removed{away}"
        )


@dataclass(frozen=True)
class _PendingJob:
    job_id: UUID
    step: str
    dispatch_no: int
    record_batch_id: UUID | None
    is_old: bool
    """Claimable and unchanged for longer than a wake-up needs. A younger row may just have been
    woken by another reconciler."""

    @property
    def entry(self) -> str:
        return entry_id(self.job_id, self.step, self.dispatch_no)


# The first waiting rows of each pass, in the order of the claim: its index serves this order, so
# that the rows beyond the limit and the ended jobs are not touched. updated_at counts too: a row
# that was changed a moment ago has its wake-up on the way.
_WAITING = """
SELECT w.id, w.current_step, w.dispatch_no, w.record_batch_id,
  greatest(w.available_at, w.updated_at) <= clock_timestamp() - make_interval(secs => %(grace)s)
FROM unnest(%(steps)s::text[]) AS s (step), LATERAL (
  SELECT id, current_step, dispatch_no, record_batch_id, available_at, updated_at, created_at
  FROM job_queue
  WHERE status = 'pending' AND current_step = s.step AND available_at <= clock_timestamp()
  ORDER BY size_class, priority DESC, available_at LIMIT %(limit)s
) w
ORDER BY w.created_at, w.id
"""


_CROWDED = """
SELECT s.step FROM unnest(%(steps)s::text[]) AS s (step), LATERAL (
  SELECT count(*) AS rows FROM (
    SELECT FROM job_queue
    WHERE status = 'pending' AND current_step = s.step AND available_at <= clock_timestamp()
    ORDER BY size_class, priority DESC, available_at LIMIT %(limit)s
  ) first
) found WHERE found.rows >= %(limit)s
"""


def recover_expired(job_id: UUID | None = None) -> list[Recovered]:
    """Recover one job, or all jobs, with an expired lease, and wake a worker for each of them."""
    found: list[Recovered] = []
    due: list[Due] = []
    places: list[Place] = []
    for _ in range(TAKE_ROUNDS):
        with transaction.atomic():
            taken = transitions.take_expired(job_id=job_id)
            due += [each.due for each in taken if each.due is not None]
            leaving = [_leaving(each) for each in taken if each.due is None]
            due += settle(leaving)
            places += places_of(leaving)
        for each in taken:
            _log_recovered(each)
        found += taken
        if len(taken) < TAKE_LIMIT:
            break
    # Once, and after all row locks are released: a Redis that hangs costs seconds per queue.
    enqueue_steps(due)
    give_on(places)
    return found


def _leaving(each: Recovered) -> Leaving:
    how = f"dead after {each.crashes} crashes" if each.is_dead else "cancelled"
    return Leaving.by(each.lease, f"{each.lease.step}: {how}", has_ended=True)


def match_wakeups() -> ReconcilerTick:
    """Wake waiting jobs without a wake-up, and remove wake-ups without a job; oldest first.

    A wake-up is for a pass, not for a row. So only the numbers per pass have to match: a job that
    merely waits never gets a second wake-up. After a tick, each pass has as many wake-ups as rows,
    or at least `ROWS_LIMIT`. So the wake-ups of a pass never run out while rows wait.
    """
    try:
        seen = rq_registries.look()
        crowded = _crowded(q for q, waiting in seen.items() if len(waiting.entries) >= ROWS_LIMIT)
        rows = _waiting(seen.keys() - crowded)
        free = transitions.free_places({row.record_batch_id for row in rows if row.record_batch_id})
        wake: list[_PendingJob] = []
        surplus: dict[str, int] = {}
        for queue, waiting in seen.items():
            if queue in crowded:
                continue
            of_queue = [row for row in rows if row.step == queue]
            lacking = _lacking(_claimable(of_queue, free), waiting)
            wake += lacking
            if len(waiting.entries) > len(of_queue) and len(of_queue) < ROWS_LIMIT:
                surplus[queue] = len(of_queue)
        removed = rq_registries.remove({q: w.broken for q, w in seen.items() if w.broken})
        removed += _remove_surplus(surplus, seen, rows)
        woken = _wake(wake)
        cleaned = rq_registries.clean()
    except (RedisError, OSError) as error:
        logger.warning(
            "wake-ups cannot be checked: %s", explain(error), extra={"action": "redis_away"}
        )
        return ReconcilerTick(redis_away=True)
    return ReconcilerTick(woken=woken, removed=removed, cleaned=cleaned)


def _crowded(full: Iterable[str]) -> frozenset[str]:
    """Return the passes, among those with a full queue, that have as many waiting rows.

    Such a pass lacks no wake-up and has none to spare, so its rows are not read.
    """
    steps = list(full)
    if not steps:
        return frozenset()
    with connection.cursor() as cursor:
        cursor.execute(_CROWDED, {"steps": steps, "limit": ROWS_LIMIT})
        return frozenset(step for (step,) in cursor.fetchall())


def _waiting(queues: Iterable[str]) -> list[_PendingJob]:
    with connection.cursor() as cursor:
        cursor.execute(
            _WAITING,
            {"grace": scaled(WAKE_GRACE_S), "limit": ROWS_LIMIT, "steps": list(queues)},
        )
        return [_PendingJob(*row) for row in cursor.fetchall()]


def _claimable(rows: Sequence[_PendingJob], free: Mapping[UUID, int]) -> list[_PendingJob]:
    """Return the rows without those that only wait for a place in their record batch.

    The wake-ups of such rows were spent while the batch was full, and a job that leaves its place
    sends new ones (`record_places`).
    """
    left = dict(free)
    found = []
    for row in rows:
        if row.record_batch_id is not None:
            places = left.get(row.record_batch_id, 0)
            if places <= 0:
                continue
            left[row.record_batch_id] = places - 1
        found.append(row)
    return found


def _lacking(rows: Sequence[_PendingJob], waiting: Waiting) -> list[_PendingJob]:
    """Return the rows to wake: as many as wake-ups are missing, the oldest rows without one.

    Entries beyond those that were read count as wake-ups. If they are broken, workers drop them at
    once, and the next tick sees a short queue.
    """
    entries = set(waiting.entries)
    young = sum(row.entry in entries for row in rows if not row.is_old)
    old = [row for row in rows if row.is_old]
    beyond = max(0, waiting.count - rq_registries.LOOK_LIMIT)
    missing = len(old) - (len(waiting.entries) + beyond - young)
    return [row for row in old if row.entry not in entries][: max(0, missing)]


def _wake(rows: Sequence[_PendingJob]) -> int:
    chosen = rows[:WAKE_LIMIT]
    if not chosen:
        return 0
    with transaction.atomic():
        due = transitions.redispatch([(row.job_id, row.dispatch_no) for row in chosen])
        enqueue_steps(due)
    logger.info("%s woken again", counted(len(due), "job"), extra={"action": "jobs_woken"})
    return len(due)


def _remove_surplus(
    surplus: dict[str, int], seen: dict[str, Waiting], rows: Sequence[_PendingJob]
) -> int:
    """Remove the wake-ups beyond the number of rows of their pass; they would find no job.

    Only entries that were queued both before and after the rows were read are counted. An entry
    that a worker popped in between belongs to a row that the worker has not claimed yet.
    """
    if not surplus:
        return 0
    again = rq_registries.look(surplus)
    wanted = {row.entry for row in rows}
    chosen: dict[str, list[str]] = {}
    for queue, needed in surplus.items():
        before = set(seen[queue].entries)
        both = [entry for entry in again[queue].entries if entry in before]
        idle = [entry for entry in both if entry not in wanted]
        more = max(0, len(both) - needed)
        chosen[queue] = idle[:more][:WAKE_LIMIT]
    return rq_registries.remove(chosen)


def _log_recovered(each: Recovered) -> None:
    log = logger.error if each.is_dead else logger.warning
    log(
        "%s job=%s step=%s worker=%s old_lease_gen=%s crash=%s last heartbeat %s",
        "job_dead" if each.is_dead else "job_recovered",
        each.lease.job_id,
        each.lease.step.value,
        each.lease.worker_id,
        each.lease.gen - 1,
        each.crashes,
        each.heartbeat_at.isoformat(timespec="seconds") if each.heartbeat_at else "never",
        extra={
            "action": "job_dead" if each.is_dead else "job_recovered",
            **each.lease.log_context(),
        },
    )
