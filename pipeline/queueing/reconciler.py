"""The reconciler: makes rows and wake-ups agree again, a bounded piece at each tick.

Imports transitions, rollup, queues and registries. The row is the truth: expired leases are put
back first, which needs PostgreSQL alone; then waiting rows without a wake-up are woken, and
wake-ups without a row removed. It keeps nothing between two ticks and holds no lock.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction
from redis.exceptions import RedisError

from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.labels import counted
from pipeline.core.types import Due
from pipeline.queueing import rq_registries
from pipeline.queueing.queues import enqueue_steps, entry_id
from pipeline.queueing.rq_registries import Waiting
from pipeline.transitions import Recovered
from pipeline.transitions.recovery import TAKE_LIMIT
from pipeline.transitions.rollup import Leaving, settle

logger = logging.getLogger(__name__)

TAKE_ROUNDS = 10
"""Transactions of one tick: 1,000 expired leases; the next tick takes the rest."""
WAKE_GRACE_S = 5.0
"""A row that has been due for less has its wake-up on the way."""
WAKE_LIMIT = 1_000
"""Wake-ups of one tick."""
ROWS_LIMIT = 20_000
"""Waiting rows that one look reads, oldest first."""


@dataclass(frozen=True, kw_only=True)
class Tick:
    """What one tick of the reconciler did."""

    recovered: int = 0
    """Jobs taken from a worker that was gone, and back in line, or cancelled as was asked."""
    dead_lettered: int = 0
    """Jobs that are dead after their last crash."""
    released: int = 0
    """Parked jobs whose time had come."""
    woken: int = 0
    """Waiting jobs that had no wake-up."""
    removed: int = 0
    """Entries of queues that stood for no waiting job."""
    cleaned: int = 0
    """Entries of RQ's registries that nobody stood behind."""
    redis_away: bool = False
    """Whether wake-ups could not be looked at; the next tick makes up for it."""

    @property
    def changed(self) -> bool:
        """Whether there was anything to do."""
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
    def said(self) -> str:
        """The tick in a line."""
        away = ", Redis is away" if self.redis_away else ""
        return (
            f"{self.recovered} recovered, {self.dead_lettered} dead, {self.released} released,"
            f" {self.woken} woken, {self.removed + self.cleaned} entries removed{away}"
        )


@dataclass(frozen=True)
class _Row:
    job_id: UUID
    step: str
    dispatch_no: int
    is_old: bool
    """Due, and as it is, for longer than its wake-up can be on the way: another reconciler may
    just have woken it."""

    @property
    def entry(self) -> str:
        return entry_id(self.job_id, self.step, self.dispatch_no)


_WAITING = """
SELECT id, current_step, dispatch_no,
  greatest(available_at, updated_at) <= clock_timestamp() - make_interval(secs => %(grace)s)
FROM job_queue WHERE status = 'pending' AND available_at <= clock_timestamp()
ORDER BY created_at, id LIMIT %(limit)s
"""


def recover_expired(job_id: UUID | None = None) -> list[Recovered]:
    """Put one job, or every one, back in line whose lease has run out, and wake a worker for it."""
    found: list[Recovered] = []
    due: list[Due] = []
    for _ in range(TAKE_ROUNDS):
        with transaction.atomic():
            taken = transitions.recover_expired(job_id=job_id)
            due += [each.due for each in taken if each.due is not None]
            due += settle([_leaving(each) for each in taken if each.due is None])
        for each in taken:
            _log_recovered(each)
        found += taken
        if len(taken) < TAKE_LIMIT:
            break
    # Once, and after all rows are free: a Redis that hangs costs seconds for each queue.
    enqueue_steps(due)
    return found


def _leaving(each: Recovered) -> Leaving:
    how = f"dead after {each.crashes} crashes" if each.is_dead else "cancelled"
    return Leaving.by(each.lease, f"{each.lease.step}: {how}", has_ended=True)


def match_wakeups() -> Tick:
    """Wake what waits without a wake-up, remove wake-ups that stand for nothing; oldest first.

    A wake-up is for a pass and not for a row, so what counts is that no pass has fewer of them than
    rows: a row that merely waits is never given a second one.
    """
    try:
        seen = rq_registries.look()
        rows = _waiting()
        wake: list[_Row] = []
        surplus: dict[str, int] = {}
        for queue, waiting in seen.items():
            of_queue = [row for row in rows if row.step == queue]
            lacking = _lacking(of_queue, waiting)
            wake += lacking
            if len(waiting.entries) > len(of_queue) and len(rows) < ROWS_LIMIT:
                surplus[queue] = len(of_queue)
        removed = rq_registries.remove({q: w.broken for q, w in seen.items() if w.broken})
        removed += _remove_surplus(surplus, seen, rows)
        woken = _wake(wake)
        cleaned = rq_registries.clean()
    except (RedisError, OSError) as error:
        logger.warning(
            "wake-ups are not looked at: %s", type(error).__name__, extra={"action": "redis_away"}
        )
        return Tick(redis_away=True)
    return Tick(woken=woken, removed=removed, cleaned=cleaned)


def _waiting() -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"grace": scaled(WAKE_GRACE_S), "limit": ROWS_LIMIT})
        return [_Row(*row) for row in cursor.fetchall()]


def _lacking(rows: Sequence[_Row], waiting: Waiting) -> list[_Row]:
    """Give the rows to wake: as many as wake-ups are missing, the oldest of those without one."""
    entries = set(waiting.entries)
    young = sum(row.entry in entries for row in rows if not row.is_old)
    old = [row for row in rows if row.is_old]
    beyond = max(0, waiting.count - rq_registries.LOOK_LIMIT)
    missing = len(old) - (len(waiting.entries) + beyond - young)
    return [row for row in old if row.entry not in entries][: max(0, missing)]


def _wake(rows: Sequence[_Row]) -> int:
    chosen = rows[:WAKE_LIMIT]
    if not chosen:
        return 0
    with transaction.atomic():
        due = transitions.redispatch([(row.job_id, row.dispatch_no) for row in chosen])
        enqueue_steps(due)
    logger.info("%s woken again", counted(len(due), "job"), extra={"action": "jobs_woken"})
    return len(due)


def _remove_surplus(surplus: dict[str, int], seen: dict[str, Waiting], rows: Sequence[_Row]) -> int:
    """Remove wake-ups that are more than the rows of their pass; each finds nothing to claim.

    Only what was in line before and after the rows were read: what a worker has popped meanwhile
    would count for a row that it has not yet claimed.
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
        "%s job=%s step=%s worker=%s lease_gen=%s crash=%s last heard of %s",
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
