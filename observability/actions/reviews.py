"""The actions of a reviewer with their audit rows: each action and its row are one transaction.

A row names the decision, the field, the category and counts. Old and new values are in
`review_decisions`, because the audit holds no PHI. A refusal is audited too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from observability.audit.log import RequestUser, audited, record
from pipeline.models import DecisionAction, ReviewStatus
from pipeline.operations.review import closing, decisions, queue
from pipeline.operations.review.decisions import Decided, MissedEntity

REVIEW_ITEM = "review"
"""The audit's name for a review item as a target."""


def reviewer_of(user: RequestUser) -> str:
    """Return the name under which decisions and claims hold a user: `user:<id>`."""
    return f"user:{user.pk}"


def reviewer_names(reviewers: Iterable[str | None]) -> dict[str, str]:
    """Return the user names of `user:<id>`, in one statement; a deleted user keeps the id."""
    asked = {each for each in reviewers if each}
    ids = [int(key) for each in asked if (key := each.removeprefix("user:")).isdecimal()]
    known = dict(User.objects.filter(pk__in=ids).values_list("pk", "username")) if ids else {}
    return {each: known.get(_key(each), each) for each in asked}


def take_next(user: RequestUser, *, but: Sequence[UUID] = ()) -> UUID | None:
    """Claim the free item with the highest priority for a user; None if nothing is free."""
    with transaction.atomic():
        item_id = queue.next_item(reviewer_of(user), but=but)
        if item_id is not None:
            record(user, "review claim", target_kind=REVIEW_ITEM, target_id=item_id)
    return item_id


def take(user: RequestUser, item_id: UUID) -> None:
    """Claim an item for a user. Raises as `queue.claim`."""
    with audited(user, "review claim", target_kind=REVIEW_ITEM, target_id=item_id):
        queue.claim(item_id, reviewer_of(user))


def keep(user: RequestUser, item_id: UUID) -> None:
    """Renew the claim of a user who works on the page; the claim is in the audit already.

    Raises UserError (REVIEW_NOT_HELD, NOT_FOUND, STATE_CONFLICT).
    """
    queue.renew_held(item_id, reviewer_of(user))


def give_back(user: RequestUser, item_id: UUID, *, skips: bool = False) -> None:
    """Release an item that a user holds. Raises as `queue.release`."""
    action = "review skip" if skips else "review release"
    with audited(user, action, target_kind=REVIEW_ITEM, target_id=item_id):
        queue.release(item_id, reviewer_of(user), skips=skips)


def decide(
    user: RequestUser,
    item_id: UUID,
    entity_id: UUID,
    action: DecisionAction,
    *,
    token: UUID,
    changes: Mapping[str, Any] | None = None,
    reason: str = "",
    shown: str | None = None,
) -> Decided:
    """Accept, correct or reject an entity. Raises as `decisions.decide`."""
    return _audited(
        user,
        item_id,
        action,
        reason,
        lambda: decisions.decide(
            item_id,
            reviewer_of(user),
            entity_id,
            action,
            token=token,
            changes=changes,
            reason=reason,
            shown=shown,
        ),
    )


def accept_all_unflagged(
    user: RequestUser, item_id: UUID, *, token: UUID, shown: str | None = None
) -> Decided:
    """Accept every unflagged entity. Raises as `decisions.accept_all_unflagged`."""
    return _audited(
        user,
        item_id,
        DecisionAction.ACCEPT,
        "",
        lambda: decisions.accept_all_unflagged(
            item_id, reviewer_of(user), token=token, shown=shown
        ),
    )


def add_missed_entity(
    user: RequestUser, item_id: UUID, missed: MissedEntity, *, token: UUID, reason: str = ""
) -> Decided:
    """Add an entity that no engine found. Raises as `decisions.add_missed_entity`."""
    return _audited(
        user,
        item_id,
        DecisionAction.ADD,
        reason,
        lambda: decisions.add_missed_entity(
            item_id, reviewer_of(user), missed, token=token, reason=reason
        ),
    )


def move_to_encounter(
    user: RequestUser,
    item_id: UUID,
    entity_id: UUID,
    encounter_id: UUID,
    *,
    token: UUID,
    reason: str = "",
    shown: str | None = None,
) -> Decided:
    """Move an entity to another encounter. Raises as `decisions.move_to_encounter`."""
    return _audited(
        user,
        item_id,
        DecisionAction.MOVE,
        reason,
        lambda: decisions.move_to_encounter(
            item_id,
            reviewer_of(user),
            entity_id,
            encounter_id,
            token=token,
            reason=reason,
            shown=shown,
        ),
    )


def close(user: RequestUser, item_id: UUID) -> ReviewStatus:
    """Close a review or its round. Raises as `closing.close`."""
    with audited(user, "review close", target_kind=REVIEW_ITEM, target_id=item_id) as facts:
        status = closing.close(item_id, reviewer_of(user))
        facts["status"] = status.value
    return status


def reopen(user: RequestUser, item_id: UUID, *, reason: str) -> UUID:
    """Open a closed review again. Raises as `closing.reopen`."""
    with audited(
        user, "review reopen", target_kind=REVIEW_ITEM, target_id=item_id, reason=reason
    ) as facts:
        decision = closing.reopen(item_id, reviewer_of(user), reason=reason)
        facts["decision"] = str(decision)
    return decision


def _key(reviewer: str) -> int:
    key = reviewer.removeprefix("user:")
    return int(key) if key.isdecimal() else 0


def _audited(
    user: RequestUser,
    item_id: UUID,
    action: DecisionAction,
    reason: str,
    run: Callable[[], Decided],
) -> Decided:
    # A reason about an entity can quote the document, so it stays in `review_decisions`.
    with audited(
        user, f"review {action.value}", target_kind=REVIEW_ITEM, target_id=item_id
    ) as facts:
        decided = run()
        facts |= {
            "decision": str(decided.decision_ids[0]) if decided.decision_ids else None,
            "entity": str(decided.entity_id) if decided.entity_id else None,
            "category": decided.category,
            "fields": list(decided.fields),
            "entities": decided.count,
            "repeated": decided.is_repeated,
            "has_reason": bool(reason),
        }
    return decided
