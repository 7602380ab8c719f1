"""The words that head the columns of a laboratory table: the kind of one heading cell.

A heading cell is known only if all of its words are known.
"""

from __future__ import annotations

import re
from functools import lru_cache

_BEFORE = r"(?:yesterday|previous|prior|prev|last|earlier|historical?|history|old|baseline)\.?"
_RESULT = r"(?:results?|values?|findings?|readings?|observations?|levels?)"
_DAY = r"(?:dates?|time|collect(?:ed|ion)|drawn|resulted|reported|received|taken|performed)"
_DATE = rf"{_DAY}(?:[ /&]*(?:on|at|and|of|{_DAY}))*"
_TEST = (
    r"(?:tests?|components?|analytes?|names?|procedures?|assays?|labs?|parameters?|descriptions?"
    r"|determinations?|exams?|examinations?|investigations?|measurements?|items?|markers?"
    r"|biomarkers?|panels?|stud(?:y|ies)|laboratory|orders?|constituents?)"
)
_KINDS: tuple[tuple[str, str], ...] = (
    ("previous_date", rf"(?:{_DATE}[ ])?(?:of[ ])?(?:{_BEFORE})[ ](?:{_RESULT}[ ])?{_DATE}"),
    ("previous_date", rf"{_DATE}[ ](?:of[ ])?(?:the[ ])?{_BEFORE}(?:[ ]{_RESULT})?"),
    ("other", rf"{_BEFORE}[ ](?:{_RESULT}[ ])?(?:flags?|units?|status|ranges?|abn(?:ormal)?)"),
    ("previous", rf"(?:{_BEFORE}[ ]?)+{_RESULT}[ ](?:and|&|/)[ ]{_DATE}"),
    ("previous", rf"(?:{_BEFORE}[ ]?)+(?:{_RESULT})?(?:[ ]\(?s\)?)?|{_RESULT}[ ]{_BEFORE}"),
    ("other", r"(?:delta|change|trend|difference|graph|history|%[ ]?change|target|goal)s?.*"),
    (
        "unit",
        rf"(?:{_RESULT}[ ])?(?:units?|uom|unit[ ]of[ ]measure(?:ment)?|measure[ ]units?)",
    ),
    (
        "low",
        (
            r"(?:ref(?:erence)?\.?[ ]|normal[ ]|range[ ])?(?:low(?:er)?|min(?:imum)?)"
            r"(?:[ ](?:limit|bound|normal|ref))?"
        ),
    ),
    (
        "high",
        (
            r"(?:ref(?:erence)?\.?[ ]|normal[ ]|range[ ])?(?:high(?:er)?|upper|max(?:imum)?)"
            r"(?:[ ](?:limit|bound|normal|ref))?"
        ),
    ),
    (
        "range",
        (
            r"(?:std\.?[ ]|standard[ ]|bio(?:logical)?\.?[ ]|lab[ ]|adult[ ]|latest[ ])?"
            r"(?:ref(?:erence|er)?s?\.?|normals?|expected|desirable|therapeutic)[ /]?"
            r"(?:ranges?|rng|intervals?|int\.?|values?|limits?)(?:[ /]*(?:and|&)?[ ]?units?)?"
            r"|(?:std\.?|standard|bio(?:logical)?\.?)[ ](?:ranges?|interval)"
            r"|ref(?:erence)?s?\.?(?:[ /](?:and|&)?[ ]?units?)?|normals?|expected|r\.?[ ]?i\.?"
            r"|ranges?|intervals?|limits?"
        ),
    ),
    ("split", r"(?:in|out[ ]of|within|outside)[ ](?:the[ ])?(?:normal[ ])?(?:range|limits)"),
    (
        "date",
        _DATE + r"|(?:collection|draw|service|specimen|result|observation|lab)[ ](?:date|time)"
        r"(?:[ /]*time)?",
    ),
    ("status", r"(?:result[ ])?(?:status|stat|interp(?:retation)?|evaluation|assessment)"),
    (
        "flag",
        (
            r"(?:abn(?:ormal)?\.?(?:ity)?[ ]?|result[ ]|hi/lo[ ]|h/l[ ])?(?:flags?|indicators?)"
            r"|abn(?:ormal)?\.?(?:ity)?|h/l|l/h|hi/lo|hl|alerts?|abnl|!|\*|crit(?:ical)?"
        ),
    ),
    (
        "value",
        (
            rf"(?:your|current|new|latest|today['’]?s|recent|most[ ]recent|patient['’]?s?"
            rf"|measured|lab|test|observed|numeric|this|final)?[ ]?{_RESULT}"
            r"(?:[ ](?:and|&|/)[ ](?:flags?|units?))?|current|latest|today"
            r"|observed|now|measured"
        ),
    ),
    (
        "specimen",
        (
            r"(?:specimens?|samples?|source|material|matrix|fluid|body[ ]site|type)"
            r"(?:[ ](?:type|source))?"
        ),
    ),
    (
        "comment",
        r"(?:comments?|notes?|remarks?|footnotes?|annotations?)(?:[ /&]+(?:comments?|notes?))?",
    ),
    (
        "other",
        (
            r"(?:methods?|methodology|technique|loinc|codes?|(?:loinc|test|lab|local|order)[ ]"
            r"(?:codes?|id|no\.?|number|#)|(?:lab[ ])?sites?|perform(?:ing|ed)[ ](?:lab|site|by)"
            r"|id|no\.?|#|fn|s\.?[ ]?no\.?|accession|analy[sz]er|instrument|ordered[ ]by|tech"
            r"|initials|verified[ ]by|category|department|section|page|lab)"
        ),
    ),
    (
        "name",
        (
            rf"(?:lab(?:oratory)?[ ]|blood[ ]|clinical[ ])?{_TEST}(?:[ /]*(?:and|&)?[ ]?"
            rf"(?:names?|descriptions?|{_TEST}))?|test[ ](?:requested|ordered|performed)"
        ),
    ),
)
_COMPILED = tuple((kind, re.compile(pattern, re.I)) for kind, pattern in _KINDS)
_ASIDE = re.compile(r"[ ]*[(\[][A-Za-z .,/%^²³µ0-9]{1,24}[)\]]$|[:.*]+$")


@lru_cache(maxsize=4_096)
def kind_of_heading(words: str) -> str:
    """Return the kind of one heading cell: "" for an empty cell, `unknown` for unknown words."""
    plain = " ".join(_ASIDE.sub("", words.strip()).split())
    if not plain:
        return ""
    for kind, pattern in _COMPILED:
        if pattern.fullmatch(plain):
            return kind
    return "unknown"
