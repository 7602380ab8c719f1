"""The decisions of a reviewer: accept, correct, reject, add, move, and accept all the unflagged.

Each function is one transaction: it locks the record's job and the item, checks the claim, stores
the decision, and writes the fields. A repeated token returns the stored decision, without a write.
`shown` is the state that the reviewer saw; the statement that stores the decision compares it.
Raises UserError with REVIEW_NOT_HELD, NOT_FOUND, VALUE_INVALID, STATE_CONFLICT, REVIEW_CHANGED or
REVIEW_FLAGS_OPEN; nothing is changed then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction

from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import (
    REVIEWER_ENGINE,
    AlignmentKind,
    DecisionAction,
    Encounter,
    EnrichedEntity,
    Entity,
    Page,
    ReviewDecision,
    ReviewItem,
    ReviewRound,
    ReviewVerdict,
    Session,
    ZoneResult,
)
from pipeline.operations.review.fields import (
    Correction,
    added_attributes,
    added_columns,
    correction,
)
from pipeline.operations.review.rounds import (
    DecisionWrites,
    flagged_waiting,
    opinion,
    unflagged_state,
)
from pipeline.transitions import HeldReview, hold_review
from pipeline.transitions.review_decisions import (
    Change,
    EntityPlace,
    add_entity,
    lock_record,
    move_entity,
    store_acceptances,
    store_decision,
    write_attributes,
    write_entity,
)

LONGEST_QUOTE = 2_000

VERDICTS: Mapping[DecisionAction, ReviewVerdict] = {
    DecisionAction.ACCEPT: ReviewVerdict.ACCEPTED,
    DecisionAction.CORRECT: ReviewVerdict.CORRECTED,
    DecisionAction.REJECT: ReviewVerdict.REJECTED,
}
"""The verdict of each action about one entity."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A stored decision, for the page and for the audit; without values of the record."""

    item_id: UUID
    shell_file_id: UUID
    action: DecisionAction
    decision_ids: tuple[UUID, ...]
    entity_id: UUID | None = None
    category: str = ""
    fields: tuple[str, ...] = ()
    count: int = 1
    """Entities that the decision is about."""
    is_repeated: bool = False
    """The token was used before; this call changed nothing."""


