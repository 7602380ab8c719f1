"""A page of a record with the entities found on it. PHI.

Reading a page takes seven statements, whatever the size of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Q

from observability.phi.enriched import EnrichedView, ReadTwice, enriched
from observability.phi.highlights import Box, boxes
from pipeline.clinical.page_text.marks import HighlightRun, Place, halves, runs
from pipeline.core.errors import ErrorCode
from pipeline.documents import reader
from pipeline.models import (
    AlignmentKind,
    Entity,
    Page,
    PageSource,
    ReviewVerdict,
    ShellFile,
    selectors,
)
from pipeline.stages.pass1.review_flags import Flag, in_words

UNITS = 1000.0
"""Width of the page in the units of the drawing."""
ROOM = 3.0
"""Space around the words of a box, in the same units."""
SHOWN_ENTITIES = 500

SOURCES = {
    PageSource.TEXT_LAYER: "text layer",
    PageSource.OCR: "read by OCR",
    PageSource.MIXED: "text layer, with parts read by OCR",
    PageSource.BLANK: "blank",
    PageSource.DAMAGED: "damaged",
}
WARNINGS = {
    reader.HIDDEN_TEXT: "The page contains text that its image does not show; it was left out.",
    reader.ADDRESSES_A_MODEL: (
        "Text of the page addresses a language model; it was read as data, and it was not obeyed."
    ),
    reader.TEXT_LAYER_REJECTED: "The text layer was unusable, so the page was read by OCR.",
    reader.RENDERED_SMALLER: "The page is so large that it was read at a lower resolution.",
    reader.REPAIRED: "The file could be opened only after a repair.",
    reader.ATTACHMENTS: "The file holds other files, which were not read; upload each of them.",
    reader.TRACKED_CHANGES: (
        "The page holds changes that are not yet accepted; deleted words were left out."
    ),
    reader.ENCODING_GUESSED: (
        "The file does not say its encoding; letters with accents can be wrong."
    ),
    reader.LOST_CHARACTERS: (
        "The file was saved with lost or wrongly decoded letters; compare with the original."
    ),
    reader.PARTLY_DAMAGED: "A part of the page could not be decoded; the rest was read.",
}
REGIONS = {
    "ocr": "Read by OCR",
    "unread": "Not read",
    "tiny": "Hidden: type below 2 points",
    "faint": "Hidden: contrast below 1.5",
    "off_page": "Hidden: off the page",
    "unpainted": "Hidden: not painted",
    "covered": "Hidden: covered",
    "to_a_model": "Addresses a language model",
}
"""The kinds of `reader.Region` in words."""
PLAIN = frozenset({"active", "current", "certain", "patient"})
"""The assertions of a current fact of the patient, which the page does not repeat."""
ASSERTIONS = {
    "on_hold": "on hold",
    "not_started": "not started",
    "entered_in_error": "entered in error",
    "changed": "dose changed",
    "family": "of a relative",
    "other": "of another person",
}


COLUMNS = {"date": "entity_date"}
"""Attributes whose column has another name."""


@dataclass(frozen=True, kw_only=True)
class PageEntity:
    """An entity on a page."""

    number: int
    """1-based on this page."""
    entity: Entity = field(repr=False)
    is_marked: bool
    has_box: bool
    reasons: tuple[str, ...]
    """Why a person must check the entity; empty if no check is needed."""
    assertions: tuple[str, ...]
    """What sets the entity apart from a current fact of the patient: negated, historical, …"""
    readings: Sequence[ReadTwice] = field(default=(), repr=False)
    """The attributes that two readers of Pass 1 read differently."""
    later: EnrichedView | None = field(default=None, repr=False)
    """What Passes 1.5 and 2 say about the entity; None before these passes."""

    @property
    def is_doubted(self) -> bool:
        """Whether a person must check the entity, for a reason of any pass."""
        if self.entity.verdict not in {None, ReviewVerdict.DISPUTED}:
            return False
        return bool(self.reasons or (self.later and self.later.reasons))


@dataclass(frozen=True, kw_only=True)
class Rect:
    """A box in the units of the drawing, with space around its words."""

    number: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, kw_only=True)
class RegionRect(Rect):
    """A part of the page that only OCR could read, or that nothing could read."""

    kind: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The page's image in upright position, with boxes in its units."""

    width: float
    height: float
    """Height of the page as displayed."""
    view_width: float
    view_height: float
    """Height after the rotation."""
    turn: str
    """The SVG transform; empty if the page is upright."""
    boxes: Sequence[Rect]
    regions: Sequence[RegionRect]

    @property
    def legend(self) -> Sequence[tuple[str, str, int]]:
        """Return kind, kind in words, and number of the regions of each kind on the page."""
        kinds = [region.kind for region in self.regions]
        return [(kind, REGIONS[kind], kinds.count(kind)) for kind in REGIONS if kind in kinds]


