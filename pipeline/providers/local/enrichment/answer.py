"""The local answer to the question of Pass 2: the attributes of each entity, as printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pydantic import ValidationError

from pipeline.clinical.evidence import Evidence, evidence_of
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.enrichment.code_choice import AskedEntity, CodeChoice, choice_of
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import EnrichmentReply, FoundAttributes

Reader = Callable[[EntityFacts, Evidence], dict[str, str]]
_READERS = {
    "condition": "conditions",
    "symptom": "conditions",
    "lab": "measurements",
    "vital": "measurements",
    "medication": "medications",
    "allergy": "allergies",
    "immunization": "immunizations",
    "procedure": "procedures",
}
"""Category → the module of this package whose `read` finds its attributes."""
_PASS1 = (
    "value", "unit", "reference_range", "abnormal_flag", "strength", "dose", "route", "frequency",
    "status", "reaction",
)  # fmt: skip
"""The attributes that Pass 1 reads too."""


def enrich(question: Question) -> EnrichmentReply:
    """Report the attributes of every entity of the question, in order."""
    return EnrichmentReply(
        item_token=question.item_token,
        entities=[
            answer_about(each, evidence_of(each, question.slices, question.facts))
            for each in question.facts
        ],
    )


def answer_about(
    facts: EntityFacts, evidence: Evidence, chosen: CodeChoice | None = None
) -> FoundAttributes:
    """Return the engine's answer about one entity; `chosen` is its code, if known already.

    The caller must not change the answer: a later question about the same entity gets it too.
    """
    asked = AskedEntity(facts, evidence)
    code = (chosen or choice_of(asked)).code
    return _answer(asked, code and code.token)


# The engine answers about each entity of a zone, and then the checks of its reply ask again.
@lru_cache(maxsize=256)
def _answer(asked: AskedEntity, token: str | None) -> FoundAttributes:
    facts = asked.facts
    reader = _reader(facts.category)
    read = reader(facts, asked.evidence) if reader else {n: getattr(facts, n) for n in _PASS1}
    values: dict[str, Any] = {"id": facts.key or "e", "code": token, **read}
    try:
        return FoundAttributes(**values)
    except ValidationError:
        # A text that the schema refuses is no attribute; the rest of the zone must not be lost.
        return FoundAttributes(id=values["id"])


@cache
def _reader(category: str) -> Reader | None:
    """Return the reader of a category; a category without a module keeps Pass 1's attributes."""
    name = f"{__package__}.{_READERS.get(category, '')}"
    if name.endswith(".") or find_spec(name) is None:
        return None
    reader: Reader = import_module(name).read
    return reader
