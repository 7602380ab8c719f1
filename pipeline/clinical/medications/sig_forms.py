"""The comparable forms of frequencies and routes.

This module is pure. The local engine's grammar finds the phrases in a text; the tables here say
which phrases mean the same. An unknown phrase is compared word by word.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pipeline.clinical.medications.sig import FREQUENCY, RIGHT_EYE, ROUTE
from pipeline.clinical.page_text.spellings import NUMBER_WORDS

_TIMES = {"once": "1", "twice": "2", "thrice": "3"} | NUMBER_WORDS
_N = rf"(?P<n>\d+(?: ?(?:-|–|to) ?\d+)?|{'|'.join(_TIMES)})"
_PERIOD = r"(?P<period>day|daily|night|nightly|week|weekly|wk|month|monthly|year|yearly)"
_PERIODS = {
    "daily": "day",
    "wk": "week",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
} | {
    "night": "night",
    "nightly": "night",
}
_HOURS = r"(?:h|hr|hrs|hour|hours|hourly)"
_DAY = r"q\.?d\.?|o\.?d\.?|q\.? ?day|q\.? ?daily|daily|once daily|(?:every|each) day"
_OTHER_DAY = r"q\.? ?o\.?d\.?|q\.? ?other day|every (?:other|second|2nd) days?|every 2 days"
_MORNING = r"q\.? ?a\.?m\.?|q\.? ?morning|mane|om|am|morning|in the am|every am"
_EVENING = r"q\.? ?p\.?m\.?|q\.? ?evening|pm|evening|in the pm|every pm"
_NIGHT = r"q\.? ?h\.?s\.?|h\.?s\.?|q\.? ?night|on|nocte|night|at night|nightly|once nightly"
_BED = r"(?:at )?bedtime|every bedtime|before bed(?:time)?"
_FORMS: tuple[tuple[str, str], ...] = (
    # Latin abbreviations stand for these words in every prescription.
    (r"b\.?i\.?d\.?|b\.?d\.?", "2/day"),
    (r"t\.?i\.?d\.?|t\.?d\.?s\.?", "3/day"),
    (r"q\.?i\.?d\.?|q\.?d\.?s\.?", "4/day"),
    (r"b\.?i\.?w\.?", "2/week"),
    (r"t\.?i\.?w\.?", "3/week"),
    (rf"{_OTHER_DAY}|(?:on )?alternat(?:e|ing) days|q\.? ?2 ?d(?:ays?)?", "every 2 day"),
    (rf"{_MORNING}|(?:every|each|in the|the) morning", "morning"),
    (rf"{_EVENING}|(?:every|each|in the|the) evening", "evening"),
    # The last dose of the day is given at night, at bedtime or nightly.
    (rf"{_NIGHT}|{_BED}|(?:every|each) night", "night"),
    (r"p\.?r\.?n\.?|sos|(?:as|if|when) (?:needed|required)", "as needed"),
    (r"a\.?c\.?|before meals?", "before meal"),
    (r"p\.?c\.?|after meals?", "after meal"),
    (r"(?:at )?(?:noon|midday|lunchtime)", "noon"),
    (r"once(?: only)?|[x×] ?1", "once"),
    (r"stat", "stat"),
    (r"continuous(?:ly)?", "continuous"),
    (rf"{_DAY}|(?:per|a|/) ?day", "1/day"),
    (r"weekly|once weekly|(?:every|each) week|q\.? ?(?:week(?:ly)?|wk)", "1/week"),
    (r"(?:per|a|/) ?week", "1/week"),
    (r"monthly|once monthly|(?:every|each) month|q\.? ?month(?:ly)?", "1/month"),
    (r"(?:per|a|/) ?month", "1/month"),
    (r"yearly|once yearly|(?:every|each) year", "1/year"),
    (r"hourly|every hour|q\.? ?h", "every 1 h"),
    (r"fortnightly|every (?:2|two) (?:weeks?|wks?)|q\.? ?2 ?(?:weeks?|wks?|w)", "every 2 week"),
)
"""Phrase → meaning. Phrases with one meaning say the same; no other phrases do."""
_KNOWN = tuple((re.compile(form), meaning) for form, meaning in _FORMS)
_RATE = re.compile(rf"{_N}[ -]?(?:times?|x|×)?[ ]?(?:a |per |each |every |/ ?)?{_PERIOD}")
_EVERY_HOURS = re.compile(rf"(?:q\.? ?|every ){_N} ?-?{_HOURS}?")
_EVERY = re.compile(
    rf"(?:q\.? ?|every ){_N} ?-?(?P<unit>d|days?|w|wks?|weeks?|months?|min(?:ute)?s?)"
)
_FILLERS = frozenset({"take", "by", "at", "on", "the", "a", "an", "each", "and", "then", "of"})
_FILLERS |= {"with", "per", "in", "for", "every", "times", "time"}
_LONE_NIGHT = frozenset({"night", "morning", "evening", "noon"})


@lru_cache(maxsize=4_096)
def frequencies(text: str) -> frozenset[str]:
    """Return the meanings of all phrases of frequency in a text: `{"2/day", "as needed"}`."""
    return frozenset(meaning_of(m.group()) for m in FREQUENCY.finditer(_plain(text)))


def extra_words(text: str) -> frozenset[str]:
    """Return the words of a frequency that no phrase of the grammar explains."""
    rest = FREQUENCY.sub(" ", _plain(text)).lower()
    return frozenset(re.findall(r"[a-z0-9]+", rest)) - _FILLERS


def same_frequency(reported: str, shown: frozenset[str]) -> bool:
    """Return whether a text shows every phrase of a reported frequency.

    `daily` is shown by a time of the day: `at bedtime` is once a day.
    """
    wanted = frequencies(reported)
    if wanted <= shown:
        return True
    rates = {each for each in shown if "/" in each or each.startswith("every")}
    return bool(not rates and shown & _LONE_NIGHT) and wanted - shown == {"1/day"}


def _plain(text: str) -> str:
    # The grammar knows one case of `OD`, `BD` and `TDS`, because `od` and `on` are also words.
    return " ".join(text.replace("\t", " \t ").split(" "))


def meaning_of(phrase: str) -> str:
    """Return the meaning of one phrase of frequency; an unknown phrase in its own words."""
    low = " ".join(phrase.split()).lower()
    for pattern, meaning in _KNOWN:
        if pattern.fullmatch(low):
            return meaning
    m = _RATE.fullmatch(low)
    if m:
        period = _PERIODS.get(m["period"], m["period"])
        return f"{_count(m['n'])}/{'day' if period == 'night' else period}"
    m = _EVERY.fullmatch(low)
    if m:
        return f"every {_count(m['n'])} {_unit(m['unit'])}"
    m = _EVERY_HOURS.fullmatch(low)
    if m:
        return f"every {_count(m['n'])} h"
    words = re.sub(r"\b(?:on|only|and|the)\b|[,&]", " ", low)
    return " ".join(_TIMES.get(word, word) for word in words.replace("–", "-").split())


def _count(printed: str) -> str:
    return _TIMES.get(printed, re.sub(r" ?(?:-|–|to) ?", "-", printed))


def _unit(printed: str) -> str:
    return (
        "min" if printed.startswith("min") else {"d": "day", "w": "week"}.get(printed[0], "month")
    )


_ROUTES: tuple[tuple[str, str], ...] = (
    # Each abbreviation is the usual short form of the words.
    (r"p\.?o\.?|by mouth|oral(?:ly)?", "oral"),
    (r"i\.?v\.?(?: ?(?:pb|push|drip|infusion|bolus))?|ivp|intravenous(?:ly)?", "intravenous"),
    (r"i\.?m\.?|intramuscular(?:ly)?", "intramuscular"),
    (r"s\.?c\.?|sq|sub-?q|sub-?cut(?:aneous(?:ly)?)?|under the skin", "subcutaneous"),
    (r"sl|sublingual(?:ly)?|under the tongue", "sublingual"),
    (r"pr|per rectum|rectal(?:ly)?", "rectal"),
    (r"pv|vaginal(?:ly)?|per vagina", "vaginal"),
    (r"topical(?:ly)?|on the skin|to (?:the )?skin", "topical"),
    (r"inhaled|inhalation|by inhalation|inh", "inhaled"),
    (r"(?:via |by |per |in )?(?:a )?neb(?:ulizer|s)?|nebulized", "nebulized"),
    (r"intranasal(?:ly)?|nasal(?:ly)?|in each nostril|each nostril", "nasal"),
    (r"transdermal(?:ly)?", "transdermal"),
    (r"buccal(?:ly)?", "buccal"),
    (r"ou|both eyes|in both eyes|each eye|in(?:to)? each eye|into both eyes", "both eyes"),
    (r"ophthalmic(?:ally)?|(?:in )?(?:the )?eyes?", "ophthalmic"),
    (r"otic(?:ally)?|(?:in )?(?:the )?(?:(?:both|each|left|right|affected) )?ears?", "otic"),
    (r"os|in(?:to)?(?: the)? left eye", "left eye"),
    (r"od|in(?:to)?(?: the)? right eye", "right eye"),
    (r"ng|ngt|(?:per|via|by) ng-? ?tube", "nasogastric"),
    (r"(?:per|via|by) (?:g|peg)-? ?tube", "gastric tube"),
    (r"(?:via |by )?nasal cannula", "nasal cannula"),
    (r"intrathecal(?:ly)?", "intrathecal"),
    (r"intradermal(?:ly)?", "intradermal"),
)  # fmt: skip
_KNOWN_ROUTES = tuple((re.compile(form), meaning) for form, meaning in _ROUTES)


@lru_cache(maxsize=4_096)
def routes(text: str) -> frozenset[str]:
    """Return the meanings of all routes in a text."""
    plain = " ".join(text.split())
    found = {_route(m.group()) for pattern in (ROUTE, RIGHT_EYE) for m in pattern.finditer(plain)}
    return frozenset(found)


def route_of(text: str) -> str:
    """Return the meaning of a reported route."""
    return _route(" ".join(text.split()))


_WORDS = frozenset(meaning for _, meaning in _ROUTES)
_PLACES = {"both eyes": "ophthalmic", "left eye": "ophthalmic", "right eye": "ophthalmic"}


def route_word(text: str) -> str | None:
    """Return the word of a route, without its place; None for other words.

    `OD` alone is no route: OD also means once daily.
    """
    meaning = route_of(text)
    if meaning not in _WORDS or text.strip(" .").lower() == "od":
        return None
    return _PLACES.get(meaning, meaning)


def _route(phrase: str) -> str:
    low = phrase.lower().strip(" .")
    return next((meaning for form, meaning in _KNOWN_ROUTES if form.fullmatch(low)), low)
