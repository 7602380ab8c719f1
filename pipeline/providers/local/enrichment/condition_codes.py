"""Whether the text supports every word of a code's display or term, for conditions and procedures.

ICD-10-CM Official Guidelines for Coding and Reporting, section I.A.7: words in parentheses are
nonessential modifiers, and brackets enclose synonyms. `unspecified` and `without …` are right only
if the text gives no such detail. A word that the display lacks makes the code another condition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.clinical.condition_reading import read_condition
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.text.tokens import normal, tokenize

_PLAIN = frozenset({
    "of", "and", "the", "a", "an", "in", "with", "to", "by", "due", "for", "on", "at", "from",
    "as", "or", "nos", "its", "this", "that",
})  # fmt: skip
_SOFT = frozenset({"disease", "disorder", "mellitus"})
"""Words that a note leaves out without changing the condition."""
_MILD = frozenset({
    "history", "hx", "known", "patient", "new", "onset", "recent", "significant", "marked",
    "minimal", "worsening", "improving", "stable", "well", "poorly", "controlled", "mild",
    "moderate", "severe", "presumed", "possible", "probable", "likely", "suspected", "active",
    "current", "ongoing", "intermittent", "constant", "symptom", "sign",
})  # fmt: skip
"""Words of a mention that no code has to repeat, unless a code of the shortlist does."""
_SAME = {
    # Adjective and noun, or two usual words, for the same organ or the same thing.
    "renal": "kidney", "hepatic": "liver", "cardiac": "heart", "gastric": "stomach",
    "tumour": "tumor", "anaemia": "anemia", "oedema": "edema", "haemorrhage": "hemorrhage",
    "diarrhoea": "diarrhea", "oesophageal": "esophageal", "esophagu": "esophageal",
    "aching": "ache", "painful": "pain", "ii": "2", "iii": "3", "iv": "4",
    "abdomen": "abdominal", "calculu": "stone", "calculi": "stone",
    "diabetic": "diabete", "bilaterally": "bilateral", "both": "bilateral", "lt": "left",
    "rt": "right", "strep": "streptococcal", "staph": "staphylococcal",
}  # fmt: skip
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
_JOINED = re.compile(
    r"\b(gastro|cardio|cerebro|non|pre|post|hypo|hyper|intra|extra|peri|sub|micro|macro|thrombo"
    r"|osteo|neuro|hemo|broncho)-(?=[a-z])",
    re.I,
)
_TYPED = re.compile(r"\b(?:T(?P<a>[12])DM|DM ?(?:type ?)?(?P<b>[12]|II?)|DMT(?P<c>[12]))\b")
_LINK = re.compile(
    r"[ ,]*\b(?:with|due[ ]to|secondary[ ]to|complicated[ ]by|associated[ ]with|from|caused[ ]by"
    r"|in|without|w/)[ ]*(?:(?:an?|the|his|her|known|associated|acute|chronic)[ ]*)*$",
    re.I,
)
_CUT = re.compile(
    r"[.;:\n]|\b(?:and|but|which|who|on|s/p|treated|started|since|for|was|is|has|had|will|no|not"
    r"|denies|vs|versus|or|if|status|until|after|before)\b",
    re.I,
)
_DENIED = re.compile(r"\b(?:without|w/o|no|not|denies|negative for)\b[^,;.]*", re.I)
"""What a text denies of the mention."""
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
_CLAUSE_END = re.compile(r"[.;:\n\t]|\b(?:and|but|which|who|s/p|treated|started|since|on|for)\b|,")
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


def fit(candidate: Candidate, facts: EntityFacts, evidence: Evidence) -> int | None:
    """Return the number of supported words of a display; None if the code does not fit."""
    found = _fits(candidate, facts, evidence)
    return max((words for words, is_open in found if not is_open), default=None)


def leaves_absence_open(candidate: Candidate, facts: EntityFacts, evidence: Evidence) -> bool:
    """Return whether a code fits apart from an absence that the text does not state."""
    found = _fits(candidate, facts, evidence)
    return bool(found) and all(is_open for _, is_open in found)


def _fits(candidate: Candidate, facts: EntityFacts, evidence: Evidence) -> list[tuple[int, bool]]:
    """Return the supported words of the display and the term that fit.

    The second value says whether an absence is left that the text does not state.
    """
    # ICD-10-CM, section IV.H: an outpatient's diagnosis in doubt is not coded as a diagnosis.
    if facts.negated or facts.certainty in ("hypothetical", "possible"):
        return []
    if facts.temporality == "planned":
        return []
    texts = (candidate.display, candidate.term) if candidate.term else (candidate.display,)
    found = (_fit(display_of(text), candidate, facts, evidence) for text in texts)
    return [each for each in found if each is not None]


def _fit(
    display: Display, candidate: Candidate, facts: EntityFacts, evidence: Evidence
) -> tuple[int, bool] | None:
    """Return the supported words of a display or a term; None if the code is wrong."""
    supported = _supported(facts, evidence)
    if not display.content or not display.content - _SOFT <= supported:
        return None
    if not _is_of_its_time(display, facts, candidate.system):
        return None
    said = evidence.sentence or evidence.quote
    denied = _words(" ".join(_DENIED.findall(said)))
    # A term such as `Migraine NOS` leaves out what the display of its code denies.
    absent = display.forbidden | display_of(candidate.display).forbidden
    if absent & _words(_DENIED.sub(" ", said)):
        return None
    needed = _needed(facts, evidence)
    printed = _words(evidence.quote) - _SOFT
    if printed <= display.every and printed & display.content:
        # The source has the wording of the text itself, perhaps an abbreviation.
        needed = frozenset(printed)
    missing = needed - display.every
    if "disorder" in _words(evidence.quote) and "disorder" not in display.every:
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
    if _has_other_detail(evidence, display, every, offered):
        return None
    if _NO_SIDE.search(candidate.display) and _SIDE_LETTERS.match(_tail(evidence)):
        return None
    words = len(display.content & supported) + len(display.forbidden & denied)
    # The code of `Enlarged prostate NOS` denies symptoms, and `nocturia` is one in other words.
    is_alone = not evidence.entity_before and not evidence.entity_after
    is_default = is_alone or _NOT_SPECIFIED.search(candidate.display) is not None
    return words, bool((display.forbidden if is_default else absent) - denied)


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
    evidence: Evidence, display: Display, every: frozenset[str], offered: set[str]
) -> bool:
    """Return whether the text prints a detail of the mention that the code leaves out.

    `every` are the words of the code, those of its display and of its term.
    """
    tail = _tail(evidence)
    whole = f"{evidence.quote} {tail}"
    detail = _HIDDEN.search(whole)
    if detail is not None:
        rest = _words(_DENIED.sub(" ", whole[detail.end() :]))
        if not rest - _MILD - _SOFT <= every:
            return True
    if _is_other_kind(evidence, tail, display, every):
        return True
    ahead = _ahead(evidence)
    behind = _DENIED.sub(" ", f"{tail} {_behind(evidence)}")
    around = _words(f"{' '.join(ahead)} {behind}") - every
    if around & _FIRM or (display.is_residual and around & _GRADES & offered):
        return True
    return bool(ahead) and _is_detail(ahead[-1], every)


def _is_other_kind(evidence: Evidence, tail: str, display: Display, every: frozenset[str]) -> bool:
    """Return whether the text prints a cause, a site, an organism or a year of the mention."""
    ahead = _CAUSED.findall(evidence.sentence[: max(_at(evidence), 0)][-40:])
    if ahead and not _words(ahead[-1]) <= every:
        return True
    if not evidence.before.strip() and not _words(evidence.entity_before) <= every:
        return True
    if not evidence.after.strip() and not _words(evidence.entity_after) <= every:
        return True
    if "incidental" in every and "incidental" not in _words(evidence.sentence):
        # ICD-10-CM Official Guidelines, section I.C.15.a.1: the provider has to state this.
        return True
    if "lower" in every and _UPPER_WORDS & _words(evidence.sentence):
        return True
    behind = _QUALIFIER.match(evidence.after)
    said = _words(behind["words"]) - _MILD if behind else frozenset()
    if not said <= every | _limbs(every) and (said & _PLACES or _is_adjective(said - every)):
        return True
    site = _SITE.match(tail)
    if site and not _words(site["site"]) - _MILD <= every | _limbs(every):
        return True
    if every <= _PRESSURE and _COMBINED & _words(
        _DENIED.sub(" ", f"{evidence.passage} {expanded(evidence.passage)}")
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
    if not low.isalpha() or low in _PLAIN | _MILD | _LEADS or low in every:
        return False
    return not word.lower().endswith(("s", "ing", "ly"))


def _ahead(evidence: Evidence) -> list[str]:
    """Return the last words in front of the mention that no sign and no conjunction parts."""
    return re.split(r"[,;:.()\n\t#]|\band\b|\bwith\b|\d[.)]", evidence.before)[-1].split()[-4:]


def _tail(evidence: Evidence) -> str:
    """Return the words behind the mention, other entities included, to the end of the clause."""
    at = _at(evidence)
    if at < 0:
        return _behind(evidence)
    rest = evidence.sentence[at + len(evidence.quote) :]
    cut = _CLAUSE_END.search(rest)
    return rest[: cut.start() if cut else 120][:120]


def _at(evidence: Evidence) -> int:
    """Return where the mention begins in its sentence; -1 if the place is not known."""
    quote = evidence.quote.replace("\n", " ")
    at = evidence.sentence.find(f"{evidence.before}{quote}")
    return at + len(evidence.before) if at >= 0 else -1


def extra_words(other: Candidate, chosen: Candidate) -> frozenset[str]:
    """Return the words by which a display is more specific than another display, if it is."""
    more, less = display_of(other.display).content, display_of(chosen.display).content
    return more - less if more > less else frozenset()


def prints_any(words: frozenset[str], evidence: Evidence) -> bool:
    """Return whether the passage of an entity prints all of these words, outside a denial."""
    return bool(words) and words <= _words(_DENIED.sub(" ", evidence.passage)) | _words(
        expanded(evidence.passage)
    )


def _supported(facts: EntityFacts, evidence: Evidence) -> frozenset[str]:
    """Return the words that the mention and the words that belong to the mention state."""
    ahead = _ahead(evidence)
    mention = _mention(facts, evidence)
    found = set(_words(f"{' '.join(ahead)} {mention} {_DENIED.sub(' ', _behind(evidence))}"))
    read = read_condition(facts, evidence)
    found |= {read[name] for name in ("laterality", "severity") if name in read}
    for limb, names in (("lower", {"leg", "calf"}), ("upper", {"arm"})):
        if names & found:
            found |= {limb, "extremity"}
    if "cancer" in found or "carcinoma" in found:
        found |= {"malignant", "neoplasm"}
    if facts.temporality == "historical":
        found |= {"personal", "history"}
    if facts.experiencer == "family":
        found |= {"family", "history"}
    return frozenset(found)


def _behind(evidence: Evidence) -> str:
    """Return the words behind the mention that belong to the mention."""
    cut = _CUT.search(evidence.after)
    behind = evidence.after[: cut.start() if cut else 80][:80]
    if evidence.entity_after and _LINK.search(evidence.after) and not cut:
        behind = f"{behind} {evidence.entity_after} {expanded(evidence.entity_after)}"
    return behind


def _needed(facts: EntityFacts, evidence: Evidence) -> frozenset[str]:
    """Return the words that a display has to repeat."""
    quote = evidence.quote
    names = expanded(quote)
    # The words of the expansion replace the abbreviation.
    words = _words(names) | _typed(quote) if names else _words(quote)
    rest = _unmatched(quote) if names else frozenset()
    read = read_condition(facts, evidence)
    sides = {read["laterality"]} if "laterality" in read else set()
    return (words | rest | frozenset(sides)) - _PLAIN - _SOFT


def _mention(facts: EntityFacts, evidence: Evidence) -> str:
    typed = " ".join(_typed(evidence.quote))
    return f"{evidence.quote} {facts.name} {expanded(evidence.quote)} {typed}"


def _typed(quote: str) -> frozenset[str]:
    """Return the type of a diabetes that an abbreviation states (`T2DM`)."""
    m = _TYPED.search(quote)
    number = m and (m["a"] or m["b"] or m["c"])
    if not number:
        return frozenset()
    return frozenset({"type", {"I": "1", "II": "2"}.get(number, number)})


@lru_cache(maxsize=4_096)
def expanded(text: str) -> str:
    """Return the names that the abbreviations of a text stand for."""
    return " ".join(
        match.terms[0].name
        for match in lexicon().find(tokenize(text))
        if match.terms[0].category in ("condition", "symptom", "procedure")
        and _is_abbreviation(
            match.terms[0].kind, text[match.start : match.end], match.terms[0].name
        )
    )


def _is_abbreviation(kind: str, printed: str, name: str) -> bool:
    """Return whether a word abbreviates a name: by the list, or by the initials of the name.

    A list of names groups terms by relation, so only initials prove the same meaning.
    """
    if kind == "abbreviation":
        return True
    initials = "".join(word[0] for word in name.split())
    if not printed.isupper() or len(initials) < 2:
        return False
    return _is_spread(initials, printed.lower()) and _is_spread(printed.lower(), name.lower())


def _is_spread(letters: str, text: str) -> bool:
    """Return whether `text` has these letters in their order."""
    rest = iter(text)
    return all(letter in rest for letter in letters.lower())


@lru_cache(maxsize=4_096)
def _unmatched(text: str) -> frozenset[str]:
    """Return the words of a text that are no abbreviation."""
    spans = [
        (match.start, match.end)
        for match in lexicon().find(tokenize(text))
        if _is_abbreviation(match.terms[0].kind, text[match.start : match.end], match.terms[0].name)
    ]
    for start, end in reversed(spans):
        text = f"{text[:start]} {text[end:]}"
    return _words(text)


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
    content = _words(rest)
    return Display(
        content=content,
        forbidden=_words(" ".join(forbidden)) - content,
        every=content | _words(f"{optional} {synonyms}"),
        optional=_words(optional),
        is_residual=rest != plain,
    )


def _kept(m: re.Match[str]) -> str:
    """Keep `not specified`, which the next step reads; drop what a display denies."""
    return m.group() if (m["no"] or "").startswith(("specified", "otherwise", "elsewhere")) else " "


@lru_cache(maxsize=16_384)
def _words(text: str) -> frozenset[str]:
    joined = _JOINED.sub(r"\1", text)
    found = (normal(word) for word in re.findall(r"[^\W_]+(?:['’]s)?", joined))
    return frozenset(_SAME.get(word, word) for word in found) - _PLAIN
