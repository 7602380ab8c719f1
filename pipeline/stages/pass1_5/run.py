"""The stage of Pass 1.5: a shortlist of candidate codes for each entity."""

from __future__ import annotations

from pipeline.core.deadline import StepDeadline
from pipeline.execution.step_result import StepCompleted, StepResult
from pipeline.transitions import Lease


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Shortlist the codes of every entity of the record."""
    return StepCompleted()
