"""Allergies with their reactions, and statements that the patient has no allergies.

A substance is an allergen in the allergy section, and in a sentence that speaks of an allergy.
Everywhere else the substance keeps its ordinary meaning.
"""

from __future__ import annotations

import re

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.lexicon import TermMatch

_NONE_KNOWN = re.compile(
    r"\b(?:NKDA|NKA|NKFA|NDA(?=\b[^a-z]*$)|no[ ]+(?:known[ ]+|reported[ ]+|history[ ]+of[ ]+"
    r"|documented[ ]+|significant[ ]+)*"
    r"(?:(?:drug|medication|medicine|food|environmental|latex|seasonal|or|and|other|,"
    r"|/)[ ,/]*)*allerg(?:ies|y|ic[ ]reactions?)(?![ ]+to)"
    r"|(?:denies|without|no)[ ]+(?:any[ ]+|known[ ]+)*(?:(?:drug|medication|food|or"
    r"|and)[ ]+)*allerg(?:ies|y)\b(?![ ]+to)|not[ ]+allergic[ ]+to[ ]+any)",
    re.I,
)
_NONE_IN_SECTION = re.compile(
    r"\s*(?:none(?:[ ]known)?|no[ ]known|nil|denies(?:[ ]any)?|negative|n/a|no)[ ]*(?:[.,;\n]|$)",
    re.I,
)
_OTHER_KIND = re.compile(r"\b(?:food|environmental|latex|seasonal)\b", re.I)
_DRUG_KIND = re.compile(r"\b(?:drug|medication|medicine)\b", re.I)
_TO = re.compile(
    (
        r"\b(?:allerg(?:ic(?:[ ]reactions?)?|y|ies)|intoleran(?:t|ce)|anaphyla(?:xis|ctic)"
        r"|adverse[ ]reactions?|hypersensitivity|sensitive|sensitivity)[ ]+(?:to"
        r"|from)\b(?![ ]+(?:light|sound|touch|cold|heat|pain))"
    ),
    re.I,
)
_BEHIND = re.compile(r"[ ]+(?:allerg(?:y|ies|ic)|intolerance|hypersensitivity|anaphylaxis)\b", re.I)
_PAREN = re.compile(r"[ ]*\(([^)\n]{2,60})\)")
_DASH = re.compile(
    r"(?:[ ]*(?:-{1,2}|–|—|:|->|→|=)[ ]*|,?[ ]*(?:which[ ])?(?:causes|caused|causing|leads[ ]to"
    r"|gives[ ](?:him|her)|resulting[ ]in|reaction[ ]?:?|with)[ ]+)"
    r"([A-Za-z][^.;,\n()|]{1,60})"
)
_CELL = re.compile(
    (
        r"[ ]+(?![-–(])([A-Za-z][A-Za-z/ ]{2,40}?)(?=[ ]+(?:mild|moderate|severe|unknown|high"
        r"|low)\b|[ ]+\d|[ ]{2,}|$|\n)"
    ),
    re.I,
)
_NOTED = re.compile(
    r",?[ ]+(?:noted|since|in|on|dated|per|approximately)[ ]+(?=[\d(A-Z])|,?[ ]+\d"
    r"|[;,][ ]+(?:mild|moderate|severe)"
)
_HEADER = re.compile(r"\b(?:allergen|substance|agent|drug|medication)\b.*\breactions?\b", re.I)
_REACH = 900
"""Characters after the heading within which a substance in the allergy section is an allergen."""
_SENTENCE_REACH = 120


class Allergens:
    """The places of a document that speak of allergies."""

    def __init__(self, reading: DocumentState) -> None:
        self._reading = reading
        self._tables: dict[int, bool] = {}
        for m in _NONE_KNOWN.finditer(reading.text):
            if not _OTHER_KIND.search(m.group()) or _DRUG_KIND.search(m.group()):
                self._none_at(m.start())
            reading.claim(m.start(), m.end())
        for zone in reading.zones.all:
            if zone.zone == "allergies":
                if _NONE_IN_SECTION.match(reading.text, zone.body, zone.end):
                    self._none_at(zone.start)
                self._tables[zone.start] = bool(
                    _HEADER.search(reading.text[zone.body : zone.end].lstrip().split("\n")[0])
                )

    def _none_at(self, offset: int) -> None:
        if self._reading.document.is_own(offset):
            self._reading.no_known_allergies = True

    def speaks_at(self, offset: int) -> bool:
        """Return whether the text names the substance at `offset` as an allergen."""
        reading = self._reading
        zone = reading.zones.at(offset)
        if zone is not None and zone.zone == "allergies":
            return offset - zone.start < _REACH
        sentence = reading.assertions.sentence_at(offset)
        before = reading.text[max(sentence.start, offset - _SENTENCE_REACH) : offset]
        if any(
            not re.search(r"\b(?:but|and[ ]takes?|takes|on)\b", before[m.end() :])
            for m in _TO.finditer(before)
        ):
            return True
        word = re.compile(r"[\w'-]+").match(reading.text, offset)
        tail = word.end() if word else offset
        return bool(_BEHIND.match(reading.text, tail))

    def in_table(self, offset: int) -> bool:
        """Return whether `offset` lies in a table with a column of reactions."""
        zone = self._reading.zones.at(offset)
        return zone is not None and self._tables.get(zone.start, False)


def as_allergy(reading: DocumentState, match: TermMatch, allergens: Allergens) -> Finding:
    """Return the substance at `match` as an allergy, with its reaction if the text states one."""
    end, reaction = match.end, None
    limit = reading.text.find("\n", match.end)
    limit = len(reading.text) if limit < 0 else limit
    for pattern in (_PAREN, _DASH, *((_CELL,) if allergens.in_table(match.start) else ())):
        m = pattern.match(reading.text, match.end, limit)
        if m is not None and not re.match(
            r"(?:allerg|intoleran|no\b|unknown|e\.g|i\.e|such|includ)", m[1], re.I
        ):
            end, reaction = m.end(), own_words(_NOTED.split(m[1])[0])
            break
    assertion = reading.judge(match.start, match.end)
    return Finding(
        category="allergy",
        start=match.start,
        end=end,
        head_end=match.end,
        name=own_words(reading.text[match.start : match.end]),
        rule="allergy.section.v1"
        if reading.zones.type_at(match.start) == "allergies"
        else "allergy.sentence.v1",
        strength=0.9,
        reaction=reaction,
        negated=True if assertion.negated else None,
        family=assertion.family,
        zone=reading.zones.type_at(match.start),
    )
