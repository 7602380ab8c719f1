"""The stage of Pass 1.5: ranked candidate codes for every published entity.

Only the optional embedder calls a provider. The stage writes group after group of encounters, so
that an interrupted step continues where the step stopped. A record without a loaded code system
completes with a warning.
"""

from __future__ import annotations

from functools import partial

from pipeline.codes.search.search import SYSTEMS, shortlists
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode
from pipeline.execution.heartbeat import Heartbeat
from pipeline.execution.preemption import PREEMPTED, Preemption
from pipeline.execution.shutdown import stop_requested
from pipeline.execution.step_result import (
    CANCELLED,
    SIGTERM,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepResult,
    publish_nothing,
)
from pipeline.models import Entity
from pipeline.stages.pass1_5 import store
from pipeline.stages.pass1_5.meaning_order import MeaningOrder
from pipeline.stages.record_warnings import warn
from pipeline.transitions import Failure, Lease, fenced

SHORTLIST_SIZE = 10
"""The most candidates of one entity; `models` and people read a short list."""
GROUP_SIZE = 250
"""Entities that are searched and written together: about one second."""

_NEEDED = "condition", "symptom"
"""Categories without whose code system a record gets a warning. Other systems are optional."""
_MESSAGE = (
    "No code system for conditions is loaded, so entities have no codes: run make codes, or"
    " manage.py load_codes ICD10CM."
)


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Write the candidates of every encounter that has none yet."""
    heartbeat = Heartbeat(lease, deadline)
    preemption = Preemption(lease)
    order = MeaningOrder(lease, deadline, heartbeat)
    loaded = store.loaded_systems()
    groups = store.groups(lease.shell_file_id, loaded, GROUP_SIZE) if loaded else iter(())
    while (group := next(groups, None)) is not None:
        stopped = _stop(heartbeat, preemption, deadline)
        if stopped is not None:
            return stopped
        found = shortlists([asked for _, _, asked in group.entities], SHORTLIST_SIZE)
        ordered = order.of(found)
        if isinstance(ordered, StepInterrupted):
            return ordered
        with fenced(lease):
            present = store.loaded_systems()
            if present == loaded:
                store.write(lease.shell_file_id, group, ordered.shortlists, loaded)
                if ordered.warning:
                    warn(lease.shell_file_id, ErrorCode.EMBEDDER_AWAY, ordered.warning)
        if present != loaded:
            # A load has replaced codes meanwhile. The whole record gets candidates of one version.
            loaded = present
            groups = store.groups(lease.shell_file_id, loaded, GROUP_SIZE)
            continue
        deadline.note_progress()
    needed = {system for category in _NEEDED for system in SYSTEMS[category]}
    is_short = not needed & loaded.keys() and _has_conditions(lease)
    return StepCompleted(publish=partial(_warn, lease) if is_short else publish_nothing)


def _stop(
    heartbeat: Heartbeat, preemption: Preemption, deadline: StepDeadline
) -> StepResult | None:
    heartbeat.renew_when_due()
    if stop_requested():
        return StepInterrupted(reason=SIGTERM)
    if heartbeat.is_cancelled:
        return StepInterrupted(reason=CANCELLED)
    if preemption.is_due():
        return StepInterrupted(reason=PREEMPTED)
    if deadline.is_soft_passed:
        return StepFailed(
            failure=Failure(
                code=ErrorCode.DEADLINE_EXCEEDED,
                message="the time for the candidate codes was used up; a retry continues there",
            ),
            is_out_of_time=True,
        )
    return None


def _has_conditions(lease: Lease) -> bool:
    entities = Entity.objects.filter(shell_file_id=lease.shell_file_id)
    return entities.filter(category__in=_NEEDED).exists()


def _warn(lease: Lease) -> None:
    warn(lease.shell_file_id, ErrorCode.CODES_NOT_LOADED, _MESSAGE)
