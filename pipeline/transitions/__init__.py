"""The only writer of a status. Every move is a conditional UPDATE of exactly the named rows.

Every write of a step is behind its fence (`leases.fenced`). All code locks in the same order, so
that two transactions never deadlock: job → encounter → batch or chunk, each by id; record batches
last.
"""

from __future__ import annotations

from pipeline.transitions.cancellation import cancel, cancel_asked
from pipeline.transitions.claim_order import preempt_after_s, should_preempt
from pipeline.transitions.flights import board, confirm_wait, land
from pipeline.transitions.flush import Flush, insert_calls, row_of, write
from pipeline.transitions.holds import (
    end_pauses,
    pause_on,
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
from pipeline.transitions.leases import (
    Lease,
    claim,
    expire_leases,
    fenced,
    mark_hung,
    renew_lease,
)
from pipeline.transitions.provenance import note_settings, submitted_config
from pipeline.transitions.record_batches import (
    close_record_batch,
    free_places,
    next_of_record_batch,
    open_record_batch,
    settle_record_batches,
)
from pipeline.transitions.recovery import Recovered, redispatch, take_expired
from pipeline.transitions.retries import ALL, Scope, retry_job, retry_later
from pipeline.transitions.reviews import (
    HeldReview,
    claim_next_review,
    claim_review,
    close_review,
    end_review_round,
    hold_review,
    open_review,
    peek_next_review,
    place_review_items,
    release_review,
    reopen_review,
)
from pipeline.transitions.stale import Stale, find_stale, reset_stale
from pipeline.transitions.steps import (
    Failure,
    Parking,
    begin_discovery,
    complete_step,
    dead_letter_step,
    fail_step,
    park,
    requeue_interrupted,
    settle_discovery,
    with_lost_work,
)

__all__ = [
    "ALL",
    "Failure",
    "Flush",
    "HeldReview",
    "Lease",
    "Parking",
    "Recovered",
    "Scope",
    "Stale",
    "begin_discovery",
    "board",
    "cancel",
    "cancel_asked",
    "claim",
    "claim_next_review",
    "claim_review",
    "close_incident",
    "close_record_batch",
    "close_review",
    "complete_step",
    "confirm_wait",
    "dead_letter_step",
    "end_pauses",
    "end_review_round",
    "expire_leases",
    "fail_step",
    "fenced",
    "find_stale",
    "free_places",
    "hold_review",
    "insert_calls",
    "land",
    "link_failed_jobs",
    "mark_hung",
    "next_of_record_batch",
    "note_incident",
    "note_settings",
    "open_incident",
    "open_record_batch",
    "open_review",
    "park",
    "pause_on",
    "pause_provider",
    "pause_queue",
    "peek_next_review",
    "place_review_items",
    "preempt_after_s",
    "redispatch",
    "release",
    "release_due",
    "release_probes",
    "release_review",
    "renew_lease",
    "reopen_review",
    "requeue_interrupted",
    "reset_stale",
    "retry_job",
    "retry_later",
    "row_of",
    "settle_discovery",
    "settle_record_batches",
    "should_preempt",
    "submitted_config",
    "take_expired",
    "with_lost_work",
    "write",
]
