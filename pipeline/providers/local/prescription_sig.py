"""The directions of a prescription: dose, route and frequency as printed.

Reading starts after a drug's name and stops at the first word that is neither a part of the
directions nor a word that may appear between the parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+|½|one[- ]half|half|one|two|three|four)"
)
_UNIT = (
    r"(?:(?:mg|mcg|µg|μg|ug|g|units?|mEq|mmol|mL)/(?:kg|m2|m²)(?:/(?:day|dose|hr?|min|d))?"
    r"|(?:mg|mcg|µg|μg|ug|g|units?|mEq|mL|cc|mL|L)/(?:hr?|hour|min|day|actuation|dose|puff"
    r"|spray|mL|\d*\s?mL)"
    r"|mgs?|mcgs?|µg|μg|ug|grams?|gms?|g|kg|mL|mls?|ccs?|cc|liters?|lpm|L|units?|U|IU|mEqs?|mmol|%"
    r"|puffs?|tab(?:let)?s?|cap(?:sule)?s?|drops?|gtts?|sprays?|patch(?:es)?|lozenges?"
    r"|suppositor(?:y|ies)"
    r"|amp(?:ule)?s?|vials?|packets?|scoops?|applications?|inhalations?|tsps?|teaspoons?(?:ful)?"
    r"|tbsps?|tablespoons?(?:ful)?|doses?|pills?|sachets?|bag|nebs?)"
)
DOSE = re.compile(
    (
        rf"(?<![\w/.])({_NUMBER}(?:[ ]?(?:-|–|/|to)[ ]?{_NUMBER})*(?:[ ]"
        rf"|-)?{_UNIT}(?:[ ]?/[ ]?\d*[ ]?(?:mL|ml))?)(?![\w/])"
    ),
    re.I,
)
"""An amount with its unit: `20 mg`, `875/125 mg`, `0.5-1 mg`, `1,000 units`, `two puffs`."""

_ROUTE = re.compile(
    r"(?<!\w)(?:PO|p\.o\.|by[ ]mouth|orally|oral|IV[ ]?(?:PB|push|drip|infusion|bolus)?|I\.V\."
    r"|IVP|intravenous(?:ly)?"
    r"|IM|I\.M\.|intramuscular(?:ly)?|SC|SQ|sub-?Q|sub-?cut(?:aneous(?:ly)?)?|s\.c\.|SL"
    r"|sublingual(?:ly)?"
    r"|PR|per[ ]rectum|rectally|PV|vaginally|per[ ]vagina|topical(?:ly)?"
    r"|(?:applied[ ])?to[ ](?:the[ ])?affected[ ]areas?|to[ ]wounds?"
    r"|inhaled|inhalation|by[ ]inhalation|INH|(?:via|by|per|in)[ ](?:a[ ])?neb(?:ulizer)?"
    r"|nebulized|nebs?|intranasal(?:ly)?"
    r"|in[ ]each[ ]nostril|each[ ]nostril|ophthalmic(?:ally)?|in[ ](?:both|each|the[ ]left"
    r"|the[ ]right|left|right|affected)[ ]eyes?"
    r"|OU|OS|in[ ](?:both|each|the[ ]left|the[ ]right)[ ]ears?|otic|transdermal(?:ly)?"
    r"|buccal(?:ly)?"
    r"|(?:per|via|by)[ ](?:G|J|NG|PEG|OG)-?[ ]?tube|NGT?|via[ ]nasal[ ]cannula"
    r"|by[ ]nasal[ ]cannula|nasal[ ]cannula|intrathecal(?:ly)?"
    r"|intradermal(?:ly)?|swish[ ]and[ ](?:swallow|spit)|intraarticular(?:ly)?"
    r"|intravitreal(?:ly)?)(?!\w)",
    re.I,
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days"
_COUNT = r"(?:\d+(?:[ ]?(?:-|–|to)[ ]?\d+)?|two|three|four|five|six|eight|twelve|few)"
_FREQUENCY = re.compile(
    r"(?<!\w)(?:"
    r"(?:once|twice|thrice|(?:one|two|three|four|five|six|\d)[ ]?(?:-[ ]?\d[ ]?)?(?:times|x"
    r"|×))[ ]?(?:(?:a|per|each|every)[ ](?:day|week|month|night)|daily|nightly|weekly|monthly"
    r"|/[ ]?day)"
    rf"|every[ ](?:other[ ])?(?:{_COUNT}[ ]?-?)?(?:hours?|hrs?|minutes?|mins?|days?|weeks?|wks?"
    rf"|months?|mornings?|evenings?|nights?|bedtime|am|pm|{_WEEKDAY}?)"
    r"|q\.?[ ]?\d{1,2}(?:[ ]?(?:-|–|to)[ ]?\d{1,2})?[ ]?(?:hours?|hourly|hrs?|h|minutes?|mins?"
    r"|days?|d|weeks?|wks?|w|months?)?"
    r"|q\.?[ ]?(?:a\.m\.|p\.m\.|h\.s\.|am|pm|hs|day|daily|week|weekly|wk|month|monthly|shift"
    r"|other[ ]day|o\.d\.|od|d|h|noon|ac|mon|evening|morning|night)"
    r"|b\.i\.d\.|t\.i\.d\.|q\.i\.d\.|bid|tid|qid|QD|QHS|QAM|QPM|QOD|QDAY"
    r"|once[ ](?:daily|nightly|weekly|monthly|only)|daily|nightly|weekly|biweekly|monthly"
    r"|hourly|yearly"
    r"|at[ ](?:bedtime|night|noon|supper|dinner|breakfast)|in[ ]the[ ](?:morning|evening"
    r"|afternoon)(?:s)?|before[ ]bed(?:time)?|each[ ](?:morning|evening|night|day)"
    r"|(?:with|before|after)[ ](?:meals|breakfast|lunch|dinner|supper|food|each[ ]meal)"
    r"|AC(?:[ ]&[ ]HS)?|HS|AM|PM"
    r"|as[ ]needed|p\.r\.n\.|prn|(?:per|a)[ ](?:day|week|month)|once|continuous(?:ly)?|x[ ]?1"
    r"|×[ ]?1|stat|ad[ ]lib"
    rf"|on[ ]{_WEEKDAY}(?:,?[ ](?:and[ ])?{_WEEKDAY})*|{_WEEKDAY}(?:,?[ ](?:and[ ])?{_WEEKDAY})+"
    r")(?![\w])",
    re.I,
)
_BETWEEN = re.compile(
    r"(?:XL|ER|SR|CR|XR|DR|EC|LA|CD|ODT|HFA|DS|IR|extended[- ]release|delayed[- ]release"
    r"|immediate[- ]release|enteric[- ]coated"
    r"|chewable|inhaler|nebulizer|solution|suspension|ointment|cream|gel|lotion|foam"
    r"|nasal[ ]spray|tab(?:let)?s?|cap(?:sule)?s?"
    r"|injection|injections|patch|drip|infusion|bolus|powder|syrup|elixir|liquid|pen|flexpen"
    r"|solostar|kwikpen|packet|spray|drops"
    r"|to|of|at|a|an|take|takes|taking|took|dose|dosed|dosing|given|gave|use|apply|inject"
    r"|inhale|increased|decreased|reduced|by|in|the|total|for[ ]total|and"
    r"|strength|sig|level|therapy|on|mg)(?!\w)",
    re.I,
)
_GAP = re.compile(r"(?:[ \n,;:()\[\]@|=_—–-]|(?<= )[^\x00-\x7f](?= ))*")
_SALT = re.compile(
    r"[ \n]+(succ(?:inate)?|tart(?:rate)?|HCl|hydrochloride|sodium|potassium|besylate|maleate"
    r"|mesylate"
    r"|fumarate|citrate|sulfate|phosphate|acetate|bromide|calcium|magnesium|carbonate"
    r"|gluconate)(?![\w/])",
    re.I,
)
_MAX_BETWEEN = 4


@dataclass(frozen=True, slots=True)
class Sig:
    """The directions after a drug's name."""

    end: int
    """The end of the last recognized part; without such a part, the end of the name."""
    dose: str | None = None
    route: str | None = None
    frequency: str | None = None

    def __bool__(self) -> bool:
        return bool(self.dose or self.route or self.frequency)


