"""Whether the text supports every word of a code's display or term, for conditions and procedures.

ICD-10-CM Official Guidelines for Coding and Reporting, section I.A.7: words in parentheses are
nonessential modifiers, and brackets enclose synonyms. `unspecified` and `without …` are right only
if the text gives no such detail. A word that the display lacks makes the code another condition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.providers.local.enrichment.mention_to_code import (
    DENIED,
    PLAIN,
    SOFT,
    MentionToCode,
    expanded,
    words_of,
)
from pipeline.providers.local.text.tokens import normal

_MILD = frozenset({
    "history", "hx", "known", "patient", "new", "onset", "recent", "significant", "marked",
    "minimal", "worsening", "improving", "stable", "well", "poorly", "controlled", "mild",
    "moderate", "severe", "presumed", "possible", "probable", "likely", "suspected", "active",
    "current", "ongoing", "intermittent", "constant", "symptom", "sign",
})  # fmt: skip
"""Words of a mention that no code has to repeat, unless a code of the shortlist does."""
_AXIS = (
    r"(?:organism|sites?|type|cause|severity|trimester|episode|stage|nature|degree|location|part"
    r"|etiology|pathogen|substance|origin|agent|form|eye|ear|side|laterality|extremity|limb)"
)
_NOT_SPECIFIED = re.compile(
    rf"\bunspecified[ ]+{_AXIS}\b|\b{_AXIS}[ ]+(?:not[ ]specified|unspecified)\b|\bunspecified\b"
    r"|\bNOS\b|\bnot[ ]otherwise[ ]specified\b"
    r"|\bnot[ ]elsewhere[ ]classified\b|\bnot[ ]specified\b",
    re.I,
)
_WITHOUT = re.compile(
    r"\bnot[ ]specified[ ]as[ ](?P<as>[^,;]*)"
    r"|\b(?:without|not)[ ](?P<no>[^,;]*?)(?=[ ](?:in|with|due[ ]to)[ ]|[,;]|$)"
    r"|\b(?P<un>uncomplicated)\b",
    re.I,
)
_GRADES = frozenset({
    "acute", "chronic", "recurrent", "severe", "moderate", "mild", "left", "right", "bilateral",
    "stage", "type", "exacerbation", "intractable", "persistent", "intermittent", "1", "2", "3",
    "4", "5", "partial", "full", "remission", "aura", "initial", "subsequent",
})  # fmt: skip
"""Details that ICD-10-CM often distinguishes."""
_FIRM = frozenset({
    "acute", "chronic", "subacute", "recurrent", "exacerbation", "left", "right", "bilateral",
    "persistent", "paroxysmal", "congenital", "secondary", "postoperative", "neonatal",
    "uncontrolled", "decompensated", "metastatic", "malignant", "benign", "open", "closed",
    "remission", "relapse", "relapsed",
})  # fmt: skip
"""Details that no code leaves out."""
_LEADS = frozenset({
    "had", "have", "his", "her", "their", "my", "our", "any", "diagnosed", "noted", "reported",
    "confirmed", "treated", "developed", "resolved", "no", "not", "denied", "than", "about",
    "assessment", "impression", "diagnosi", "plan", "problem", "complaint", "he", "she", "who",
    "pt", "me", "experienced", "endorsed", "like", "continue", "continued", "due", "prior",
    "previous", "personal", "family", "mother", "father", "chief", "also", "admitted", "some",
    "treat", "manage", "pain", "longstanding", "underlying", "established", "document", "primary",
    "principal", "his/her", "both", "two", "one", "still", "then", "again", "did", "do",
})  # fmt: skip
"""Words in front of a mention that add no detail."""
_HIDDEN = re.compile(
    r"\b(?:with|due[ ]to|secondary[ ]to|complicat\w+|associated)\b|\bw/(?![a-z])", re.I
)


_CAUSED = re.compile(r"[^\W\d_]+(?=-(?:induced|associated|related|acquired|dependent)[ ]*$)", re.I)
"""The cause of a condition in one word with the relation: `drug-induced`."""
_SITE = re.compile(
    r"[ ]*(?:of|in|involving|affecting|at)[ ]+(?:(?:the|an?|his|her|their)[ ]+)*"
    r"(?P<site>[^\W\d_][^,;.()]*)",
    re.I,
)
_QUALIFIER = re.compile(r"[ ]*,[ ]*(?P<words>[a-z][a-z -]{2,40}?)[ ]*(?:[.;,\n(]|$)", re.I)
"""The words between a comma behind the mention and the next sign."""
_SIDE_LETTERS = re.compile(r"[ ,(:-]*(?:O[DSU]|A[DSU])\b")
"""The side of an eye or an ear behind a mention, in Latin letters."""
_NO_SIDE = re.compile(r"\bunspecified[ ](?:eye|ear|eyelid|orbit|side)\b", re.I)
_PLACES = frozenset({"vein", "artery", "lobe", "wall", "valve", "joint", "segment", "arm", "leg"})
_UPPER_WORDS = frozenset({"upper", "arm", "forearm", "axillary", "subclavian", "brachial"})
_PAST = re.compile(r"\b(?:19|20)\d\d\b|\b(?:years?|yrs?|months?)[ ]ago\b", re.I)
_EVENTS = frozenset({
    "infarction", "attack", "stroke", "embolism", "thrombosi", "hemorrhage", "fracture", "acute",
    "pneumonia", "tia", "seizure",
})  # fmt: skip
"""Words of events: an event of a past year is history, which has codes of its own."""
_PRESSURE = frozenset({
    "hypertension", "essential", "primary", "arterial", "benign", "malignant", "systemic", "high",
    "blood", "pressure",
})  # fmt: skip
_COMBINED = frozenset({"failure", "ckd", "chf", "hf", "kidney", "esrd", "nephropathy"})
"""Words of heart failure and kidney disease, with which a hypertension has a code of its own.

