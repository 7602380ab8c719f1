"""How a stage says what became of its step. Imports `transitions` for the shapes of its end.

A stage works and returns; `jobs.run_step` writes the end of the step, in one fenced transaction
with whatever the stage publishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pipeline.transitions import Failure, Lease, Parking


def nothing() -> None:
    """Publish nothing."""


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The end of a step: completed, failed, parked, or given back unfinished."""

    failure: Failure | None = None
    given_back: str | None = None
    """Why the step stopped early, as `sigterm`; it goes on later at no cost."""
    parked: Parking | None = None
    """Until when, or for which incident, it waits; it goes on then at no cost."""
    publish: Callable[[], None] = nothing
    """Writes the pass's totals and results; runs inside the fence."""


class Stage(Protocol):
    """One pass, run for one record."""

    def __call__(self, lease: Lease) -> StepResult:
        """Do the work of the step. Raises LeaseLostError when the job is not ours any longer."""
        ...