@dataclass(frozen=True, kw_only=True)
class PageView:
    """Everything that is shown of a page."""

    shell_file: ShellFile
    number: int
    source: str
    ocr_confidence: float | None
    is_blank: bool
    runs: Sequence[HighlightRun] = field(repr=False)
    entities: Sequence[PageEntity] = field(repr=False)
    is_capped: bool
    drawing: Drawing | None
    """None for a page that could not be read at all."""
    has_words: bool
    warnings: Sequence[str]
    incomplete_note: str
    """The sentence about a record of which some encounters are missing; else empty."""
    before: int | None
    after: int | None
    next_review: int | None
    """The next page with an entity to review."""

    @property
    def review(self) -> frozenset[int]:
        """The numbers of the entities that a person must check."""
        return frozenset(each.number for each in self.entities if each.is_doubted)


def page_view(shell_file_id: UUID, number: int) -> PageView:
    """Read a page. Raises Page.DoesNotExist."""
    page = Page.objects.select_related("shell_file").get(
        shell_file_id=shell_file_id, page_number=number
    )
    record = page.shell_file
    entities = list(
        Entity.objects.filter(shell_file_id=shell_file_id)
        .filter(Q(page_number=number) | Q(page_end=number))
        .select_related("healthcare_encounter")
        .order_by("page_number", "char_start", "healthcare_encounter_id", "entity_index")[
            : SHOWN_ENTITIES + 1
        ]
    )
    places = places_on(page, entities[:SHOWN_ENTITIES])
    drawn = boxes(page.words or (), places)
    marked, boxed = {place[0] for place in places}, {box.number for box in drawn}
    later = enriched([entity.id for entity in entities[:SHOWN_ENTITIES]])
    last = record.page_count or record.pages_read
    to_review = (
        Entity.objects.filter(shell_file_id=shell_file_id, page_number__gt=number)
        .filter(Q(verdict=None) | Q(verdict=ReviewVerdict.DISPUTED))
        .exclude(Q(review_flags=[]) & (Q(enriched=None) | Q(enriched__flags=[])))
        .order_by("page_number")
        .values_list("page_number", flat=True)
        .first()
    )
    return PageView(
        shell_file=record,
        number=number,
        source=SOURCES[PageSource(page.source)],
        ocr_confidence=page.ocr_confidence,
        is_blank=page.is_blank,
        runs=runs(page.text, places),
        entities=[
            PageEntity(
                number=n,
                entity=entity,
                is_marked=n in marked,
                has_box=n in boxed,
                reasons=review_reasons(entity),
                assertions=assertions_of(entity),
                readings=readings_of(entity),
                later=later.get(entity.id),
            )
            for n, entity in enumerate(entities[:SHOWN_ENTITIES], start=1)
        ],
        is_capped=len(entities) > SHOWN_ENTITIES,
        drawing=drawing_of(page, drawn),
        has_words=bool(page.words),
        warnings=_warnings(record, page),
        incomplete_note=selectors.incomplete_note_of(shell_file_id),
        before=number - 1 if number > 1 else None,
        after=number + 1 if number < last else None,
        next_review=to_review,
    )


def places_on(page: Page, entities: Sequence[Entity]) -> list[Place]:
    """Return the positions of the entities on this page; unaligned entities are left out."""
    own = page.page_number
    others = {n for e in entities for n in (e.page_number, e.page_end) if n and n != own}
    texts = {own: page.text}
    if others:
        texts |= dict(
            Page.objects.filter(
                shell_file_id=page.shell_file_id, page_number__in=others
            ).values_list("page_number", "text")
        )
    found: list[Place] = []
    for number, entity in enumerate(entities, start=1):
        start, end = entity.char_start, entity.char_end
        if start is None or end is None:
            continue
        if entity.page_end is None:
            found.append((number, start, end))
            continue
        edge, begin = halves(
            entity.quote,
            texts.get(entity.page_number, ""),
            texts.get(entity.page_end, ""),
            start,
            end,
        )
        is_first = entity.page_number == own
        found.append((number, start, edge) if is_first else (number, begin, end))
    return found


