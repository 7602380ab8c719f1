"""The only writer of a status. Every move is a conditional UPDATE that must change exactly the
rows named; every write of a step stands behind its fence (`leases.fenced`).

Imports models and states. Lock order everywhere: job → encounter → batch, ids sorted.
"""

from __future__ import annotations

from pipeline.transitions.cancelling import cancel, cancel_asked
from pipeline.transitions.flush import ENCOUNTER_COLUMNS, Flush, row_of, write
from pipeline.transitions.holds import (
    end_pauses,
    pause_provider,
    pause_queue,
    release,
    release_due,
    release_probes,
)
from pipeline.transitions.incidents import (
    close_incident,
    link_failed_jobs,
    note_incident,
    open_incident,
)
from pipeline.transitions.leases import Lease, claim, fenced, heartbeat, set_deadline
from pipeline.transitions.retries import Scope, put_back, retry_later
from pipeline.transitions.steps import (
    Failure,
    Parking,
    begin_discovery,
    complete_step,
    fail_step,
    give_back,
    park,
    settle_discovery,
)

__all__ = [
    "ENCOUNTER_COLUMNS",
    "Failure",
    "Flush",
    "Lease",
    "Parking",
    "Scope",
    "begin_discovery",
    "cancel",
    "cancel_asked",
    "claim",
    "close_incident",
    "complete_step",
    "end_pauses",
    "fail_step",
    "fenced",
    "give_back",
    "heartbeat",
    "link_failed_jobs",
    "note_incident",
    "open_incident",
    "park",
    "pause_provider",
    "pause_queue",
    "put_back",
    "release",
    "release_due",
    "release_probes",
    "retry_later",
    "row_of",
    "set_deadline",
    "settle_discovery",
    "write",
]
