"""The queue of a reviewer: the next item, claims, and giving an item back.

Two reviewers never hold one item: each claim is one conditional UPDATE by the database's clock. A
claim ends after REVIEW_CLAIM_S unless its reviewer works on the item.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import ReviewItem, ReviewRound, ReviewStatus
from pipeline.operations.review.decisions import not_held
from pipeline.transitions import (
    claim_next_review,
    claim_review,
    hold_review,
    peek_next_review,
    release_review,
)


def next_item(reviewer: str, *, but: Sequence[UUID] = ()) -> UUID | None:
    """Claim the free item with the highest priority; None if nothing is free for the reviewer.

    `but` names items to leave out, such as the item in hand while the next one is loaded.
    """
    return claim_next_review(reviewer, list(but))


def peek_next(reviewer: str, *, but: Sequence[UUID] = ()) -> tuple[UUID, UUID] | None:
    """Return the item that `next_item` would claim, with its record; nothing is claimed.

    The page of a review loads the first image of this item in advance.
    """
    return peek_next_review(reviewer, list(but))


def claim(item_id: UUID, reviewer: str) -> None:
    """Claim an item, or renew the own claim.

    Raises UserError: NOT_FOUND, STATE_CONFLICT (closed), REVIEW_HELD, or REVIEW_SECOND_READER.
    """
    if claim_review(item_id, reviewer):
        return
    item = ReviewItem.objects.filter(id=item_id).first()
    if item is None or item.status != ReviewStatus.OPEN:
        raise not_held(item_id)
    if item.round == ReviewRound.SECOND and item.first_reviewer == reviewer:
        raise UserError(
            "you did the first review of this record; another person does the second",
            code=UserErrorCode.REVIEW_SECOND_READER,
        )
    raise UserError(
        "another reviewer holds this review; take the next one", code=UserErrorCode.REVIEW_HELD
    )


def renew(item_id: UUID, reviewer: str) -> None:
    """Renew the own claim, also after its end if the item is free. Raises as `claim`."""
    claim(item_id, reviewer)


def renew_held(item_id: UUID, reviewer: str) -> None:
    """Renew a claim that has not ended.

    Raises UserError (REVIEW_NOT_HELD, NOT_FOUND, STATE_CONFLICT).
    """
    with transaction.atomic():
        held = hold_review(item_id, reviewer)
    if held is None:
        raise not_held(item_id)


def release(item_id: UUID, reviewer: str, *, skips: bool = False) -> None:
    """Give a held item back; with `skips` the queue does not offer it to the reviewer again.

    Raises UserError (REVIEW_NOT_HELD, NOT_FOUND, STATE_CONFLICT).
    """
    if not release_review(item_id, reviewer, skips=skips):
        raise not_held(item_id)