def review_reasons(entity: Entity) -> tuple[str, ...]:
    """Return in words why a person must check what Pass 1 says; empty if no check is needed."""
    flags: list[str] = list(map(str, entity.review_flags))
    if entity.alignment == AlignmentKind.UNALIGNED and "unaligned" not in flags:
        flags.append("unaligned")
    if not entity.second_reading:
        return in_words(flags)
    # The table of both readings names the disputed attributes.
    others = [flag for flag in flags if not flag.startswith(f"{Flag.DISPUTED}:")]
    return ("two readers disagree", *in_words(others))


def readings_of(entity: Entity) -> tuple[ReadTwice, ...]:
    """Return the attributes that two readers of Pass 1 read differently."""
    second: dict[str, Any] = entity.second_reading or {}
    return tuple(
        ReadTwice(
            attribute=name.replace("_", " "),
            reply=_said(name, getattr(entity, COLUMNS.get(name, name))),
            second=_said(name, read),
        )
        for name, read in second.items()
    )


def _said(name: str, reading: object) -> str:
    if reading is None:
        return "not stated"
    if name == "negated":
        return "negated" if reading else "not negated"
    return ASSERTIONS.get(str(reading), str(reading))


def assertions_of(entity: Entity) -> tuple[str, ...]:
    """Return the assertions that an entity has beside the plain `current`, `certain`, `patient`."""
    said = (entity.status, entity.temporality, entity.certainty, entity.experiencer)
    unusual = dict.fromkeys(str(word) for word in said if word and word not in PLAIN)
    words = [ASSERTIONS.get(word, word) for word in unusual]
    return ("negated", *words) if entity.negated else tuple(words)


def drawing_of(page: Page, drawn: Sequence[Box]) -> Drawing | None:
    """Return the image of a page with boxes; None for a page that could not be read."""
    if page.width <= 0 or page.height <= 0:
        return None
    width, height = UNITS, round(UNITS * page.height / page.width, 1)
    turn = {
        90: f"translate({height} 0) rotate(90)",
        180: f"translate({width} {height}) rotate(180)",
        270: f"translate(0 {width}) rotate(270)",
    }.get(page.rotation, "")
    lies = page.rotation in {90, 270}
    return Drawing(
        width=width,
        height=height,
        view_width=height if lies else width,
        view_height=width if lies else height,
        turn=turn,
        boxes=[
            Rect(number=box.number, **_roomy(width, height, box.x0, box.y0, box.x1, box.y1))
            for box in drawn
        ],
        regions=[
            RegionRect(
                number=number,
                kind=kind,
                title=REGIONS[kind],
                **_roomy(width, height, x0, y0, x1, y1, 2 * ROOM),
            )
            for number, (kind, x0, y0, x1, y1) in enumerate(page.regions, start=1)
        ],
    )


def _roomy(
    width: float,
    height: float,
    x0: float,
    y0: float,
    x1: float,
    y1: float,
    room: float = ROOM,
) -> dict[str, float]:
    """Return place and size of a box in the units of the drawing, with space around it."""
    return {
        "x": round(x0 * width - room, 1),
        "y": round(y0 * height - room, 1),
        "width": round((x1 - x0) * width + 2 * room, 1),
        "height": round((y1 - y0) * height + 2 * room, 1),
    }


def _warnings(record: ShellFile, page: Page) -> list[str]:
    return [
        *(_explained(str(code), page) for code in page.warnings),
        *(
            warning["message"]
            for warning in record.warnings
            if page.page_number in (warning.get("pages") or ())
            # The page's own warning says the same, with the share of the page.
            and warning["code"] != ErrorCode.PARTLY_READ
        ),
    ]


def _explained(code: str, page: Page) -> str:
    if code == reader.PARTLY_READ:
        share = f"{page.unread_share:.1%}" if page.unread_share >= 0.001 else "Less than 0.1%"
        return f"{share} of the page shows ink that nothing could read; look at the marked parts."
    return WARNINGS.get(code, code.replace("_", " "))
