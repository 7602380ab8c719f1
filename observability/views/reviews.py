"""The review queue: what waits for a person, in which order and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from observability.actions.reviews import REVIEW_ITEM, reviewer_names, reviewer_of, take_next
from observability.listing.pagination import ListPage
from observability.listing.reviews import CLOSED, FIELDS, READ, STATES, chosen_reviews
from observability.permissions import Right
from observability.phi.review_words import REASONS, ReviewMark
from observability.views.decorators import RequestedAction, action, page
from observability.views.render import render_page
from pipeline.core.errors import UserError
from pipeline.models import ReviewItem, ReviewReason, ReviewRound, ReviewStatus, selectors
from pipeline.operations.review.priority import PriorityPart, explained
from pipeline.operations.review.rounds import ReviewCounts, counts_of


@dataclass(frozen=True, kw_only=True)
class QueuedReview:
    """One row of the queue."""

    item: ReviewItem
    reason: ReviewMark
    parts: Sequence[PriorityPart]
    holder: str
    """The name of the reviewer who holds the item; empty if it is free."""
    is_mine: bool
    is_overdue: bool
    counts: ReviewCounts
    incomplete_note: str
    closed_by: str

    @property
    def priority(self) -> float:
        """The priority now, 0 to 1."""
        return sum(part.points for part in self.parts)

    @property
    def bars(self) -> list[dict[str, float]]:
        """The parts as bars of a scale of 0 to 100."""
        bars, x = [], 0.0
        for part in self.parts:
            bars.append({"x": round(x, 1), "width": round(100 * part.points, 1)})
            x += 100 * part.points
        return bars

    @property
    def round_words(self) -> str:
        """What the present round asks for; empty for the only round."""
        if self.item.round == ReviewRound.SETTLING:
            return "two reviewers disagree"
        if self.item.round == ReviewRound.SECOND:
            return "second review"
        return "two people review it" if self.item.is_double else ""


@page(Right.REVIEW)
def reviews(request: HttpRequest) -> HttpResponse:
    """List the reviews that match the filter in the URL (`?is=free&reason=flagged`)."""
    asked = {name: request.GET[name] for name in FIELDS if request.GET.get(name)}
    me = reviewer_of(request.user)
    problem = ""
    try:
        chosen = chosen_reviews(asked)
        listed = chosen.page(request.GET.get("after", ""), me)
    except UserError as error:
        problem, asked = error.message, {}
        chosen, listed = chosen_reviews({}), ListPage[ReviewItem](rows=(), next_place="")
    return render_page(
        request,
        "console/reviews.html",
        "Review",
        status=HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK,
        problem=problem,
        rows=_rows(listed.rows, me, timezone.now()),
        listed=listed,
        state=chosen.state,
        states=[*STATES, CLOSED],
        is_of_closed=chosen.state == CLOSED,
        reasons={
            "name": "reason",
            "label": "Reason",
            "options": [(each.value, REASONS[each].word) for each in ReviewReason],
            "chosen": chosen.reason,
        },
        is_filtered=bool(asked),
        query=urlencode(asked),
        read=READ if chosen.is_sifted else 0,
    )


def _asked(request: HttpRequest) -> RequestedAction:
    return RequestedAction(action="review claim", right=Right.REVIEW, target_kind=REVIEW_ITEM)


@action(_asked)
def take_next_review(request: HttpRequest) -> HttpResponse:
    """Claim the free item with the highest priority and open it."""
    item_id = take_next(request.user)
    if item_id is None:
        messages.info(request, "No review is free for you now.")
        return redirect("admin:reviews")
    return redirect("admin:review", item_id)


def _rows(items: Sequence[ReviewItem], me: str, now: datetime) -> list[QueuedReview]:
    counts = counts_of([item.id for item in items])
    notes = selectors.incomplete_notes([item.shell_file_id for item in items])
    names = reviewer_names(who for item in items for who in (_holder(item, now), item.closed_by))
    return [
        QueuedReview(
            item=item,
            reason=REASONS[ReviewReason(item.reason)],
            parts=explained(item, now),
            holder=names.get(_holder(item, now), ""),
            is_mine=_holder(item, now) == me,
            is_overdue=item.status == ReviewStatus.OPEN and item.due_at <= now,
            counts=counts.get(item.id, ReviewCounts()),
            incomplete_note=notes.get(item.shell_file_id, ""),
            closed_by=names.get(item.closed_by or "", ""),
        )
        for item in items
    ]


def _holder(item: ReviewItem, now: datetime) -> str:
    """Return who holds an item now; empty if it is free."""
    if item.status != ReviewStatus.OPEN or item.claimed_until is None or item.claimed_until <= now:
        return ""
    return item.claimed_by or ""
