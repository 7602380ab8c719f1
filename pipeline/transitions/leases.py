"""The ownership of jobs: claim, fence, renewal, and the early end of a dead horse's lease.

The clock of the database decides: `clock_timestamp()`, never `now()`, which does not advance within
a transaction. Each claim increases `lease_gen`, and every write of a step carries this number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from medproc.timing import scaled
from pipeline.core.errors import LeaseLostError
from pipeline.core.states import WORKFLOW_STEP, Step
from pipeline.core.types import ProviderModel
from pipeline.transitions.claim_order import (
    BEST_HUNG,
    BEST_PROBE,
    BEST_WAITING,
    FIRST_WAITING,
    HUNG_RUNNING,
    parameters,
)
from pipeline.transitions.history import HUNG, as_json, noted_sql
from pipeline.transitions.holds import hold_on, park_waiting
from pipeline.transitions.in_flight import requeue_in_flight
from pipeline.transitions.record_batches import is_over_full

HUNG_CLAIM_LOCK = 0x6D65_6463_6C61
"""The key of the advisory lock under which claims of jobs that hung follow each other."""
LOOKS = 20
"""Attempts of one claim while other workers take the work that it saw; a few ms each."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to write for one step of one job, as long as `gen` is the row's `lease_gen`."""

    job_id: UUID
    shell_file_id: UUID
    session_id: UUID
    step: Step
    gen: int
    worker_id: str
    record_batch_id: UUID | None = None

    def log_context(self) -> dict[str, str | int]:
        """Return the ids for log lines; free of PHI."""
        return {"job": str(self.job_id), "step": self.step.value, "lease_gen": self.gen}


# `best` is BEST_WAITING, BEST_HUNG or BEST_PROBE, which locks the row. The row keeps its
# `incident_id` as the mark of a probe. `s` supplies the session's id, so that a claim needs no
# second statement.
_CLAIM = """
UPDATE job_queue j SET
  status = 'processing', lease_gen = j.lease_gen + 1, worker_id = %(worker)s,
  heartbeat_at = clock_timestamp(),
  lease_expires_at = clock_timestamp() + make_interval(secs => %(lease)s),
  step_started_at = clock_timestamp(),
  step_deadline_at = clock_timestamp() + make_interval(secs => %(deadline)s),
  started_at = coalesce(j.started_at, clock_timestamp()),
  parked_until = NULL, park_reason = NULL, completed_at = NULL, error_code = NULL,
  preempted_at = NULL, updated_at = clock_timestamp()
FROM ai_processing_sessions s
WHERE s.shell_file_id = j.shell_file_id AND j.status = 'pending' AND j.id = ({best})
RETURNING j.id, j.shell_file_id, s.id, j.lease_gen, j.record_batch_id, j.hung_at IS NOT NULL
"""

_BEGIN = """
WITH summary AS (
  UPDATE ai_processing_summary
  SET processing_started_at = coalesce(processing_started_at, clock_timestamp()),
    processing_completed_at = NULL
  WHERE shell_file_id = %(shell_file)s
)
UPDATE ai_processing_sessions SET session_status = 'processing', workflow_step = %(workflow)s,
  processing_started_at = CASE WHEN session_status = 'initiated' THEN clock_timestamp()
    ELSE processing_started_at END,
  {pass_column} processing_completed_at = NULL, total_processing_time = NULL,
  updated_at = clock_timestamp()
WHERE id = %(session)s
"""


def claim(
    step: Step,
    worker_id: str,
    serving: ProviderModel | None = None,
    others: Sequence[str] = (),
    has_room: Callable[[Step], bool] = lambda _: True,
) -> Lease | None:
    """Claim the best waiting job of a step, in the order of `claim_order`; None if none waits.

    In the same transaction the `processing` encounters, batches and chunks of the job go back to
    `pending` (requirement 24). If a pause or an incident holds the queue, or the provider and model
    in `serving`, the best job is parked instead; only the incident's own probe is claimed.

    If nothing of this step can be claimed, `others` are tried in their order. This is necessary
    because a preempted job sends one wake-up, and the smaller job may wait in another pass.

    A job whose step hung before is claimed last and one at a time, and only if `has_room` says that
    the pass has another worker to spare, however long the job waits.
    """
    for _ in range(LOOKS):
        lease = _claim(step, worker_id, serving)
        if lease is not None:
            return lease
        left, is_hung = _first_waiting(step, others)
        if left is None:
            return None
        if is_hung:
            return _claim(left, worker_id, serving, BEST_HUNG) if has_room(left) else None
        if left is not step:
            lease = _claim(left, worker_id, serving)
        if lease is not None or _is_held(left, serving):
            return lease
        # Another worker is claiming the job that we just saw. Afterwards the job that was preempted
        # for it becomes claimable. So look again; otherwise this wake-up would be lost.
    return None


