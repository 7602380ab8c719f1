"""How a step ended: a stage returns one of these, and `run_step` writes it to the rows.

`run_step` writes the end in one fenced transaction, together with whatever the stage publishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pipeline.core.deadline import StepDeadline
from pipeline.core.states import Step
from pipeline.transitions import Failure, Lease, Parking

SIGTERM = "sigterm"
"""Why a step was interrupted whose worker stops."""
CANCELLED = "cancelled"
"""Why a step was interrupted that an operator wants cancelled."""
OUT_OF_TIME = "out of time"
"""Why a step was interrupted that has used up its time and has progressed."""


def publish_nothing() -> None:
    """Publish nothing."""


@dataclass(frozen=True, kw_only=True)
class StepCompleted:
    """All work of the step is done."""

    publish: Callable[[], None] = publish_nothing
    """Writes the pass's totals and results; runs inside the fence."""
    continues_with: Step | None = None
    """The next pass, if the process goes on with it and no wake-up is sent. Set by `run_step`."""


@dataclass(frozen=True, kw_only=True)
class StepFailed:
    """The step failed for good, unless a retry is worth its while."""

    failure: Failure
    publish: Callable[[], None] = publish_nothing
    """Writes what the step publishes although it failed; runs inside the fence."""
    is_of_items: bool = False
    """Whether every item has ended and some have failed: a retry then judges each failed item."""
    is_out_of_time: bool = False
    """Whether only the step's time is used up. A step that has progressed is then requeued."""


@dataclass(frozen=True, kw_only=True)
class StepParked:
    """The step waits for a time, an incident or a pause; it then continues at no cost."""

    parking: Parking


@dataclass(frozen=True, kw_only=True)
class StepInterrupted:
    """The step stopped early; it continues later at no cost."""

    reason: str
    """SIGTERM, CANCELLED, OUT_OF_TIME, `preemption.PREEMPTED`, or `written_off` where too many
    calls hang."""
    message: str = ""
    """A fixed text without PHI for the job's history; empty where the reason says enough."""


StepResult: TypeAlias = StepCompleted | StepFailed | StepParked | StepInterrupted


@dataclass(frozen=True, kw_only=True)
class AllItemsEnded:
    """Every work item of the step has succeeded or failed; the stage draws the conclusion."""


ExecutorResult: TypeAlias = AllItemsEnded | StepFailed | StepParked | StepInterrupted


class Stage(Protocol):
    """One pass, run for one record."""

    def __call__(self, lease: Lease, deadline: StepDeadline) -> StepResult:
        """Do the work of the step. Raises LeaseLostError when another worker has the job."""
        ...