@dataclass(frozen=True, kw_only=True)
class MissedEntity:
    """An entity that a reviewer adds: its place on a page, and its printed fields."""

    encounter_id: UUID
    page: int
    start: int
    end: int
    """Offsets in the text of the page; the words between them are the quote."""
    category: str
    name: str = ""
    """Empty for the quote itself."""
    printed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Fields of `review.fields.PRINTED`, without the name."""


def decide(
    item_id: UUID,
    reviewer: str,
    entity_id: UUID,
    action: DecisionAction,
    *,
    token: UUID,
    changes: Mapping[str, Any] | None = None,
    reason: str = "",
    shown: str | None = None,
) -> Decided:
    """Accept, correct or reject one entity; `changes` holds the corrected values by field.

    In the second round, the decision is an opinion: the entity stays as the first reviewer left it,
    and is disputed if the opinion differs.
    """
    if action not in VERDICTS:
        raise UserError(
            f"the action is one of {', '.join(VERDICTS)}", code=UserErrorCode.VALUE_INVALID
        )
    if (action is DecisionAction.CORRECT) != bool(changes):
        raise UserError(
            "a correction names fields with their values, and no other decision does",
            code=UserErrorCode.VALUE_INVALID,
        )
    with _holding(item_id, reviewer, token) as (held, stored):
        if held is None:
            return stored
        entity, enriched = _entity(held, entity_id)
        verdict = VERDICTS[action]
        if verdict is not ReviewVerdict.REJECTED:
            _refuse_unaligned(entity)
        corrected = correction(entity, enriched, changes) if changes else Correction(changes=())
        if held.round == ReviewRound.SECOND:
            noted = opinion(held, entity, verdict, corrected)
        else:
            verdicts = Change(field="verdict", old=entity.verdict, new=verdict.value)
            noted = DecisionWrites(
                changes=(verdicts, *corrected.changes),
                entity={"verdict": verdict.value, **corrected.entity},
                enriched=corrected.enriched,
            )
        ids = store_decision(
            held,
            reviewer=reviewer,
            action=action.value,
            token=token,
            changes=noted.changes,
            entity_id=entity.id,
            reason=reason,
            shown=shown,
        )
        _refuse_changed(ids)
        if noted.entity:
            write_entity(entity.id, noted.entity)
        if enriched is not None and noted.enriched:
            write_attributes(enriched.id, noted.enriched)
        return Decided(
            item_id=item_id,
            shell_file_id=held.shell_file_id,
            action=action,
            decision_ids=ids,
            entity_id=entity.id,
            category=entity.category,
            fields=tuple(change.field for change in noted.changes),
        )


def accept_all_unflagged(
    item_id: UUID, reviewer: str, *, token: UUID, reason: str = "", shown: str | None = None
) -> Decided:
    """Accept every entity without a decision; `shown` is a state of `unflagged_state`.

    Raises UserError (REVIEW_FLAGS_OPEN) while a flagged entity waits for a decision of its own.
    """
    with _holding(item_id, reviewer, token) as (held, stored):
        if held is None:
            return stored
        waiting = flagged_waiting(held)
        if waiting:
            raise UserError(
                f"{waiting} flagged entities wait for a decision of their own; decide about them"
                " first",
                code=UserErrorCode.REVIEW_FLAGS_OPEN,
            )
        count = store_acceptances(held, reviewer=reviewer, token=token, reason=reason, shown=shown)
        if not count and shown is not None and shown != _unflagged(held):
            raise UserError(
                "other entities wait now than this page showed; nothing was changed. Look at the"
                " entities, and accept all again",
                code=UserErrorCode.REVIEW_CHANGED,
            )
        ids = ReviewDecision.objects.filter(token=token).order_by("part")[:1]
        return Decided(
            item_id=item_id,
            shell_file_id=held.shell_file_id,
            action=DecisionAction.ACCEPT,
            decision_ids=tuple(ids.values_list("id", flat=True)),
            fields=("verdict",),
            count=count,
        )


def add_missed_entity(
    item_id: UUID, reviewer: str, missed: MissedEntity, *, token: UUID, reason: str = ""
) -> Decided:
    """Add an entity that no engine found, with its words on the page as its quote."""
    with _holding(item_id, reviewer, token) as (held, stored):
        if held is None:
            return stored
        encounter = _encounter(held, missed.encounter_id)
        quote = _quote(held, missed)
        columns = added_columns(missed.category, missed.name or quote, missed.printed)
        entity = _new_entity(held, encounter, missed, quote, columns)
        enriched = _new_attributes(entity)
        values = {"quote": quote, "category": missed.category, **added_words(entity)}
        ids = store_decision(
            held,
            reviewer=reviewer,
            action=DecisionAction.ADD.value,
            token=token,
            changes=(
                Change(field="verdict", new=ReviewVerdict.ADDED.value),
                Change(field="entity", new=values),
            ),
            entity_id=entity.id,
            place=EntityPlace(
                encounter_id=encounter.id,
                category=missed.category,
                page=missed.page,
                start=missed.start,
                end=missed.end,
            ),
            reason=reason,
        )
        add_entity(entity, enriched)
        return Decided(
            item_id=item_id,
            shell_file_id=held.shell_file_id,
            action=DecisionAction.ADD,
            decision_ids=ids,
            entity_id=entity.id,
            category=entity.category,
            fields=("entity",),
        )


def move_to_encounter(
    item_id: UUID,
    reviewer: str,
    entity_id: UUID,
    encounter_id: UUID,
    *,
    token: UUID,
    reason: str = "",
    shown: str | None = None,
) -> Decided:
    """Move an entity to another encounter of the same record."""
    with _holding(item_id, reviewer, token) as (held, stored):
        if held is None:
            return stored
        _refuse_in_second_round(held)
        entity, _ = _entity(held, entity_id)
        _refuse_unaligned(entity)
        encounter = _encounter(held, encounter_id)
        if encounter.id == entity.healthcare_encounter_id:
            raise UserError(
                "the entity belongs to this encounter already", code=UserErrorCode.STATE_CONFLICT
            )
        ids = store_decision(
            held,
            reviewer=reviewer,
            action=DecisionAction.MOVE.value,
            token=token,
            changes=(
                Change(
                    field="healthcare_encounter_id",
                    old=str(entity.healthcare_encounter_id),
                    new=str(encounter.id),
                ),
                Change(field="verdict", old=entity.verdict, new=ReviewVerdict.CORRECTED.value),
            ),
            entity_id=entity.id,
            reason=reason,
            shown=shown,
        )
        _refuse_changed(ids)
        move_entity(entity, encounter.id)
        return Decided(
            item_id=item_id,
            shell_file_id=held.shell_file_id,
            action=DecisionAction.MOVE,
            decision_ids=ids,
            entity_id=entity.id,
            category=entity.category,
            fields=("healthcare_encounter_id",),
        )


def added_words(entity: Entity) -> dict[str, Any]:
    """Return what an added entity says, ready for JSON; PHI."""
    day = entity.entity_date
    return {
        name: value
        for name, value in (
            ("name", entity.name),
            ("value", entity.value),
            ("unit", entity.unit),
            ("dose", entity.dose),
            ("strength", entity.strength),
            ("route", entity.route),
            ("frequency", entity.frequency),
            ("entity_date", day.isoformat() if day else None),
        )
        if value is not None
    }


@contextmanager
def _holding(
    item_id: UUID, reviewer: str, token: UUID
) -> Iterator[tuple[HeldReview, Any] | tuple[None, Decided]]:
    """Lock the record and the item for one decision; or yield the decision of a repeated token."""
    with transaction.atomic():
        lock_record(item_id)
        rows = list(
            ReviewDecision.objects.filter(token=token, decided_by=reviewer).order_by("part")
        )
        if rows:
            yield None, _repeated(rows)
            return
        held = hold_review(item_id, reviewer)
        if held is None:
            raise not_held(item_id)
        yield held, None


def not_held(item_id: UUID) -> UserError:
    """Return why a reviewer cannot decide about an item."""
    item = ReviewItem.objects.filter(id=item_id).first()
    if item is None:
        return UserError("there is no such review", code=UserErrorCode.NOT_FOUND)
    if item.status != "open":
        return UserError("the review is closed; reopen it first", code=UserErrorCode.STATE_CONFLICT)
    return UserError(
        "you do not hold this review any more; claim it again. Nothing was changed",
        code=UserErrorCode.REVIEW_NOT_HELD,
    )


def _repeated(rows: Sequence[ReviewDecision]) -> Decided:
    first = rows[0]
    entities = {row.entity_id for row in rows}
    return Decided(
        item_id=first.review_item_id,
        shell_file_id=first.shell_file_id,
        action=DecisionAction(first.action),
        decision_ids=tuple(row.id for row in rows),
        entity_id=first.entity_id if len(entities) == 1 else None,
        category=first.category or "" if len(entities) == 1 else "",
        fields=tuple(dict.fromkeys(row.field for row in rows)),
        count=len(entities),
        is_repeated=True,
    )


def _entity(held: HeldReview, entity_id: UUID) -> tuple[Entity, EnrichedEntity | None]:
    """Lock an entity of the record; a raw write of it waits for the decision."""
    entity = (
        Entity.objects.select_for_update()
        .filter(id=entity_id, shell_file_id=held.shell_file_id)
        .first()
    )
    if entity is None:
        raise UserError("the record has no such entity", code=UserErrorCode.NOT_FOUND)
    enriched = EnrichedEntity.objects.select_for_update().filter(entity_id=entity_id).first()
    return entity, enriched


def _encounter(held: HeldReview, encounter_id: UUID) -> Encounter:
    encounter = Encounter.objects.filter(
        id=encounter_id, shell_file_id=held.shell_file_id, entities_published_at__isnull=False
    ).first()
    if encounter is None:
        raise UserError("the record has no such published encounter", code=UserErrorCode.NOT_FOUND)
    return encounter


def _quote(held: HeldReview, missed: MissedEntity) -> str:
    text = Page.objects.filter(
        shell_file_id=held.shell_file_id, page_number=missed.page
    ).values_list("text", flat=True)
    words = next(iter(text), "")[max(0, missed.start) : missed.end]
    if missed.start < 0 or missed.end - missed.start != len(words) or not words.strip():
        raise UserError(
            "mark words of one page; these offsets are not on the page",
            code=UserErrorCode.VALUE_INVALID,
        )
    if len(words) > LONGEST_QUOTE:
        raise UserError(
            f"mark at most {LONGEST_QUOTE} characters", code=UserErrorCode.VALUE_INVALID
        )
    return words


def _new_entity(
    held: HeldReview,
    encounter: Encounter,
    missed: MissedEntity,
    quote: str,
    columns: Mapping[str, Any],
) -> Entity:
    return Entity(
        shell_file_id=held.shell_file_id,
        healthcare_encounter=encounter,
        processing_session_id=Session.objects.values_list("id", flat=True).get(
            shell_file_id=held.shell_file_id
        ),
        patient_id=encounter.patient_id,
        category=missed.category,
        page_number=missed.page,
        char_start=missed.start,
        char_end=missed.end,
        quote=quote,
        alignment=AlignmentKind.EXACT,
        engine=REVIEWER_ENGINE,
        engine_confidence=1.0,
        confidence=1.0,
        **columns,
    )


def _new_attributes(entity: Entity) -> EnrichedEntity | None:
    """Return the attributes of an added entity, if Pass 2 has worked on its encounter."""
    if not ZoneResult.objects.filter(
        healthcare_encounter_id=entity.healthcare_encounter_id
    ).exists():
        return None
    return EnrichedEntity(
        entity=entity,
        shell_file_id=entity.shell_file_id,
        healthcare_encounter_id=entity.healthcare_encounter_id,
        patient_id=entity.patient_id,
        category=entity.category,
        attributes=added_attributes(entity),
        engine=REVIEWER_ENGINE,
    )


def _unflagged(held: HeldReview) -> str:
    return unflagged_state(held.item_id, held.shell_file_id, held.round)


def _refuse_changed(stored: Sequence[UUID]) -> None:
    """Refuse a decision that the database did not store, because its entity has another state."""
    if not stored:
        raise UserError(
            "the entity has changed since this page was shown; nothing was changed. Look at the"
            " entity, and decide again",
            code=UserErrorCode.REVIEW_CHANGED,
        )


def _refuse_unaligned(entity: Entity) -> None:
    if entity.alignment == AlignmentKind.UNALIGNED:
        raise UserError(
            "no page shows the quote of this entity; reject it, and add the words of the page",
            code=UserErrorCode.STATE_CONFLICT,
        )


def _refuse_in_second_round(held: HeldReview) -> None:
    if held.round == ReviewRound.SECOND:
        raise UserError(
            "the second reviewer accepts, corrects or rejects; the first reviewer's entities stay",
            code=UserErrorCode.STATE_CONFLICT,
        )
