"""Several laboratory values in running text, each with its date or time (`10.4 (5/1), 8.1 (5/3)`).

The latest value is current and the others are earlier. If the dates do not tell which one is the
latest, the statement is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from pipeline.clinical.date_forms import DateOrder
from pipeline.providers.local.text.latest_reading import MOMENT, Moment, latest_of, moment_of

_WEEKDAY = r"(?-i:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Satur|Sun)(?:day)?)"
_NOW = r"(?:today|now|currently|current|this[ ](?:morning|afternoon|evening|visit)|tonight)"
_AGO = (
    r"(?:(?:\d+|an?|one|two|three|four|five|six|several|a[ ]few)[ ](?:hour|day|week|month|year)s?"
    r"[ ](?:ago|prior|earlier)|yesterday|last[ ](?:night|week|month|year|visit|check|time)"
    r"|previously|previous|prior|earlier|baseline|(?:the[ ])?day[ ]before)"
)
_EVENT = (
    r"(?:(?:on|at|after|before|pre|post)[ -]?(?:the[ ])?(?:admission|arrival|presentation|discharge"
    r"|transfusion|surgery|dialysis|op(?:eratively)?|treatment)|initially|initial"
    rf"|(?:HD|POD|day|hospital[ ]day)[ ]?\#?\d{{1,2}}(?![\d/.])|overnight|{_WEEKDAY}(?![a-z]))"
)
_WHEN = (
    rf"(?:(?:on|at|in|from|as[ ]of|dated|drawn|collected|of|by)[ ]+)?"
    rf"(?:(?P<moment>{MOMENT}|(?<=at[ ])[0-2]\d[0-5]\d(?!\d))|(?P<now>{_NOW})|(?P<past>{_AGO})"
    rf"|(?P<event>{_EVENT}))(?![\w/])"
)
_AFTER = re.compile(rf"[ ]*,?[ ]*(?P<open>[(\[]?)[ ]*{_WHEN}[ ]*", re.I)
_BEFORE = re.compile(
    rf"[ ]*(?P<open>[(\[]?)[ ]*{_WHEN}[ ]*(?P<close>[)\]]?)"
    r"(?:[ ]*(?::|=|,|-(?=[ ])|was|is|of|at|it[ ](?:was|is)|were|had[ ]been)(?![\w/]))*[ ]*",
    re.I,
)
_LEAD = re.compile(
    rf"(?<![\w/]){_WHEN}(?:['’]?s)?[ ]*(?:labs?|results?|values?)?[ ]*[,:]?[ ]*"
    r"(?:(?:labs?|results?|values?|the|his|her|their|serum|a|was|were|with|show(?:ed|s)?|patient's)"
    r"[ ]+)*$",
    re.I,
)
_LINK = re.compile(
    r"(?:[ ]*(?:\([A-Za-z ]{1,16}\)|level|levels|count|counts|values?|results?|readings?|trend(?:ed"
    r"|ing|s)?|of|is|was|were|:|=)(?![\w/]))*(?P<break>[ ]*\n)?[ ]*",
    re.I,
)
_GAP = re.compile(
    r"[ ]*(?P<mark>,|;|/|-{1,2}>|→|(?<!\S)-(?=[ ])|\n"
    rf"|\.(?=[ ]+{_NOW}(?!\w)))?[ \n]*"
    r"(?:(?:and|then|but|followed[ ]by|up[ ]to|down[ ]to|to|from|was|is)(?!\w)[ ]*)*",
    re.I,
)
_TO_VALUE = re.compile(r"(?:[ ]*(?::|=|was|is|of|at|it[ ](?:is|was)|down[ ]to|up[ ]to))*[ ]*", re.I)
_MAX_VALUES = 12
Match = re.Match[str]


@dataclass(slots=True)
class DatedValue:
    """A value, and the words that say when it was measured."""

    value: Match
    end: int
    kind: str
    """moment, now, past, event, or "" without such words."""
    when: Moment | None = None
    earlier: bool = False
    doubtful: bool = False
    """Words of time between two values may belong to either value."""


@dataclass(frozen=True, slots=True)
class SeriesDates:
    """What the source says about dates: their order, and the date of the document."""

    order: DateOrder | None = None
    own: date | None = None


@dataclass(slots=True)
class Dated:
    """The values of a statement in their order."""

    values: list[DatedValue]
    end: int
    understood: bool = True


def lead_of(text: str, first: int, start: int) -> Match | None:
    """Return the words of time before the name at `start` (`On 05/01 the hemoglobin`)."""
    return _LEAD.search(text, max(first, start - 60), start)


def dated_values(
    text: str,
    end: int,
    stop: int,
    value: re.Pattern[str],
    accept: Callable[[Match], bool],
    times: SeriesDates,
    lead: Match | None = None,
) -> Dated | None:
    """Read the dated values behind the name that ends at `end`; None if the words are no series.

    `value` is the pattern of one value, and `accept` says whether the number is plausible. `lead`
    are the words of time before the name.
    """
    link = _LINK.match(text, end, stop)
    at = link.end() if link else end
    first_when = _BEFORE.match(text, at, stop)
    leads = first_when is not None and value.match(text, first_when.end(), stop) is not None
    found: list[DatedValue] = []
    while len(found) < _MAX_VALUES:
        readers = (_led, _followed) if leads else (_followed, _led)
        items = (read(text, at, stop, value, times) for read in readers)
        item = next((item for item in items if item is not None), None)
        if item is None or not accept(item.value):
            break
        found.append(item)
        gap = _GAP.match(text, item.end, stop)
        at = gap.end() if gap else item.end
        if at == item.end and not (text[at - 1].isspace() or text[at : at + 1] in ("(", "[")):
            break
    if found and lead is not None and not found[0].kind:
        first = _made(found[0].value, found[0].end, lead, times)
        found[0] = first
        if len(found) == 1:
            return Dated(found, first.end, _rank(found, times)) if first.kind != "event" else None
    if len(found) < 2 and not (found and found[0].kind == "moment"):
        return None
    kinds = [item.kind for item in found]
    if set(kinds) <= {"", "event"} and kinds[0] + kinds[-1] != "event":
        return None
    return Dated(
        found, found[-1].end, _rank(found, times) and not any(item.doubtful for item in found)
    )


def _led(
    text: str, at: int, stop: int, value: re.Pattern[str], times: SeriesDates
) -> DatedValue | None:
    """Read `5/1: 10.4`."""
    when = _BEFORE.match(text, at, stop)
    m = value.match(text, when.end(), stop) if when else None
    if when is None or m is None:
        return None
    end = m.end()
    if when["open"] and not when["close"]:
        if text[end : end + 1] not in (")", "]"):
            return None
        end += 1
    return _made(m, end, when, times)


def _followed(
    text: str, at: int, stop: int, value: re.Pattern[str], times: SeriesDates
) -> DatedValue | None:
    """Read `10.4 (5/1)`, `(5.8 yesterday)` or `10.4`."""
    opened = text[at : at + 1] in ("(", "[")
    m = value.match(text, at + opened, stop)
    if m is None:
        return None
    when = _AFTER.match(text, m.end(), stop)
    doubtful = False
    if when and not when["open"] and not opened and _is_lead(text, when, stop, value):
        # `10.4, today 8.1`: the words belong to the next value, unless no comma tells.
        doubtful = "," not in when.group().split(when["moment"] or "\0")[0][:3]
        when = None
    end = when.end() if when else m.end()
    opens = opened + bool(when and when["open"])
    if opens:
        if opens > 1 or text[end : end + 1] not in (")", "]"):
            return None
        end += 1
    made = _made(m, end, when, times)
    made.doubtful = doubtful
    return made


def _is_lead(text: str, when: Match, stop: int, value: re.Pattern[str]) -> bool:
    """Return whether a value follows the words of time directly."""
    lead = _TO_VALUE.match(text, when.end())
    return value.match(text, lead.end() if lead else when.end(), stop) is not None


def _made(m: Match, end: int, when: Match | None, times: SeriesDates) -> DatedValue:
    if when is None:
        return DatedValue(m, end, "")
    kind = next(k for k in ("moment", "now", "past", "event") if when[k])
    moment = moment_of(_clock(when), times.order, times.own) if when["moment"] else None
    return DatedValue(m, end, kind, moment)


def _clock(when: Match) -> str:
    """Return the printed moment; write a time like `at 0600` with a colon."""
    words = when["moment"]
    is_time = re.fullmatch(r"\d{4}", words) and re.search(r"\bat[ ]+\d{4}", when.group(), re.I)
    return f"{words[:2]}:{words[2:]}" if is_time else words


def _rank(found: list[DatedValue], times: SeriesDates) -> bool:
    """Mark the earlier values. Return False if the latest value is not known."""
    kinds = [item.kind for item in found]
    if kinds.count("now") == 1:
        for item in found:
            item.earlier = item.kind != "now"
        return True
    if "now" in kinds:
        return False
    for item in found:
        item.earlier = item.kind == "past"
    dated = [item for item in found if item.kind == "moment"]
    if not dated:
        if kinds[0] == "" and set(kinds[1:]) == {"event"}:
            for item in found[1:]:
                item.earlier = True
        return True
    if any(item.when is None for item in dated):
        return False
    if kinds.count("") == 1 and kinds[0] == "":
        # `8.1 (10.4 on 5/1)`: the value without a date is the current value.
        for item in dated:
            item.earlier = True
        return len(found) > 1
    if "" in kinds or "event" in kinds:
        return False
    if len(dated) == 1:
        dated[0].earlier = dated[0].earlier or _is_long_ago(dated[0], times)
        return True
    if _same_day(dated):
        return True
    latest = latest_of([item.when for item in dated])
    for index, item in enumerate(dated):
        item.earlier = index != latest
    return latest is not None


def _is_long_ago(item: DatedValue, times: SeriesDates) -> bool:
    """Return whether a date without a day, like `in 2020`, is over."""
    moment = item.when
    if moment is None or moment.day is not None:
        return False
    keys = [key for key in moment.keys if key is not None]
    if times.own is None:
        return all(key[0] > 0 and key[2] < 0 for key in keys)
    now = (times.own.year, times.own.month)
    return all(key[0] > 0 and key[:2] < now and key[2] < 0 for key in keys)


def _same_day(dated: list[DatedValue]) -> bool:
    """Return whether only the times of day differ."""
    days = {key[:3] for item in dated if item.when is not None for key in item.when.keys if key}
    return days == {(-1, -1, -1)}
