"""Choose one code of a shortlist, or none.

A code fits if the text supports every word of its display, and the display leaves out no word of
the entity's name. If several codes fit equally well, none is chosen and a person decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.providers.local.enrichment import condition_codes, drug_codes, lab_codes
from pipeline.providers.local.enrichment.mention_to_code import MentionToCode


@dataclass(frozen=True)
class CodeChoice:
    """One code of a shortlist, or none."""

    code: Candidate | None = None
    is_uncertain: bool = False
    """Several codes fit equally well."""


Fit = Callable[[Candidate, MentionToCode], int | None]
"""How many words of a display the text supports; None if the code does not fit."""
_FITS: dict[str, Fit] = {
    "condition": condition_codes.fit,
    "symptom": condition_codes.fit,
    "procedure": condition_codes.fit,
    "medication": drug_codes.fit,
    "allergy": drug_codes.fit,
    "immunization": drug_codes.fit,
    "lab": lab_codes.fit,
    "vital": lab_codes.fit_vital,
}


class AskedEntity:
    """An entity with its evidence, as the key of a cache."""

    __slots__ = ("_shown", "evidence", "facts")

    def __init__(self, facts: EntityFacts, evidence: Evidence) -> None:
        self.facts = facts
        self.evidence = evidence
        self._shown = facts.as_shown()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AskedEntity)
            and self._shown == other._shown
            and self.facts.attributes == other.facts.attributes
            and self.evidence == other.evidence
        )

    def __hash__(self) -> int:
        return hash(self._shown)


def choose(facts: EntityFacts, evidence: Evidence) -> CodeChoice:
    """Return the one code that the text supports.

    Codes of different systems do not compete: the shortlist's order decides between the systems.
    """
    return choice_of(AskedEntity(facts, evidence))


# The local engine asks about each entity of a zone, and then the checks of its reply ask.
@lru_cache(maxsize=256)
def choice_of(asked: AskedEntity) -> CodeChoice:
    """Return the one code that the text supports for an entity that is asked about again."""
    facts, evidence = asked.facts, asked.evidence
    fit = _FITS.get(facts.category)
    if fit is None or not facts.candidates:
        return CodeChoice()
    mention = MentionToCode(facts, evidence)
    fitting = [
        (words, candidate)
        for candidate in facts.candidates
        if (words := fit(candidate, mention)) is not None
    ]
    if not fitting:
        return CodeChoice()
    system = fitting[0][1].system
    own = [(words, candidate) for words, candidate in fitting if candidate.system == system]
    most = max(words for words, _ in own)
    best = _without_headings([candidate for words, candidate in own if words == most])
    if len(best) != 1 or _is_outdone(best[0], mention):
        return CodeChoice(is_uncertain=True)
    if _is_heading_of_open(best[0], mention):
        return CodeChoice()
    return CodeChoice(code=best[0])


def _is_heading_of_open(chosen: Candidate, mention: MentionToCode) -> bool:
    """Return whether a longer code of a heading needs an absence that the text does not state."""
    return mention.facts.category in ("condition", "symptom", "procedure") and any(
        other.system == chosen.system
        and other.code != chosen.code
        and other.code.startswith(chosen.code.rstrip("."))
        and condition_codes.leaves_absence_open(other, mention)
        for other in mention.facts.candidates
    )


def _is_outdone(chosen: Candidate, mention: MentionToCode) -> bool:
    """Return whether the passage prints, at another place, what a more specific code adds."""
    if mention.facts.category not in ("condition", "symptom", "procedure"):
        return False
    return any(
        condition_codes.prints_any(condition_codes.extra_words(other, chosen), mention)
        for other in mention.facts.candidates
        if other.system == chosen.system
    )


def _without_headings(best: Sequence[Candidate]) -> list[Candidate]:
    """Leave out a code whose longer code is there with the same words (`J18` beside `J18.9`)."""
    return [
        each
        for each in best
        if not any(
            other.code != each.code and other.code.startswith(each.code.rstrip("."))
            for other in best
        )
    ]
