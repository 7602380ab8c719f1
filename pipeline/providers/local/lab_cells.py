"""The cells of a laboratory row: value, unit, reference range and flag, recognized by their shape.

Values are returned as printed; nothing is computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.providers.local.analytes import Analyte

_NUM = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_SIGN = r"(?:[<>≤≥]=?|less than|greater than)"
_UNIT = (
    r"(?:[x×*]?[ ]?10(?:\^|E|\*)?[ ]?[36912]{1,2}[ ]?/[ ]?[µuμ]?L|[KM]/[µuμ]L|[KM]/mm3"
    r"|thou/[µum]?L|mill?/[µum]?L|cells?/[µuμm]L|cells/mm3|/[µuμ]L|/mm3|/cumm"
    r"|mL/min(?:/1\.73[ ]?(?:m2|m²|m\^2|sq\.?[ ]?m))?|mg/g(?:[ ]?(?:creat(?:inine)?|Cr))?"
    r"|mg/mmol|[µuμm]g/mg(?:[ ]creat(?:inine)?)?|mcg/mg(?:[ ]creat)?"
    r"|m?Osm(?:ol)?/kg|m?Osm|mm/hr?|mm[ ]?Hg|[µuμmnpf]?(?:mol|g|Eq|IU|U|kat)/(?:dL|mL|L|hr?"
    r"|24[ ]?hr?s?|day|d|g)|mcg/(?:dL|mL|L)|k?I?U/(?:mL|L)|[mµuμk]?I?U/m?L|GPL|MPL|APL"
    r"|copies/mL|IU/mL|log[ ]?(?:copies|IU)/mL|/[ ]?(?:hpf|lpf|HPF|LPF)|per[ ](?:hpf|lpf)"
    r"|CFU/mL|cfu/mL|%(?:[ ]of[ ]total)?|fL|pg|ng|mg|sec(?:onds)?|s|ratio|index|S/CO|EU/dL"
    r"|E\.U\./dL|titer|units?|mEq|mmol|g|°C|mm|U)"
)
_QUAL = (
    r"(?:non-?reactive|reactive|not[ ]detected|none[ ](?:seen|detected|found)|detected|negative"
    r"|positive|neg|pos|trace|none|few|rare|occasional|moderate|many|small|large|normal"
    r"|abnormal"
    r"|yellow|amber|straw|colorless|pale[ ]yellow|dark[ ]yellow|light[ ]yellow|clear|cloudy"
    r"|hazy|sl(?:ightly)?[ ](?:cloudy|hazy)|turbid|pending|immune|non-?immune|equivocal"
    r"|indeterminate|borderline"
    r"|[1-4]\+|no[ ]growth(?:[ ](?:at|after|x)[ ]\d+[ ](?:days|hours))?"
    r"|within[ ]normal[ ]limits|WNL|unremarkable|(?:A|B|AB|O)[ ]?(?:positive|negative|pos|neg"
    r"|\+)|present|absent|intact|heterogeneous|low|high)"
)
_SPECK = r"(?:[ |\t]|(?<![^ |\t])[.,·•_—–~`'‘’-](?![^ |\t]))*"
"""The text between cells: blanks, rules, and single marks such as a scanner's dust."""
_CELL = re.compile(
    rf"{_SPECK}(?:"
    rf"(?P<paren_flag>\((?:H|L|HH|LL|A|AA|N|C|high|low|critical|abnormal|normal|elevated)\))"
    rf"|(?P<paren_range>[\[(](?:ref(?:erence)?\.?(?:[ ](?:range|interval))?:?[ ]*|normal:?[ ]*"
    rf"|nl:?[ ]*|range:?[ ]*)?(?P<inner>(?:{_NUM})[ ]?(?:-|–|to)[ ]?(?:{_NUM})"
    rf"|{_SIGN}[ ]?(?:{_NUM})|{_QUAL})(?:[ ]?{_UNIT})?[\])])"
    rf"|(?P<paren>\([^)\n]{{1,14}}\))"
    rf"|(?P<range>(?:{_NUM})[ ]?(?:-|–|to)[ ]?(?:{_NUM})(?![\w/:.,-]*\d))"
    rf"|(?P<titer>1[ ]?:[ ]?\d{{2,5}})(?![\d:])"
    rf"|(?P<comparison>{_SIGN}[ ]?(?:{_NUM}))(?![\d:])"
    rf"|(?P<number>-?(?:{_NUM}))(?![\d:/-])(?=[ |\t%*]|$|(?:{_UNIT})(?!\w)|[HL](?!\w))"
    rf"|(?P<flag>(?:HH|LL|H|L|AA|A|C|\*{{1,2}}|HIGH|LOW|High|Low|ABN|Abn|Abnormal|ABNORMAL|CRIT"
    rf"|Critical|CRITICAL|Normal)(?![\w/.,]))"
    rf"|(?P<unit>(?:{_UNIT}|[A-Za-zµμ]{{1,5}}/[A-Za-z]{{1,4}})(?![\w/^]))"
    rf"|(?P<qual>(?i:{_QUAL})(?!\w))"
    r")"
)
_HEADERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "name",
        re.compile(
            (
                r"\b(?:test(?:[ ]name)?s?|component|analyte|name|procedure|assay|lab|parameter"
                r"|determination|exam)\b"
            ),
            re.I,
        ),
    ),
    (
        "range",
        re.compile(
            (
                r"\b(?:ref(?:erence)?\.?(?:[ ](?:range|interval|values?|limits?))?s?"
                r"|normal(?:[ ](?:range|values?))?|(?<!reference )range|expected"
                r"|biological[ ]reference|interval)\b\.?"
            ),
            re.I,
        ),
    ),
    ("value", re.compile(r"\b(?:results?|values?|your[ ]value|observed|finding)\b", re.I)),
    ("flag", re.compile(r"\b(?:flags?|abn(?:ormal)?|status|h/l|interp(?:retation)?)\b", re.I)),
    ("unit", re.compile(r"\b(?:units?|uom)\b", re.I)),
)


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of one row's cells."""

    end: int
    value: str | None = None
    unit: str | None = None
    reference_range: str | None = None
    flag: str | None = None


