"""Whether the evidence of an entity shows an attribute, and whether two readings say the same.

The module is pure. A printed attribute must occur completely, beside this entity. A normalised
attribute (a status, a severity, a side) needs a phrase that states the same of this entity.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pipeline.clinical import condition_words
from pipeline.clinical.condition_reading import is_of_patient, read_condition, statuses_of
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.medications import sig_forms
from pipeline.clinical.page_text.rows import QuotedText
from pipeline.clinical.page_text.spellings import fold, occurs, places
from pipeline.providers.local.enrichment.code_choice import choose
from pipeline.providers.local.text.tokens import normal
from pipeline.providers.schemas import FoundAttributes
from pipeline.stages.page_checks import flag_forms, quoted_names
from pipeline.stages.page_checks.quote_checks import is_in_quote

_CONDITIONS = ("condition", "symptom")
_OF_PASS1 = (
    "value", "unit", "reference_range", "abnormal_flag", "strength", "dose", "route", "frequency",
    "reaction",
)  # fmt: skip
Check = Callable[[str, EntityFacts, Evidence], bool]


class _Asked(NamedTuple):
    """An entity of Pass 1 with the value and the range of a reply."""

    category: str
    name: str
    value: str | None
    reference_range: str | None


def is_shown(name: str, reply: FoundAttributes, facts: EntityFacts, evidence: Evidence) -> bool:
    """Return whether the evidence shows the attribute `name` of a reply."""
    if name in _OF_PASS1:
        return _is_in_quote(name, reply, facts, evidence)
    check = _CHECKS.get(name)
    said = getattr(reply, name)
    return check is not None and bool(said) and check(said.strip(), facts, evidence)


def _is_in_quote(name: str, reply: FoundAttributes, facts: EntityFacts, evidence: Evidence) -> bool:
    """Return whether the check of Pass 1 finds an attribute beside the quote."""
    shown = evidence.shown or QuotedText(quote=evidence.quote, row="", headings=())
    said = getattr(reply, name)
    # Pass 1 has validated the entity; only the attribute is new.
    entity = _Asked(
        category=facts.category,
        name=facts.name,
        value=reply.value or facts.value,
        reference_range=reply.reference_range or facts.reference_range,
    )
    return not said or is_in_quote(name, said, entity, shown)


def _beside(evidence: Evidence) -> str:
    """Return the quote with the rest of its row, without the rows of the entity's own kind."""
    return f"{evidence.quote} \n {evidence.shown.row if evidence.shown else ''}"


