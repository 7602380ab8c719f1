"""The only writer of a status. Every move is a conditional UPDATE that must change exactly the
rows named; every write of a step stands behind its fence (`leases.fenced`).

Imports models and states. Lock order everywhere: job → encounter → batch, ids sorted.
"""

from __future__ import annotations

from pipeline.transitions.flush import ENCOUNTER_COLUMNS, Flush, row_of, write
from pipeline.transitions.leases import Lease, claim, fenced, heartbeat, set_deadline
from pipeline.transitions.steps import (
    Failure,
    begin_discovery,
    complete_step,
    fail_step,
    give_back,
    settle_discovery,
)

__all__ = [
    "ENCOUNTER_COLUMNS",
    "Failure",
    "Flush",
    "Lease",
    "begin_discovery",
    "claim",
    "complete_step",
    "fail_step",
    "fenced",
    "give_back",
    "heartbeat",
    "row_of",
    "set_deadline",
    "settle_discovery",
    "write",
]
