"""Whether each attribute of an entity occurs in its quote, or in the row of the quote.

This module is pure and judges every engine alike. An attribute counts as printed in the forms of
`spellings`, `sig_forms`, `flag_forms` and `quoted_names` only. If the quote itself states an
attribute of the same kind, the rest of the row proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Protocol

from pipeline.clinical.date_forms import DATE_FORM, DateOrder, date_at
from pipeline.clinical.medications import sig_forms
from pipeline.clinical.medications.sig import DOSE
from pipeline.clinical.page_text.rows import QuotedText
from pipeline.clinical.page_text.spellings import fold, occurs, places
from pipeline.providers.local.labs.patterns import UNIT
from pipeline.providers.local.text.tokens import normal
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.page_checks import flag_forms, quoted_names

_MEASURED = ("vital", "lab")
_PART = re.compile(r"\b(?:systolic|diastolic|sbp|dbp)\b", re.I)
_UNIT_NEXT = re.compile(rf"[ ]?(?P<unit>(?:{UNIT})|°?[fc](?![a-z])|bpm|/min)(?![a-z0-9/^])", re.I)
_ISO = re.compile(r"(?P<y>\d{4})(?:-(?P<m>\d{2}))?(?:-(?P<d>\d{2}))?")
_DATE = re.compile(DATE_FORM, re.I)
_MONTH = re.compile(
    r"\b(?P<m>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,?[ ]+(?:of[ ]+)?"
    r"(?P<y>\d{4})\b"
    r"|\b(?P<n>\d{1,2})/(?P<z>\d{4})\b",
    re.I,
)
_YEARLESS = re.compile(
    r"\b(?P<m>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[ ]+(?P<d>\d{1,2})\b"
    r"(?!,?[ ]+\d{4}|\d|[./:]\d)",
    re.I,
)
_STRUCK = re.compile(r"~~.*?(?:~~|$)", re.S)
_MAY_BE_STRUCK = ("name", "previous_dose")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


class QuotedEntity(Protocol):
    """What the check of one attribute reads of its entity."""

    @property
    def category(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...
    @property
    def reference_range(self) -> str | None: ...


def not_in_quote(entity: FoundEntity, shown: QuotedText) -> Iterator[str]:
    """Yield the names of the attributes that the page does not show beside the quote."""
    standing = shown if entity.status == "entered_in_error" else _without_struck(shown)
    for attribute, is_shown in _CHECKS.items():
        reported = getattr(entity, attribute)
        text = shown if attribute in _MAY_BE_STRUCK else standing
        if reported and not is_shown(reported, entity, text):
            yield attribute


def is_in_quote(attribute: str, said: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    """Return whether the page shows one attribute beside the quote of an entity without error."""
    text = shown if attribute in _MAY_BE_STRUCK else _without_struck(shown)
    return _CHECKS[attribute](said, entity, text)


def _without_struck(shown: QuotedText) -> QuotedText:
    """Leave out the struck-through words: they state nothing that holds."""
    if "~~" not in shown.quote and "~~" not in shown.row:
        return shown
    quote, row = _STRUCK.sub(" ", shown.quote), _STRUCK.sub(" ", shown.row)
    return replace(shown, quote=quote, row=row)


def _name(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    where = [shown.quote]
    if entity.category in _MEASURED:
        where += [shown.row, *shown.headings]
    elif not re.search(r"[A-Za-z]{2}", DOSE.sub("", shown.quote)):
        where.append(shown.row)
    return any(quoted_names.is_named(reported, text, entity.category) for text in where)


def _value(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    wanted = fold(reported)
    in_quote = _figures_of(shown.quote, entity)
    if _PART.search(entity.name):
        in_quote = in_quote.replace("/", " ")
    if occurs(wanted, in_quote):
        return True
    # A quote with a figure states its value; only a quote of a bare name leaves it to the row.
    return not re.search(r"\d", in_quote) and occurs(wanted, _figures_of(shown.row, entity))


def _figures_of(printed: str, entity: QuotedEntity) -> str:
    """Return folded text without the name and the reference range: their figures are no value."""
    text = fold(re.sub(re.escape(entity.name), " ", printed, flags=re.I))
    found = next(places(fold(entity.reference_range or ""), text), None)
    return text if found is None else text[: found[0]] + " " + text[found[1] :]


def _unit(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    wanted = fold(reported)
    # Most quotes hold value and unit, so the row is folded only if the quote proves nothing.
    for text in map(fold, (shown.quote, f"{shown.quote} {shown.row}")):
        # The pattern of units knows no form such as `10*3/mm3`, so the printed form is compared.
        ends = [end for _, end in places(fold(entity.value or ""), text)]
        if any(_is_next(wanted, text[end:].lstrip()) for end in ends):
            return True
        beside = {
            fold(m["unit"])
            for _, end in places(fold(entity.value or ""), text)
            if (m := _UNIT_NEXT.match(text, end))
        }
        if beside:
            return wanted in beside or any(occurs(wanted, f" {unit} ") for unit in beside)
    return any(occurs(wanted, fold(text)) for text in (shown.quote, shown.row, *shown.headings))


def _is_next(wanted: str, rest: str) -> bool:
    return rest.startswith(wanted) and not re.match(r"[a-z0-9/^*]", rest[len(wanted) :])


def _dose(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    wanted = fold(reported)
    if occurs(wanted, fold(shown.quote)):
        return True
    return not DOSE.search(" ".join(shown.quote.split())) and occurs(wanted, fold(shown.row))


def _frequency(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    in_quote = sig_forms.frequencies(shown.quote)
    text = shown.quote if in_quote else f"{shown.quote} {shown.row}"
    found = in_quote or sig_forms.frequencies(shown.row)
    words = set(re.findall(r"[a-z0-9]+", text.lower()))
    return sig_forms.same_frequency(reported, found) and sig_forms.extra_words(reported) <= words


def _route(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    wanted = sig_forms.route_of(reported)
    in_quote = sig_forms.routes(shown.quote)
    return wanted in (in_quote or sig_forms.routes(shown.row)) or occurs(
        fold(reported), fold(shown.quote)
    )


def _flag(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    return any(
        occurs(fold(reported), fold(text)) or flag_forms.flag_of(reported) in flag_forms.flags(text)
        for text in (shown.quote, shown.row)
    )


def _range(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    return any(occurs(fold(reported), fold(text)) for text in (shown.quote, shown.row))


def _reaction(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    # A quote of more than the name states the reaction; the rest of a list is of other allergens.
    is_bare = shown.quote.casefold().split() == entity.name.casefold().split()
    text = f"{shown.quote} {shown.row}" if is_bare else shown.quote
    words = {normal(w) for w in re.findall(r"[^\W_]+", text)}
    return all(
        normal(w) in words or w.lower() in quoted_names.PLAIN
        for w in re.findall(r"[^\W_]+", reported)
    )


def _date(reported: str, entity: QuotedEntity, shown: QuotedText) -> bool:
    texts = (shown.quote, shown.row, *shown.headings)
    m = _ISO.fullmatch(reported.strip())
    if m is None:
        return any(occurs(fold(reported), fold(text)) for text in texts)
    if m["d"]:
        printed = any(reported.strip() in _days(text) for text in (*texts, *shown.above))
        return printed or _is_day_of_a_printed_year(m["y"], int(m["m"]), int(m["d"]), shown)
    if m["m"]:
        return any((m["y"], int(m["m"])) in _months(text) for text in texts)
    return any(occurs(m["y"], re.sub(r"[/.-]", " ", text)) for text in texts)


def _is_day_of_a_printed_year(year: str, month: int, day: int, shown: QuotedText) -> bool:
    """Return whether the row prints day and month alone, and the page prints the year above."""
    days = {
        (_MONTHS.index(m["m"].lower()) + 1, int(m["d"]))
        for text in (shown.quote, shown.row, shown.first_cell)
        for m in _YEARLESS.finditer(text)
    }
    return (month, day) in days and any(f" {year}" in text for text in shown.above)


@lru_cache(maxsize=256)
def _days(text: str) -> frozenset[str]:
    """Return the days that a text prints, in ISO 8601; a figure may be day first or month first."""
    found = (
        printed.day
        for m in _DATE.finditer(text)
        for order in (DateOrder.MONTH_FIRST, DateOrder.DAY_FIRST)
        if (printed := date_at(text, m.start(), order=order))
    )
    return frozenset(day.isoformat() for day in found if isinstance(day, date))


def _months(text: str) -> set[tuple[str, int]]:
    found = {
        (m["y"], _MONTHS.index(m["m"].lower()) + 1) if m["m"] else (m["z"], int(m["n"]))
        for m in _MONTH.finditer(text)
    }
    return found | {(day[:4], int(day[5:7])) for day in _days(text)}


_CHECKS: dict[str, Callable[[str, QuotedEntity, QuotedText], bool]] = {
    "name": _name,
    "value": _value,
    "unit": _unit,
    "reference_range": _range,
    "abnormal_flag": _flag,
    "strength": _dose,
    "dose": _dose,
    "previous_dose": _dose,
    "route": _route,
    "frequency": _frequency,
    "reaction": _reaction,
    "date": _date,
}
ATTRIBUTES = tuple(_CHECKS)
"""The attributes that `not_in_quote` can name."""
