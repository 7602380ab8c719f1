"""Retries of failed, cancelled and dead work: automatic after a delay, or by an operator.

Only failed work is reset, with new attempts and its history kept; succeeded work is never touched.
The guard is in the WHERE of the one UPDATE of the job, so of fifty simultaneous retries only one
has an effect. Lock order: job → encounter → batch.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from medproc.timing import scaled
from pipeline.core.errors import ERRORS, SAME_REPLY_CODES, ErrorCode
from pipeline.core.states import STATUS_BEFORE, Step
from pipeline.core.types import Due
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import ParentTable, WorkTable, composed
from pipeline.transitions.history import as_json, noted_sql
from pipeline.transitions.in_flight import requeue_in_flight
from pipeline.transitions.leases import Lease
from pipeline.transitions.metric_counts import CounterPart, add_counts
from pipeline.transitions.run_time import RUN_UNTIL_NOW
from pipeline.transitions.steps import Failure

WAITS_FOR_RETRY = (
    "j.status = 'parked' AND j.error_code IS NOT NULL"
    " AND j.incident_id IS NULL AND j.pause_id IS NULL"
)
"""A job that is parked for a retry. Only a failed job has `error_code`: a claim clears it."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The failed work of a job that gets new attempts; None does not narrow."""

    encounters: tuple[UUID, ...] | None = None
    """Ids of `healthcare_encounters`; narrows the work that belongs to one encounter."""
    items: tuple[UUID, ...] | None = None
    """Ids of work items of any pass. An item of a whole record is in a narrowed scope only by its
    id."""

    @property
    def is_all(self) -> bool:
        """Whether all failed work is included."""
        return self.encounters is None and self.items is None

    def holds(self, item: WorkItem) -> bool:
        """Return whether a failed work item is included."""
        if item.encounter_id is None:
            return self.is_all or item.id in (self.items or ())
        if self.encounters is not None and item.encounter_id not in self.encounters:
            return False
        return self.items is None or item.id in self.items


ALL = Scope()
NO_ITEMS = Scope(encounters=(), items=())
"""The job is retried, and no work item gets new attempts."""

# The guard decides whether the retry has an effect: its row lock makes a second retry wait, and
# PostgreSQL checks the guard again on the updated row. retry_count starts again only if all failed
# work is included; otherwise the excluded work would soon be retried automatically.
_RETRY = f"""
UPDATE job_queue j SET status = 'pending', dispatch_no = j.dispatch_no + 1,
  available_at = clock_timestamp(), crash_count = 0, dead_letter_at = NULL,
  retry_count = CASE WHEN %(is_all)s THEN 0 ELSE j.retry_count END,
  completed_at = NULL, error_code = NULL, parked_until = NULL, park_reason = NULL,
  incident_id = NULL, pause_id = NULL, cancel_requested_at = NULL,
  error_details = {noted_sql("j.error_details", "%(entry)s")},
  updated_at = clock_timestamp()
WHERE j.id = %(job)s AND {{guard}}
RETURNING j.current_step, j.dispatch_no, j.shell_file_id
"""  # noqa: S608 - constants of ours, values are parameters
_DETAILS = "(coalesce(j.error_details, '{}') || %(details)s::jsonb)"
# Only for the holder of the lease (lease_gen), and only while retries are left. The cast of the
# scale is necessary, because PostgreSQL cannot infer a parameter's type beside an interval. `%%`
# is an escaped percent sign.
_PARK = f"""
UPDATE job_queue j SET status = 'parked', retry_count = j.retry_count + 1,
  parked_until = clock_timestamp() + j.retry_delay * %(scale)s::float8,
  park_reason = format('retry %%s of %%s after %%s', j.retry_count + 1, j.max_retries,
    %(cause)s::text),
  last_error = %(message)s, error_code = %(code)s,
  error_details = {noted_sql(_DETAILS, "%(entry)s")},
  incident_id = NULL, pause_id = NULL, worker_id = NULL, lease_expires_at = NULL,
  step_deadline_at = NULL, {RUN_UNTIL_NOW}, updated_at = clock_timestamp()
WHERE j.id = %(job)s AND j.lease_gen = %(gen)s AND j.status = 'processing'
  AND j.retry_count < j.max_retries
"""  # noqa: S608 - constants of ours, values are parameters
_HAS_FAILED = f"(j.status IN ('failed', 'cancelled') OR ({WAITS_FOR_RETRY}))"
_IS_DEAD = "j.status = 'dead'"
# max_attempts grants new attempts on top of attempt_count, so that calls and history keep theirs.
_AGAIN = """status = 'pending', max_attempts = w.attempt_count + %(granted)s,
    rate_limit_waits = 0, started_at = NULL, completed_at = NULL, duration_ms = NULL,
    error_code = NULL, error_message = NULL, error_context = NULL"""