def salt_end(text: str, end: int, limit: int) -> int:
    """Return where a drug's name ends if its salt is part of the name (`metoprolol succinate`)."""
    m = _SALT.match(text, end, limit)
    return m.end() if m else end


def read_sig(text: str, start: int, limit: int) -> Sig:
    """Read the directions in `text[start:limit]`; the first dose, route and frequency count."""
    dose = route = None
    frequency: tuple[int, int] | None = None
    at = end = start
    between = 0
    while at < limit and between <= _MAX_BETWEEN:
        gap = _GAP.match(text, at, limit)
        if gap and "(" in gap.group() and dose and frequency:
            break
        at = gap.end() if gap else at
        if m := DOSE.match(text, at, limit):
            dose = dose or m[1]
        elif m := _FREQUENCY.match(text, at, limit):
            near = frequency is not None and at - frequency[1] <= 2
            if frequency is None:
                frequency = (m.start(), m.end())
            elif near:
                frequency = (frequency[0], m.end())
        elif m := _ROUTE.match(text, at, limit):
            route = route or m.group()
        else:
            m = _BETWEEN.match(text, at, limit)
            if m is None:
                break
            between += 1
            at = m.end()
            continue
        between = 0
        at = end = m.end()
    return Sig(
        end=end,
        dose=_printed(dose),
        route=_printed(route),
        frequency=_printed(text[slice(*frequency)]) if frequency else None,
    )


_DOSE_BEFORE = re.compile(DOSE.pattern + r"[ \n]+(?:of[ \n]+)?$", re.I)


def dose_before(text: str, start: int, floor: int) -> tuple[int, str] | None:
    """Return the start of a dose before the name (`20 mg of lisinopril`), and the dose."""
    m = _DOSE_BEFORE.search(text, max(floor, start - 30), start)
    return (m.start(1), _printed(m[1]) or "") if m else None


def _printed(words: str | None) -> str | None:
    return " ".join(words.split()) if words else None
