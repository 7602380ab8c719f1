"""Vital signs in running text, in lists and in flowsheets whose columns are vital signs.

A value that no living body can show is not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.lines import PrintedLine


@dataclass(frozen=True, slots=True)
class _Vital:
    """The spellings, units and plausible values of one vital sign."""

    key: str
    names: str
    value: str
    unit: str
    low: float
    high: float
    letter: str = ""
    """A single letter that means this vital sign only beside other vital signs."""

    @property
    def pattern(self) -> str:
        """All names as one expression; the letter counts only in upper case."""
        return f"{self.names}|(?-i:{self.letter})" if self.letter else self.names


_INT = r"\d{2,3}"
_DECIMAL = r"\d{1,3}(?:\.\d{1,2})?"
_VITALS: tuple[_Vital, ...] = (
    _Vital(
        "BP",
        (
            r"(?:orthostatic[ ]|home[ ]|sitting[ ]|standing[ ]|supine[ ])?(?:blood[ ]pressures?"
            r"|B/?P)(?:[ ]?-?[ ]?[RL](?![\w]))?"
        ),
        r"\d{2,3}[ ]?/[ ]?\d{2,3}(?!/|\d)",
        r"mm[ ]?Hg",
        40,
        300,
    ),
    _Vital(
        "HR",
        r"heart[ ]rate|HR|pulse[ ]rate|pulses?(?![ ]ox)|apical[ ]pulse|ventricular[ ]rate",
        _INT + r"(?![./\d])",
        r"bpm|beats?[ ](?:per|a)[ ]minute|beats/min(?:ute)?|/[ ]?min(?:ute)?|per[ ]minute",
        20,
        300,
        "P",
    ),
    _Vital(
        "RR",
        r"respiratory[ ]rate|respirations?|resp(?:[ ]?rate|s)?\.?|RR",
        r"\d{1,2}(?![./\d])",
        (
            r"bpm|breaths?[ ](?:per|a)[ ]minute|breaths/min(?:ute)?|br/min|/[ ]?min(?:ute)?"
            r"|per[ ]minute"
        ),
        4,
        90,
        "R",
    ),
    _Vital(
        "Temp",
        r"temperature|temp\.?|Tmax|Tm|Tc(?:urrent)?|tympanic[ ]temp|oral[ ]temp",
        r"\d{2,3}(?:\.\d{1,2})?",
        (
            r"°[ ]?[FC](?![a-z])|º[ ]?[FC](?![a-z])|degrees?(?:[ ](?:F|C|Fahrenheit"
            r"|Celsius))?(?![a-z])|[FC](?![\w])|oF|°"
        ),
        25,
        112,
        "T",
    ),
    _Vital(
        "SpO2",
        (
            r"SpO2|SaO2(?=[: ])|O2[ ]?sats?(?:uration)?|oxygen[ ]sat(?:uration)?s?|O2[ ]?%|sats?"
            r"|pulse[ ]ox(?:imetry)?|POx|sat(?:uration)?s?(?=[: ])"
        ),
        r"\d{2,3}(?![./\d])",
        r"%|percent",
        30,
        100,
    ),
    _Vital(
        "weight",
        (
            r"(?:admit|admission|discharge|dry|current|birth|daily|body|actual|today's)?[ ]?weight"
            r"|wt\.?"
        ),
        r"\d{1,3}(?:,\d{3})?(?:\.\d{1,3})?",
        r"kgs?|kilograms?|lbs?\.?|pounds|grams|g(?![a-z/])|oz",
        0.2,
        1500,
    ),
    _Vital(
        "height",
        r"height|ht\.?|body[ ]length",
        (
            r"\d['’][ ]?\d{1,2}(?:\.\d)?[\"”]?|\d[ ]?(?:ft|feet"
            r"|foot)\.?[ ]?\d{1,2}(?:\.\d)?(?=[ ]?in)|\d{1,3}(?:\.\d{1,2})?"
        ),
        r"cm|in(?:ches)?\.?(?![a-z])|meters?|m(?![a-z/])|ft|feet",
        0.3,
        272,
    ),
    _Vital("BMI", r"BMI|body[ ]mass[ ]index", _DECIMAL, r"kg/m(?:2|²|\^2)", 7, 120),
    _Vital(
        "pain",
        r"pain(?:[ ](?:score|level|scale|rating|intensity))?",
        r"\d{1,2}[ ]?/[ ]?10(?!\d)|\d{1,2}[ ]out[ ]of[ ]10|\d{1,2}(?![\d./%])",
        r"(?!)",
        0,
        10,
    ),
    _Vital("head circumference", r"head[ ]circumference|HC|OFC", _DECIMAL, r"cm|in", 15, 80),
    _Vital("MAP", r"MAP|mean[ ]arterial[ ]pressure", _INT + r"(?![./\d])", r"mm[ ]?Hg", 20, 220),
    _Vital("FiO2", r"FiO2", r"\d{2,3}(?![./\d])|0?\.\d{1,2}", r"%", 0.2, 100),
)
_FILLER = (
    r"(?:[ \n]*\((?P<paren>[^)\n]{1,16})\))?[ \n]*"
    r"(?:(?:[:=]|-(?![0-9])|–|is|was|were|of|at|in|to|now|today|currently|current|noted"
    r"|measured|reading|readings|down|up|around|about"
    r"|approximately|on|admission|arrival|discharge|sitting|standing|lying|supine|left|right"
    r"|arm|oral|axillary|rectal|tympanic|home|initial|repeat|max"
    r"|has|been|with|a|reached|rose|fell|recorded|triage|this|morning|last|and"
    r"|only)(?![\w])[ \n]*){0,4}"
)
_PAIN_ONLY = re.compile(r"score|level|scale|rating|intensity", re.I)
_INLINE = tuple(
    (
        vital,
        re.compile(
            rf"(?<![\w/])(?P<name>{vital.pattern})(?![\w])"
            rf"{_FILLER}(?P<value>{vital.value})(?![:;,.]?\d)(?:[ ]?(?P<unit>{vital.unit}))?",
            re.I,
        ),
    )
    for vital in _VITALS
)
_BARE_SPO2 = re.compile(
    (
        r"(?<![\w./-])(?P<value>\d{2,3})[ ]?(?P<unit>%)[ ]*(?:on[ ]|with[ ])?(?:RA\b|room[ ]air"
        r"|\d+(?:\.\d)?[ ]?L(?:iters)?(?:/min)?\b[ ]?(?:NC|O2|nasal)?)"
    ),
    re.I,
)
_BARE_BP = re.compile(r"(?<![\w./])(?P<value>\d{2,3}/\d{2,3})[ ]?(?P<unit>mm[ ]?Hg)", re.I)
_HEAD = re.compile(
    r"(?<![\w/])(?P<name>"
    + "|".join(f"(?P<v{i}>{v.pattern})" for i, v in enumerate(_VITALS))
    + r"|(?P<other>time|date(?:/time)?|day|visit|position|site|initials|by|O2|source|note|comment"
    r"|glucose|intake|output|I/O|GCS|hour))"
    r"(?![\w])(?:[ ]*\((?P<unit>[^)\n]{1,12})\))?",
    re.I,
)
_ROW_LABEL = re.compile(
    r"[ ]*(?:(?:\d{1,2}/\d{1,2}/\d{2,4}|\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}(?=[ ]+\d{1,2}:)"
    r"|\d{1,2}-[A-Za-z]{3}(?:-\d{2,4})?|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov"
    r"|Dec)[a-z]{0,6}\.?[ ]\d{1,2}(?:,?[ ]\d{4})?(?!/)"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?:[ ]?[AaPp]\.?[Mm]\.?)?|\d{4}(?=[ ]+\d{2,3}/\d{2,3})|Day[ ]\d+"
    r"|\(?[A-Za-z][A-Za-z-]*\)?:?)[ ]*)*"
)
_CELL = re.compile(
    r"(?<!\S)(?:\d{2,3}/\d{2,3}|\d{1,3}(?:\.\d{1,2})?%?|\d{1,2}/10|--?|—|–|n/?a)(?=\s|$)", re.I
)
_MIN_COLUMNS = 3


_MAX_MISSES = 8
"""The most lines without measures (headers and footers) inside a flowsheet."""


def read_vitals(reading: DocumentState) -> None:
    """Add every vital sign.

    Flowsheets are read first, so that their headings are not read as names.
    """
    _read_flowsheets(reading)
    for vital, pattern in _INLINE:
        for m in pattern.finditer(reading.text):
            _add_inline(reading, vital, m)
    for vital, bare in ((_VITALS[4], _BARE_SPO2), (_VITALS[0], _BARE_BP)):
        for m in bare.finditer(reading.text):
            start, end = m.start("value"), m.end("unit")
            if not reading.is_claimed(start, end) and _plausible(vital, m["value"]):
                reading.add(_found(reading, vital, (start, end), vital.key, m["value"], m["unit"]))


def _add_inline(reading: DocumentState, vital: _Vital, m: re.Match[str]) -> None:
    start, end = m.start("name"), m.end("unit") if m["unit"] else m.end("value")
    end -= bool(m["unit"]) and m["unit"].endswith(".")
    if reading.is_claimed(start, end) or not _plausible(vital, m["value"]):
        return
    unit = m["unit"]
    if unit is None and m["paren"] and re.fullmatch(vital.unit, m["paren"].strip(), re.I):
        unit = m["paren"].strip()
    name = m["name"]
    if len(name) == 1 and not _beside_vitals(reading, start, m.end("value")):
        return
    if vital.key == "pain" and "10" not in m["value"] and not _PAIN_ONLY.search(name):
        return
    if (
        vital.key in ("height", "weight", "HR")
        and not unit
        and m["value"].replace(",", "").replace(".", "").isdigit()
        and not _beside_vitals(reading, start, m.end("value"))
    ):
        return
    after = reading.text[end : end + 3]
    if re.match(r"[ ]?(?:/\d|-\d|years|weeks)", after):
        return
    reading.add(_found(reading, vital, (start, end), own_words(name), m["value"], unit))


def _beside_vitals(reading: DocumentState, start: int, end: int) -> bool:
    """Return whether a doubtful mark is in a vitals section or beside another vital sign."""
    if reading.zones.type_at(start) == "vitals":
        return True
    text = reading.text
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    line = text[first:start] + " " + text[end : last if last >= 0 else len(text)]
    return bool(
        re.search(
            r"\b(?:BP|HR|RR|SpO2|pulse|temp|BMI|vitals?|vs|weight|height|wt|ht|vit)\b", line, re.I
        )
    ) or bool(re.search(r"\b\d{2,3}/\d{2,3}\b", line))


def _plausible(vital: _Vital, value: str) -> bool:
    first = re.match(r"\d*\.?\d+", value.replace(",", ""))
    if first is None:
        return False
    number = float(first.group())
    if not vital.low <= number <= vital.high:
        return False
    if vital.key == "BP":
        upper, _, lower = value.replace(" ", "").partition("/")
        return int(upper) > int(lower) and int(lower) >= 10
    return not (vital.key == "Temp" and 46 < number < 80)


def _found(
    reading: DocumentState,
    vital: _Vital,
    span: tuple[int, int],
    name: str,
    value: str,
    unit: str | None,
) -> Finding:
    assertion = reading.judge(*span)
    return Finding(
        category="vital",
        start=span[0],
        end=span[1],
        head_end=span[1],
        name=name.rstrip(".: "),
        value=own_words(value).rstrip("%"),
        unit=own_words(unit).rstrip(".") if unit else None,
        rule=f"vital.{vital.key.lower().replace(' ', '-')}.v1",
        strength=0.95,
        historical=True if assertion.historical else None,
        zone=reading.zones.type_at(span[0]),
    )


@dataclass(frozen=True, slots=True)
class _Column:
    vital: _Vital | None
    name: str
    unit: str | None


def _read_flowsheets(reading: DocumentState) -> None:
    columns: list[_Column] = []
    misses = 0
    for line in reading.lines:
        head = _columns_of(line)
        if head:
            columns, misses = head, 0
            reading.claim(line.start, line.end)
        elif columns and line.text.strip():
            if _read_row(reading, line, columns):
                misses = 0
            else:
                misses += 1
                columns = columns if misses <= _MAX_MISSES else []


def _columns_of(line: PrintedLine) -> list[_Column]:
    if re.search(r"\d{2,}(?!\))", line.text.replace("O2", "").replace("m2", "")):
        return []
    found: list[_Column] = []
    for m in _HEAD.finditer(line.text):
        index = next((i for i in range(len(_VITALS)) if m[f"v{i}"]), None)
        found.append(
            _Column(None if index is None else _VITALS[index], m["name"].strip(), m["unit"])
        )
    if sum(column.vital is not None for column in found) < _MIN_COLUMNS:
        return []
    rest = _HEAD.sub(" ", line.text)
    return found if len(rest.split()) <= len(found) else []


def _read_row(reading: DocumentState, line: PrintedLine, columns: list[_Column]) -> bool:
    label = _ROW_LABEL.match(line.text)
    at = label.end() if label else 0
    cells = list(_CELL.finditer(line.text, at))
    wanted = [column for column in columns if column.vital is not None]
    trailing = columns[:]
    while trailing and trailing[0].vital is None:
        trailing.pop(0)
    for order in (trailing, wanted):
        if len(cells) == len(order) and all(
            column.vital is None or _fits(column.vital, cell.group())
            for column, cell in zip(order, cells, strict=True)
        ):
            for column, cell in zip(order, cells, strict=True):
                value = cell.group().rstrip("%")
                if column.vital is None or not value[0].isdigit():
                    continue
                span = (line.start + cell.start(), line.start + cell.start() + len(value))
                unit = column.unit or ("%" if cell.group().endswith("%") else None)
                found = _found(reading, column.vital, span, column.name, value, unit)
                reading.add(replace(found, rule="vital.flowsheet.v1"))
            reading.claim(line.start, line.end)
            return True
    return False


def _fits(vital: _Vital, cell: str) -> bool:
    if not cell[0].isdigit():
        return True
    if ("/" in cell) != (vital.key == "BP") and vital.key != "pain":
        return False
    return _plausible(vital, cell)
