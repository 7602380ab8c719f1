"""Which results of Passes 1.5 to 3 a record lacks, and why, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.core.labels import PASS_TITLES
from pipeline.core.states import PassStatus, Step

_RESULTS: Mapping[Step, str] = {
    Step.PASS1_5: "codes",
    Step.PASS2: "attributes, chosen codes and lists",
    Step.PASS3: "narratives",
}
"""What each pass adds to the clinical summary."""
_STATES: Mapping[str, str] = {
    PassStatus.PENDING: "has not run yet",
    PassStatus.PROCESSING: "is not complete yet",
    PassStatus.FAILED: "has failed",
}


def open_passes(statuses: Mapping[Step, str]) -> tuple[str, ...]:
    """Return a sentence about each switched-off pass, and one about the first pass that is open.

    `statuses` holds the status of each pass. A pass that is open keeps all passes after it waiting.
    """
    found = [
        f"{PASS_TITLES[step]} is switched off: the record has no {results}."
        for step, results in _RESULTS.items()
        if statuses[step] == PassStatus.SKIPPED
    ]
    waiting = [step for step in _RESULTS if statuses[step] in _STATES]
    if waiting:
        lacking = "; ".join(_RESULTS[step] for step in waiting)
        found.append(
            f"{PASS_TITLES[waiting[0]]} {_STATES[statuses[waiting[0]]]}, so results are missing"
            f" here or incomplete: {lacking}."
        )
    return tuple(found)
