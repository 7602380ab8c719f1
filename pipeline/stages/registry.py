"""The passes of a record, in order.

A new pass takes its place in the order here. `models/work_tables.py` lists all places of a new
pass with provider calls.
"""

from __future__ import annotations

from pipeline.core.states import Step
from pipeline.execution.step_result import Stage
from pipeline.stages import pages
from pipeline.stages.pass05 import run as pass05
from pipeline.stages.pass1 import run as pass1

PASSES: dict[Step, Stage] = {
    Step.PAGES: pages.run,
    Step.PASS05: pass05.run,
    Step.PASS1: pass1.run,
}
"""The passes, in the order in which a record goes through them."""


def next_step(step: Step) -> Step | None:
    """Return the next pass, or None after the last pass."""
    order = list(PASSES)
    following = order[order.index(step) + 1 :]
    return following[0] if following else None
