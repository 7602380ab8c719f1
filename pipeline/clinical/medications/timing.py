"""A printed frequency as times per period.

A frequency is read only if each of its words is explained. Phrases that contradict each other
(`once daily, twice daily`) are not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from pipeline.clinical.attributes import PeriodUnit, Timing
from pipeline.clinical.medications.sig import DURATION, FREQUENCY
from pipeline.clinical.medications.sig_forms import meaning_of
from pipeline.clinical.page_text.spellings import NUMBER_WORDS

_LONGEST = 160
_PERIODS: dict[str, PeriodUnit] = {
    "min": "min", "h": "h", "day": "d", "week": "wk", "month": "mo", "year": "a",
}  # fmt: skip
_RATE = re.compile(r"(?P<n>\d+)(?:-(?P<high>\d+))?/(?P<unit>day|week|month|year)")
_EVERY = re.compile(r"every (?P<n>\d+)(?:-(?P<high>\d+))? (?P<unit>min|h|day|week|month)")
_OPEN = re.compile(r"b\.?i\.?w\.?|biweekly|on|the (?:morning|evening)|next (?:morning|evening)")
"""Phrases with two meanings: `on` is Latin for nightly and an English word."""
_BARE_PERIOD = re.compile(r"(?:per|a|/) ?(?:day|week|month)")
_SLOTS = re.compile(r"\d+(?:\.5)?(?: ?- ?(?:\d+(?:\.5)?|½)){2,3}|½(?: ?- ?(?:\d+(?:\.5)?|½)){2,3}")
_WEEKDAY = re.compile(r"\b(?:mon|tue|wed|thu|fri|sat|sun)")
_DAY_LIST = re.compile(
    r"(?:(?:only|on|every|each|and|&|,|/|\.) *)*"
    r"(?:\b(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:days?)?\b(?: |,|and\b|&|/|\.)*)+"
)
_FROM_TO = re.compile(
    r"(?:(?:only )?on )?(?P<first>mon|tue|wed|thu|fri|sat|sun)[a-z]*\.? ?(?:-|to|through|thru)"
    r" ?(?P<last>mon|tue|wed|thu|fri|sat|sun)[a-z]*"
)
_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAYS_A_WEEK = re.compile(r"(?P<n>[1-7]|[a-z]+) days (?:a|per|each) week")
_INITIALS = {"mwf": 3, "m/w/f": 3, "m,w,f": 3, "m, w, f": 3, "tu/th/sa": 3, "t/th/sa": 3}
_MEALS = {
    "meal": "", "food": "", "breakfast": "M", "lunch": "D", "dinner": "V", "supper": "V",
    "evening meal": "V",
}  # fmt: skip
_WITH_MEAL = re.compile(
    r"(?P<way>with|before|after) (?:each |every |the |a )?(?P<meal>meal|food|breakfast|lunch|dinner"
    r"|supper|evening meal)s?(?: and (?P<also>dinner|supper|lunch|bedtime))?"
)
_WAYS = {"with": "C", "before": "AC", "after": "PC"}
_AT_MEAL = re.compile(r"at (?P<meal>breakfast|lunch|dinner|supper)")
_CLOCK = re.compile(r"(?:at )?\d{1,2}(?::\d\d)? ?(?:am|pm|a\.m\.|p\.m\.)")
_BED = re.compile(r"(?:q\.? ?)?h\.?s\.?|(?:at |every |before )?bed(?:time)?")
_WHEN: dict[str, tuple[str, ...]] = {
    "morning": ("MORN",),
    "noon": ("NOON",),
    "evening": ("EVE",),
    "night": ("NIGHT",),
    "before meal": ("AC",),
    "after meal": ("PC",),
}
_TIMES_OF_DAY: dict[str, str] = {
    # A meal and its time of the day are one event: `in the morning with breakfast`.
    "MORN": "morning", "CM": "morning", "ACM": "morning", "PCM": "morning",
    "NOON": "noon", "CD": "noon", "ACD": "noon", "PCD": "noon",
    "AFT": "afternoon",
    "EVE": "evening", "CV": "evening", "ACV": "evening", "PCV": "evening",
    "NIGHT": "night", "HS": "night",
}  # fmt: skip
_SPELLINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:one|1) time\b(?=[ ]?(?:a|per|each|every|daily|/)\b)", re.I), "once"),
    (re.compile(r"\bonce (?=every\b|each\b)", re.I), ""),
    (re.compile(r"\b(?:twice|two times|2 times) (?=every day\b|each day\b)", re.I), "twice "),
    (re.compile(r"\bevery (third|3rd) days?\b", re.I), "every 3 days"),
    (re.compile(r"\bevery day\b", re.I), "daily"),
    (re.compile(r"\bevery other (week|month)\b", re.I), r"every 2 \1s"),
    (re.compile(r"(?<=\d)x/(?=day|week|wk)", re.I), " times per "),
    (re.compile(r"\b(?:at )?night[ -]?time\b", re.I), "at night"),
    (re.compile(r"\b([bqt])\. ?i\. ?d\b\.?", re.I), r"\1id"),
    (re.compile(r"\bin the (morning|evening)s\b", re.I), r"in the \1"),
    (re.compile(r"(?<!the )\b(?<!in )(morning|evening)s\b", re.I), r"every \1"),
    (
        re.compile(
            r"\b(?:\d{1,2}(?:-\d{1,2})?|one|two|half an|an) ?(?:minutes?|mins?|hours?|hrs?) "
            r"(?=before |prior to |after )",
            re.I,
        ),
        "",
    ),
    (re.compile(r"\bprior to (?=meals?\b|breakfast|lunch|dinner|supper|bed)", re.I), "before "),
    (
        re.compile(
            r"\bon (?:an )?empty stomach\b|\bwith (?:plenty|a (?:full )?glass) of water\b", re.I
        ),
        "",
    ),
    (re.compile(r"\bwith food or milk\b|\btake with (?:food|meals)\b", re.I), "with food"),
    (re.compile(r"\bbd\b"), "BD"),
    (re.compile(r"\btds\b"), "TDS"),
    (re.compile(r"\bqds\b"), "QDS"),
    (re.compile(r"\bp\.o\.(?= |$)|\bpo\b|\bby mouth\b|\borally\b", re.I), ""),
)
"""Phrases that the grammar of directions does not list."""
_GAP = re.compile(r"(?:[ ,;.:()+/]|(?<= )-(?= ))*(?:(?:and\b|&)[ ,;.]*)?", re.I)
_ADDED = re.compile(r"and\b|&|\+", re.I)
_LISTED = re.compile(r"[,/]")
_REASON = re.compile(r"(?:for |if )?[a-z][a-z/' -]{1,50}", re.I)
_NO_REASON = re.compile(
    r"\b(?:max|maximum|up|no|not|more|than|until|unless|then|only|hold|per|every|each|once|twice"
    r"|times?|days?|dai?ly|hours?|weeks?|bid|tid|qid|at|while|awake|exceed|may|repeat|another)\b",
    re.I,
)
DOSE_COUNT = re.compile(r"(?:for|x|×) ?(?P<n>\d{1,3}|[a-z]+) doses?", re.I)
"""A total number of doses: `x 3 doses`."""


_Rate = tuple[int, int | None, int, int | None, PeriodUnit]
"""Times, most times, period, longest period, unit of the period."""


@dataclass
class _FoundTiming:
    """What the phrases of one frequency say."""

    rates: list[_Rate] = field(default_factory=list)
    when: list[str] = field(default_factory=list)
    breaks: set[int] = field(default_factory=set)
    """Positions in `when` before which a word or a comma joins another event."""
    kinds: list[tuple[str, bool]] = field(default_factory=list)
    """For each phrase: `rate`, `time` or `other`, and whether `and` joins it to the last phrase."""
    clocks: int = 0
    counts: list[int] = field(default_factory=list)
    is_as_needed: bool = False
    is_without_count: bool = False
    """The phrase has no number of times: `continuous`, `stat`."""
    has_slots: bool = False


@dataclass(frozen=True, kw_only=True)
class ReadTiming:
    """A timing, and whether each word of the frequency was explained."""

    timing: Timing
    is_understood: bool
    has_slots: bool = False
    """The frequency counts pieces per time of the day (`1-0-1`)."""


def timing_of(text: str, *, is_once_daily: bool = False) -> ReadTiming:
    """Read a frequency. `is_once_daily` says that OD cannot mean the right eye."""
    shown = " ".join(text.split())
    nothing = ReadTiming(timing=Timing(printed=shown), is_understood=False)
    if not shown or len(shown) > _LONGEST:
        return nothing
    found = _FoundTiming()
    for phrase in _phrases(shown):
        if phrase is None:
            return nothing
        rates, times = len(found.rates), len(found.when) + found.clocks
        if not _read(phrase, found, is_once_daily):
            return nothing
        kind = "rate" if len(found.rates) > rates else "other"
        kind = "time" if len(found.when) + found.clocks > times else kind
        found.kinds.append((kind, phrase.is_added))
    timing = _timing(shown, found)
    if timing is None:
        return nothing
    return ReadTiming(timing=timing, is_understood=True, has_slots=found.has_slots)


class _Phrase(NamedTuple):
    text: str
    is_added: bool
    """`and` joins the phrase to the phrase before."""
    is_listed: bool
    """A comma or a slash does."""
    is_first: bool


def _phrases(shown: str) -> Iterator[_Phrase | None]:
    """Yield each phrase; None for words that no phrase explains."""
    text = shown.replace("–", "-").replace("—", "-")
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    at, has_need, is_first = 0, False, True
    while at < len(text):
        gap = _GAP.match(text, at)
        start, at = at, gap.end() if gap else at
        if at >= len(text):
            return
        between = text[start:at]
        m = FREQUENCY.match(text, at) or DURATION.match(text, at) or _CLOCK.match(text, at)
        if m is not None:
            has_need = has_need or meaning_of(m.group()) == "as needed"
            yield _Phrase(
                m.group(),
                _ADDED.search(between) is not None,
                _LISTED.search(between) is not None,
                is_first,
            )
            is_first = False
            at = m.end()
            continue
        rest = text[at:].strip(" .;,()")
        if has_need and _REASON.fullmatch(rest) and not _NO_REASON.search(rest):
            return
        yield None
        return


def _read(phrase: _Phrase, found: _FoundTiming, is_once_daily: bool) -> bool:
    """Add the meaning of a phrase; return False if no rule explains the phrase."""
    low = " ".join(phrase.text.split()).lower()
    meaning = meaning_of(phrase.text)
    if (low.replace(".", "") == "od" and not is_once_daily) or _OPEN.fullmatch(low):
        return False
    if not phrase.is_first and _BARE_PERIOD.fullmatch(low):
        # `for 3 days a week`
        return False
    if m := DOSE_COUNT.fullmatch(phrase.text):
        count = NUMBER_WORDS.get(m["n"].lower(), m["n"])
        if not count.isdigit():
            return False
        found.counts.append(int(count))
        return True
    if m := _RATE.fullmatch(meaning):
        high = int(m["high"]) if m["high"] else None
        found.rates.append((int(m["n"]), high, 1, None, _PERIODS[m["unit"]]))
        return True
    if m := _EVERY.fullmatch(meaning):
        high = int(m["high"]) if m["high"] else None
        if re.fullmatch(r"q\.? ?\d+(?: ?(?:-|to) ?\d+)?", low):
            # `q6` can mean six hours, days or weeks.
            return False
        found.rates.append((1, None, int(m["n"]), high, _PERIODS[m["unit"]]))
        return True
    if meaning == "as needed":
        found.is_as_needed = True
        return True
    if meaning == "once":
        found.counts.append(1)
        return True
    if meaning in ("stat", "continuous") or low == "ad lib":
        found.is_without_count = True
        return True
    return (
        _read_time_of_day(low, meaning, phrase, found)
        or _read_days(low, found)
        or _read_slots(low, found)
        or (DURATION.fullmatch(phrase.text) is not None and "dose" not in low)
    )


def _read_time_of_day(low: str, meaning: str, phrase: _Phrase, found: _FoundTiming) -> bool:
    codes: tuple[str, ...] = ()
    if _BED.fullmatch(low):
        codes = ("HS",)
    elif low in ("in the afternoon", "in afternoon", "every afternoon", "in the afternoons"):
        codes = ("AFT",)
    elif low in ("in the mornings", "every mornings", "at breakfast time"):
        codes = ("MORN",)
    elif low == "ac & hs":
        codes = ("AC", "HS")
    elif low in ("with water", "with milk"):
        return True
    elif meaning in _WHEN:
        codes = _WHEN[meaning]
    elif m := _WITH_MEAL.fullmatch(low):
        codes = _of_meal(m)
    elif m := _AT_MEAL.fullmatch(low):
        codes = ("C" + _MEALS[m["meal"]],)
    elif _CLOCK.fullmatch(low):
        found.clocks += 1
        return True
    if not codes:
        return False
    for number, code in enumerate(codes):
        if phrase.is_added or phrase.is_listed or number:
            found.breaks.add(len(found.when))
        found.when.append(code)
    return True


def _of_meal(m: re.Match[str]) -> tuple[str, ...]:
    way = _WAYS[m["way"]]
    first = way + _MEALS[m["meal"]]
    if not m["also"]:
        return (first,)
    return (first, "HS" if m["also"] == "bedtime" else way + _MEALS[m["also"]])


def _read_days(low: str, found: _FoundTiming) -> bool:
    """Read a list of weekdays as times per week."""
    if m := _DAYS_A_WEEK.fullmatch(low):
        count = NUMBER_WORDS.get(m["n"], m["n"])
        if not count.isdigit() or not 1 <= int(count) <= 7:
            return False
        found.rates.append((int(count), None, 1, None, "wk"))
        return True
    if m := _FROM_TO.fullmatch(low):
        span = (_WEEK.index(m["last"]) - _WEEK.index(m["first"])) % len(_WEEK)
        found.rates.append((span + 1, None, 1, None, "wk"))
        return span > 0
    if low in _INITIALS:
        found.rates.append((_INITIALS[low], None, 1, None, "wk"))
        return True
    if not _DAY_LIST.fullmatch(low):
        return False
    days = {m.group()[:3] for m in _WEEKDAY.finditer(low)}
    if not days:
        return False
    found.rates.append((len(days), None, 1, None, "wk"))
    return True


def _read_slots(low: str, found: _FoundTiming) -> bool:
    """Read the pieces for each time of the day: `1-0-1` is one piece, twice a day."""
    if not _SLOTS.fullmatch(low):
        return False
    slots = [each.strip() for each in low.split("-")]
    if set(slots) - {"0", "1"} or "1" not in slots:
        return False
    found.rates.append((slots.count("1"), None, 1, None, "d"))
    found.has_slots = True
    return True


def _timing(shown: str, found: _FoundTiming) -> Timing | None:
    """Join the phrases; None if they contradict each other or leave the number of times open."""
    if len(set(found.rates)) > 1 or len(set(found.counts)) > 1 or _is_sum(found):
        return None
    rate = found.rates[0] if found.rates else None
    count = found.counts[0] if found.counts else None
    events = _events(found)
    if events is None or (found.clocks and events and found.clocks != events):
        return None
    timed = events or found.clocks
    is_open = _has_open_event(found)
    if count == 1 and (rate is not None or timed or found.when):
        return None
    if rate is None and found.clocks:
        # Times of the clock can be those of doses that were given.
        return None
    if rate is None and timed and count is None and not is_open:
        rate = (timed, None, 1, None, "d")
    elif rate is not None and timed and not is_open and not _fits(rate, timed):
        return None
    says_something = rate or count or found.when or found.is_as_needed or found.is_without_count
    if not says_something or (rate is not None and not _is_sound(rate)):
        return None
    return Timing(
        printed=shown,
        frequency=Decimal(rate[0]) if rate else None,
        frequency_max=Decimal(rate[1]) if rate and rate[1] else None,
        period=Decimal(rate[2]) if rate else None,
        period_max=Decimal(rate[3]) if rate and rate[3] else None,
        period_unit=rate[4] if rate else None,
        when=tuple(dict.fromkeys(found.when)),
        as_needed=found.is_as_needed,
        count=count,
    )


def _is_sum(found: _FoundTiming) -> bool:
    """Return whether `and` adds a time of the day to a rate (`twice daily and at bedtime`)."""
    pairs = zip(found.kinds, found.kinds[1:], strict=False)
    return any(added and {one, other} == {"rate", "time"} for (one, _), (other, added) in pairs)


def _has_open_event(found: _FoundTiming) -> bool:
    """Return whether an event without a number is added to others (`with meals and at bedtime`)."""
    return bool(found.breaks) and any(code not in _TIMES_OF_DAY for code in found.when)


def _fits(rate: _Rate, timed: int) -> bool:
    """Return whether a rate has as many events per day as times of the day are named."""
    times, most, period, longest, unit = rate
    if most is not None or longest is not None:
        return False
    if unit == "d" and period == 1:
        return times == timed
    if unit == "h":
        return period * timed == 24
    return timed == 1 and unit not in ("h", "min")


def _is_sound(rate: _Rate) -> bool:
    times, most, period, longest, _ = rate
    ends = (most is None or most > times) and (longest is None or longest > period)
    return times > 0 and period > 0 and ends


def _events(found: _FoundTiming) -> int | None:
    """Return the number of events per day that have a time; None if the times contradict.

    `with meals` says no number. Two times of the day without a joining word are one event only if
    they name one time (`in the morning with breakfast`).
    """
    events = list[set[str]]()
    for at, code in enumerate(found.when):
        time = _TIMES_OF_DAY.get(code)
        if time is None:
            continue
        if events and at not in found.breaks:
            if events[-1] & {time}:
                continue
            if events[-1] | {time} == {"evening", "night"}:
                # `every evening at bedtime`, `at bedtime with dinner`
                events[-1].add(time)
                continue
            return None
        events.append({time})
    seen = [time for event in events for time in event]
    return len(events) if len(seen) == len(set(seen)) else None
