"""The sentence of a refusal: what has changed since a page was shown, by whom and when."""

from __future__ import annotations

from uuid import UUID

from django.utils import timezone

from observability.actions.reviews import reviewer_names
from pipeline.core.labels import duration
from pipeline.models import DecisionAction, ReviewDecision

_DONE = {
    DecisionAction.ACCEPT: "accepted",
    DecisionAction.CORRECT: "corrected",
    DecisionAction.REJECT: "rejected",
    DecisionAction.ADD: "added",
    DecisionAction.MOVE: "moved",
    DecisionAction.REOPEN: "reopened",
}


def changed_entity(entity_id: UUID | None, shown: str, reviewer: str) -> str:
    """Say which decision changed an entity since the form showed the state `shown`."""
    decisions = ReviewDecision.objects.filter(entity_id=entity_id)
    known = shown.partition("-")[0]
    if str(decisions.count()) == known:
        return (
            "a later pass has changed this entity since this page was shown, so nothing was"
            " stored: look at its values now, then decide again"
        )
    newest = decisions.latest("created_at", "part")
    return (
        f"{_who(newest, reviewer)} {_DONE[DecisionAction(newest.action)]} this entity"
        f" {_when(newest)}, after this page was shown, so nothing was stored: look at the entity"
        " as it is now, then decide again only if it is still wrong"
    )


def changed_waiting(shell_file_id: UUID, reviewer: str) -> str:
    """Say which decision was the last one before "accept all" met other waiting entities."""
    newest = (
        ReviewDecision.objects.filter(shell_file_id=shell_file_id, entity_id__isnull=False)
        .order_by("-created_at", "-part")
        .first()
    )
    last = ""
    if newest is not None:
        done = _DONE[DecisionAction(newest.action)]
        last = f" ({_who(newest, reviewer)} {done} an entity {_when(newest)})"
    return (
        f"other entities wait now than this page showed{last}, so nothing was stored:"
        " look at the list as it is now, then accept all again"
    )


def _who(decision: ReviewDecision, reviewer: str) -> str:
    if decision.decided_by == reviewer:
        return "you"
    return reviewer_names([decision.decided_by])[decision.decided_by]


def _when(decision: ReviewDecision) -> str:
    return f"{duration((timezone.now() - decision.created_at).total_seconds())} ago"