ICD-10-CM Official Guidelines, section I.C.9.a, presumes that the conditions are related.
"""
_LOWER = frozenset({"leg", "calf", "lower", "extremity", "limb", "le"})
_UPPER = frozenset({"arm", "upper", "extremity", "limb", "ue"})


@dataclass(frozen=True)
class Display:
    """The words of a display by their part in the match."""

    content: frozenset[str]
    """Words that the text must support."""
    forbidden: frozenset[str]
    """Words of `without …`: the text must not print such a word."""
    every: frozenset[str]
    optional: frozenset[str]
    """Words in parentheses: no code of the same name needs such a word."""
    is_residual: bool
    """Whether the code leaves a detail open, or denies a complication."""


def fit(candidate: Candidate, mention: MentionToCode) -> int | None:
    """Return the number of supported words of a display; None if the code does not fit."""
    found = _fits(candidate, mention)
    return max((words for words, is_open in found if not is_open), default=None)


def leaves_absence_open(candidate: Candidate, mention: MentionToCode) -> bool:
    """Return whether a code fits apart from an absence that the text does not state."""
    found = _fits(candidate, mention)
    return bool(found) and all(is_open for _, is_open in found)


def _fits(candidate: Candidate, mention: MentionToCode) -> list[tuple[int, bool]]:
    """Return the supported words of the display and the term that fit.

    The second value says whether an absence is left that the text does not state.
    """
    facts = mention.facts
    # ICD-10-CM, section IV.H: an outpatient's diagnosis in doubt is not coded as a diagnosis.
    if facts.negated or facts.certainty in ("hypothetical", "possible"):
        return []
    if facts.temporality == "planned":
        return []
    texts = (candidate.display, candidate.term) if candidate.term else (candidate.display,)
    found = (_fit(display_of(text), candidate, mention) for text in texts)
    return [each for each in found if each is not None]


def _fit(display: Display, candidate: Candidate, mention: MentionToCode) -> tuple[int, bool] | None:
    """Return the supported words of a display or a term; None if the code is wrong."""
    facts, evidence, supported = mention.facts, mention.evidence, mention.supported
    if not display.content or not display.content - SOFT <= supported:
        return None
    if not _is_of_its_time(display, facts, candidate.system):
        return None
    # A term such as `Migraine NOS` leaves out what the display of its code denies.
    absent = display.forbidden | display_of(candidate.display).forbidden
    if absent & mention.not_denied:
        return None
    needed = mention.needed
    printed = mention.quoted - SOFT
    if printed <= display.every and printed & display.content:
        # The source has the wording of the text itself, perhaps an abbreviation.
        needed = frozenset(printed)
    missing = needed - display.every
    if "disorder" in mention.quoted and "disorder" not in display.every:
        return None
    if "cancer" in needed and {"malignant", "neoplasm"} <= display.every:
        missing -= {"cancer"}
    offered: set[str] = set()
    for each in facts.candidates:
        offered |= display_of(each.display).content
        missing -= display_of(each.display).optional - _GRADES
    if missing - _MILD or missing & _MILD & offered:
        return None
    every = display.every | display_of(candidate.display).every
    if _has_other_detail(mention, display, every, offered):
        return None
    if _NO_SIDE.search(candidate.display) and _SIDE_LETTERS.match(mention.tail):
        return None
    words = len(display.content & supported) + len(display.forbidden & mention.denied)
    # The code of `Enlarged prostate NOS` denies symptoms, and `nocturia` is one in other words.
    is_alone = not evidence.entity_before and not evidence.entity_after
    is_default = is_alone or _NOT_SPECIFIED.search(candidate.display) is not None
    return words, bool((display.forbidden if is_default else absent) - mention.denied)


def _is_of_its_time(display: Display, facts: EntityFacts, system: str) -> bool:
    """Return whether a code of history or of family is chosen for such an entity, and no other."""
    is_history = "history" in display.content
    is_family = "family" in display.content
    if facts.experiencer in ("family", "other") or facts.zone_type == "family_history":
        return is_family and facts.experiencer != "other"
    if is_family:
        return False
    if system == "ICD10CM" and facts.category != "procedure":
        return is_history == (facts.temporality == "historical")
    return not is_history or facts.temporality == "historical"


def _has_other_detail(
    mention: MentionToCode, display: Display, every: frozenset[str], offered: set[str]
) -> bool:
    """Return whether the text prints a detail of the mention that the code leaves out.

    `every` are the words of the code, those of its display and of its term.
    """
    tail, ahead = mention.tail, mention.ahead
    whole = f"{mention.evidence.quote} {tail}"
    detail = _HIDDEN.search(whole)
    if detail is not None:
        rest = words_of(DENIED.sub(" ", whole[detail.end() :]))
        if not rest - _MILD - SOFT <= every:
            return True
    if _is_other_kind(mention, display, every):
        return True
    behind = DENIED.sub(" ", f"{tail} {mention.behind}")
    around = words_of(f"{' '.join(ahead)} {behind}") - every
    if around & _FIRM or (display.is_residual and around & _GRADES & offered):
        return True
    return bool(ahead) and _is_detail(ahead[-1], every)


def _is_other_kind(mention: MentionToCode, display: Display, every: frozenset[str]) -> bool:
    """Return whether the text prints a cause, a site, an organism or a year of the mention."""
    evidence, tail = mention.evidence, mention.tail
    ahead = _CAUSED.findall(evidence.sentence[: max(mention.at, 0)][-40:])
    if ahead and not words_of(ahead[-1]) <= every:
        return True
    if not evidence.before.strip() and not words_of(evidence.entity_before) <= every:
        return True
    if not evidence.after.strip() and not words_of(evidence.entity_after) <= every:
        return True
    if "incidental" in every and "incidental" not in words_of(evidence.sentence):
        # ICD-10-CM Official Guidelines, section I.C.15.a.1: the provider has to state this.
        return True
    if "lower" in every and _UPPER_WORDS & words_of(evidence.sentence):
        return True
    behind = _QUALIFIER.match(evidence.after)
    said = words_of(behind["words"]) - _MILD if behind else frozenset()
    if not said <= every | _limbs(every) and (said & _PLACES or _is_adjective(said - every)):
        return True
    site = _SITE.match(tail)
    if site and not words_of(site["site"]) - _MILD <= every | _limbs(every):
        return True
    if every <= _PRESSURE and _COMBINED & words_of(
        DENIED.sub(" ", f"{evidence.passage} {expanded(evidence.passage)}")
    ):
        return True
    return bool(display.content & _EVENTS and _PAST.search(tail))


def _is_adjective(words: frozenset[str]) -> bool:
    """Return whether one word behind a comma can be a detail: `hypothyroidism, postsurgical`."""
    return len(words) == 1 and not any(w.endswith(("ed", "ing", "ly")) for w in words - _GRADES)


def _limbs(every: frozenset[str]) -> frozenset[str]:
    """Return the usual words for the extremity of a code."""
    if "extremity" not in every:
        return frozenset()
    return _LOWER if "lower" in every else _UPPER


def _is_detail(word: str, every: frozenset[str]) -> bool:
    """Return whether the word in front of a mention is an adjective that the code leaves out."""
    low = normal(word.strip("\"'"))
    if not low.isalpha() or low in PLAIN | _MILD | _LEADS or low in every:
        return False
    return not word.lower().endswith(("s", "ing", "ly"))


def extra_words(other: Candidate, chosen: Candidate) -> frozenset[str]:
    """Return the words by which a display is more specific than another display, if it is."""
    more, less = display_of(other.display).content, display_of(chosen.display).content
    return more - less if more > less else frozenset()


def prints_any(words: frozenset[str], mention: MentionToCode) -> bool:
    """Return whether the passage of an entity prints all of these words, outside a denial."""
    return bool(words) and words <= mention.around


@lru_cache(maxsize=16_384)
def display_of(text: str) -> Display:
    """Return the words of a display."""
    # ICD-10-CM: words in parentheses do not change the code. `Essential (primary)` is the same.
    plain = re.sub(r"\bessential[ ]\(primary\)", " ", text, flags=re.I)
    optional = " ".join(re.findall(r"\(([^)]*)\)", text)) + (" essential" if plain != text else "")
    synonyms = " ".join(re.findall(r"\[([^\]]*)\]", plain))
    plain = re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", plain)
    forbidden = [
        m["as"] or m["no"] or "complication"
        for m in _WITHOUT.finditer(plain)
        if (m["no"] or "").split()[:1] not in (["specified"], ["otherwise"], ["elsewhere"])
    ]
    rest = _NOT_SPECIFIED.sub(" ", _WITHOUT.sub(_kept, plain))
    content = words_of(rest)
    return Display(
        content=content,
        forbidden=words_of(" ".join(forbidden)) - content,
        every=content | words_of(f"{optional} {synonyms}"),
        optional=words_of(optional),
        is_residual=rest != plain,
    )


def _kept(m: re.Match[str]) -> str:
    """Keep `not specified`, which the next step reads; drop what a display denies."""
    return m.group() if (m["no"] or "").startswith(("specified", "otherwise", "elsewhere")) else " "