def _first_waiting(step: Step, others: Sequence[str]) -> tuple[Step | None, bool]:
    """Return the first pass with a claimable job: one of `others`, or else the step itself.

    The second value is True if only jobs that hung wait.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIRST_WAITING, {**parameters(step), "steps": [*others, step.value]})
        row = cursor.fetchone()
    return (None, False) if row is None else (Step(row[0]), row[1])


def _is_held(step: Step, serving: ProviderModel | None) -> bool:
    with connection.cursor() as cursor:
        return hold_on(cursor, step, serving) is not None


def _claim(
    step: Step, worker_id: str, serving: ProviderModel | None, best: str = BEST_WAITING
) -> Lease | None:
    while True:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                return _take(cursor, step, worker_id, serving, best)
        except _PlaceTakenError:
            # Another worker took the last place at the same moment; the next attempt sees that.
            continue


class _PlaceTakenError(Exception):
    """The claimed job exceeds a limit: the claim is rolled back.

    Its record batch is full, or another job that hung runs in the same passes.
    """


def _take(
    cursor: CursorWrapper, step: Step, worker_id: str, serving: ProviderModel | None, best: str
) -> Lease | None:
    hold = hold_on(cursor, step, serving)
    if hold is not None and hold.incident_id is None:
        park_waiting(cursor, step, hold)
        return None
    cursor.execute(
        _CLAIM.format(best=BEST_PROBE if hold else best),
        {
            **parameters(step),
            "worker": worker_id,
            "lease": scaled(settings.LEASE_S),
            "deadline": scaled(settings.STEP_DEADLINE_MIN_S),
            "probe_of": hold.incident_id if hold else None,
        },
    )
    row = cursor.fetchone()
    if row is None:
        if hold is not None:
            park_waiting(cursor, step, hold)
        return None
    lease = Lease(
        job_id=row[0],
        shell_file_id=row[1],
        session_id=row[2],
        step=step,
        gen=row[3],
        worker_id=worker_id,
        record_batch_id=row[4],
    )
    column = "" if step is Step.PAGES else f"{step.value}_status = 'processing',"
    # A safety net: recovery, parking and interruption have returned the work in flight already.
    # Committed results stay, failures too, because only a retry grants new attempts.
    requeue_in_flight([lease.session_id])
    cursor.execute(
        _BEGIN.format(pass_column=column),
        {
            "session": lease.session_id,
            "shell_file": lease.shell_file_id,
            "workflow": WORKFLOW_STEP[step].value,
        },
    )
    if lease.record_batch_id is not None and is_over_full(cursor, lease.record_batch_id):
        raise _PlaceTakenError
    if row[5] and hold is None and _is_second_hung(cursor, step):
        raise _PlaceTakenError
    return lease


def _is_second_hung(cursor: CursorWrapper, step: Step) -> bool:
    """Return whether two jobs that hung run in the same passes, including this transaction's claim.

    The lock lasts until the commit, so that of two simultaneous claims the second sees the first.
    """
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [HUNG_CLAIM_LOCK])
    cursor.execute(HUNG_RUNNING, parameters(step))
    (running,) = cursor.fetchone()
    return bool(running > 1)


@contextmanager
def fenced(lease: Lease) -> Iterator[None]:
    """Open the transaction of one flush; its first statement is the fence.

    The fence locks the job's row, so that no claim or recovery can take the job before the commit.
    NO KEY, so that inserts of rows that reference the job do not wait. Raises LeaseLostError, with
    nothing written, if another worker has the job by now.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM job_queue WHERE id = %s AND lease_gen = %s"
                " AND status = 'processing' FOR NO KEY UPDATE",
                [lease.job_id, lease.gen],
            )
            if cursor.fetchone() is None:
                raise LeaseLostError("the lease of this step was taken; nothing more is written")
        yield


def renew_lease(lease: Lease, deadline_left_s: float) -> bool:
    """Renew the lease; return whether an operator wants the job cancelled.

    Stores the time at which the step's deadline ends, for the console: the step itself keeps to its
    `StepDeadline`. Raises LeaseLostError where the lease ran out or was taken.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE job_queue SET heartbeat_at = clock_timestamp(),"
            " lease_expires_at = clock_timestamp() + make_interval(secs => %s),"
            " step_deadline_at = clock_timestamp() + make_interval(secs => %s)"
            " WHERE id = %s AND lease_gen = %s AND status = 'processing'"
            " AND lease_expires_at > clock_timestamp() RETURNING cancel_requested_at IS NOT NULL",
            [scaled(settings.LEASE_S), deadline_left_s, lease.job_id, lease.gen],
        )
        row = cursor.fetchone()
        if row is None:
            raise LeaseLostError("the lease of this step ran out; nothing more is written")
        return bool(row[0])


def expire_leases(worker_id: str) -> int:
    """Expire the leases of a worker's horse whose death the system has reported; count them.

    This is safe without waiting for the lease: a worker's name is unique per start, a worker has
    one horse at a time, and a dead horse cannot write any more.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE job_queue SET lease_expires_at = clock_timestamp()"
            " WHERE worker_id = %s AND status = 'processing'"
            " AND lease_expires_at > clock_timestamp()",
            [worker_id],
        )
        return int(cursor.rowcount)


# The job may have been recovered, and even claimed again, before its worker notes the hang. The
# hang counts all the same, and only the lease of this horse is expired.
_MARK_HUNG = f"""
UPDATE job_queue j SET hung_at = clock_timestamp(),
  lease_expires_at = CASE WHEN j.lease_gen = %(gen)s AND j.status = 'processing'
    THEN least(j.lease_expires_at, clock_timestamp()) ELSE j.lease_expires_at END,
  error_details = {noted_sql("j.error_details", "%(entry)s")},
  updated_at = clock_timestamp()
WHERE j.id = %(job)s AND j.status IN ('processing', 'pending', 'parked')
"""  # noqa: S608 - constants of ours, values are parameters


def mark_hung(job_id: UUID, gen: int, worker_id: str) -> bool:
    """Note that a horse hung, and expire its lease; return whether the job has not ended.

    Call this after the horse was killed. The recovery counts the crash.
    """
    entry = {"event": HUNG, "worker_id": worker_id, "lease_gen": gen}
    with connection.cursor() as cursor:
        cursor.execute(_MARK_HUNG, {"job": job_id, "gen": gen, "entry": as_json(entry)})
        return bool(cursor.rowcount)
