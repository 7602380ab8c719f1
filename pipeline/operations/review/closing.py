"""The end of a review: closing a round, closing the item, and opening a closed item again.

A closed review has renewed the lists and the totals of the record, so that both follow from what
people decided. The status of the record never changes.
"""

from __future__ import annotations

from uuid import UUID, uuid4

from django.db import transaction

from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import Step
from pipeline.models import (
    DecisionAction,
    Entity,
    Job,
    RecordListItem,
    ReviewItem,
    ReviewRound,
    ReviewStatus,
    ReviewVerdict,
    Session,
)
from pipeline.operations.review.decisions import not_held
from pipeline.operations.review.rounds import waiting_counts
from pipeline.stages.pass2.record_lists import rows_of
from pipeline.transitions import (
    HeldReview,
    close_review,
    end_review_round,
    hold_review,
    reopen_review,
)
from pipeline.transitions.review_decisions import Change, lock_record, store_decision
from pipeline.transitions.totals import write_totals


def close(item_id: UUID, reviewer: str) -> ReviewStatus:
    """End the reviewer's work on a record; return `open` if another round follows.

    An item of a double review waits for a second person. If both disagree about an entity, the item
    waits for a person who settles it. Raises UserError (REVIEW_UNDECIDED) while an entity waits for
    a decision, or REVIEW_NOT_HELD.
    """
    with transaction.atomic():
        lock_record(item_id)
        held = hold_review(item_id, reviewer)
        if held is None:
            raise not_held(item_id)
        undecided, _ = waiting_counts(held)
        if undecided:
            raise UserError(
                f"{undecided} entities wait for a decision", code=UserErrorCode.REVIEW_UNDECIDED
            )
        following = _next_round(held)
        if following is not None:
            end_review_round(item_id, reviewer, following)
            return ReviewStatus.OPEN
        close_review(item_id, reviewer)
        renew_results(held.shell_file_id)
        return ReviewStatus.CLOSED


def reopen(item_id: UUID, reviewer: str, *, reason: str = "") -> UUID:
    """Open a closed review again, held by the reviewer; return the id of the decision.

    The decisions stay until another decision replaces them. Raises UserError (STATE_CONFLICT,
    NOT_FOUND).
    """
    with transaction.atomic():
        lock_record(item_id)
        item = ReviewItem.objects.select_for_update().filter(id=item_id).first()
        if item is None:
            raise UserError("there is no such review", code=UserErrorCode.NOT_FOUND)
        if item.status != ReviewStatus.CLOSED:
            raise UserError("the review is open", code=UserErrorCode.STATE_CONFLICT)
        held = HeldReview(item_id=item_id, shell_file_id=item.shell_file_id, round=item.round)
        (decision,) = store_decision(
            held,
            reviewer=reviewer,
            action=DecisionAction.REOPEN.value,
            token=uuid4(),
            changes=[Change(field="status", old="closed", new="open")],
            reason=reason,
        )
        reopen_review(item_id, reviewer)
        return decision


def renew_results(shell_file_id: UUID) -> None:
    """Build the lists of a record again and count its results again; the job is locked.

    Does nothing for the lists of a record that Pass 2 has not finished.
    """
    if RecordListItem.objects.filter(shell_file_id=shell_file_id).exists():
        lists = rows_of(shell_file_id, lambda build: build())
        RecordListItem.objects.filter(shell_file_id=shell_file_id).delete()
        RecordListItem.objects.bulk_create(lists, batch_size=500)
    job = Job.objects.filter(shell_file_id=shell_file_id).order_by("-created_at").first()
    session = Session.objects.filter(shell_file_id=shell_file_id).first()
    if job is not None and session is not None:
        write_totals(shell_file_id, session.id, Step(job.current_step))


def _next_round(held: HeldReview) -> int | None:
    item = ReviewItem.objects.get(id=held.item_id)
    if held.round == ReviewRound.FIRST and item.is_double:
        return ReviewRound.SECOND.value
    disputed = Entity.objects.filter(
        shell_file_id=held.shell_file_id, verdict=ReviewVerdict.DISPUTED
    )
    if held.round == ReviewRound.SECOND and disputed.exists():
        return ReviewRound.SETTLING.value
    return None
