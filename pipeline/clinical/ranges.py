"""Reference ranges: read a printed range, and recompute the flag of a value from the range.

A range with conditions (`M: 13-17 F: 12-16`, `70-99 fasting`) is not understood, because the row
does not say which condition the patient meets. Critical limits are unknown, so no flag is HH or LL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from pipeline.clinical.attributes import Comparator, Interpretation, Quantity, Range
from pipeline.clinical.numbers import DecimalSign, read_number
from pipeline.clinical.printed_values import is_same_unit
from pipeline.clinical.units import UnitContext, ucum_code

_LONGEST = 80
_MOST_WORDS = 4
_LABEL = re.compile(
    r"(?:ref(?:erence)?\.?(?:[ ](?:range|interval|values?))?|normal(?:[ ](?:range|values?))?|nl"
    r"|range|expected|rr)[ ]?[:=]?[ ]*(?=[^ ])",
    re.I,
)
_UP_TO = re.compile(r"(?:up[ ]to|to|max\.?|maximum|not[ ]more[ ]than|until)[ ]", re.I)
_FROM = re.compile(r"(?:from|min\.?|minimum|not[ ]less[ ]than)[ ]", re.I)
_BETWEEN_WORDS = re.compile(r"[ ]*(?:/|,|[ ]or[ ]|[ ]to[ ]|[ ]-[ ])[ ]*", re.I)
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_NUMBERS = r"[-+]?(?:[0-9][0-9.,]*|[.,][0-9]+)"
_HEAD = re.compile(
    rf"(?P<range>(?:[^0-9]{{0,28}}?)?{_NUMBERS}(?:[ ]?(?:-|–|—|−|to)[ ]?{_NUMBERS})?)"
    r"[ ]?(?P<unit>(?:[%/°A-Za-zµμ\[{]|[xX*×]?[ ]?10[\^*eE³⁶⁹]).*)?"
)
_DIRECTION: dict[str, frozenset[Interpretation]] = {
    "high": frozenset({"H", "HH"}),
    "low": frozenset({"L", "LL"}),
    "normal": frozenset({"N"}),
    "abnormal": frozenset({"H", "HH", "L", "LL", "A"}),
}
_FLAGS = {
    "high": r"h{1,2}|hi|high|ch|ph|[↑▲⬆]{1,2}|elevated|increased|above",
    "low": r"l{1,2}|lo|low|cl|pl|[↓▼⬇]{1,2}|decreased|below",
    "normal": r"n|nl|normal|wnl|ok",
    "abnormal": r"a{1,2}|abn|abnormal(?:ly)?|c|crit|critical(?:ly)?|panic|oor",
    "none": r"very|range",
}
_FLAG = re.compile(
    "|".join(f"(?P<{name or 'none'}>{words})" for name, words in _FLAGS.items()), re.I
)


@dataclass(frozen=True)
class ReadRange:
    """A range, and the unit that the range itself prints."""

    range: Range
    printed_unit: str | None = None

    @property
    def is_understood(self) -> bool:
        """Return whether the range has one meaning."""
        found = self.range
        return found.low is not None or found.high is not None or found.text is not None


def read_range(
    printed: str, *, sign: DecimalSign | None = None, name: str = "", unit: str | None = None
) -> ReadRange:
    """Read a printed reference range; a range that is not understood has neither end nor text.

    Words behind the range must be a unit: a unit with a UCUM code, or `unit`, the unit of the row.
    """
    nothing = ReadRange(Range(printed=printed))
    plain = " ".join(printed[: _LONGEST + 1].split())
    if not plain or len(plain) > _LONGEST:
        return nothing
    for opening, closing in _BRACKETS:
        if plain.startswith(opening) and plain.endswith(closing):
            plain = plain[1:-1].strip()
    label = _LABEL.match(plain)
    if label and read_number(plain, sign=sign).text is None:
        plain = plain[label.end() :]
    bare = _bounds(printed, plain, None, sign)
    m = _HEAD.fullmatch(plain) if bare is None else None
    if m is None or not m["unit"]:
        return bare or nothing
    tail = m["unit"].strip()
    if not is_same_unit(tail, unit, UnitContext.LAB, name) and ucum_code(tail, name=name) is None:
        return nothing
    return _bounds(printed, m["range"].strip(), tail, sign) or nothing


def _bounds(
    printed: str, plain: str, unit: str | None, sign: DecimalSign | None
) -> ReadRange | None:
    for form, is_low in ((_UP_TO, False), (_FROM, True)):
        if m := form.match(plain):
            end = read_number(plain[m.end() :], sign=sign)
            if end.number is None or end.high is not None or end.comparator:
                return None
            low, high = (end.number, None) if is_low else (None, end.number)
            return ReadRange(Range(printed=printed, low=low, high=high), unit)
    found = read_number(plain, sign=sign)
    if found.text is not None or _is_words(plain):
        return ReadRange(Range(printed=printed, text=" ".join(plain.split())), unit)
    if found.number is None:
        return None
    if found.high is not None:
        return ReadRange(Range(printed=printed, low=found.number, high=found.high), unit)
    if found.comparator is None:
        return None
    is_exclusive = found.comparator in ("<", ">")
    if found.comparator in ("<", "<="):
        made = Range(printed=printed, high=found.number, high_is_exclusive=is_exclusive)
    else:
        made = Range(printed=printed, low=found.number, low_is_exclusive=is_exclusive)
    return ReadRange(made, unit)


def _is_words(text: str) -> bool:
    """Return whether a range is several results that are expected (`Negative/Trace`)."""
    parts = _BETWEEN_WORDS.split(text)
    return 1 < len(parts) <= _MOST_WORDS and all(read_number(part).text for part in parts)


@dataclass(frozen=True)
class _Interval:
    low: Decimal | None
    high: Decimal | None
    low_open: bool = False
    high_open: bool = False


def computed_flag(value: Quantity | None, reference: Range | None) -> Interpretation | None:
    """Return H, L or N; None if value or range is no number, or if the value can be both.

    A bound is inclusive unless its comparator excludes it. A value below a limit (`<0.50`) is not
    negative if the range is not.
    """
    if value is None or value.number is None or reference is None:
        return None
    if reference.low is None and reference.high is None:
        return None
    shown = _interval(value.number, value.high, value.comparator, reference)
    if _is_below(shown.high, shown.high_open, reference.low, open_=reference.low_is_exclusive):
        return "L"
    if _is_below(reference.high, reference.high_is_exclusive, shown.low, open_=shown.low_open):
        return "H"
    if _is_inside(shown, reference):
        return "N"
    return None


def _interval(
    number: Decimal, high: Decimal | None, comparator: Comparator | None, reference: Range
) -> _Interval:
    if high is not None:
        return _Interval(number, high)
    if comparator in ("<", "<="):
        is_amount = number >= 0 and (reference.low is None or reference.low >= 0)
        return _Interval(Decimal(0) if is_amount else None, number, high_open=comparator == "<")
    if comparator in (">", ">="):
        return _Interval(number, None, low_open=comparator == ">")
    return _Interval(number, number)


def _is_below(
    upper: Decimal | None, upper_open: bool, lower: Decimal | None, *, open_: bool
) -> bool:
    """Return whether an interval up to `upper` lies below an interval from `lower`."""
    if upper is None or lower is None:
        return False
    return upper < lower or (upper == lower and (upper_open or open_))


def _is_inside(shown: _Interval, reference: Range) -> bool:
    if reference.low is not None:
        if shown.low is None or shown.low < reference.low:
            return False
        if shown.low == reference.low and reference.low_is_exclusive and not shown.low_open:
            return False
    if reference.high is not None:
        if shown.high is None or shown.high > reference.high:
            return False
        if shown.high == reference.high and reference.high_is_exclusive and not shown.high_open:
            return False
    return True


def contradicts(printed_flag: str | None, computed: Interpretation | None) -> bool:
    """Return whether a printed flag contradicts the computed flag; an unknown flag does not."""
    if printed_flag is None or computed is None:
        return False
    direction = _direction(printed_flag)
    return direction is not None and computed not in _DIRECTION[direction]


def _direction(printed_flag: str) -> str | None:
    """Return what a printed flag says; None for an unknown flag or two directions."""
    plain = printed_flag.strip("()[] ")
    words = plain.strip("*! ").split()
    if plain and not words:
        return "abnormal"
    names = set()
    for word in words[:_MOST_WORDS]:
        m = _FLAG.fullmatch(word.strip("(),/*!"))
        if m is None:
            return None
        names.add(m.lastgroup)
    names.discard("none")
    if len(names) > 1:
        names.discard("abnormal")
    return names.pop() if len(names) == 1 else None
