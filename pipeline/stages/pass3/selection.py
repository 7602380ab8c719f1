"""The entities that a narrative may cite: accepted ones, the most important first.

This module is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.stages.entity_facts import KnownEntity

MAX_ENTITIES = 120
"""Entities that one prompt lists: about 15,000 tokens."""

_ORDER = (
    "condition", "medication", "allergy", "lab", "procedure", "symptom", "immunization", "vital",
)  # fmt: skip
_BLOCKING = frozenset({"disputed", "not_grounded", "not_enriched", "status_contradicts"})
"""Flags of Pass 2 with which an entity is not told: the reviewer decides first."""


def citable(entities: Iterable[KnownEntity]) -> list[KnownEntity]:
    """Return the accepted entities without a flag that prevents telling, in their order."""
    return [
        each
        for each in entities
        if each.facts.accepted
        and not any(flag.partition(":")[0] in _BLOCKING for flag in each.facts.flags)
    ]


def chosen(entities: Sequence[KnownEntity]) -> list[KnownEntity]:
    """Return at most MAX_ENTITIES entities for one narrative, the most important first."""
    ranked = sorted(enumerate(entities), key=lambda pair: (*_rank(pair[1]), pair[0]))
    return [each for _, each in ranked[:MAX_ENTITIES]]


def _rank(each: KnownEntity) -> tuple[int, int]:
    facts = each.facts
    category = _ORDER.index(facts.category) if facts.category in _ORDER else len(_ORDER)
    is_abnormal = facts.attributes.get("computed_flag") in ("H", "L") or bool(facts.abnormal_flag)
    is_aside = facts.negated or facts.experiencer in ("family", "other")
    return (1 if is_aside else 0, category * 2 + (0 if is_abnormal else 1))
