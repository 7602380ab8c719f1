"""The places of a record batch: a job that leaves its place wakes a record that waits for one.

A wake-up that meets a full batch is spent. So each job that leaves a place sends one wake-up per
pass of the waiting records, unless the queue of the pass has enough of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db import transaction
from redis.exceptions import RedisError

from pipeline.queueing.queues import enqueue_steps, queue_depths
from pipeline.transitions import next_of_record_batch
from pipeline.transitions.rollup import Leaving, settle

Place = tuple[UUID, UUID]
"""A record batch, and the job that leaves its place in the batch."""


def settle_and_wake(leaving: Sequence[Leaving]) -> None:
    """Settle jobs that leave their worker, and wake the jobs that waited for them."""
    enqueue_steps(settle(leaving))
    give_on(places_of(leaving))


def places_of(leaving: Iterable[Leaving]) -> list[Place]:
    """Return the places that jobs leave."""
    return [
        (each.record_batch_id, each.job_id) for each in leaving if each.record_batch_id is not None
    ]


def give_on(places: Sequence[Place]) -> None:
    """Wake the records that can take these places, after the transaction commits.

    Before the commit, a claim can still see the batch full and spend its wake-up, without a row
    that this look would find. A failure is logged; the reconciler then sends the wake-ups.
    """
    if places:
        transaction.on_commit(lambda: _wake(places), robust=True)


def _wake(places: Sequence[Place]) -> None:
    found = [each for batch, job in places for each in next_of_record_batch(batch, but=job)]
    try:
        depths = queue_depths({each.due.step.value for each in found})
    except (RedisError, OSError):
        return
    # A queue with an entry per waiting row needs no more: one of its workers looks at each row.
    enqueue_steps(each.due for each in found if depths[each.due.step.value] < each.waiting)
