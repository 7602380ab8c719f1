"""The steps from the pages of one encounter to its entities; each rule module is one step.

Structured rows claim their text first. The lexicon and the word endings read the rest. Assertions
are judged last. Offsets become quotes at the very end, so no rule can produce a quote that the page
does not contain.
"""

from __future__ import annotations

from pipeline.providers.local.document import Document, compose
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding
from pipeline.providers.local.language import languages
from pipeline.providers.local.rules import RULES
from pipeline.providers.local.zones import Zones
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import EntityReply, FoundEntity, FoundZone

_MAX_QUOTE = 2_000
_MAX_NAME = 500


def detect(question: Question) -> EntityReply:
    """Report the entities that begin in the question's own slices, in the order of the text."""
    language, unsupported = languages(question.slices)
    readable = tuple(s for s in question.slices if s.page not in unsupported)
    document = compose(readable)
    reading = DocumentState.of(document)
    for rule in RULES:
        rule(reading)
    entities = [
        entity
        for found in sorted(reading.found, key=lambda f: (f.start, f.end))
        if (entity := _placed(document, found, include_zone=question.include_zones)) is not None
    ]
    own_pages = {s.page for s in question.slices if not s.context}
    return EntityReply(
        item_token=question.item_token,
        language=language,
        unsupported_pages=sorted(unsupported & own_pages),
        no_known_allergies=reading.no_known_allergies,
        entities=entities,
        zones=_own_zones(document, reading.zones) if question.include_zones else [],
    )


def _placed(document: Document, found: Finding, *, include_zone: bool) -> FoundEntity | None:
    if not document.is_own(found.start):
        return None
    place = document.place(found.start, min(found.end, found.start + _MAX_QUOTE))
    if place is None:
        return None
    return FoundEntity(
        category=found.category,
        page=place.page,
        quote=place.quote,
        start=place.start,
        name=found.name[:_MAX_NAME],
        value=found.value,
        unit=found.unit,
        reference_range=found.reference_range,
        abnormal_flag=found.abnormal_flag,
        dose=found.dose,
        route=found.route,
        frequency=found.frequency,
        date=found.date,
        reaction=found.reaction,
        negated=found.negated,
        historical=found.historical,
        hypothetical=found.hypothetical,
        family=found.family,
        zone=found.zone if include_zone else None,
        strength=found.strength,
        rule=found.rule,
    )


def _own_zones(document: Document, zones: Zones) -> list[FoundZone]:
    found = []
    for zone in zones.all:
        if not document.is_own(zone.start):
            continue
        last = max(zone.start, zone.end - 1)
        while last > zone.start and document.text[last].isspace():
            last -= 1
        found.append(
            FoundZone(
                zone_type=zone.zone,
                page_start=document.piece_at(zone.start).slice.page,
                page_end=document.piece_at(last).slice.page,
                heading=zone.heading,
            )
        )
    return found
