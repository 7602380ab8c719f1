"""The moments of several readings of one test: which reading is the latest.

A moment may lack its year or its day (`5/3`, `06/2024`). Two moments are compared only if every
possible order of day and month gives the same answer. The functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pipeline.clinical.date_forms import DATE_FORM, DateOrder, date_at, month_number

_NAME = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]*"
_CLOCK = r"(?:[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:[ ]?[ap]\.?m\.?(?!\w))?|\d{1,2}[ ]?[ap]\.?m\.?(?!\w))"
MOMENT = (
    rf"(?<![\d/.-])(?:(?:{DATE_FORM}|{_NAME}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?(?![\d:])"
    rf"|\d{{1,2}}[ -]{_NAME}(?![ -]?\d)"
    rf"|(?<=in[ ])(?:{_NAME}|(?:19|20)\d\d)(?![\w.,]*\d)(?!\w)"
    rf"|{_NAME}\.?,?[ ](?:19|20)\d\d|\d{{1,2}}/(?:19|20)\d\d|\d{{1,2}}/\d{{1,2}})"
    rf"(?![/\d-]|[.,]\d)(?:,?[ ](?:at[ ])?(?:{_CLOCK}|[0-2]\d[0-5]\d(?!\d)))?|{_CLOCK})"
)
"""A date, a part of a date, or a time of day."""
_FORM = re.compile(
    rf"(?:(?P<full>{DATE_FORM})|(?P<m1>{_NAME})\.?[ ](?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])"
    rf"|(?P<d2>\d{{1,2}})[ -](?P<m2>{_NAME})|(?P<m3>{_NAME})\.?,?[ ](?P<y3>\d{{4}})"
    rf"|(?P<m4>\d{{1,2}})/(?P<y4>(?:19|20)\d\d)|(?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})"
    rf"|(?P<y5>(?:19|20)\d\d)|(?P<m6>{_NAME}))?"
    rf"(?:,?[ ]?(?:at[ ])?(?P<clock>{_CLOCK}|[0-2]\d[0-5]\d))?",
    re.I,
)
_ORDERS = (DateOrder.MONTH_FIRST, DateOrder.DAY_FIRST)
_RECENT_DAYS = 120
"""A date without a year is completed if the day is at most so many days before the own date."""
Key = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Moment:
    """A printed moment; a year, month, day or minute that is not printed is -1."""

    keys: tuple[Key | None, Key | None]
    """Year, month, day and minute if months are printed first, and if days are printed first."""
    day: str | None
    """ISO 8601; None if the day is not certain."""


def moment_of(words: str, order: DateOrder | None, own: date | None) -> Moment | None:
    """Read a moment. `own` is the date of the document, which completes a date without a year."""
    m = _FORM.fullmatch(" ".join(words.split()))
    if m is None or not m.group():
        return None
    minute = _minute(m["clock"])
    keys = [_key(m, each, own, minute) for each in _ORDERS]
    if order is not None:
        keys[_ORDERS.index(order) - 1] = None
    days = {k[:3] for k in keys if k is not None}
    if not days:
        return None
    certain = next(iter(days)) if len(days) == 1 else (-1, -1, -1)
    day = date(*certain).isoformat() if min(certain) > 0 and _is_near(m, certain, own) else None
    return Moment((keys[0], keys[1]), day)


def days_of(moment: Moment | None) -> tuple[tuple[int, ...] | None, ...]:
    """Return the days that a moment can name; a time without a date names no day."""
    if moment is None:
        return ()
    return tuple(key[:3] if key else None for key in moment.keys)


def latest_of(moments: Sequence[Moment | None]) -> int | None:
    """Return the index of the latest moment; None if the moments do not tell."""
    if not moments or any(moment is None for moment in moments):
        return None
    answers: set[int | None] = set()
    for order in (0, 1):
        keys = [moment.keys[order] for moment in moments if moment is not None]
        if all(key is not None for key in keys):
            answers.add(_latest([key for key in keys if key is not None]))
    return answers.pop() if len(answers) == 1 else None


def _latest(keys: Sequence[Key]) -> int | None:
    shapes = {tuple(part < 0 for part in key[:3]) for key in keys}
    best = max(keys)
    if keys.count(best) > 1 or (len(shapes) > 1 and not _far_apart(keys)):
        return None
    return keys.index(best)


def _far_apart(keys: Sequence[Key]) -> bool:
    """Return whether the months differ, so that missing days do not matter."""
    years, months = [key[0] for key in keys], [key[:2] for key in keys]
    if len(set(years)) == len(years) and min(years) > 0:
        return True
    return min(min(month) for month in months) > 0 and len(set(months)) == len(months)


def _key(m: re.Match[str], order: DateOrder, own: date | None, minute: int) -> Key | None:
    if m["full"]:
        printed = date_at(m["full"], order=order)
        if printed is None or printed.day is None or not _is_in_order(m["full"], order):
            return None
        return (printed.day.year, printed.day.month, printed.day.day, minute)
    if m["m3"] or m["m4"]:
        month = month_number(m["m3"]) if m["m3"] else int(m["m4"])
        return (int(m["y3"] or m["y4"]), month, -1, minute) if 1 <= month <= 12 else None
    if m["y5"]:
        return (int(m["y5"]), -1, -1, minute)
    if m["m6"]:
        month = month_number(m["m6"])
        return (own.year - (month > own.month) if own else -1, month, -1, minute)
    if m["m1"] or m["m2"]:
        month, day = month_number(m["m1"] or m["m2"]), int(m["d1"] or m["d2"])
    elif m["a"]:
        month, day = int(m["a"]), int(m["b"])
        if order is DateOrder.DAY_FIRST:
            month, day = day, month
    else:
        return (-1, -1, -1, minute)
    return _with_year(month, day, own, minute)


def _with_year(month: int, day: int, own: date | None, minute: int) -> Key | None:
    """Complete a date without a year to the last such day before `own`."""
    try:
        date(2024, month, day)
        if own is None:
            return (-1, month, day, minute)
        year = own.year if (month, day) <= (own.month, own.day) else own.year - 1
        return (year, *date(year, month, day).timetuple()[1:3], minute)
    except ValueError:
        return None


def _is_in_order(printed: str, order: DateOrder) -> bool:
    """Return whether figures like 14/07 fit the order; figures like 2025-07-14 always do."""
    m = re.match(r"(\d{1,2})[/.-](\d{1,2})[/.-]", printed)
    return m is None or int(m[1] if order is DateOrder.MONTH_FIRST else m[2]) <= 12


def _is_near(m: re.Match[str], day: tuple[int, int, int], own: date | None) -> bool:
    if m["full"]:
        return True
    return own is not None and 0 <= (own - date(*day)).days <= _RECENT_DAYS


def _minute(clock: str | None) -> int:
    if not clock:
        return -1
    parts = [clock[:2], clock[2:]] if clock.isdigit() else [*re.findall(r"\d+", clock), "0"]
    hour, minute = (int(part) for part in parts[:2])
    low = clock.lower()
    if "p" in low and hour < 12:
        hour += 12
    elif "a" in low and hour == 12:
        hour = 0
    return 60 * hour + minute
