"""Whether a code names exactly the substance, the product or the vaccine of an entity."""

from __future__ import annotations

import re

from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.providers.local.enrichment.mention_to_code import MentionToCode
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.text.tokens import normal

_FORMS = frozenset({
    "tablet", "tab", "capsule", "cap", "oral", "solution", "suspension", "cream", "ointment",
    "injection", "inhaler", "spray", "patch", "drop", "er", "xr", "sr", "xl", "cr", "la", "dr",
    "ec", "product", "pill", "allergy", "vaccine", "unspecified", "formulation", "the", "of",
    "and",
})  # fmt: skip
"""Words that name no substance."""
_SALTS = frozenset({
    "succinate", "tartrate", "hydrochloride", "sodium", "potassium", "calcium", "maleate",
    "besylate", "mesylate", "fumarate", "phosphate", "sulfate", "acetate", "citrate",
    "bitartrate", "gluconate", "carbonate", "chloride", "hydrobromide", "nitrate",
    "mononitrate", "dinitrate", "magnesium",
})  # fmt: skip
_SHORT = {"hcl": "hydrochloride", "succ": "succinate", "tart": "tartrate"}


def fit(candidate: Candidate, mention: MentionToCode) -> int | None:
    """Return the number of words of a display that equals the entity's name; None otherwise."""
    facts, evidence = mention.facts, mention.evidence
    if facts.category == "allergy" and facts.negated:
        return None
    wanted = _words(candidate.display)
    if not wanted:
        return None
    printed = _words(evidence.quote) & _SALTS
    for name in _names(facts):
        base = name - _SALTS
        salts = (name | printed) & _SALTS
        if wanted == base | salts or (wanted == base and base and not wanted & _SALTS):
            return len(wanted)
        if name == wanted:
            return len(wanted)
    return None


def _names(facts: EntityFacts) -> list[frozenset[str]]:
    """Return the name, and the substance that the lexicon gives to a name of a product."""
    found = [_words(facts.name)]
    kinds = ("medication",) if facts.category == "medication" else ("allergy", "medication")
    if facts.category != "immunization":
        found += [
            _words(term.name)
            for term in lexicon().lookup(facts.name)
            if term.category in kinds and term.kind not in ("class", "allergen")
        ]
    return [words for words in found if words]


def _words(text: str) -> frozenset[str]:
    found = (normal(word) for word in re.findall(r"[^\W_]+", text))
    return frozenset(_SHORT.get(word, word) for word in found) - _FORMS
