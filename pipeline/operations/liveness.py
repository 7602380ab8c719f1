"""The liveness of the pipeline: ages of waiting and running work, and of the periodic tasks.

The check reads rows by the database's clock. It needs neither the scheduler nor Redis, so it can
report their loss. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from django.db import connection

from pipeline.core.states import Step
from pipeline.operations import schedule


@dataclass(frozen=True, kw_only=True)
class StepAges:
    """Waiting, running and parked jobs of one step; ages in seconds, None without such jobs."""

    waiting: int = 0
    oldest_waiting_s: float | None = None
    """Since the job became claimable; parked jobs do not count."""
    running: int = 0
    oldest_running_s: float | None = None
    """Since the claim."""
    expired: int = 0
    """Running jobs with an expired lease; their workers are lost."""
    longest_expired_s: float | None = None
    parked: int = 0


@dataclass(frozen=True, kw_only=True)
class LastTaskRun:
    """The last run of a periodic task."""

    task: str
    age_s: float | None
    """Seconds since the last start; None if the task never started."""
    ok_s: float | None
    """Seconds since the last good end; None if the task never ended well."""
    alarm_s: float
    """Age in seconds from which the task counts as missing."""
    outcome: str | None

    @property
    def is_well(self) -> bool:
        """Whether the task runs as often as it should, and has not failed."""
        return not (self.is_missing or self.is_undone or (self.outcome or "").startswith("failed"))

    @property
    def is_missing(self) -> bool:
        """Whether the task no longer starts: the scheduler has stopped, or never ran."""
        return self.age_s is None or self.age_s > self.alarm_s

    @property
    def is_undone(self) -> bool:
        """Whether the task starts but never ends well, for example because it is killed."""
        return not self.is_missing and (self.ok_s is None or self.ok_s > self.alarm_s)


# `moving` reads waiting, running and parked jobs, each from its own partial index; ended jobs are
# not read. `present` fixes one point in time for all ages.
_AGES = """
SELECT current_step,
  count(*) FILTER (WHERE status = 'pending' AND available_at <= at),
  extract(epoch FROM at - min(available_at)
    FILTER (WHERE status = 'pending' AND available_at <= at))::float,
  count(*) FILTER (WHERE status = 'processing'),
  extract(epoch FROM at - min(step_started_at) FILTER (WHERE status = 'processing'))::float,
  count(*) FILTER (WHERE status = 'processing' AND lease_expires_at <= at),
  extract(epoch FROM at - min(lease_expires_at)
    FILTER (WHERE status = 'processing' AND lease_expires_at <= at))::float,
  count(*) FILTER (WHERE status = 'parked')
FROM (
  SELECT current_step, status, available_at, step_started_at, lease_expires_at
  FROM job_queue WHERE status = 'pending'
  UNION ALL SELECT current_step, status, available_at, step_started_at, lease_expires_at
  FROM job_queue WHERE status = 'processing'
  UNION ALL SELECT current_step, status, available_at, step_started_at, lease_expires_at
  FROM job_queue WHERE status = 'parked'
) moving, (SELECT clock_timestamp() AS at) present
GROUP BY current_step, at
"""


def step_ages() -> Mapping[Step, StepAges]:
    """Return the waiting, running and parked jobs of each step; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_AGES)
        found = {row[0]: row[1:] for row in cursor}
    names = [field.name for field in fields(StepAges)]
    return {
        step: StepAges(**dict(zip(names, found[step.value], strict=True)))
        if step.value in found
        else StepAges()
        for step in Step
    }


def last_task_runs() -> list[LastTaskRun]:
    """Return the last run of each periodic task, including tasks that never ran."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, extract(epoch FROM clock_timestamp() - started_at)::float,"
            " extract(epoch FROM clock_timestamp() - last_ok_at)::float, outcome"
            " FROM periodic_task_runs"
        )
        last = {name: facts for name, *facts in cursor}
    return [
        LastTaskRun(
            task=task,
            age_s=age_s,
            ok_s=ok_s,
            alarm_s=schedule.alarm_s(task),
            outcome=outcome,
        )
        for task in schedule.names()
        for age_s, ok_s, outcome in [last.get(task, (None, None, None))]
    ]


def scheduler_problems(ticks: Sequence[LastTaskRun]) -> list[str]:
    """Describe the periodic tasks that are missing or fail."""
    missing = [tick for tick in ticks if tick.is_missing]
    failing = [
        f"the periodic task {tick.task} {tick.outcome}"
        for tick in ticks
        if not tick.is_missing and (tick.outcome or "").startswith("failed")
    ] + [
        f"the periodic task {tick.task} starts and never ends; see the scheduler's log"
        for tick in ticks
        if tick.is_undone and tick.outcome == "running"
    ]
    age_s, newest = min(
        ((tick.age_s, tick) for tick in ticks if tick.age_s is not None),
        key=lambda pair: pair[0],
        default=(0.0, None),
    )
    if newest is None:
        return ["no scheduler runs: no periodic task ever started; start manage.py rqcron"]
    # No task has started for longer than the most frequent task may wait: all tasks are late.
    if age_s > min(tick.alarm_s for tick in ticks):
        if newest.outcome == "running" and not newest.is_missing:
            return [f"the scheduler is at {newest.task} for {age_s:.0f} s; the other tasks wait"]
        return [
            f"no scheduler runs: the last task started {age_s:.0f} s ago; start manage.py rqcron"
        ]
    return failing + [
        f"the scheduler has not started {tick.task} for {tick.age_s:.0f} s"
        if tick.age_s is not None
        else f"the scheduler has never started {tick.task}"
        for tick in missing
    ]
