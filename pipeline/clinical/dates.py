"""Read a printed date as a FHIR date of year, month or day precision.

A date is read only if the text has one meaning. Words that count from another day (`yesterday`,
`2 weeks ago`) are flagged: an encounter can last several days, and only its first day is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date

from pipeline.clinical.date_forms import DateOrder, month_number
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged

_LONGEST = 60
_LEAD = re.compile(r"(?:(?:since|in|on|from|until|till|as of|dated?|the)\b[ :]*)+", re.I)
_WEEKDAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)(?:[a-z]{0,6}day|s|rs|nes|ur)?\.?,?[ ]+", re.I)
_CLOCK = re.compile(
    r"(?:[ ]*,?[ ]*(?:at[ ]+)?|T)[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?"
    r"[ ]?(?:[ap]\.?m\.?|hrs?|h|uhr|z|[+-][0-9]{2}:?[0-9]{2})?",
    re.I,
)
_Y4 = r"(?P<y>(?:18|19|20)[0-9]{2})"
_Y = r"(?P<y>(?:18|19|20)[0-9]{2}|['’]?[0-9]{2})"
_M = r"(?P<word>[a-z]{3,9})\.?"
_D = r"(?P<d>[0-9]{1,2})"
_YEAR = re.compile(rf"(?:(?:early|late|mid)[ -]?|(?:spring|fall|autumn)[ ](?:of[ ])?)?{_Y4}", re.I)
_MONTH = (
    re.compile(rf"(?:(?:early|late|mid)[ -]?)?{_M}(?:[ ]of)?,?[ /-]?{_Y4}", re.I),
    re.compile(rf"{_M}[ -]['’](?P<y>[0-9]{{2}})", re.I),
    re.compile(rf"(?P<m>[0-9]{{1,2}})[/.-]{_Y4}"),
    re.compile(rf"{_Y4}[/.-](?P<m>[0-9]{{1,2}})"),
)
_DAY = (
    re.compile(rf"{_Y4}(?P<s>[/.-])(?P<m>[0-9]{{1,2}})(?P=s){_D}"),
    re.compile(rf"{_Y4}(?P<m>[0-9]{{2}})(?P<d>[0-9]{{2}})"),
    re.compile(rf"{_M}[ -]?{_D}(?:st|nd|rd|th)?(?:,[ ]?|[ -]){_Y}", re.I),
    re.compile(rf"{_D}(?:st|nd|rd|th|\.)?[ /-]?(?:of[ ])?{_M},?[ /-]?{_Y}", re.I),
)
_FIGURES = re.compile(
    rf"(?P<a>[0-9]{{1,2}})[ ]?(?P<s>[/.-])[ ]?(?P<b>[0-9]{{1,2}})[ ]?(?P=s)[ ]?{_Y}"
)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def partial_date(
    text: str,
    *,
    encounter_date: date | None,
    known: Iterable[date] = (),
    order: DateOrder | None = None,
    is_past: bool = False,
    attribute: str = "",
) -> tuple[str | None, tuple[str, ...]]:
    """Return a printed date as ISO 8601 (`2024`, `2024-03`, `2024-03-05`), with its flags.

    Figures whose day and month can change places are read only if something proves their order:
    `order` (the order of the source), a weekday, the encounter's date or a date in `known` that
    equals one reading, or `is_past` (an event that has happened) with one reading in the future.
    A flag names `attribute`.
    """
    found = _read(text, encounter_date, frozenset(known), order, is_past=is_past)
    flags = () if found else (flagged(EnrichmentFlag.DATE_NOT_UNDERSTOOD, attribute),)
    return found, flags


def _read(
    text: str,
    encounter_date: date | None,
    known: frozenset[date],
    order: DateOrder | None,
    *,
    is_past: bool,
) -> str | None:
    plain = " ".join(text.replace("\u2011", "-").replace("–", "-").split()).strip(" .,;()[]")
    if not plain or len(plain) > _LONGEST:
        return None
    plain = _LEAD.sub("", plain, count=1) if _LEAD.match(plain) else plain
    weekday = _WEEKDAY.match(plain)
    plain = plain[weekday.end() :] if weekday else plain
    clock = _CLOCK.search(plain)
    if clock and clock.start() and clock.end() == len(plain):
        plain = plain[: clock.start()]
    if weekday is None and (coarse := _year_or_month(plain, encounter_date)):
        return coarse
    days = {day for day in _days(plain, encounter_date, order) if 1850 <= day.year <= 2100}
    if weekday:
        named = _WEEKDAYS.index(weekday[1].casefold())
        days = {day for day in days if day.weekday() == named}
    if len(days) > 1 and is_past and encounter_date is not None:
        days = {day for day in days if day <= encounter_date}
    if len(days) > 1:
        days &= known | ({encounter_date} if encounter_date else frozenset())
    return days.pop().isoformat() if len(days) == 1 else None


def _year_or_month(text: str, encounter_date: date | None) -> str | None:
    if m := _YEAR.fullmatch(text):
        return m["y"]
    for form in _MONTH:
        if m := form.fullmatch(text):
            month = _month(m)
            year = _year(m["y"], encounter_date)
            if year is not None and 1 <= month <= 12:
                return f"{year:04d}-{month:02d}"
    return None


def _days(text: str, encounter_date: date | None, order: DateOrder | None) -> Iterator[date]:
    """Yield the days that a date with a day can mean."""
    for form in _DAY:
        if (m := form.fullmatch(text)) and (year := _year(m["y"], encounter_date)) is not None:
            yield from _day(year, _month(m), int(m["d"]))
            return
    m = _FIGURES.fullmatch(text)
    year = _year(m["y"], encounter_date) if m else None
    if m is None or year is None:
        return
    first, second = int(m["a"]), int(m["b"])
    if order is not DateOrder.DAY_FIRST:
        yield from _day(year, first, second)
    if order is not DateOrder.MONTH_FIRST:
        yield from _day(year, second, first)
    if order is None and len(m["y"]) == len(m["a"]) == 2 and encounter_date is not None:
        # 24/03/05 can begin with the year.
        begins = _year(m["a"], encounter_date)
        if begins is not None and abs(begins - encounter_date.year) <= 1:
            yield from _day(begins, second, int(m["y"]))


def _day(year: int, month: int, day: int) -> Iterator[date]:
    try:
        yield date(year, month, day)
    except ValueError:
        return


def _month(m: re.Match[str]) -> int:
    groups = m.groupdict()
    return month_number(groups["word"]) if groups.get("word") else int(groups["m"])


def _year(figures: str, encounter_date: date | None) -> int | None:
    """Return a year; two figures fall into the 80 years before the encounter or the 20 after it.

    The window is the rule of Java's `SimpleDateFormat`. Without an encounter, figures from 31 to 69
    stay open.
    """
    figures = figures.lstrip("'’")
    if len(figures) == 4:
        return int(figures)
    short = int(figures)
    if encounter_date is None:
        return None if 30 < short < 70 else short + (2000 if short <= 30 else 1900)
    first = encounter_date.year - 80
    return first + (short - first) % 100