def _meant(table: WorkTable) -> str:
    """Return the SQL of `Scope.holds` for a row `w`."""
    items = "%(items)s::uuid[]"
    if table.encounter is None:
        return f"((%(encounters)s::uuid[] IS NULL AND {items} IS NULL) OR w.id = ANY({items}))"
    # An item of the whole record has no encounter; only its own id puts it in a narrowed scope.
    column = f"w.{table.encounter}_id"
    return (
        f"({_of_encounters(column)} OR ({column} IS NULL AND {items} IS NOT NULL))"
        f" AND ({items} IS NULL OR w.id = ANY({items}))"
    )


def _of_encounters(column: str) -> str:
    encounters = "%(encounters)s::uuid[]"
    return f"({encounters} IS NULL OR {column} = ANY({encounters}))"


def _item_has_failed(table: WorkTable) -> str:
    """Return a condition about a job `j`: an included item has failed."""
    if parent := table.encounter_parent:
        # A parent can fail without a failed item, if its replies could not be published.
        return f"""EXISTS (
  SELECT 1 FROM {parent.table} r
  WHERE r.shell_file_id = j.shell_file_id AND r.status = 'failed'
    AND {_of_encounters(f"r.{parent.encounter}_id")}
    AND (%(items)s::uuid[] IS NULL OR EXISTS (
      SELECT 1 FROM {table.table} w WHERE w.{parent.field}_id = r.id
        AND w.status = 'failed' AND w.id = ANY(%(items)s::uuid[]))))"""  # noqa: S608 - names come from the models
    return f"""EXISTS (
  SELECT 1 FROM {table.table} w JOIN {table.owner._meta.db_table} o
    ON o.id = w.{table.owner_field}_id
  WHERE o.shell_file_id = j.shell_file_id AND w.status = 'failed' AND {_meant(table)})"""  # noqa: S608 - names come from the models


@composed
def _narrowed_sql(tables: Sequence[WorkTable]) -> str:
    """Compose the guard of a narrowed retry: the job and an included item have failed."""
    return f"j.status = 'failed' AND ({' OR '.join(map(_item_has_failed, tables))})"


@composed
def _reset_sql(tables: Sequence[WorkTable]) -> str:
    """Compose the reset of failed work: parents, items, and the session's count of retries."""
    resets = {}
    for table in tables:
        if table.parent:
            resets[f"{table.step}_parents"] = _parents_reset(table.parent)
        cleared = "".join(f", {column} = NULL" for column in table.error_columns)
        resets[f"{table.step}_items"] = f"""
  UPDATE {table.table} w SET {_AGAIN}{cleared}
  FROM {table.owner._meta.db_table} o
  WHERE o.id = w.{table.owner_field}_id AND o.shell_file_id = %(shell_file)s
    AND w.status = 'failed' AND {_meant(table)}"""  # noqa: S608 - names come from the models, values are parameters
    steps = ",\n".join(f"{name} AS ({update}\n)" for name, update in resets.items())
    return f"""
WITH {steps}
UPDATE ai_processing_sessions SET retry_count = retry_count + 1, updated_at = clock_timestamp()
WHERE shell_file_id = %(shell_file)s
"""  # noqa: S608 - names come from the models, values are parameters


def _parents_reset(parent: ParentTable) -> str:
    meant = f" AND {_of_encounters(f'r.{parent.encounter}_id')}" if parent.encounter else ""
    return f"""
  UPDATE {parent.table} r SET status = 'pending', {parent.reset}
  WHERE r.shell_file_id = %(shell_file)s AND r.status = 'failed'{meant}"""  # noqa: S608 - names come from the models, values are parameters


# `summary` is a data-modifying CTE, so that summary and session change in one statement.
_REOPEN = """
WITH summary AS (
  UPDATE ai_processing_summary SET processing_status = %(reached)s, failure_stage = NULL,
    failure_encounter_id = NULL, failure_batch_index = NULL, error_code = NULL,
    error_drill_down = NULL, processing_completed_at = NULL
  WHERE shell_file_id = %(shell_file)s
)
UPDATE ai_processing_sessions SET session_status = 'processing', {pass_column}
  failure_pass = NULL, failure_encounter_id = NULL, error_code = NULL, error_message = NULL,
  error_context = NULL, processing_completed_at = NULL, total_processing_time = NULL,
  updated_at = clock_timestamp()
WHERE shell_file_id = %(shell_file)s
"""


