"""The current problems of the installation, in sentences.

The check does not rely on the scheduler: it asks PostgreSQL for rows and Redis for workers, and
either may be unreachable. The report names no record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import Error as AnyDatabaseError
from django.utils.module_loading import import_string
from redis.exceptions import RedisError

from medproc import serving_user, unprivileged
from medproc.timing import scaled
from pipeline.core.server_faults import ServerFault, explain, line_of
from pipeline.core.states import IncidentState, Step
from pipeline.documents.reader import isolation
from pipeline.models import FileSweep, Incident, Pause
from pipeline.operations import liveness, schedule, server_check, stored_files
from pipeline.operations.liveness import LastTaskRun, StepAges
from pipeline.queueing.queues import QUEUES, SUSPENSION, queue_depths, queues_served, suspended


@dataclass(frozen=True, kw_only=True)
class Health:
    """The state of the installation; without problems and notices all is well."""

    problems: tuple[str, ...]
    faults: tuple[ServerFault, ...]
    """Why a server or the bucket refuses; each is also one of the first problems."""
    steps: Mapping[Step, StepAges]
    """The ages of each step; empty if PostgreSQL does not answer."""
    ticks: tuple[LastTaskRun, ...]
    depths: Mapping[str, int]
    """Wake-ups by queue; empty if Redis does not answer."""
    served: frozenset[str]
    """Queues that a live worker listens to."""
    warnings: tuple[str, ...] = ()
    """What this host does not protect; no alarm, because the work goes on."""
    notices: tuple[str, ...] = ()
    """Open incidents of the provider, and pauses: they hold or slow work, and are no fault here."""
    file_sweep: FileSweep | None = None
    """The last sweep of the stored files; None before the first sweep."""

    @property
    def oldest_waiting_s(self) -> float | None:
        """Seconds since the oldest waiting job became claimable."""
        return max(
            (s.oldest_waiting_s or 0.0 for s in self.steps.values() if s.waiting), default=None
        )

    @property
    def oldest_running_s(self) -> float | None:
        """Seconds since the earliest claim of the running jobs."""
        return max(
            (s.oldest_running_s or 0.0 for s in self.steps.values() if s.running), default=None
        )


def examine() -> Health:
    """Check rows, periodic tasks, queues and workers once."""
    faults = server_check.server_faults(writes=True)
    problems = [line_of(fault) for fault in faults]
    postgres = next((fault for fault in faults if fault.is_of_postgres), None)
    redis = next((fault for fault in faults if fault.is_of_redis), None)
    steps: Mapping[Step, StepAges] = {}
    ticks: list[LastTaskRun] = []
    depths: Mapping[str, int] = {}
    served: frozenset[str] = frozenset()
    is_suspended = False
    notices: list[str] = []
    file_sweep: FileSweep | None = None
    if postgres is None or postgres.answers:
        try:
            notices = _incidents() + _pauses()
            steps, ticks = liveness.step_ages(), liveness.last_task_runs()
            file_sweep = stored_files.last_sweep()
            problems += [said for name in settings.HEALTH_CHECKS for said in import_string(name)()]
        except AnyDatabaseError as error:
            problems.append(f"PostgreSQL refuses: {explain(error)}")
    if postgres is None and steps:
        # A refusing server stops the scheduler and the renewal of leases, so it is the one cause.
        problems += liveness.scheduler_problems(ticks)
        for step, ages in steps.items():
            problems += _of_step(step, ages)
        problems += stored_files.problems(file_sweep)
    if redis is None or redis.answers:
        try:
            depths, served, is_suspended = queue_depths(), queues_served(), suspended()
        except (RedisError, OSError) as error:
            problems.append(f"Redis refuses: {explain(error)}")
    if redis is None and depths:
        problems += _workers(served)
        problems += [SUSPENSION] if is_suspended else []
    return Health(
        problems=tuple(problems),
        faults=faults,
        steps=steps,
        ticks=tuple(ticks),
        depths=depths,
        served=served,
        warnings=tuple(_warnings()),
        notices=tuple(notices),
        file_sweep=file_sweep,
    )


def _warnings() -> list[str]:
    """Return what this host does not protect: processes that stay root, a reader with rights."""
    found = []
    root = unprivileged.obstacle(serving_user.needed_to_serve())
    if root is not None:
        found.append(serving_user.stays_root(root))
    lacks = isolation.gap()
    if lacks is not None:
        found.append(f"the reader is not isolated: {lacks}")
    return found


def _incidents() -> list[str]:
    rows = Incident.objects.filter(state=IncidentState.OPEN).order_by("opened_at", "id")
    return [
        f"an incident is open: {row.kind} of {row.provider} {row.model} since"
        f" {row.first_failure_at:%Y-%m-%d %H:%M:%S} UTC; see manage.py explain {row.id}"
        for row in rows
    ]


def _pauses() -> list[str]:
    found = []
    for row in Pause.objects.filter(ended_at__isnull=True).order_by("created_at", "id"):
        target = row.queue or f"--provider {row.provider}"
        target += f" --model {row.model}" if row.model else ""
        found.append(
            f"an operator has paused work; manage.py resume {target} --reason … resumes it"
        )
    return found


def _of_step(step: Step, ages: StepAges) -> list[str]:
    found = []
    if (ages.oldest_waiting_s or 0.0) > scaled(settings.ALARM_WAITING_S):
        found.append(
            f"{step}: {ages.waiting} waiting, the oldest for {ages.oldest_waiting_s:.0f} s"
        )
    if (ages.oldest_running_s or 0.0) > scaled(settings.ALARM_RUNNING_S):
        found.append(
            f"{step}: {ages.running} running, the oldest for {ages.oldest_running_s:.0f} s"
        )
    if (ages.longest_expired_s or 0.0) > schedule.alarm_s(schedule.RECONCILE):
        found.append(
            f"{step}: {ages.expired} held by lost workers, for {ages.longest_expired_s:.0f} s"
        )
    return found


def _workers(served: frozenset[str]) -> list[str]:
    if not served:
        return ["no worker runs; start manage.py rqworker-pool"]
    missing = [queue for queue in QUEUES if queue not in served]
    return [f"no worker listens to {', '.join(missing)}"] if missing else []