def columns_of(line: str) -> tuple[str, ...]:
    """Return the order of the columns if `line` is a table's heading, else ()."""
    if re.search(r"\d", line):
        return ()
    rest, found = line, []
    for kind, pattern in _HEADERS:
        m = pattern.search(rest)
        if m is not None:
            found.append((m.start(), kind))
            rest = rest[: m.start()] + " " * (m.end() - m.start()) + rest[m.end() :]
    kinds = {kind for _, kind in found}
    if "value" not in kinds or not kinds & {"unit", "range", "flag"}:
        return ()
    return tuple(kind for _, kind in sorted(found)) if len(rest.split()) <= 3 else ()


def read_cells(text: str, start: int, order: tuple[str, ...]) -> Cells | None:
    """Read consecutive cells from `start`; return None if no cell holds a value."""
    measures: list[tuple[str, str]] = []
    unit = flag = reference = None
    at = start
    while m := _CELL.match(text, at):
        kind = m.lastgroup or ""
        kind = "paren_range" if m["paren_range"] else kind
        words = m[kind].strip()
        if not measures and kind in ("flag", "unit", "paren", "paren_flag", "paren_range"):
            break
        if kind == "paren_range":
            reference = reference or m["inner"]
        elif kind in ("flag", "paren_flag"):
            if flag is not None:
                break
            flag = words.strip("()")
        elif kind == "unit":
            if unit is not None and unit != words:
                break
            unit = words
        elif kind != "paren":
            measures.append((kind, words))
        at = m.end()
    counted = unit is not None and unit.lower().endswith(("hpf", "lpf"))
    value, second = _value_and_range(measures, order, counted=counted)
    if value is None:
        return None
    return Cells(
        end=at,
        value=_printed(value),
        unit=_printed(unit),
        reference_range=_printed(reference or second),
        flag=flag,
    )


