"""Parse printed dates into days.

A date that does not exist (02/29/2001) counts as no date and never raises. All dates of one source
have the same order of day and month, which the unambiguous dates prove. The functions are pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import Enum

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ),
        start=1,
    )
    for name in names.split()
}
_N = r"[0-9OoIl|BS]"
_DATE = re.compile(
    rf"(?P<ymd>(?:19|20){_N}{{2}}\s?[-/.]\s?{_N}{{1,2}}\s?[-/.]\s?{_N}{{1,2}})"
    rf"|(?P<mdy>{_N}{{1,2}}\s?[-/.]\s?{_N}{{1,2}}\s?[-/.]\s?(?:{_N}{{4}}|{_N}{{2}}))"
    rf"|(?P<words>(?P<m>[A-Za-z]{{3,9}})\.?[\s-]\s?(?P<d>{_N}{{1,2}})(?:st|nd|rd|th)?,?[\s-]\s?"
    rf"(?P<y>{_N}{{4}}))"
    rf"|(?P<words2>(?P<d2>{_N}{{1,2}})(?:st|nd|rd|th)?[\s-]?(?P<m2>[A-Za-z]{{3,9}})\.?,?[\s-]?\s?"
    rf"(?P<y2>{_N}{{4}}|{_N}{{2}}))"
)
_TIME = re.compile(r"\s*,?\s*(?:at\s+)?(\d{1,2}:\d{2}(?::\d{2})?\s*(?:[AaPp]\.?[Mm]\.?)?)")
_FIGURES = str.maketrans({"O": "0", "o": "0", "I": "1", "l": "1", "|": "1", "B": "8", "S": "5"})
_CENTURY_PIVOT = 69
DATE_FORM = (
    r"\d{4}-\d{2}-\d{2}|\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})(?![\d/-]|\.\d)"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*\.?[ ]\d{1,2},?[ ]\d{4}"
    r"|\d{1,2}[ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*[ -]\d{2,4}"
)
"""A date with a year, without a scanner's errors."""
_FIGURED = re.compile(
    r"(?<![\d/.:-])(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second>\d{1,2})(?P=mark)"
    r"(?:(?:19|20)\d{2}|(?<=/)\d{2})(?![\d/]|[.:-]\d)"
)


class DateOrder(Enum):
    """The order of day and month in the dates of one source."""

    MONTH_FIRST = "month first"
    DAY_FIRST = "day first"


def month_number(name: str) -> int:
    """Return the number of a month; 0 if `name` is no month."""
    return _MONTHS.get(name.casefold(), 0)


def orders_in(text: str) -> set[DateOrder]:
    """Return the orders that the unambiguous dates of a text prove; two orders contradict."""
    proved: set[DateOrder] = set()
    for m in _FIGURED.finditer(text):
        first, second = int(m["first"]), int(m["second"])
        if 12 < first <= 31 and 1 <= second <= 12:
            proved.add(DateOrder.DAY_FIRST)
        elif 12 < second <= 31 and 1 <= first <= 12:
            proved.add(DateOrder.MONTH_FIRST)
    return proved


def is_ambiguous(text: str) -> bool:
    """Return whether a printed date is another day in the other order of day and month."""
    m = _FIGURED.match(text)
    return m is not None and _is_ambiguous(m)


def _is_ambiguous(m: re.Match[str]) -> bool:
    first, second = int(m["first"]), int(m["second"])
    return first != second and first <= 12 and second <= 12


def iso_day(text: str, order: DateOrder | None) -> str | None:
    """Return a printed date as ISO 8601; None if the date is ambiguous and `order` is unknown."""
    m = _FIGURED.match(text)
    if order is None and m and _is_ambiguous(m):
        return None
    printed = date_at(text, order=order)
    return printed.day.isoformat() if printed and printed.day else None


@dataclass(frozen=True)
class PrintedDate:
    """A date and its position in the text."""

    day: date | None
    """None if the figures name no existing day."""
    time: str
    """The time of day as printed, without blanks; "" if no time follows."""
    start: int
    end: int


def date_at(
    text: str, at: int = 0, *, past: bool = False, order: DateOrder | None = None
) -> PrintedDate | None:
    """Read the date at `at`; skip blanks and a weekday before the date.

    Without `order`, ambiguous figures are read month first, as in the United States.

    With `past`, two-digit years fall into the hundred years before 2030 (for birth dates).
    """
    lead = re.compile(r"\s*(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?", re.I).match(
        text, at
    )
    begin = lead.end() if lead else at
    m = _DATE.match(text, begin)
    if m is None or text[m.end() : m.end() + 1].isdigit():
        return None
    time = _TIME.match(text, m.end())
    return PrintedDate(
        _day(m, past=past, order=order),
        re.sub(r"\s", "", time[1]).lower() if time else "",
        begin,
        time.end() if time else m.end(),
    )


def _day(m: re.Match[str], *, past: bool, order: DateOrder | None) -> date | None:
    if m["ymd"]:
        year, month, day = _figures(m["ymd"])
    elif m["mdy"]:
        month, day, year = _figures(m["mdy"])
        if month > 12 >= day or (order is DateOrder.DAY_FIRST and day <= 12):
            month, day = day, month
    else:
        word, first, last = (m["m"], m["d"], m["y"]) if m["words"] else (m["m2"], m["d2"], m["y2"])
        month = _MONTHS.get(word.casefold(), 0)
        day, year = _figures(first)[0], _figures(last)[0]
    if year < 100:
        year += 1900 if year > (29 if past else _CENTURY_PIVOT) else 2000
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return found if 1850 <= found.year <= 2100 else None


def _figures(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text.translate(_FIGURES))]
