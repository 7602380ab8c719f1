"""The words between the doses of a prescription: changes, limits, goals, corrections, steps."""

from __future__ import annotations

import re

_VERB = (
    r"(?:increas(?:e[sd]?|ing)|decreas(?:e[sd]?|ing)|reduc(?:e[sd]?|ing)|lower(?:ed|ing|s)?"
    r"|rais(?:e[sd]?|ing)|chang(?:e[sd]?|ing)|adjust(?:ed|ing)?|(?:up|down)?-?titrat(?:e[sd]?|ing)"
    r"|advanc(?:e[sd]?|ing)|escalat(?:e[sd]?|ing)|cut(?:ting)?|drop(?:ped|ping)?|switch(?:ed|ing)?"
    r"|convert(?:ed|ing)?|wean(?:ed|ing)?|bump(?:ed|ing)?|go(?:ing)?[ ](?:up|down)"
    r"|went[ ](?:up|down)|step(?:ped)?[ ](?:up|down)|taper(?:ed|ing)?|transition(?:ed|ing)?"
    r"|replaced|doubl(?:e[sd]?|ing)|halv(?:e[sd]?|ing)|tripl(?:e[sd]?|ing))"
)
CHANGE = re.compile(
    r"(?P<modal>(?:(?:may|can|could|might|will|would|should|consider|plan(?:s|ned)?(?:[ ]to)?"
    r"|if[ ][^.;,\d]{1,40},?)[ ]+)+)?"
    r"(?:(?:was|were|is|be|been|has|have|being|then|now|recently|dose|dosage|and|but|the|we|later"
    r"|subsequently|today|just)[ ]+)*"
    rf"(?P<verb>{_VERB})(?:[ ](?:the[ ])?(?:dose|dosage)|[ ]it)?"
    r"(?:[ ](?:up|down|back|further|slowly|gradually|today|recently|again|as[ ]tolerated|weekly))*"
    r"[ ]+(?P<way>to|from|by|until|with)(?:[ ](?:a[ ]dose[ ]of|a[ ]total[ ]of|a))?(?!\w)"
    r"|(?P<arrow>-+>|=+>|→|⇒|➔)",
    re.I,
)
TARGET_VERB = re.compile(r"(?:up|down)?-?titrat(?:e|ing)$|escalate$|advance$", re.I)
STEP_VERB = re.compile(r"(?:taper|wean)", re.I)
LATER = re.compile(
    r"[^.;\n]{0,40}?\b(?:if|as[ ]tolerated|in[ ](?:\d+|an?|one|two|three|four|six)[ -](?:day|week"
    r"|month)s?"
    r"|after|next[ ](?:week|month|visit)|when|once[ ](?!daily|a\b|weekly|nightly)\w+|tomorrow"
    r"|pending"
    r"|starting[ ](?:on|next))\b",
    re.I,
)
LIMIT = re.compile(
    r"(?:(?:do[ ]not|not[ ]to|don't|never|should[ ]not|must[ ]not|without)[ ]exceed(?:ing)?"
    r"|max(?:imum)?\.?(?:[ ](?:daily|total|single))*(?:[ ](?:dose|amount))?(?:[ ](?:of|is))?"
    r"|no[ ]more[ ]than|not[ ]more[ ]than|limit(?:ed)?(?:[ ]to)?|NTE|MDD"
    r"|daily[ ](?:max(?:imum)?|limit)(?:[ ]of)?|up[ ]to[ ]a[ ]max(?:imum)?(?:[ ]of)?|less[ ]than"
    r"|never[ ]more[ ]than)(?!\w)",
    re.I,
)
GOAL = re.compile(
    r"(?:(?:with[ ])?(?:a[ ])?(?:goal|target)(?:[ ]dose)?(?:[ ](?:of|is))?|up[ ]to|aiming[ ]for"
    r"|may[ ]repeat(?:[ ]with)?|may[ ]take|can[ ]take|may[ ]use)(?!\w)",
    re.I,
)
WAS = re.compile(
    r"(?:(?:up|down)[ ]from|from|was(?=[ ]\d)|previous(?:ly)?(?:[ ]dose)?|formerly"
    r"|prior(?:[ ]dose)?"
    r"|old[ ]dose|had[ ]been(?:[ ](?:on|taking))?|used[ ]to[ ](?:be|take))(?:[ ](?:on|of))?(?!\w)",
    re.I,
)
BY = re.compile(r"by(?=[ ]+\d)", re.I)
NEW = re.compile(r"(?:the[ ])?new[ ](?:dose|dosage)(?:[ ](?:is|of|will[ ]be))?(?!\w)", re.I)
FROM_BARE = re.compile(r"\d[\d.,]*(?=[ ]*(?:-+>|=+>|→|⇒|➔)[ ]*\d)")
"""An old amount without its unit (`10 -> 20 mg`)."""
NOT = re.compile(r"(?:and[ ])?(?:not|instead[ ]of|rather[ ]than|in[ ]place[ ]of)(?!\w)", re.I)
CORRECT = re.compile(
    r"(?:should[ ](?:be|read|have[ ]been)|(?:was[ ])?(?:corrected|amended)[ ](?:to|as)|actually"
    r"|correction:?|correct[ ]dose(?:[ ]is)?|meant)(?!\w)",
    re.I,
)
THEN = re.compile(
    r"(?:and[ ])?(?:then|followed[ ]by|after[ ]that|thereafter|alternating[ ]with|alternate[ ]with"
    r"|plus|except(?:[ ]for)?(?=[ ]+[\d.]))(?!\w)",
    re.I,
)
AND = re.compile(r"(?:and|&)(?!\w)|/(?=[ ])", re.I)
OR = re.compile(r"or(?!\w)", re.I)
TO = re.compile(r"to(?=[ ]+[\d.½])", re.I)
PLAIN = re.compile(r"[^\s,;:()\[\]|]+")
REPEATED = re.compile(r"alternat", re.I)
ENDS_WITH_TO = re.compile(r"\bto[ \n]+$", re.I)
LIST = re.compile(r"\d+(?:[-–/]\d+){2}")
FROM_TO = re.compile(r"[\d.,]+[ ]to[ ](\d.*)", re.I)
BARE = re.compile(
    r"\d+(?:\.\d+)?(?=[ ]+(?:PO|po|daily|BID|bid|TID|tid|QID|qd|QD|OD|BD|TDS|QDS|QHS|qhs|HS|once"
    r"|twice|at[ ]bedtime|in[ ]the)\b)"
)
MIXTURE = re.compile(r"(?:\d{2,3}/\d{1,3}(?:\.\d)?|\d{1,2}(?:\.\d)?/\d{3})(?![\d/]|[ ]?(?:mg|mcg))")
"""Two strengths without a unit, which are a part of the product's name: `70/30`, `250/50`."""
CHANGING = re.compile(r"increas|decreas|reduc|chang|rais|lower", re.I)
NEW_AMOUNT = re.compile(r"[^.;\n]{0,60}?(?:\bto\b|-+>|=+>|→|⇒|➔)", re.I)
"""The words from an old amount to the amount that replaces the old amount."""
NEXT = re.compile(r"\bthen\b|>|→|⇒|➔", re.I)
MARKERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (BY, "aside"),
    (NEW, "to"),
    (CORRECT, "correct"),
    (LIMIT, "aside"),
    (GOAL, "target"),
    (NOT, "aside"),
    (WAS, "old"),
)
"""The words before an amount, and the role that the amount gets."""