def _value_and_range(
    measures: list[tuple[str, str]], order: tuple[str, ...], *, counted: bool
) -> tuple[str | None, str | None]:
    """Return (value, range) from up to two measures.

    A range alone is a value only if cells are `counted` (`0-5 /HPF`). In other rows the value has
    been lost.
    """
    if len(measures) == 1:
        kind, words = measures[0]
        return (None if kind == "range" and not counted else words), None
    if len(measures) != 2:
        return None, None
    (first_kind, first), (second_kind, second) = measures
    range_first = (
        "range" in order and "value" in order and order.index("range") < order.index("value")
    )
    if not order:
        shaped = ("range", "comparison")
        range_first = first_kind in shaped and second_kind in ("number", "qual")
    if range_first and first_kind != "number":
        return second, first
    if second_kind == "number" and first_kind in ("number", "qual"):
        return None, None
    return first, second


_LINK = (
    r"(?:[ \n]*(?:,?[ ]*(?:level|levels|count|value|result|today|now|currently"
    r"|most[ ]recent(?:ly)?|of|is|was|were|at|to|has|been|remains?|remained"
    r"|stable|elevated|decreased|low|high|normal|up|down|improved|increased|rose|fell|returned"
    r"|came[ ]back|back|from|resulted|found|be|just|about|approximately|on|in|the"
    r"|\d{1,2}/\d{1,2}(?:/\d{2,4})?(?![\d/]))"
    r"(?![\w/])|:|=|[ ]-(?=[ ]))){0,6}[ \n]*"
)
_INLINE_NUMBER = re.compile(
    rf"(?:[ ]*\((?!\d)[^)\n]{{1,16}}\))?{_LINK}(?P<value>[1-4]\+(?!\d)|(?:{_SIGN}[ ]?)?"
    rf"(?:{_NUM})(?:[kK](?!\w))?)(?![\d/]|[.,]\d|[:;]\d|-\d|[ ]?(?:x/|times|years|days|weeks|hours"
    rf"|months|yo\b|am\b|pm\b|tab|pill|mg[ ]|mg\b(?!/)|mcg\b(?!/)|g\b(?!/)|mL\b(?!/)|IV|PO"
    rf"|units\b|packets?))"
    rf"(?:[ ]?(?P<unit>{_UNIT})(?![\w/]))?"
    r"(?:[ ]?\(?(?P<flag>H|L|HH|LL)(?![\w/'])\)?)?"
    rf"(?:[ ]?[\[(](?:ref(?:erence)?\.?(?:[ ](?:range|interval))?:?[ ]*|normal:?[ ]*|nl:?[ ]*"
    rf"|range:?[ ]*)?(?P<range>(?:{_NUM})[ ]?(?:-|–|to)[ ]?(?:{_NUM})"
    rf"|{_SIGN}[ ]?(?:{_NUM}))(?:[ ]?{_UNIT})?[\])])?",
    re.I,
)
_INLINE_PAIR = re.compile(
    r"[ ]*(?::|of|was|is|=)?[ ]*(?P<value>\d{1,2}(?:\.\d)?[ ]?/[ ]?\d{1,2}(?:\.\d)?)(?![\d/])"
)
_INLINE_QUAL = re.compile(
    (
        r"(?:[ \n]*(?:test|screen|result|level|titer|today|(?:is|was|were|came[ ]back|returned"
        r"|:)))*[ \n]*(?P<value>non-?reactive|reactive|not[ ]detected|negative|positive|trace"
        r"|1:\d{2,5})(?!\w)"
    ),
    re.I,
)


def inline_value(text: str, start: int, limit: int, analyte: Analyte) -> Cells | None:
    """Read the value after an analyte's name in running text; return None if no value follows."""
    if analyte.name == "H/H":
        m = _INLINE_PAIR.match(text, start, limit)
        return Cells(end=m.end(), value=m["value"]) if m else None
    m = _INLINE_NUMBER.match(text, start, limit)
    if m is not None:
        number = float(re.sub(r"[^\d.]", "", m["value"]) or "-1")
        if not analyte.low <= number <= analyte.high:
            return None
        return Cells(
            end=m.end(),
            value=_printed(m["value"]),
            unit=_printed(m["unit"]),
            reference_range=_printed(m["range"]),
            flag=m["flag"],
        )
    m = _INLINE_QUAL.match(text, start, limit)
    if m is not None and (not analyte.units or analyte.name.startswith(("Troponin", "hCG", "ANA"))):
        return Cells(end=m.end(), value=_printed(m["value"]))
    return None


def _printed(words: str | None) -> str | None:
    return " ".join(words.split()) if words else None
