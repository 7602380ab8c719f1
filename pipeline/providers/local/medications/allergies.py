"""Allergies with their reactions, and statements that the patient has no allergies.

A substance is an allergen in the allergy section, and in a sentence that speaks of an allergy.
Everywhere else the substance keeps its ordinary meaning.
"""

from __future__ import annotations

import re

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.names.lexicon import TermMatch
from pipeline.providers.schemas import Certainty

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
_HAS_EXCEPTION = re.compile(
    r"[ ,;(-]*(?:but|except|however|although|though|other[ ]than|besides|apart[ ]from|aside[ ]from"
    r"|save[ ]for|with[ ]the[ ]exception)\b",
    re.I,
)
"""Words behind `no known allergies` that announce an allergy."""
_DRUG_KIND = re.compile(r"\b(?:drug|medication|medicine)\b", re.I)
_TO = re.compile(
    (
        r"\b(?:allerg(?:ic(?:[ ]reactions?)?|y|ies)|intoleran(?:t|ce)|anaphyla(?:xis|ctic)"
        r"|adverse[ ]reactions?|(?:hives|urticaria|angioedema|throat[ ]swelling)(?=[ ]+(?:from"
        r"|to)\b)|hypersensitivity|sensitive|sensitivity)[ ]+(?:to"
        r"|from)\b(?![ ]+(?:light|sound|touch|cold|heat|pain))"
    ),
    re.I,
)
_EXCEPT = re.compile(
    r"\b(?:NKDA|NKA|allerg(?:y|ies))[ ]*[,(:-]*[ ]*(?:except(?:ion)?|excepting|other[ ]than"
    r"|besides|apart[ ]from"
    r"|aside[ ]from|save|with[ ]the[ ]exception[ ]of|but)(?:[ ]+(?:for|to|of|the|an?|is|are))*[ ]+"
    r"(?:[\w-]+(?:[ ]*(?:,|/|\band\b|\bor\b)[ ]*)+)*$",
    re.I,
)
_BEHIND = re.compile(
    r"[ -]+(?:allerg(?:y|ies|ic)|intolerance|hypersensitivity"
    r"|anaphylaxis)\b",
    re.I,
)
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


_TAKEN = re.compile(
    r"\b(?:tolerat(?:es|ed|ing|e)|toleran(?:t|ce)(?:[ ](?:of|to))?|(?:can|may|able[ ]to|okay[ ]to"
    r"|ok[ ]to"
    r"|safe[ ]to|could)[ ]+(?:safely[ ]+)?(?:take|receive|have|use|tolerate|be[ ]given)|(?:has"
    r"|have|had)[ ]+(?:since[ ]+)?(?:taken"
    r"|received|had|used)|takes?|taking|took|taken|uses?|used|using|given|gave|giving|received"
    r"|receives"
    r"|treated[ ]+with|treats|relie(?:f|ved)[ ]+(?:with|by)|responds?[ ]+to|responded[ ]+to"
    r"|carries|prescribed|alternatives?:?"
    r"|substitute[ds]?|instead|switched[ ]+to|replaced[ ]+(?:by|with)|started[ ]+on|on"
    r"|ok(?:ay)?[ ]+with|fine[ ]+with"
    r"|does[ ]+well[ ]+with|desensiti[sz]ed[ ]+to|premedicat\w+[ ]+with|declin(?:es|ed)|refus(?:es"
    r"|ed)"
    r"|challenge(?:d)?[ ]+with|no[ ]+(?:reaction|problems?|issues?|trouble)[ ]+(?:to"
    r"|with))[ ]+(?:(?:well|with|the|a|all|some"
    r"|other|oral|iv|any|both|without[ ][a-z]+)[ ]+)*(?:[a-z-]+[ ]*(?:(?:,|/|\band\b"
    r"|\bor\b)[ ]*)+){0,4}$",
    re.I,
)
"""Words before a drug that is taken, tolerated or declined, so that the drug is no allergen."""
_TOLERATED_BEHIND = re.compile(
    r"[ ]*[,:(–-]*[ ]*(?:is|are|was|were|has[ ]been|have[ ]been|:)?[ ]*(?:well[ ]+)?"
    r"(?:tolerat(?:ed|es)\b(?=[ ]*(?:[.,;)\n]|$|well\b|without\b|in\b|since\b|now\b|it\b|this\b"
    r"|later\b))|ok(?:ay)?\b|safe\b|no[ ]+(?:reaction|problems?|issues?)\b"
    r"|taken[ ]+without)",
    re.I,
)
_TOLERANCE = re.compile(
    r"[,;]?[ ]*\b(?:(?:but|and|has|have|since|now|later|currently|can|able[ ]to)[ ]+)*tolerat", re.I
)
"""The words that end a reaction: `nausea, tolerates hydrocodone`."""
_REFUTED = re.compile(
    r"\b(?:removed|de-?label(?:l?ed|ing)|deleted|disprove[nd]|refuted|ruled[ ]out|excluded"
    r"|not[ ]confirmed|unconfirmed"
    r"|outgr(?:own|ew)|resolved|cleared|(?:no|not)[ ]+(?:a[ ]+)?(?:longer|true|real"
    r"|actual)?[ ]*allerg\w*|not[ ]+an[ ]+allergy"
    r"|entered[ ]in[ ]error|(?:skin[ ]+)?(?:test(?:ing|s)?|prick|challenge)[ ]*(?:was|were|is|:"
    r"|-)?[ ]*(?:done[ ]+and[ ]+)?"
    r"(?:negative|passed|tolerated)|passed[ ]+(?:an?[ ]+|the[ ]+)?(?:oral[ ]+|drug[ ]+)?challenge"
    r"|negative[ ]+(?:skin[ ]+)?(?:test\w*"
    r"|challenge)|tested[ ]+negative|(?:denied|denies)(?=[ ]*[.,;)]|[ ]*$)|tolerated[ ]+(?:an?[ ]+"
    r"|the[ ]+|oral[ ]+)*challenge"
    r"|false|erroneous|incorrect|inactive|invalid(?:ated)?|side[ ]+effects?[ ]+(?:only|not|rather)"
    # What is tolerated can be another drug: `penicillin (has since tolerated amoxicillin)`.
    r"|(?:since|later|now|has|subsequently)[ ]+tolerated(?=[ ]*(?:[.,;)]|$|well\b|without\b"
    r"|since\b|now\b|later\b|it\b|this\b|multiple\b|several\b|an?\b|the\b|oral\b))"
    r"|tolerated[ ]+(?:since|later|now|well"
    r"|without))\b",
    re.I,
)
"""Words behind an allergen that take the allergy back."""
_DOUBTED = re.compile(
    r"[ ]*(?:\(\?\)|\?)|[^.;\n]{0,20}?\b(?:family[ ]history|not[ ]sure|unsure|per[ ]mother"
    r"|per[ ]parent)\b"
    r"|[^.;\n]{0,40}?\b(?:possible|possibly|questionable|suspected|unclear"
    r"|uncertain|doubtful|unverified"
    r"|to[ ]be[ ](?:tested|confirmed|verified)|under[ ]evaluation|pending)\b",
    re.I,
)


