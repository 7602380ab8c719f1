"""The one-time work of the stages: compiles the patterns and reads the word lists of their checks.

A worker calls `warm_up` before it forks, so that its horses inherit the result. No row, server or
client is touched.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import cast

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative.check import check
from pipeline.clinical.page_text.rows import quoted_text
from pipeline.codes.search import query, spelling
from pipeline.codes.search.search import SYSTEMS
from pipeline.core.types import PageSlice, PageText
from pipeline.providers.local import answer
from pipeline.providers.prompts import render_enrichment, render_entities, render_narrative
from pipeline.providers.schemas import EnrichmentReply, EntityReply, NarrativeReply
from pipeline.stages.page_checks.quote_checks import not_in_quote
from pipeline.stages.pass1.align import align_all
from pipeline.stages.pass2.assemble import enriched

_TOKEN = "0" * 16
_PAGE = """\
VITAL SIGNS
BP 128/76 mmHg, HR 72 bpm, RR 16 breaths/min, Temp 37.1 C, SpO2 98 %, Weight 81.5 kg

MEDICATIONS
Metformin 500 mg by mouth twice daily for type 2 diabetes
Albuterol 2 puffs every 4-6 hours as needed

LABORATORY
Test            Result    Flag    Units       Reference Range
Sodium          140               mmol/L      135-145
Hemoglobin A1c  8.1       H       %           4.0-5.6

ASSESSMENT AND PLAN
Essential hypertension. Mother had breast cancer. No chest pain. Possible pneumonia.
Appendectomy in 2001. Influenza vaccine given on 05/06/2020. Penicillin causes hives.
"""
"""An invented page that most checks have something to do with."""


def warm_up() -> None:
    """Search codes, and check one reply of each kind about an invented page."""
    for category in SYSTEMS:
        query.parse(query.tokens_of("Essential hypertension", category), category)
        spelling.near_forms("hyperlipidernia", category)
    page = PageText(number=1, text=_PAGE)
    slices = (PageSlice(page=1, start=0, text=_PAGE),)
    facts = _found(page, slices)
    reply = cast(EnrichmentReply, answer(render_enrichment(_TOKEN, slices, facts)))
    attributes = {each.id: each for each in reply.entities}
    known = {
        each.key: replace(
            each,
            attributes=enriched(
                each, attributes.get(each.key), None, slices, neighbours=facts, reads_again=True
            ).attributes,
        )
        for each in facts
    }
    limits = {"sentences": 20, "words": 40, "record": 0}
    told = cast(NarrativeReply, answer(render_narrative(_TOKEN, tuple(known.values()), limits)))
    for sentence in told.sentences:
        check(sentence.text, [known[key] for key in sentence.ids])


def _found(page: PageText, slices: tuple[PageSlice, ...]) -> tuple[EntityFacts, ...]:
    """Return the entities of a page, after the checks of Pass 1."""
    reply = cast(EntityReply, answer(render_entities(_TOKEN, slices, include_zones=True)))
    known = {each.name for each in fields(EntityFacts)} - {"entity_date"}
    found: list[EntityFacts] = []
    for aligned in align_all(reply.entities, (page.whole,), {1: page}):
        entity, spans = aligned.entity, aligned.alignment.spans
        if not spans:
            continue
        list(not_in_quote(entity, quoted_text(entity.quote, spans, {1: page}, ())))
        printed = {name: value for name, value in entity if name in known}
        place = {"page": 1, "start": spans[0].start, "end": spans[0].end}
        found.append(EntityFacts(**{**printed, **place, "key": f"e{len(found) + 1}"}))
    return tuple(found)