def worth_retrying(failure: Failure) -> Scope | None:
    """Return the work that an automatic retry could repair; None if it could repair none.

    An encounter counts as a whole, because one hopeless batch would fail it again. A cause is
    judged by `job_retryable` in the error table; for MAX_RETRIES_EXCEEDED and DEADLINE_EXCEEDED the
    underlying cause counts. The same unusable reply twice is not retryable.
    """
    if not failure.drill_down:
        return NO_ITEMS if _is_retryable(failure.code, failure.underlying) else None
    is_retryable: defaultdict[str | None, bool] = defaultdict(lambda: True)
    for entry in failure.drill_down:
        one = _is_retryable(entry["error_code"], entry.get("underlying_error"))
        is_retryable[entry.get("encounter_id")] &= one
    if not any(is_retryable.values()):
        return None
    if None in is_retryable:
        return ALL
    return Scope(encounters=tuple(UUID(id_) for id_, ok in is_retryable.items() if id_ and ok))


def retry_later(lease: Lease, failure: Failure) -> bool:
    """Park a failed step for its next retry, inside the fence; return False if it fails for good.

    The step fails for good if its retries are used up, or if its cause is permanent.
    """
    scope = worth_retrying(failure)
    if scope is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            _PARK,
            {
                "job": lease.job_id,
                "gen": lease.gen,
                "scale": scaled(1.0),
                "cause": failure.underlying or failure.code,
                "message": failure.message,
                "code": failure.code,
                "details": json.dumps(failure.details(lease.step)),
                "entry": as_json({"event": "retried by itself", **failure.noted(lease.step)}),
            },
        )
        if cursor.rowcount != 1:
            return False
        requeue_in_flight([lease.session_id])
        _reset(cursor, lease.shell_file_id, scope)
    _count(lease.step, "medproc")
    return True


def retry_job(
    job_id: UUID,
    scope: Scope = ALL,
    *,
    dead: bool = False,
    entry: Mapping[str, Any],
) -> Due | None:
    """Requeue a failed or cancelled job, or with `dead` a dead job; return the due wake-up.

    Returns None if the job is no longer in such a state, or if nothing in the scope has failed. The
    job gets a new budget of crashes. It gets a new budget of retries only if all failed work is
    included. `entry` joins its history.
    """
    guard = _IS_DEAD if dead else _HAS_FAILED
    if not scope.is_all:
        guard = _narrowed_sql()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            _RETRY.replace("{guard}", guard),
            {
                "job": job_id,
                "entry": as_json(entry),
                "is_all": scope.is_all,
                **_scope(scope),
            },
        )
        row = cursor.fetchone()
        if row is None:
            return None
        step, dispatch_no, shell_file_id = Step(row[0]), row[1], row[2]
        column = "" if step is Step.PAGES else f"{step.value}_status = 'pending',"
        cursor.execute(
            _REOPEN.format(pass_column=column),
            {"shell_file": shell_file_id, "reached": STATUS_BEFORE[step].value},
        )
        _reset(cursor, shell_file_id, scope)
        _count(step, "operator")
    return Due(job_id=job_id, step=step, dispatch_no=dispatch_no)


def _count(step: Step, by: str) -> None:
    add_counts([CounterPart(name="retries", labels={"step": step.value, "by": by})])


def _reset(cursor: CursorWrapper, shell_file_id: UUID, scope: Scope) -> None:
    cursor.execute(
        _reset_sql(),
        {
            "shell_file": shell_file_id,
            # The setting has the name of Pass 1, and is for the work items of every pass.
            "granted": settings.PASS1_MAX_RETRIES,
            **_scope(scope),
        },
    )


def _scope(scope: Scope) -> dict[str, list[UUID] | None]:
    return {"encounters": _listed(scope.encounters), "items": _listed(scope.items)}


def _listed(ids: tuple[UUID, ...] | None) -> list[UUID] | None:
    return None if ids is None else sorted(ids)


def _is_retryable(code: str, underlying: str | None) -> bool:
    if code in SAME_REPLY_CODES:
        return False
    return ERRORS[ErrorCode(underlying or code)].job_retryable
