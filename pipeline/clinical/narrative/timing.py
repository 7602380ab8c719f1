"""How often and by which route something is taken: phrases that mean the same.

Only phrases with exactly the same meaning share a key: `every 6 hours` is not `four times daily`.
"""

from __future__ import annotations

import re
from functools import cache

from pipeline.clinical.narrative.text import starts_of, words_of

_FREQUENCIES = {
    "1/d": "daily|once daily|once a day|every day|each day|qd|od|per day|one time daily"
    "|one time per day|once per day|1 time daily|1 time per day|1 time a day|q day|q.d.",
    "2/d": "twice daily|twice a day|two times daily|two times a day|two times per day"
    "|twice per day|bid|bd|b.i.d.|2 times daily|2 times a day|2 times per day|2x daily",
    "3/d": "three times daily|three times a day|three times per day|tid|tds|t.i.d."
    "|3 times daily|3 times a day|3 times per day|thrice daily|3x daily",
    "4/d": "four times daily|four times a day|four times per day|qid|qds|q.i.d."
    "|4 times daily|4 times a day|4 times per day|4x daily",
    "1/2d": "every other day|qod|q.o.d.|on alternate days|every 2 days|every two days",
    "1/wk": "weekly|once weekly|once a week|every week|each week|once per week|qwk|q week"
    "|once every week",
    "2/wk": "twice weekly|twice a week|two times a week|2 times a week|2 times weekly",
    "3/wk": "three times a week|three times weekly|3 times a week|3 times weekly",
    "1/mo": "monthly|once monthly|once a month|every month|each month",
    "hs": "at bedtime|qhs|hs|before bed|at bed time|every night at bedtime|nightly at bedtime",
    "night": "nightly|every night|at night|each night|qpm nightly|once nightly",
    "morning": "every morning|in the morning|each morning|qam|q am|once every morning",
    "evening": "every evening|in the evening|each evening|qpm|q pm",
    "noon": "at noon",
    "prn": "as needed|prn|p.r.n.|when needed|if needed|on an as-needed basis|as required",
    "once": "once|one time|single dose|as a single dose|a single dose|x1",
    "meals": "with meals|with food",
    "before meals": "before meals|ac",
    "after meals": "after meals|pc",
    "stat": "stat",
}
_ROUTES = {
    "oral": "oral|orally|by mouth|po|p.o.|per os",
    "intravenous": "intravenous|intravenously|iv|i.v.",
    "intramuscular": "intramuscular|intramuscularly|im|i.m.",
    "subcutaneous": "subcutaneous|subcutaneously|sc|sq|subq|subcut|s.c.|under the skin",
    "sublingual": "sublingual|sublingually|sl|s.l.|under the tongue",
    "inhaled": "inhaled|inhales|inhaling|by inhalation|inhalation|via inhalation|inh",
    "topical": "topical|topically|to the skin",
    "transdermal": "transdermal|transdermally",
    "rectal": "rectal|rectally|per rectum|pr",
    "ophthalmic": "ophthalmic",
    "nasal": "nasal|intranasal|intranasally|nasally",
    "otic": "otic",
    "vaginal": "vaginal|vaginally",
    "injected": "injected|by injection|via injection|as an injection",
    "nebulized": "nebulized|via nebulizer|by nebulizer",
}
_EVERY = re.compile(
    r"(?:every|q) ?(?P<n>\d+|two|three|four|six|eight|twelve)?(?: ?(?:-|to) ?(?P<m>\d+))? ?"
    r"(?P<unit>hours?|hrs?|h|days?|weeks?|wks?|months?|minutes?|min)"
)
_WORDS = {"two": "2", "three": "3", "four": "4", "six": "6", "eight": "8", "twelve": "12"}


def _key(phrase: str) -> tuple[str, ...]:
    return words_of(phrase)


@cache
def frequency_phrases() -> dict[tuple[str, ...], str]:
    """Return the key of each phrase of words."""
    return {
        _key(phrase): key for key, phrases in _FREQUENCIES.items() for phrase in phrases.split("|")
    }


@cache
def route_phrases() -> dict[tuple[str, ...], str]:
    """Return the key of each phrase of words."""
    return {_key(phrase): key for key, phrases in _ROUTES.items() for phrase in phrases.split("|")}


def may_begin(word: str) -> bool:
    """Return whether a frequency or a route can begin with a word."""
    return word in _starts() or word.startswith(("every", "q"))


@cache
def _starts() -> frozenset[str]:
    return starts_of(frequency_phrases()) | starts_of(route_phrases())


def every(words: tuple[str, ...]) -> str:
    """Return the key of a phrase such as `every 8 hours`; empty for another phrase."""
    found = _EVERY.fullmatch(" ".join(words))
    if not found or not (found["n"] or words[0] == "every"):
        return ""
    number = _WORDS.get(found["n"] or "1", found["n"] or "1")
    upper = f"-{found['m']}" if found["m"] else ""
    unit = found["unit"]
    short = "mo" if unit.startswith("mo") else unit[0]
    short = "min" if unit.startswith("mi") else short
    key = f"q{number}{upper}{short}"
    return {"q1d": "1/d", "q1w": "1/wk", "q2d": "1/2d", "q1mo": "1/mo"}.get(key, key)


def ordered(printed: str) -> tuple[str, ...] | None:
    """Return the keys of a printed frequency in order; None if a word belongs to no phrase."""
    words = words_of(printed)
    keys: list[str] = []
    at = 0
    while at < len(words):
        for length in range(min(6, len(words) - at), 0, -1):
            part = words[at : at + length]
            key = frequency_phrases().get(part) or every(part)
            if key:
                keys.append(key)
                at += length
                break
        else:
            return None
    return tuple(keys) or None


def frequencies_in(printed: str | None) -> frozenset[str]:
    """Return the keys of all phrases of a printed frequency; longer phrases come first."""
    return _found(printed, frequency_phrases(), with_every=True)


def routes_in(printed: str | None) -> frozenset[str]:
    """Return the keys of all phrases of a printed route."""
    return _found(printed, route_phrases(), with_every=False)


def _found(
    printed: str | None, phrases: dict[tuple[str, ...], str], *, with_every: bool
) -> frozenset[str]:
    words = words_of(printed or "")
    keys, at = set(), 0
    while at < len(words):
        for length in range(min(6, len(words) - at), 0, -1):
            part = words[at : at + length]
            key = phrases.get(part) or (every(part) if with_every else "")
            if key:
                keys.add(key)
                at += length
                break
        else:
            at += 1
    return frozenset(keys)