def _named(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    texts = (evidence.quote, facts.name)
    if any(quoted_names.is_named(said, text, facts.category) for text in texts):
        return True
    chosen = choose(facts, evidence).code
    return chosen is not None and _words(said) == _words(chosen.display)


def _product(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    text = f"{facts.name} {evidence.before} {evidence.quote} {evidence.after}"
    cells = " ".join(cell for _, cell in evidence.cells)
    return quoted_names.is_named(said, f"{text} {cells}", "immunization")


_WHY = re.compile(
    r"(?:\b(?:for|to[ ]treat|treat(?:s|ing|ment[ ]of)?|due[ ]to|because[ ]of|indications?|reason|dx"
    r"|diagnosis|prevent(?:s|ion[ ]of)?|prophylaxis[ ]of|against|control)\b|[(–:-])[ :]*"
    r"(?:(?:the|his|her|their|an?|as|needed|relief|treatment|management|prevention|of|known"
    r"|history|chronic|acute|possible|suspected)[ ]+)*$",
    re.I,
)
_WHY_COLUMN = re.compile(r"indications?|reason|diagnosis|purpose|used[ ]for|for|why|problem", re.I)


def _indication(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    wanted, text = fold(said), fold(_beside(evidence).replace("\n", " "))
    if any(_WHY.search(text[:start]) for start, _ in places(wanted, text)):
        return True
    return any(
        _WHY_COLUMN.fullmatch(head) and occurs(wanted, fold(cell)) for head, cell in evidence.cells
    )


_STARTS = (
    r"start(?:s|ed|ing)?|beg(?:an|in|inning)|since|onset|from|initiat\w*|resum\w*|restart\w*|x|×|for"
    r"|history|first|new"
)
_STOPS = (
    r"stop(?:ped|s|ping)?|until|till|through|thru|end(?:ed|s|ing)?|resol\w+|d/?c(?:'?d|ed)?"
    r"|discontinu\w*|last|to|complet\w*|finish\w*|held|hold"
)
_TIME_CUE = re.compile(rf"\b(?:(?P<start>{_STARTS})|(?P<stop>{_STOPS}))\b|(?P<other>\bdiagnos\w*"
                       r"|\bdx'?d?\b|\badmitted\b|\bseen\b|\brepeat\w*\b)", re.I)  # fmt: skip
_A_DAY = re.compile(condition_words.DATE, re.I)
_START_COLUMN = re.compile(r".*\b(?:start|onset|began|begin|date|given|performed|administered)\b.*")
_STOP_COLUMN = re.compile(r".*\b(?:stop|end|resolved|resolution|abatement|discontinued|until)\b.*")


def _start(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    acts = facts.category in ("immunization", "procedure")
    return _time(said, "start", facts, evidence, needs_cue=not acts)


def _stop(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    return _time(said, "stop", facts, evidence, needs_cue=True)


def _time(said: str, kind: str, facts: EntityFacts, evidence: Evidence, *, needs_cue: bool) -> bool:
    wanted = fold(said)
    column = _STOP_COLUMN if kind == "stop" else _START_COLUMN
    for head, cell in evidence.cells:
        if occurs(wanted, fold(cell)) and column.fullmatch(head.lower()):
            return True
    text = fold(_beside(evidence).replace("\n", " "))
    own = [m for m in (_TIME_CUE.match(wanted),) if m]
    for start, _ in places(wanted, text):
        cues = own or list(_TIME_CUE.finditer(text[max(0, start - 30) : start]))
        if not cues and not needs_cue:
            return True
        if cues and (cues[-1][kind] or (not needs_cue and not cues[-1]["stop"])):
            return True
    # A row with a day of its own takes no day from the lines above.
    if needs_cue or evidence.shown is None or _A_DAY.search(text):
        return False
    texts = (*evidence.headings, evidence.shown.first_cell)
    return any(occurs(wanted, fold(each)) for each in texts)


_STATUS_CUES: dict[str, dict[str, str]] = {
    "medication": {
        "active": r"tak(?:es|ing)|continu\w*|current\w*|refill\w*|home|maintain\w*|remains?|now on",
        "stopped": r"stop\w*|discontinu\w*|d/?c(?:'?d|ed)?|off|ceased|finished|completed",
        "on_hold": r"h[eo]ld\w*|paus\w*|on hold|suspend\w*",
        "planned": r"start|begin|will|plan\w*|consider\w*|initiate|to be|if|recommend\w*|add",
        "not_started": r"declin\w*|refus\w*|never|not (?:taking|start\w*|filled)|avoid\w*",
        "changed": r"increas\w*|decreas\w*|chang\w*|titrat\w*|reduc\w*|switch\w*|adjust\w*",
        "entered_in_error": r"error|erroneous\w*|~~",
    },
    "allergy": {
        "active": r"active",
        "inactive": r"inactive",
        "resolved": r"resolved|outgrew|outgrown|tolerat\w*|de-?label\w*",
    },
    "immunization": {
        "completed": r"given|administered|received|completed?|had|done|up to date",
        "not-done": r"declin\w*|refus\w*|not (?:given|done|received|administered)|deferred|overdue"
                    r"|never|contraindicated|denie[sd]",
        "planned": r"due|plan\w*|schedul\w*|will|recommend\w*|next",
        "entered-in-error": r"error|erroneous\w*|~~",
    },
    "procedure": {
        "completed": r"s/p|status post|underwent|performed|done|completed?|had|post-?op\w*",
        "not-done": r"declin\w*|refus\w*|cancel\w*|not (?:done|performed)|deferred|aborted|never",
        "preparation": r"schedul\w*|plan\w*|will|order\w*|referr\w*|recommend\w*|consider\w*",
        "in-progress": r"ongoing|in progress|currently|undergoing",
        "unknown": r"unknown|unclear",
    },
}  # fmt: skip
"""Category → status → the words that state the status."""
_NO = re.compile(
    r"\b(?:no|not|never|without|denie[sd]|negative|n['’]t|ruled[ ]out|free)\b|-ve", re.I
)


def _status(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    low = said.lower()
    if facts.category in _CONDITIONS:
        return low in statuses_of(facts, evidence) and is_of_patient(facts)
    cue = _STATUS_CUES.get(facts.category, {}).get(low)
    if cue is None:
        return False
    near = f"{evidence.before[-60:]} {evidence.quote} {evidence.after[:60]}"
    near = f"{near} {' '.join(cell for _, cell in evidence.cells)}".replace("\n", " ")
    found = {
        status
        for status, words in _STATUS_CUES[facts.category].items()
        if re.search(rf"(?<!\w)(?:{words})(?!\w)", near, re.I)
    }
    # Two statuses in one text leave open which status is of this entity.
    return found == {low} and (low in ("not-done", "not_started") or not _NO.search(near))


def _verification(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    low = said.lower()
    if facts.category in _CONDITIONS and low == read_condition(facts, evidence).get("verification"):
        return True
    near = f"{evidence.before[-60:]} {evidence.quote} {evidence.after[:60]}".replace("\n", " ")
    if low == "refuted":
        return bool(facts.negated) or _NO.search(near) is not None
    if low in ("unconfirmed", "provisional", "differential"):
        kinds = dict(condition_words.POSSIBILITIES)
        is_open = facts.certainty in ("possible", "hypothetical")
        return is_open or (low in kinds and kinds[low].search(near) is not None)
    if low == "entered-in-error":
        return condition_words.IN_ERROR.search(near) is not None
    if low != "confirmed" or facts.negated or not is_of_patient(facts):
        return False
    if facts.certainty in ("possible", "hypothetical") or facts.category == "allergy":
        return False
    # A plain statement confirms; the words of a doubt around the mention do not.
    is_plain = not _NO.search(near) and not condition_words.DOUBT.search(near)
    return facts.certainty == "certain" or is_plain


def _severity(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    low = said.lower()
    if facts.category in _CONDITIONS:
        return low == read_condition(facts, evidence).get("severity")
    near = f"{evidence.before[-30:]} {evidence.quote} {evidence.after[:60]}".replace("\n", " ")
    near = f"{near} {' '.join(cell for _, cell in evidence.cells)}"
    found = {m.group().lower() for m in condition_words.GRADES.finditer(near)}
    return found == {low} and condition_words.GRADE_RANGE.search(near) is None


_SIDE_WORDS = {
    "left": re.compile(r"(?<![\w-])(?:(?i:left|lt)|L)(?![\w-])"),
    "right": re.compile(r"(?<![\w-])(?:(?i:right|rt)|R)(?![\w-])"),
    "bilateral": re.compile(r"(?<![\w-])(?:bilateral(?:ly)?|both|b/l)(?![\w-])", re.I),
}


def _laterality(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    """Return whether the quote prints this side alone; the local engine reads other places."""
    found = {side for side, words in _SIDE_WORDS.items() if words.search(evidence.quote)}
    return found == {said.lower()}


def _site(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    near = f"{evidence.before[-40:]} {evidence.quote} {evidence.after[:60]}"
    return occurs(fold(said), fold(near.replace("\n", " ")))


_NTH = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh")


def _dose_number(said: str, facts: EntityFacts, evidence: Evidence) -> bool:
    cells = " ".join(f"{head} {cell}" for head, cell in evidence.cells)
    text = f"{_beside(evidence)} {cells}".replace("\n", " ").lower()
    if not re.fullmatch("[0-9]{1,3}", said):
        return occurs(fold(said), fold(text))
    number = int(said)
    word = _NTH[number] if number < len(_NTH) else "none"
    return re.search(
        rf"(?:\bdose|#|\bno\.?|\bnumber|\bshot|\bseries)[ ]*[:#(]?[ ]*{number}(?![\d./])"
        rf"|(?<![\d./]){number}(?:st|nd|rd|th)?[ ]*(?:of|/)[ ]*\d(?!\d|/)"
        rf"|(?<!\d){number}(?:st|nd|rd|th)\b|\b{word}\b",
        text,
    ) is not None  # fmt: skip


_CHECKS: dict[str, Check] = {
    "ingredient": _named,
    "substance": _named,
    "product": _product,
    "indication": _indication,
    "start": _start,
    "stop": _stop,
    "status": _status,
    "verification": _verification,
    "severity": _severity,
    "laterality": _laterality,
    "body_site": _site,
    "dose_number": _dose_number,
}


def is_same(name: str, one: str, other: str, facts: EntityFacts) -> bool:
    """Return whether two readings of an attribute say the same."""
    if one.casefold() == other.casefold():
        return True
    if name == "frequency":
        return _same_frequency(one, other)
    if name == "route":
        return sig_forms.route_of(one) == sig_forms.route_of(other)
    if name == "abnormal_flag":
        return flag_forms.flag_of(one) == flag_forms.flag_of(other)
    if name == "verification":
        return {one.lower(), other.lower()} <= _POSSIBLE
    if name in ("ingredient", "substance", "product"):
        return quoted_names.is_named(one, other, facts.category) or quoted_names.is_named(
            other, one, facts.category
        )
    if name == "reaction":
        return bool(_words(one) & _words(other))
    if name in _PARTLY:
        return occurs(fold(one), fold(other)) or occurs(fold(other), fold(one))
    if name in ("status", "severity", "laterality"):
        return False
    return fold(one) == fold(other)


def is_covered(name: str, said: str, read: str, facts: EntityFacts) -> bool:
    """Return whether a reading of the page contains all of what a reply says."""
    if said.casefold() == read.casefold():
        return True
    if name == "frequency":
        shown = sig_forms.frequencies(read)
        return bool(sig_forms.frequencies(said)) and sig_forms.same_frequency(said, shown)
    if name in ("ingredient", "substance", "product"):
        return quoted_names.is_named(said, read, facts.category)
    if name == "reaction":
        return _words(said) <= _words(read)
    if name in _PARTLY:
        return occurs(fold(said), fold(read))
    return is_same(name, said, read, facts)


_PARTLY = ("reference_range", "start", "stop", "indication", "body_site", "dose_number")
"""Attributes of which a reply may say a part."""
_POSSIBLE = frozenset({"unconfirmed", "provisional", "differential"})


def _same_frequency(one: str, other: str) -> bool:
    said, read = sig_forms.frequencies(one), sig_forms.frequencies(other)
    if not said or not read:
        return occurs(fold(one), fold(other)) or occurs(fold(other), fold(one))
    if ("as needed" in said) != ("as needed" in read):
        return False
    return sig_forms.same_frequency(one, read) or sig_forms.same_frequency(other, said)


def _words(text: str) -> frozenset[str]:
    return frozenset(normal(word) for word in re.findall(r"[^\W_]+", text)) - quoted_names.PLAIN
