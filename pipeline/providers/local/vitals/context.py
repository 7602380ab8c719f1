"""Decide whether a vital sign is a reading, or a goal, a condition, or another person's value.

Goals, targets, thresholds and conditions are no readings. The functions are pure.
"""

from __future__ import annotations

import re

from pipeline.providers.local.assertions.experiencer import person_kind
from pipeline.providers.schemas import Experiencer

_NOW = re.compile(
    r"\b(?:today|now|currently|current|actual|measured|presently|but|however|yet|was|were)\b", re.I
)
_GOAL = re.compile(
    r"(?<!\bat[ ])(?<!\bto[ ])(?<!above[ ])(?<!below[ ])(?<!near[ ])(?<!over[ ])(?<!under[ ])"
    r"(?<!within[ ])(?<!at[ ]the[ ])\b(?:goals?|targets?|threshold|cut-?off|alarm|limits?"
    r"|parameters?"
    r"|desired|aim(?:ing|ed)?|keep(?:ing)?|maintain(?:ing)?|titrat(?:e|ed|ing))\b",
    re.I,
)
_IF = re.compile(
    r"\b(?:if|unless|until|whenever|in[ ](?:case|the[ ]event)[ ]of|should|prn|as[ ]needed"
    r"|p\.r\.n\.?)(?!\w)",
    re.I,
)
_WHEN = re.compile(r"\bwhen\b(?![^.;]*\b(?:was|were|had)\b)", re.I)
_TELL = re.compile(
    r"(?<!\bon[ ])(?<!\bupon[ ])(?<!\bhis[ ])(?<!\bher[ ])(?<!\bthe[ ])\b(?:call|notify|return"
    r"|contact|page|alert|seek|inform|report|hold|go[ ]to|come[ ]back|follow[ ]up|watch)\b[^.;]*?"
    r"\b(?:for|if|when|with|of|once)\b",
    re.I,
)
_TREAT = re.compile(
    r"\b(?:stop|start|give|administer|bolus|treat|restart|resume|increase|decrease|discontinue"
    r"|skip|omit|use|take|transfuse|wean|adjust|medicate)\b[^.;]*?\b(?:for|to|when|once|at)\b"
    r"[^,.;]{0,30}$",
    re.I,
)
_HEADING = re.compile(
    r"\b(?:goals?|targets?|parameters?|thresholds?|call|return|notify|contact|hold|if|seek|watch"
    r"|precautions?|instructions?|alarms?)\b",
    re.I,
)
_RELATIVE = re.compile(
    r"\b(?:mother|father|mom|dad|wife|husband|spouse|partner|son|daughter|brother|sister|sibling"
    r"|twin|donor|roommate|neighbou?r|friend|parent|aunt|uncle|cousin|(?:grand)(?:mother|father))"
    r"(?:['’]s)?(?:[ ](?:last|current|recent|usual|home))?[ ]+$|\b(?:maternal|paternal)[ ]+$",
    re.I,
)


_NOT_MEASURED = re.compile(
    r"\b(?:predicted|acceptable|tolerable|expected|allowable|recommended|safe|(?<!\ba[ ])normal"
    r"|defined[ ]as|(?:lower|upper)[ ]rate|programmed(?:[ ]at)?|paced(?:[ ]at)?)"
    r"(?:[ ](?:maximum|max|resting))?[ ]+$",
    re.I,
)
_BEFORE = re.compile(
    r"\b(?:(?:last|previous|prior)[ ](?:week|month|year|spring|summer|fall|autumn|winter|night"
    r"|visit"
    r"|time)|ago|yesterday|previously|formerly|(?:prior[ ]to|before)(?=[ ]+(?:admission|$)))(?!\w)"
    r"|\bin[ ](?:(?:19|20)\d\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov"
    r"|Dec)[a-z]*(?:[ ]\d{4})?)"
    r"(?!\w)",
    re.I,
)


_CANDIDATE = re.compile(
    r"goal|target|thres|cut-?off|alarm|limit|param|desired|aim|keep|maintain|titrat|if\b|unless"
    r"|until|when|in[ ]case|event|should|prn|as[ ]needed|p\.r\.n|call|notify|return|contact|page"
    r"|alert|seek|inform|report|hold|go[ ]to|come|follow|watch|stop|start|give|admin|bolus|treat"
    r"|resume|crease|discont|skip|omit|use|take|transfuse|wean|adjust|medicate|predicted|able"
    r"|expected|recommended|safe|normal|defined|rate|programmed|paced",
    re.I,
)
"""A quick look: words without a candidate are no goal and no condition."""


def is_expected(before: str) -> bool:
    """Return whether the words before a name make its values goals or conditions."""
    if not _CANDIDATE.search(before):
        return False
    if _NOT_MEASURED.search(before):
        return True
    for pattern in (_GOAL, _IF, _WHEN, _TELL, _TREAT):
        for m in pattern.finditer(before):
            if not _NOW.search(before, m.end()):
                return True
    return False


def is_heading_of_goals(line: str) -> bool:
    """Return whether a line that ends with a colon introduces goals or conditions."""
    return line.rstrip().endswith(":") and _HEADING.search(line) is not None


def owner_of(before: str) -> Experiencer | None:
    """Return the other person to whom a name belongs (`mother's weight`); None for the patient."""
    m = _RELATIVE.search(before)
    return person_kind(m.group()) if m else None


def is_earlier(before: str) -> bool:
    """Return whether the words before a name make its values earlier values."""
    return any(not _NOW.search(before, m.end()) for m in _BEFORE.finditer(before))
