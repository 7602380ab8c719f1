"""The words behind a laboratory value in running text: does a number stay unexplained?

A further number of the same test makes the statement not understood: it may be a newer value.
"""

from __future__ import annotations

import re

from pipeline.providers.local.labs.analytes import Analyte, known_name
from pipeline.providers.local.labs.patterns import BETWEEN, BOUND, RANGE_LABEL, UNIT, figure
from pipeline.providers.local.text.latest_reading import MOMENT
from pipeline.providers.local.vitals.vital_signs import NAMES

_REACH = 110
_FOREIGN = (
    r"[ ]?-?(?:mg|mcg|µg|g|mEq|mmol|units?|U|mL|L|cc|tabs?|tablets?|pills?|caps?(?:ules?)?|doses?"
    r"|packs?|amps?|puffs?|hours?|hrs?|h|days?|d|weeks?|wks?|months?|mos?|years?|yrs?|y/?o|min"
    r"(?:utes?)?|times|x|st|nd|rd|th|fold|kg|lbs?|bags?|lit(?:er|re)s?|bpm|mm[ ]?Hg|pRBCs?"
    r"|bands|segs|blasts|lymphs?|neutrophils|eosinophils|polys|monos|transfusions?|points?"
    r"|degrees|am|pm|a\.m\.|p\.m\.)(?![\w/])"
)
_TOKEN = re.compile(
    rf"(?P<range>[\[(](?:{RANGE_LABEL})?(?:{BETWEEN}|{BOUND})[ ]?(?:{UNIT})?[\])]"
    rf"|(?:{RANGE_LABEL}|(?:range|interval|limits?|normal)[ ]*(?:of|is|:)?[ ]*)"
    rf"(?:{BETWEEN}|{BOUND}))"
    r"|(?P<year>(?:in|since|from|of|during)[ ](?:early[ ]|late[ ])?(?:19|20)\d\d(?!\d))"
    r"|(?P<goal>(?:goals?|targets?|thresholds?|cut-?offs?|normal)(?:[ ](?:of|is|was"
    r"|range|at|for|under|below|above|less|than|:|=))*[ :]*[<>≤≥]?=?[ ]*\d+(?:\.\d+)?"
    r"(?:[ ]?[-–][ ]?\d+(?:\.\d+)?)?)"
    rf"|(?P<moment>{MOMENT}|(?<=at[ ])[0-2]\d[0-5]\d(?!\d))(?!\w)"
    r"|(?P<mark>[x×#][ ]?\d+(?!\d)|q[ ]?\d+|\d+[ ]?/[ ]?\d+|\d+[ ]?[-–][ ]?\d+"
    r"|[A-Za-z]+-?\d[\w-]*)"
    rf"|(?P<foreign>\d+(?:[.,]\d+)?{_FOREIGN})"
    r"|(?P<number>(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\w.,]*\d)[ ]?(?P<percent>%)?)"
    r"|(?P<word>[A-Za-z][\w'’-]*)"
    r"|(?P<stop>[;\n]|[.!?](?=\s|$))",
    re.I,
)


_AGAIN = re.compile(
    r"[.;]?[ \n]+(?:on[ ])?(?:repeat(?:ed)?|re-?check(?:ed)?|redraw|now|later|today|this[ ]morning)"
    r"(?:[ ,:]|was|is|it|value|level|showed|came|back|at|of)*"
    r"(?P<number>[<>]?\d+(?:[.,]\d+)?)(?![\d/%])",
    re.I,
)
"""A next sentence with a repeated value, without the test's name."""


_TAKEN_BACK = re.compile(
    r"[^.;\n]{0,48}?\b(?:error|erroneous\w*|spurious\w*|artifact\w*|typo|mislabel\w*"
    r"|wrong[ ]patient"
    r"|(?:another|other|different)[ ]patient|misread|misprint|contaminated|invalid|not[ ]valid"
    r"|incorrect\w*|disregard\w*|h(?:a?)emoly[sz]\w*|clotted|lip(?:a?)emi[ac]|icteric"
    r"|insufficient|QNS)\b"
    r"|[^.\n]{0,80}?\b(?:results?|tests?|specimens?|samples?)[ ](?:(?:is|was|were|has|been)[ ])*"
    r"(?:cancell?ed|void(?:ed)?|rejected|retracted|withdrawn|not[ ]reliable|unreliable)\b",
    re.I,
)
_WORDS = re.compile(
    r"(?P<stop>[.;\n])|(?P<result>(?:non-?[ ]?reactive|reactive|not[ ]detected|detected|negative"
    r"|positive|trace|equivocal|indeterminate)(?!\w))|[A-Za-z][\w-]*",
    re.I,
)


def has_further_value(text: str, at: int, limit: int, analyte: Analyte) -> bool:
    """Return whether an unexplained number of the same size follows in the same clause."""
    again = _AGAIN.match(text, limit - (text[limit - 1 : limit] in ".;"))
    if again and analyte.low <= figure(again["number"]) <= analyte.high and limit - at < _REACH:
        return True
    stop = min(limit, at + _REACH)
    share = "%" in analyte.units
    while at < stop:
        m = _TOKEN.search(text, at, stop)
        if m is None or m.lastgroup == "stop":
            return False
        kind = m.lastgroup
        if kind == "word":
            end = known_name(text, m.start())
            is_name = end is not None and end > m.start() + 1 and m.group().lower() != "blood"
            if is_name or NAMES.match(text, m.start()):
                return False
        elif m["number"]:
            number = figure(m["number"])
            beside = known_name(text, m.end() + 1) is not None
            if (share or not m["percent"]) and not beside:
                return analyte.low <= number <= analyte.high
        at = max(m.end(), at + 1)
    return False


def is_taken_back(text: str, at: int, limit: int) -> bool:
    """Return whether the same line says that the value is wrong or of another person."""
    line_end = text.find("\n", at)
    return _TAKEN_BACK.match(text, at, max(limit, line_end if line_end >= 0 else limit)) is not None


def has_further_word(text: str, at: int, limit: int, value: str) -> bool:
    """Return whether another result in words follows a result in words in the same clause."""
    if any(c.isdigit() for c in value):
        return False
    for m in _WORDS.finditer(text, at, min(limit, at + _REACH)):
        if m["stop"]:
            return False
        if m["result"]:
            return True
        end = known_name(text, m.start())
        if end is not None and end > m.start() + 1:
            return False
    return False
