"""How far a cue reaches over the words of its sentence.

Notes are telegraphic: `Stroke - MRI negative`, `No fever, cough x 3 days`. A cue reaches a mention
only if the rules explain the words between cue and mention. Otherwise the cue belongs to another
subject, or the text leaves the subject open and a person must read the text.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from pipeline.providers.local.assertions.cues import Cue, CueKind
from pipeline.providers.local.assertions.experiencer import names_person


class Reach(Enum):
    """Whether a cue is about a mention."""

    REACHES = auto()
    ANOTHER = auto()
    """The cue belongs to another subject."""
    OPEN = auto()
    """The text does not decide to which subject the cue belongs."""


_SUBJECT_AHEAD = frozenset(
    {
        CueKind.NOT_POST,
        CueKind.NEAR_NOT_POST,
        CueKind.REFUSED_POST,
        CueKind.PAST_POST,
        CueKind.POSSIBLE_POST,
        CueKind.PLANNED_POST,
        CueKind.LATER_POST,
    }
)
"""Kinds of cues that follow their subject."""
_NEGATIONS = frozenset({CueKind.NOT_POST, CueKind.NEAR_NOT_POST})
_UNDER_COLON = re.compile(r".*(?::|[ ][-\u2013\u2014][ ])(?P<subject>.*)", re.S)
_OWN_SUBJECT = re.compile(
    r"(?:[ ]|\b(?:it|this|that|these|they|both|all|which|has|have|had|is|are|was|were|been|now"
    r"|since|also|then|later|again|and|but|currently|[a-z]+ly)\b)*",
    re.I,
)
"""The words in front of a cue that name no other subject."""
_COLON_ANSWER = re.compile(r"[ ]?[:=-]")
"""An answer behind a colon or a dash (`Fever, chills: none`), which answers the whole list."""
_PLURAL = re.compile(r"(?:are|were|have)\b", re.I)
_JOINED = re.compile(r"[ ]*(?:and|or|nor)\b|[^,]*(?:\b(?:and|or|nor)\b|/|&)", re.I)
"""The last element of a list, with its conjunction."""
_OWN_DETAIL = re.compile(r"\d|[(\[]")
"""A date, a figure or a parenthesis behind a mention, which ends the list of bare names."""
_TEST = re.compile(
    r"\b(?:tests?|testing|screens?|screening|swabs?|cultures?|CTA?|MR[IA]|PET|X-?rays?|films?"
    r"|radiographs?|CXR|KUB|US|ultrasound|sonogram|dopplers?|duplex|scans?|imaging|EKG|ECG|EEG|EMG"
    r"|echo(?:cardiogram)?|stress|enzymes|troponins?|markers?|labs?|panels?|studies|study|work-?up"
    r"|titers?|antibod(?:y|ies)|antigen|PCR|serolog(?:y|ies)|smears?|stains?|preps?|cytology"
    r"|biops(?:y|ies)|patholog(?:y|ies)|endoscopy|EGD|colonoscopy|exam|examination|dimer|UA"
    r"|urinalysis|urine|LP|CSF|tap|cath|angiogram|angiography|[A-Z]{2,6}[ ]test)\b"
)
"""The name of a test: `negative` behind a test is the result of the test."""
_RESULT = re.compile(r"\bneg|normal|unremarkable|absent|\bnone\b|\bclear|\bnon-?reactive", re.I)
_LATER_THAN = re.compile(
    r"\b(?:after|following|despite|status[ ]post|s/p)[ ](?:\w+[ ]){0,2}$", re.I
)
"""Words that make the mention the time of a denial: `no pain after surgery`."""
_BY_MEANS_OF = re.compile(
    r"\w[ ](?:on|by|via|per|during|at|at[ ]the[ ]time[ ]of)[ ]"
    r"(?:(?:the|an?|his|her|this|repeat|prior|recent|initial|plain|chest|brain|head|abdominal"
    r"|contrast|portable|bedside|today['’]s)[ ])*$",
    re.I,
)
"""Words that make an act the way in which the denied finding was sought: `no mass on MRI`."""
_STOPPED = re.compile(r"discontinu|stop|d/?c", re.I)
"""The end of a drug, which says nothing about the act that is the time of the end."""
_NEGATIVE = re.compile(r"neg(?:ative)?\b", re.I)
_NUMBERED = re.compile(
    r"[ ]*(?:one|two|three|four|five|six|several|multiple|many|few|a[ ](?:few|single|couple"
    r"|small|tiny|simple|mild)|an?[ ]\d|\d+(?:[.]\d+)?[ ]?(?:\+|x|cm|mm)?|trace|small|tiny"
    r"|unchanged|stable|innumerable)(?=[ -])",
    re.I,
)
"""The beginning of a finding: `no hydronephrosis, one simple cyst` states the cyst."""
_PERHAPS_NEW = re.compile(r"[ ]*(?:an?|new|minimal|mild|moderate|old|known|chronic)[ ]", re.I)
"""The beginning of a finding, or of one more denied item: `no rash, new cough`."""
_GOES_ON_DENIED = re.compile(r"\b(?:or|nor)\b", re.I)
_CLAUSE = re.compile(r"[.;:]|\b(?:but|with|and)\b", re.I)
_OWN_PREDICATE = re.compile(
    r"\b(?:x|×)[ ]?\d|\d[ ]?(?:x|×)\b|\bfor[ ](?:(?:the|about|over|at[ ]least)[ ])*(?:past|last|\d"
    r"|one|two|three|four|five|six|seven|several|many|a[ ](?:day|week|month|year|few))"
    r"|\bsince\b|\bstart(?:s|ed|ing)\b|\bproduct(?:ive|ion)[ ]of\b|\bimprov|\bworse|\bpersist"
    r"|\bcontinu|\bpresent\b|\bpositive\b|\bongoing\b|\bintermittent|\boccasional|\bdaily\b"
    r"|\bmild\b|\bmoderate\b|\btoday\b|\byesterday\b|\bnow\b|\btonight\b|\bbegan\b|\bevery\b"
    r"|\bconstant\b|\bstill\b|\brelieved\b|\bafter\b|\bwhen\b|\bwith[ ](?:exertion|activity"
    r"|meals|food|movement|deep)|[(]\+[)]|\bpos\b|\+ve\b|\b\d+/10\b|\bago\b",
    re.I,
)
"""The words of a statement of its own inside a list of denials."""


def reach(cue: Cue, words: str, first: int, last: int, *, is_act: bool) -> Reach:
    """Judge whether a cue is about the mention at `first..last`.

    With `is_act` the mention is something that is done. A negative result does not undo an act.
    """
    if cue.end <= first:
        return _reach_ahead(cue, words, first, is_act=is_act)
    if cue.kind not in _SUBJECT_AHEAD:
        return Reach.REACHES
    phrase = words[cue.start : cue.end]
    is_negation = cue.kind in _NEGATIONS
    if is_act and is_negation and _RESULT.search(phrase) and not _COLON_ANSWER.match(phrase):
        return Reach.ANOTHER
    between = words[last : cue.start]
    under = _UNDER_COLON.fullmatch(between)
    if under is not None and _OWN_SUBJECT.fullmatch(under["subject"]) is None:
        return Reach.OPEN if is_negation else Reach.ANOTHER
    if is_negation and _RESULT.search(phrase) and _TEST.search(between):
        return Reach.OPEN
    tail, *others = between.split(",")
    if not others or _OWN_SUBJECT.fullmatch(others[-1]):
        return Reach.REACHES
    if _OWN_DETAIL.search(tail) or any(names_person(each) for each in others):
        return Reach.ANOTHER
    if _COLON_ANSWER.match(phrase) or _PLURAL.match(phrase.lstrip()) or _JOINED.match(others[-1]):
        return Reach.REACHES
    return Reach.OPEN


def _reach_ahead(cue: Cue, words: str, first: int, *, is_act: bool) -> Reach:
    """Judge whether a cue in front of a mention is about the mention."""
    between = words[cue.end : first]
    if cue.kind is CueKind.NEAR_NOT:
        return Reach.OPEN if "," in between else Reach.REACHES
    if cue.kind is CueKind.PAST and is_act and _STOPPED.match(words, cue.start):
        return Reach.ANOTHER
    if cue.kind is not CueKind.NOT:
        return Reach.REACHES
    if is_act and _NEGATIVE.match(words, cue.start) and not between.strip():
        return Reach.ANOTHER
    if is_act and _BY_MEANS_OF.search(between):
        return Reach.ANOTHER
    if _LATER_THAN.search(between.rpartition(",")[2]):
        return Reach.ANOTHER if is_act else Reach.OPEN
    return _reach_in_list(between, words, first)


def _reach_in_list(between: str, words: str, first: int) -> Reach:
    """Judge whether the list of a denial goes on at a later member of the list."""
    item, *later = f"{between}{words[first:]}".split(",")
    at = between.count(",")
    if not at:
        return Reach.REACHES
    member = later[at - 1]
    if _NUMBERED.match(item) or _PERHAPS_NEW.match(item):
        return Reach.REACHES
    cut = _CLAUSE.search(words, first)
    if _GOES_ON_DENIED.search(f"{between}{words[first : cut.start() if cut else None]}"):
        return Reach.REACHES
    stated = [each for each in later[:at] if _NUMBERED.match(each)]
    if stated:
        return Reach.ANOTHER
    return Reach.OPEN if _PERHAPS_NEW.match(member) else Reach.REACHES


_OWN_VERB = re.compile(r"\b(?:is|are|was|were|remains?|remained|seems?|appears?)[ ]", re.I)
_LISTED = re.compile(r"\b(?:and|or|nor)\b", re.I)
_NOT_TAKEN = re.compile(
    r"(?:\w+[ ]){0,2}(?:not|never|n['’]t|no[ ]longer)[ ](?:\w+[ ])?"
    r"(?:tak|start|us|fill|tolerat)\w*\b"
    r"[^.;()]*\([^()]*",
    re.I,
)


def goes_on_denied(words: str, begin: int, first: int) -> bool:
    """Return whether `or` joins the mention at `first` to the words behind `begin`."""
    between = words[begin:first]
    if "," not in between:
        return _GOES_ON_DENIED.search(between) is not None
    cut = _CLAUSE.search(words, first)
    return _GOES_ON_DENIED.search(words, begin, cut.start() if cut else len(words)) is not None


_ENDED = re.compile(
    r"[^.;,]{0,30}?\b(?:(?:until|till)\b|before(?=[ ]*(?:[.,;]|$|(?:this|today|now|yesterday)\b)))",
    re.I,
)


def ends_later(words: str, last: int) -> bool:
    """Return whether a denial ended at a time (`no seizure until today`), so it is open."""
    return _ENDED.match(words, last) is not None


def is_open_denial(cue: Cue, words: str, first: int, last: int) -> bool:
    """Return whether a list of denials perhaps ended before the mention at `first..last`.

    `No fever, cough x 3 days` can deny the cough or tell of it. A parenthesis behind a drug that
    is not taken gives the reason: `not taking simvastatin (muscle aches)`.
    """
    if cue.end <= first and _NOT_TAKEN.fullmatch(words, cue.start, first):
        return True
    if cue.kind is not CueKind.NOT or cue.end > first or "," not in words[cue.end : first]:
        return False
    begins = words.rfind(",", cue.end, first) + 1
    stops = [at for sign in ",;." if (at := words.find(sign, last)) >= 0]
    ends = min(stops, default=len(words))
    clause = f"{words[begins:first]} {words[last:ends]}"
    if _OWN_PREDICATE.search(clause):
        return True
    return _OWN_VERB.search(clause) is not None and not _LISTED.search(clause)
