"""The place in a record where one entity is printed: quote, image of the lines, and values. PHI.

Reading a source takes at most seven statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from observability.phi.enriched import enriched
from observability.phi.highlights import boxes
from observability.phi.pages import (
    Drawing,
    PageEntity,
    assertions_of,
    drawing_of,
    places_on,
    readings_of,
    review_reasons,
)
from pipeline.clinical.page_text.marks import HighlightRun, runs
from pipeline.models import Entity, Page, RecordListItem

AROUND = 90.0
"""Height of the page above and below the quote that the image shows, in units of the drawing."""
MENTIONS_SHOWN = 100


@dataclass(frozen=True, kw_only=True)
class SourceMention:
    """One of the entities that support a list entry."""

    number: int
    entity_id: str
    page: int
    is_shown: bool


@dataclass(frozen=True, kw_only=True)
class SourceView:
    """One entity with its place on the page."""

    record_id: UUID
    each: PageEntity
    page: int
    drawing: Drawing | None
    view_box: str
    """The part of the drawing around the quote, as an SVG `viewBox`."""
    runs: Sequence[HighlightRun] = field(repr=False)
    """The text of the page, with the quote."""
    item_id: str
    """The list entry whose mentions are listed; "" for an entity alone."""
    item_name: str = field(repr=False)
    mentions: Sequence[SourceMention] = ()
    mentions_left_out: int = 0


def source_view(record_id: UUID, entity_id: UUID, item_id: UUID | None = None) -> SourceView:
    """Read the source of an entity.

    Raises Entity.DoesNotExist, or RecordListItem.DoesNotExist for an entry of another record.
    """
    entity = (
        Entity.objects.select_related("healthcare_encounter")
        .filter(shell_file_id=record_id)
        .get(id=entity_id)
    )
    item = item_id and RecordListItem.objects.filter(shell_file_id=record_id).get(id=item_id)
    page = Page.objects.get(shell_file_id=record_id, page_number=entity.page_number)
    places = places_on(page, [entity])
    drawn = boxes(page.words or (), places)
    drawing = drawing_of(page, drawn)
    mentions = _mentions(item, entity.id) if item else []
    return SourceView(
        record_id=record_id,
        each=PageEntity(
            number=1,
            entity=entity,
            is_marked=bool(places),
            has_box=bool(drawn),
            reasons=review_reasons(entity),
            assertions=assertions_of(entity),
            readings=readings_of(entity),
            later=enriched([entity.id]).get(entity.id),
        ),
        page=entity.page_number,
        drawing=drawing,
        view_box=_view_box(drawing) if drawing else "",
        runs=runs(page.text, places),
        item_id=str(item.id) if item else "",
        item_name=item.name if item else "",
        mentions=mentions[:MENTIONS_SHOWN],
        mentions_left_out=max(0, len(mentions) - MENTIONS_SHOWN),
    )


def _mentions(item: RecordListItem, shown: UUID) -> list[SourceMention]:
    pages = dict(Entity.objects.filter(id__in=item.entity_ids).values_list("id", "page_number"))
    known = [each for each in item.entity_ids if each in pages]
    return [
        SourceMention(number=n, entity_id=str(each), page=pages[each], is_shown=each == shown)
        for n, each in enumerate(known, start=1)
    ]


def _view_box(drawing: Drawing) -> str:
    """Return the lines around the boxes; the whole page if nothing is marked or the page turns."""
    if drawing.turn or not drawing.boxes:
        return f"0 0 {drawing.view_width} {drawing.view_height}"
    top = max(0.0, min(box.y for box in drawing.boxes) - AROUND)
    bottom = min(drawing.height, max(box.y + box.height for box in drawing.boxes) + AROUND)
    return f"0 {round(top, 1)} {drawing.width} {round(max(bottom - top, 1.0), 1)}"
