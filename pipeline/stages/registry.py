"""The passes of a record, in order.

A new pass takes its place in the order here. `models/work_tables.py` lists all places of a new
pass with provider calls.
"""

from __future__ import annotations

from django.conf import settings

from pipeline.core.states import Step
from pipeline.execution.step_result import Stage
from pipeline.stages import pages
from pipeline.stages.pass05 import run as pass05
from pipeline.stages.pass1 import run as pass1
from pipeline.stages.pass1_5 import run as pass1_5
from pipeline.stages.pass2 import run as pass2
from pipeline.stages.pass3 import run as pass3

PASSES: dict[Step, Stage] = {
    Step.PAGES: pages.run,
    Step.PASS05: pass05.run,
    Step.PASS1: pass1.run,
    Step.PASS1_5: pass1_5.run,
    Step.PASS2: pass2.run,
    Step.PASS3: pass3.run,
}
"""The passes, in the order in which a record goes through them."""


def next_step(step: Step) -> Step | None:
    """Return the next pass that this installation runs, or None after the last pass."""
    order = [each for each in PASSES if each is step or each.value not in settings.SKIPPED_PASSES]
    following = order[order.index(step) + 1 :]
    return following[0] if following else None
