"""The review of one record: its entities in order, the selected entity, and what comes next. PHI.

Reading takes a constant number of statements. The list shows the portion of the order that contains
the selected entity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.expressions import RawSQL
from django.utils import timezone

from observability.actions.reviews import reviewer_names
from observability.phi.attribute_fields import attribute_fields
from observability.phi.portions import Portion, portion
from observability.phi.review_fields import FormField, correction_fields
from observability.phi.review_words import REASONS, VERDICTS, ReviewMark, mark_of
from observability.phi.source import SourceView, source_view
from pipeline.core.labels import pages
from pipeline.models import (
    Encounter,
    Entity,
    Page,
    ReviewDecision,
    ReviewItem,
    ReviewReason,
    ReviewRound,
    ReviewStatus,
    ReviewVerdict,
    selectors,
)
from pipeline.operations.review import queue
from pipeline.operations.review.priority import PriorityPart, explained
from pipeline.operations.review.rounds import NONE_WAITS, OrderedEntity, in_order
from pipeline.transitions.review_decisions import entity_state_sql

SHOWN = 50
"""Entities that the list shows at a time."""
NEAR_THE_END = 5
"""With so few waiting entities, the first image of the next record is loaded in advance."""
DECISIONS_SHOWN = 30
READ = "Structured values, if the printed words are right and their reading is wrong"
NOT_READ = "Add a structured value that was not read; a number needs its printed words above"
_STATE = entity_state_sql("pass1_entity_detections")


@dataclass(frozen=True, kw_only=True)
class ReviewRow:
    """An entity in the list."""

    number: int
    """1-based in the order of the review."""
    entity: Entity = field(repr=False)
    mark: ReviewMark
    is_waiting: bool
    is_selected: bool
    state: str
    """The state that the page shows, for the check of a decision."""

    @property
    def words(self) -> str:
        """Value, dose and other words beside the name."""
        e = self.entity
        said = (e.value, e.unit, e.dose or e.strength, e.route, e.frequency, e.reaction)
        return " ".join(str(each) for each in said if each)


@dataclass(frozen=True, kw_only=True)
class PastDecision:
    """One field of an earlier decision about the selected entity."""

    by: str
    at: datetime
    action: str
    what: str
    """The changed field, in words."""
    old: str = field(repr=False)
    new: str = field(repr=False)
    reason: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ReviewEncounter:
    """A published encounter, to which an entity can be moved or added."""

    encounter_id: UUID
    number: int
    words: str = field(repr=False)
    """The first day and the type."""


@dataclass(frozen=True, kw_only=True)
class ReviewWarning:
    """What the passes warn of, with the pages."""

    message: str
    first_page: int | None
    pages: str
    """`pages 3–5`; empty for a warning about the whole record."""


@dataclass(frozen=True, kw_only=True)
class FieldGroup:
    """Fields of the form that one heading opens."""

    title: str
    fields: Sequence[FormField] = field(repr=False)

    @property
    def is_open(self) -> bool:
        """Whether a refused form changed a field, so that the fields are open again."""
        return any(each.is_changed for each in self.fields)


@dataclass(frozen=True, kw_only=True)
class NextImage:
    """The image of a page that the reviewer can see next."""

    record_id: UUID
    page: int


@dataclass(frozen=True, kw_only=True)
class ReviewPage:
    """Everything that the page of a review shows."""

    item: ReviewItem
    reason: ReviewMark
    parts: Sequence[PriorityPart]
    holder: str
    """The name of the reviewer who holds the item; empty if it is free."""
    is_mine: bool
    closed_by: str
    first_reviewer: str
    is_first_reviewer: bool
    incomplete_note: str
    warnings: Sequence[ReviewWarning]
    entities: int
    waiting: int
    waiting_flagged: int
    unflagged_state: str
    """The state of the unflagged entities that wait, for the check of "accept all"."""
    part: Portion[ReviewRow]
    """The shown part of the list."""
    selected: ReviewRow | None = field(repr=False)
    source: SourceView | None = field(repr=False)
    fields: Sequence[FormField] = field(repr=False)
    attribute_fields: Sequence[FormField] = field(repr=False)
    """The structured attributes of the category; empty before Pass 2."""
    decisions: Sequence[PastDecision] = field(repr=False)
    encounters: Sequence[ReviewEncounter] = field(repr=False)
    before: str
    """The entity before the selected one; empty if there is none."""
    after: str
    following: str
    """The next waiting entity; empty if none waits beside the selected one."""
    images: Sequence[NextImage]
    """Loaded in advance: the page of the next entity, and the page of the last decision."""

    @property
    def attribute_groups(self) -> Sequence[FieldGroup]:
        """The attributes that the entity has, and those that a reviewer can add."""
        read = [each for each in self.attribute_fields if each.is_read]
        others = [each for each in self.attribute_fields if not each.is_read]
        groups = (FieldGroup(title=READ, fields=read), FieldGroup(title=NOT_READ, fields=others))
        return [each for each in groups if each.fields]

    @property
    def is_open(self) -> bool:
        """Whether the review is open."""
        return bool(self.item.status == ReviewStatus.OPEN)

    @property
    def is_second(self) -> bool:
        """Whether decisions are opinions of a second reviewer."""
        return bool(self.item.round == ReviewRound.SECOND)

    @property
    def is_settling(self) -> bool:
        """Whether two reviewers disagree and this round settles it."""
        return bool(self.item.round == ReviewRound.SETTLING)

    @property
    def can_claim(self) -> bool:
        """Whether the reviewer can claim the review now, and does not hold it."""
        is_free = self.is_open and not self.holder
        return is_free and not (self.is_second and self.is_first_reviewer)

    @property
    def can_decide(self) -> bool:
        """Whether the reviewer can decide; a decision claims a free review."""
        return self.is_mine or self.can_claim

    @property
    def waiting_unflagged(self) -> int:
        """The waiting entities that no flag marks."""
        return self.waiting - self.waiting_flagged

    @property
    def others(self) -> list[tuple[str, ReviewEncounter]]:
        """The encounters to which the selected entity can be moved, each with its key."""
        if self.selected is None:
            return []
        own = self.selected.entity.healthcare_encounter_id
        found = [each for each in self.encounters if each.encounter_id != own]
        return [(str(n) if n < 10 else "", each) for n, each in enumerate(found, start=1)]

    @property
    def can_accept(self) -> bool:
        """Whether the selected entity has a place on a page, so that it can be accepted."""
        return self.selected is not None and self.selected.entity.alignment != "unaligned"

    @property
    def first_verdict(self) -> ReviewMark | None:
        """What the selected entity is now, by a decision."""
        verdict = self.selected and self.selected.entity.verdict
        return VERDICTS[ReviewVerdict(verdict)] if verdict else None


def review_page(
    item_id: UUID,
    reviewer: str,
    chosen: UUID | None,
    *,
    last: UUID | None = None,
    posted: Mapping[str, str] | None = None,
) -> ReviewPage:
    """Read the page of a review; `last` was decided last, `posted` refills a refused form.

    Raises ReviewItem.DoesNotExist, or Entity.DoesNotExist for an entity of another record.
    """
    item = ReviewItem.objects.select_related("shell_file").get(id=item_id)
    record_id = item.shell_file_id
    order = in_order(item.id, record_id, item.round)
    at = _selected(order, chosen)
    part = _rows(item, portion(order, [each.entity_id for each in order], at, SHOWN), at)
    selected = next((row for row in part.rows if row.is_selected), None)
    source = _source(record_id, selected)
    now = timezone.now()
    holder = _holder(item, now)
    decisions = _decisions(selected)
    names = reviewer_names(
        [holder, item.first_reviewer, item.closed_by, *(each.decided_by for each in decisions)]
    )
    waiting = [each for each in order if each.is_waiting]
    following = _following(order, at)
    return ReviewPage(
        item=item,
        reason=REASONS[ReviewReason(item.reason)],
        parts=explained(item, now),
        holder=names.get(holder, ""),
        is_mine=holder == reviewer,
        closed_by=names.get(item.closed_by or "", ""),
        first_reviewer=names.get(item.first_reviewer or "", ""),
        is_first_reviewer=item.first_reviewer == reviewer,
        incomplete_note=selectors.incomplete_note_of(record_id),
        warnings=[_warning(each) for each in item.shell_file.warnings],
        entities=len(order),
        waiting=len(waiting),
        waiting_flagged=sum(each.is_flagged for each in waiting),
        unflagged_state=order[0].unflagged if order else NONE_WAITS,
        part=part,
        selected=selected,
        source=source,
        fields=_fields(selected, source, posted),
        attribute_fields=_attribute_fields(selected, source, posted),
        decisions=[_past(each, names) for each in decisions],
        encounters=_encounters(record_id),
        before=_id(order, at - 1),
        after=_id(order, at + 1),
        following=str(following.entity_id) if following else "",
        images=_images(item, reviewer, order, at, following, len(waiting), last),
    )


def _selected(order: Sequence[OrderedEntity], chosen: UUID | None) -> int:
    """Return the place of the chosen entity, or of the first waiting one."""
    if chosen is None:
        return next((n for n, each in enumerate(order) if each.is_waiting), 0)
    for number, each in enumerate(order):
        if each.entity_id == chosen:
            return number
    raise Entity.DoesNotExist


def _following(order: Sequence[OrderedEntity], at: int) -> OrderedEntity | None:
    behind = [*order[at + 1 :], *order[:at]]
    return next((each for each in behind if each.is_waiting), None)


def _rows(item: ReviewItem, part: Portion[OrderedEntity], at: int) -> Portion[ReviewRow]:
    """Return the shown part with the values of its entities; the entity at `at` is selected."""
    known = (
        Entity.objects.select_related("healthcare_encounter")
        .defer("second_reading", "review_flags")
        # The state belongs to the shown values only if one statement reads both.
        .annotate(state=RawSQL(_STATE, []))  # noqa: S611 - SQL without any input
        .in_bulk([each.entity_id for each in part.rows])
    )
    rows = [
        ReviewRow(
            number=number,
            entity=known[each.entity_id],
            mark=mark_of(
                known[each.entity_id],
                is_waiting=each.is_waiting,
                is_flagged=each.is_first,
                is_second=item.round == ReviewRound.SECOND,
            ),
            is_waiting=each.is_waiting,
            is_selected=number == at + 1,
            state=known[each.entity_id].state,
        )
        for number, each in enumerate(part.rows, start=part.first)
        if each.entity_id in known
    ]
    return part.of(rows)


def _warning(warning: Mapping[str, Any]) -> ReviewWarning:
    numbers = sorted(warning.get("pages") or ())
    return ReviewWarning(
        message=str(warning["message"]),
        first_page=numbers[0] if numbers else None,
        pages=pages(numbers) if numbers else "",
    )


def _encounters(record_id: UUID) -> list[ReviewEncounter]:
    rows = Encounter.objects.filter(
        shell_file_id=record_id, entities_published_at__isnull=False
    ).order_by("encounter_index")
    return [
        ReviewEncounter(
            encounter_id=encounter,
            number=number,
            words=f"{day or 'no day'} {kind.replace('_', ' ')}",
        )
        for encounter, number, day, kind in rows.values_list(
            "id", "encounter_index", "encounter_date_start", "encounter_type"
        )
    ]


def _source(record_id: UUID, selected: ReviewRow | None) -> SourceView | None:
    if selected is None:
        return None
    try:
        return source_view(record_id, selected.entity.id)
    except Page.DoesNotExist:
        return None


def _fields(
    selected: ReviewRow | None, source: SourceView | None, posted: Mapping[str, str] | None
) -> list[FormField]:
    if selected is None:
        return []
    later = source.each.later if source else None
    return correction_fields(
        selected.entity,
        later.code if later else "",
        later.shortlist if later else (),
        has_attributes=bool(later and later.is_enriched),
        posted=posted,
    )


def _attribute_fields(
    selected: ReviewRow | None, source: SourceView | None, posted: Mapping[str, str] | None
) -> list[FormField]:
    later = source.each.later if source else None
    if selected is None or later is None or not later.is_enriched:
        return []
    return attribute_fields(selected.entity.category, later.stored, posted)


def _decisions(selected: ReviewRow | None) -> list[ReviewDecision]:
    if selected is None:
        return []
    rows = ReviewDecision.objects.filter(entity_id=selected.entity.id)
    return list(rows.order_by("-created_at", "-part")[:DECISIONS_SHOWN])


def _past(decision: ReviewDecision, names: Mapping[str, str]) -> PastDecision:
    return PastDecision(
        by=names.get(decision.decided_by, decision.decided_by),
        at=decision.created_at,
        action=decision.action,
        what=decision.field.replace("_", " "),
        old=_said(decision.old_value),
        new=_said(decision.new_value),
        reason=decision.reason,
    )


def _said(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_said(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(_said(each) for each in value)
    return str(value).replace("_", " ")


def _images(
    item: ReviewItem,
    reviewer: str,
    order: Sequence[OrderedEntity],
    at: int,
    following: OrderedEntity | None,
    waiting: int,
    last: UUID | None,
) -> list[NextImage]:
    """Return the pages to load in advance; near the end, the first page of the next record."""
    here = order[at].page if order else 0
    wanted = [following.page] if following else []
    wanted += [each.page for each in order if each.entity_id == last]
    found = [
        NextImage(record_id=item.shell_file_id, page=page)
        for page in dict.fromkeys(wanted)
        if page != here
    ]
    if waiting > NEAR_THE_END:
        return found
    peeked = queue.peek_next(reviewer, but=[item.id])
    first = in_order(*peeked, 1, most=1) if peeked else []
    if peeked and first:
        found.append(NextImage(record_id=peeked[1], page=first[0].page))
    return found


def _holder(item: ReviewItem, now: datetime) -> str:
    is_held = item.claimed_until is not None and item.claimed_until > now
    return item.claimed_by or "" if item.status == ReviewStatus.OPEN and is_held else ""


def _id(order: Sequence[OrderedEntity], at: int) -> str:
    return str(order[at].entity_id) if 0 <= at < len(order) else ""
