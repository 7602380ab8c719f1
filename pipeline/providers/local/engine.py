"""The steps from the pages of one encounter to its entities; each rule module is one step.

Structured rows claim their text first. The lexicon and the word endings read the rest. Assertions
are judged last. Offsets become quotes at the very end, so no rule can produce a quote that the page
does not contain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pipeline.core.types import PageSlice
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding
from pipeline.providers.local.medications.dosed_allergens import flag_dosed_allergens
from pipeline.providers.local.names.twin_lists import flag_twin_lists
from pipeline.providers.local.rule_order import RULES
from pipeline.providers.local.text.document import Document, compose
from pipeline.providers.local.text.language import languages
from pipeline.providers.local.text.zones import Zones
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import EntityReply, FoundEntity, FoundZone

_MAX_QUOTE = 2_000
_MAX_NAME = 500
_FETAL = re.compile(r"\bf(?:o?e)tal\b|\bFH[RT]\b", re.I)
"""A fetus is not the patient of the mother's record."""


def detect(question: Question) -> EntityReply:
    """Report the entities that begin in the question's own slices, in the order of the text."""
    language, unsupported = languages(question.slices)
    readable = tuple(s for s in question.slices if s.page not in unsupported)
    reading = read(readable)
    entities = placed_entities(reading, include_zones=question.include_zones)
    own_pages = {s.page for s in question.slices if not s.context}
    return EntityReply(
        item_token=question.item_token,
        language=language,
        unsupported_pages=sorted(unsupported & own_pages),
        no_known_allergies=reading.no_known_allergies,
        entities=entities,
        zones=_own_zones(reading.document, reading.zones) if question.include_zones else [],
    )


def read(slices: Sequence[PageSlice]) -> DocumentState:
    """Apply all rules to some slices."""
    reading = DocumentState.of(compose(slices))
    for rule in RULES:
        rule(reading)
    found = [_asserted(reading, each) for each in reading.findings]
    reading.findings = found
    flag_twin_lists(reading)
    flag_dosed_allergens(reading)
    reading.findings.sort(key=lambda f: (f.start, f.end))
    return reading


def placed_entities(reading: DocumentState, *, include_zones: bool) -> list[FoundEntity]:
    """Return the entities that begin in the document's own slices, in the order of the text."""
    return [
        entity
        for found in reading.findings
        if (entity := _placed(reading.document, found, include_zone=include_zones)) is not None
    ]


def _asserted(reading: DocumentState, found: Finding) -> Finding:
    """Return the finding with the assertions that follow from its place and its value."""
    if found.experiencer in (None, "patient"):
        other = reading.assertions.person_at(found.start)
        if found.category == "vital" and _FETAL.search(found.name):
            other = "other"
        # A medication of another person has no status of the patient.
        if other is not None:
            found = replace(found, experiencer=other, status=None)
    if found.value is not None:
        # A printed value is a statement, whatever the words around say about a disease.
        found = replace(found, negated=False, certainty=found.certainty or "certain")
    return found


def _placed(document: Document, finding: Finding, *, include_zone: bool) -> FoundEntity | None:
    if not document.is_own(finding.start):
        return None
    place = document.place(finding.start, min(finding.end, finding.start + _MAX_QUOTE))
    if place is None:
        return None
    return FoundEntity(
        category=finding.category,
        page=place.page,
        quote=place.quote,
        start=place.start,
        name=finding.name[:_MAX_NAME],
        value=finding.value,
        unit=finding.unit,
        reference_range=finding.reference_range,
        abnormal_flag=finding.abnormal_flag,
        strength=finding.strength,
        dose=finding.dose,
        previous_dose=finding.previous_dose,
        route=finding.route,
        frequency=finding.frequency,
        status=finding.status,
        step=finding.step,
        date=finding.date,
        reaction=finding.reaction,
        negated=finding.negated,
        temporality=finding.temporality,
        certainty=finding.certainty,
        experiencer=finding.experiencer,
        zone=finding.zone if include_zone else None,
        engine_confidence=finding.engine_confidence,
        rule=finding.rule,
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
