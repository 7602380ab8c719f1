"""Dates in a sentence, in any print form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.clinical.narrative.text import SentenceToken

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split(" ")
}
_ORDINALS = ("st", "nd", "rd", "th")
_ISO = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")


@dataclass(frozen=True, kw_only=True)
class StatedDate:
    """What a sentence states of a date; a part that is not stated is None.

    `swapped` is the same date with day and month exchanged, for a form such as 03/05/2024.
    """

    year: int | None
    month: int | None = None
    day: int | None = None
    printed: str = ""

    def fits(self, iso: str) -> bool:
        """Return whether the stated parts are those of an ISO date with at least these parts."""
        parts = [int(part) for part in iso.split("-")]
        year, month, day = (*parts, None, None)[:3]
        if self.day is not None and day is None:
            return False
        if self.month is not None and month is None:
            return False
        return (
            (self.year is None or self.year == year)
            and (self.month is None or self.month == month)
            and (self.day is None or self.day == day)
        )


def read_date(tokens: Sequence[SentenceToken], at: int) -> tuple[StatedDate, int] | None:
    """Return the date that begins at a token, and the token after it."""
    for form in (_figures, _month_first, _day_first, _year):
        found = form(tokens, at)
        if found is not None:
            (year, month, day), after = found
            if (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31):
                printed = " ".join(t.text for t in tokens[at:after])
                return StatedDate(year=year, month=month, day=day, printed=printed), after
    return None


_Parts = tuple[int | None, int | None, int | None]
_Form = tuple[_Parts, int] | None


def _text(tokens: Sequence[SentenceToken], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""


def _integer(tokens: Sequence[SentenceToken], at: int, longest: int) -> int | None:
    text = _text(tokens, at)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= longest else None


def _is_year(tokens: Sequence[SentenceToken], at: int) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", _text(tokens, at)) is not None


def _figures(tokens: Sequence[SentenceToken], at: int) -> _Form:
    """2024-03-05, 3/5/2024 (month first), 3/5/24, 03.05.2024 is one number token."""
    mark = _text(tokens, at + 1)
    if mark not in ("-", "/") or _text(tokens, at + 3) != mark:
        return None
    numbers = [_text(tokens, at + step) for step in (0, 2, 4)]
    if not all(n.isascii() and n.isdigit() for n in numbers):
        return None
    first, second, third = numbers
    if len(first) == 4:
        return (int(first), int(second), int(third)), at + 5
    if len(third) in (2, 4) and len(first) <= 2:
        year = int(third) if len(third) == 4 else 2000 + int(third)
        return (year, int(first), int(second)), at + 5
    return None


def _month_first(tokens: Sequence[SentenceToken], at: int) -> _Form:
    """March 5, 2024; March 2024; March 5."""
    month = _MONTHS.get(_text(tokens, at))
    if month is None:
        return None
    after = at + 1
    if _text(tokens, after) == "." and _text(tokens, at) != "may":
        after += 1
    if _text(tokens, after) == "of":
        after += 1
    if _is_year(tokens, after):
        return (int(_text(tokens, after)), month, None), after + 1
    day = _integer(tokens, after, 2)
    if day is None:
        return None
    after += 1
    if _text(tokens, after) in _ORDINALS:
        after += 1
    comma = after + 1 if _text(tokens, after) == "," else after
    if _is_year(tokens, comma):
        return (int(_text(tokens, comma)), month, day), comma + 1
    return (None, month, day), after


def _day_first(tokens: Sequence[SentenceToken], at: int) -> _Form:
    """5 March 2024; 5th of March, 2024."""
    day = _integer(tokens, at, 2)
    if day is None:
        return None
    after = at + 1
    for word in (*_ORDINALS, "-", "of"):
        if _text(tokens, after) == word:
            after += 1
    month = _MONTHS.get(_text(tokens, after))
    if month is None:
        return None
    after += 1
    if _text(tokens, after) in (",", "-"):
        after += 1
    if _is_year(tokens, after):
        return (int(_text(tokens, after)), month, day), after + 1
    return None


def _year(tokens: Sequence[SentenceToken], at: int) -> _Form:
    """In 2015, (2015): a year after a preposition, so that no count is read as a year."""
    if not _is_year(tokens, at):
        return None
    before = _text(tokens, at - 1 if at else len(tokens))
    is_alone = before == "(" and _text(tokens, at + 1) == ")"
    dates_to = before == "to" and at > 1 and tokens[at - 2].text in ("dates", "dating", "back")
    if is_alone or dates_to:
        return (int(_text(tokens, at)), None, None), at + 1
    if _text(tokens, at - 1 if at else len(tokens)) in (
        "in",
        "since",
        "until",
        "from",
        "of",
        "during",
    ):
        return (int(_text(tokens, at)), None, None), at + 1
    return None


def iso_dates(*values: object) -> list[str]:
    """Return the values that are ISO dates of year, month or day precision."""
    texts = [str(value) for value in values if value is not None]
    return [text for text in texts if _ISO.fullmatch(text) or re.fullmatch(r"\d{4}", text)]