def _is_of_other(reading: DocumentState, m: re.Match[str]) -> bool:
    return reading.judge(m.start(), m.end()).experiencer not in (None, "patient")


class Allergens:
    """The places of a document that speak of allergies."""

    def __init__(self, reading: DocumentState) -> None:
        self._reading = reading
        self._tables: dict[int, bool] = {}
        for m in _NONE_KNOWN.finditer(reading.text):
            if reading.is_claimed(m.start(), m.end()) or _is_of_other(reading, m):
                continue
            if _HAS_EXCEPTION.match(reading.text, m.end()):
                reading.claim(m.start(), m.end())
                continue
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
        if self._reading.assertions.person_at(offset) is not None:
            return
        if self._reading.document.is_own(offset) and not any(
            f.category == "allergy" and f.negated is not True and f.experiencer in (None, "patient")
            for f in self._reading.findings
        ):
            self._reading.no_known_allergies = True

    def speaks_at(self, offset: int) -> bool:
        """Return whether the text names the substance at `offset` as an allergen."""
        reading = self._reading
        zone = reading.zones.at(offset)
        if zone is not None and zone.zone == "allergies":
            return offset - zone.start < _REACH
        if zone is not None and "allergies" in zone.beside:
            return _states_reaction(reading, offset)
        sentence = reading.assertions.sentence_at(offset)
        before = reading.text[max(sentence.start, offset - _SENTENCE_REACH) : offset]
        if any(
            not re.search(r"\b(?:but|and[ ]takes?|takes|on)\b", before[m.end() :])
            for m in _TO.finditer(before)
        ):
            return True
        if _EXCEPT.search(before):
            return True
        word = re.compile(r"[\w']+(?:-(?!allerg|intoler)[\w']+)*").match(reading.text, offset)
        tail = word.end() if word else offset
        return bool(_BEHIND.match(reading.text, tail))

    def name_own(self, offset: int) -> None:
        """Take back the statement `no known allergies`, because the text names an allergy."""
        if self._reading.document.is_own(offset):
            self._reading.no_known_allergies = None

    def in_table(self, offset: int) -> bool:
        """Return whether `offset` lies in a table with a column of reactions."""
        zone = self._reading.zones.at(offset)
        return zone is not None and self._tables.get(zone.start, False)


_EFFECT = (
    r"(?:(?:severe|mild|moderate|skin|facial|contact|lip|throat|tongue|face|gi|stomach|body"
    r"|generalized)[ ]+)*"
    r"(?:hives|rash(?:es)?|anaphyla\w+|swelling|angioedema|urticaria|itch\w*|pruritus|nausea"
    r"|vomiting|n/v|diarrhea"
    r"|upset|cough\w*|wheez\w*|dyspnea|sob|shortness[ ]of[ ]breath|flushing|headaches?|dizziness"
    r"|syncope|myalgias?|cramps?"
    r"|edema|dermatitis|blister\w*|stevens[- ]johnson(?:[ ]syndrome)?|sjs|ten|bronchospasm"
    r"|hypotension|bleeding|confusion"
    r"|sneezing|rhinitis|redness|reaction|unknown)"
)
_EFFECT_BEHIND = re.compile(
    rf"[ ]*(?:[-–—:=(]|->|→|causes|with)+[ ]*(?P<effect>{_EFFECT}(?:(?:[,/&]"
    rf"|[ ]and)[ ]*{_EFFECT})*)\)?",
    re.I,
)

_EFFECT_CELL = re.compile(
    rf"[ \t|]+(?:reaction:?[ ]*)?({_EFFECT}(?:(?:[,/&]|[ ]and)[ ]*{_EFFECT})*)\b", re.I
)
"""A reaction in the next cell of a list of allergies."""


def _states_reaction(reading: DocumentState, offset: int) -> bool:
    """Return whether a reaction follows the substance at `offset`, below headings side by side."""
    word = re.compile(r"[\w'-]+(?:[ ][a-z]+){0,2}?(?=[ ]*(?:[-–—:=(]|->|→|causes))").match(
        reading.text, offset
    )
    return word is not None and _EFFECT_BEHIND.match(reading.text, word.end()) is not None


def _is_taken(reading: DocumentState, match: TermMatch) -> bool:
    sentence = reading.assertions.sentence_at(match.start)
    before = reading.text[max(sentence.start, match.start - 60) : match.start].replace("\n", " ")
    if _TAKEN.search(before):
        return True
    return _TOLERATED_BEHIND.match(reading.text, match.end) is not None


def as_allergy(reading: DocumentState, match: TermMatch, allergens: Allergens) -> Finding | None:
    """Return the substance at `match` as an allergy, with its reaction if the text states one.

    Return None for a drug that the patient takes, tolerates or declines.
    """
    if _is_taken(reading, match):
        reading.claim(match.start, match.end)
        return None
    end, reaction = match.end, None
    limit = reading.text.find("\n", match.end)
    limit = len(reading.text) if limit < 0 else limit
    zone = reading.zones.at(match.start)
    if zone is not None and zone.beside:
        effect = _EFFECT_BEHIND.match(reading.text, match.end, limit)
        limit = effect.end() if effect else match.end
    in_section = zone is not None and zone.zone == "allergies"
    called = None if in_section else _BEHIND.match(reading.text, match.end, limit)
    place = called.end() if called else match.end
    for pattern in (
        _PAREN,
        _DASH,
        *((_EFFECT_CELL,) if in_section else ()),
        *((_CELL,) if allergens.in_table(match.start) else ()),
    ):
        m = pattern.match(reading.text, place, limit)
        if m is not None and not re.match(
            r"(?:allerg|intoleran|tolerat|no\b|yes\b|[yn]\b(?!/)|unknown|e\.g|i\.e|such|includ)",
            m[1],
            re.I,
        ):
            told = own_words(_TOLERANCE.split(_NOTED.split(m[1])[0])[0])
            if _SEVERITY.fullmatch(told):
                continue
            end, reaction = m.end(), told or None
            break
    assertion = reading.judge(match.start, match.end)
    sentence = reading.assertions.sentence_at(match.start)
    behind = _own_part(reading.text[match.end : max(match.end, min(sentence.end, match.end + 120))])
    refuted = _REFUTED.search(behind) is not None
    negated = True if assertion.negated or refuted else None
    doubted = _DOUBTED.match(behind) is not None
    certainty: Certainty | None = "possible" if doubted else assertion.certainty
    if negated is None and assertion.experiencer in (None, "patient"):
        allergens.name_own(match.start)
    return Finding(
        category="allergy",
        start=match.start,
        end=end,
        head_end=match.end,
        name=own_words(reading.text[match.start : match.end]),
        rule="allergy.section.v1"
        if reading.zones.type_at(match.start) == "allergies"
        else "allergy.sentence.v1",
        engine_confidence=0.9,
        reaction=None if refuted and reaction and _REFUTED.search(reaction) else reaction,
        negated=negated,
        certainty=certainty if negated is None and certainty != "certain" else None,
        experiencer=assertion.experiencer,
        zone=reading.zones.type_at(match.start),
    )


_SEVERITY = re.compile(
    r"(?:very[ ])?(?:mild|moderate|severe|low|high|medium|critical|unknown|active|inactive"
    r"|confirmed"
    r"|drug|food|environmental|family history.*|.*\bonly)",
    re.I,
)
"""Cells beside an allergen that are no reactions."""


def _own_part(behind: str) -> str:
    """Return the words behind an allergen up to the next item of the list."""
    flat = behind.replace("\n", " ")
    return re.split(
        r"[,;](?=[ ]+[A-Za-z-]+(?:[ ]*\(|[ ]+-|[ ]*[,;.]|$))|\band[ ]+(?!tolerat|test)",
        flat,
        maxsplit=1,
    )[0]
