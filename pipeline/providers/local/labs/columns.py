"""The heading line of a laboratory table: the kinds of its columns in their printed order.

A TAB, a vertical bar or wide gaps part the cells of a ruled table. Otherwise only blanks do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise

from pipeline.clinical.date_forms import DateOrder
from pipeline.providers.local.labs.analytes import known_name
from pipeline.providers.local.labs.headings import kind_of_heading
from pipeline.providers.local.labs.patterns import DATE
from pipeline.providers.local.text.latest_reading import (
    MOMENT,
    Moment,
    days_of,
    latest_of,
    moment_of,
)

_HEADINGS = re.compile(
    r"\b(?:"
    r"(?P<date>(?:collect(?:ion|ed)[ ]|drawn[ ])?"
    r"date(?:/time)?(?:[ ]collected)?|collected|drawn|time)"
    r"|(?P<previous>(?:previous|prior|prev|last|earlier|historical|old)\b\.?"
    r"(?:[ ](?:results?|values?))?)"
    r"|(?P<range>(?:ref(?:erence)?\.?|normal|biological[ ]ref(?:erence)?\.?|expected)[ ]?"
    r"(?:ranges?|intervals?|values?|limits?)?|ranges?|interval|limits)"
    r"|(?P<value>(?:your|current|new|latest|today's|recent|patient)[ ](?:results?|values?)|current"
    r"|results?|values?|observed|findings?)"
    r"|(?P<flag>(?:abn(?:ormal)?\.?[ ])?flags?|abn(?:ormal)?|status|h/l|interp(?:retation)?)"
    r"|(?P<unit>units?|uom)"
    r"|(?P<specimen>specimen|sample)"
    r"|(?P<comment>comments?|notes?)"
    r"|(?P<code>(?:(?:lab|test|order)[ ])?code|loinc|site|performing[ ]lab|id)"
    r"|(?P<other>method(?:ology)?|source|lab(?=[ ]*$))"
    r"|(?P<name>(?:lab[ ])?test(?:[ ]name)?s?|component|analyte|name|procedure|assay|lab|parameter"
    r"|determination|exam)"
    r")\b\.?",
    re.I,
)
_DATES = re.compile(DATE, re.I)
_MOMENT = re.compile(MOMENT)
_WORDS_AROUND = re.compile(r"[ ,:()\[\]-]+")
_LIKELY = re.compile(r"result|value|current|observed|finding|\bref|range|unit", re.I)
#: A full stop that ends a sentence, and not an abbreviation of a heading (`Ref.`).
_SENTENCE_END = re.compile(r"(?<!\bref)(?<!\babn)(?<!\bint)(?<!\bstd)(?<!\bno)(?<!\bi)\.\s*$", re.I)
_MAX_HEADING = 160
_MAX_CELL = 40
_MIN_CELLS = 2
_MAX_OTHER_WORDS = 3
_MEASURED = frozenset({"unit", "range", "flag", "previous", "low", "high"})
"""Kinds of columns that only a table of measurements has."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table, from left to right; no columns if no heading is known."""

    kinds: tuple[str, ...] = ()
    """The kind of each column, as in `lab_headings`; "" if the heading cell is empty.

    `also` is a value of the same day as the current value.
    """
    days: tuple[str | None, ...] = ()
    """The date in each column's heading, as ISO 8601."""
    ruled: str = ""
    """What parts the cells: a TAB, a vertical bar, or wide gaps; "" if only blanks do."""
    starts: tuple[int, ...] = ()
    """Where each column begins, if wide gaps part the cells."""
    doubtful: bool = False
    """The dates of the headings do not tell which column is the latest."""

    def __bool__(self) -> bool:
        return bool(self.kinds)


NO_COLUMNS = Columns()


@lru_cache(maxsize=512)
def columns_of(
    line: str, raw: str = "", order: DateOrder | None = None, own: date | None = None
) -> Columns:
    """Return the columns if `line` is a table's heading, else no columns.

    `raw` is the line as printed; a TAB between two headings is visible there only.
    """
    raw = raw or line
    if "\t" in raw:
        found = _of_cells(raw, "\t", order, own)
        if found:
            return found
        return NO_COLUMNS if len(raw.split("\t")) > 2 else _columns_of(line, order, own)
    if _SENTENCE_END.search(line):
        return NO_COLUMNS
    rule = next((r for r in ("|", "  ") if r in raw.strip()), "")
    ruled = _of_cells(raw, rule, order, own) if rule else NO_COLUMNS
    return ruled or _columns_of(line, order, own)


def cells_by_column(raw: str, columns: Columns) -> list[tuple[int, int]] | None:
    """Return start and end of each column's cell; None if the rules of the table do not tell."""
    parts = parts_of(raw, columns.ruled, len(columns.kinds))
    if columns.ruled in ("\t", "|"):
        spans = parts + [(len(raw), len(raw))] * (len(columns.kinds) - len(parts))
        return spans if len(parts) > 1 and len(spans) == len(columns.kinds) else None
    if columns.ruled != "  " or len(parts) < 2:
        return None
    spans = [(len(raw), len(raw))] * len(columns.kinds)
    for start, end in parts:
        near = [i for i, at in enumerate(columns.starts) if abs(at - start) <= 1]
        if len(near) != 1 or spans[near[0]][0] < len(raw):
            # The columns are not aligned: only a row without an empty cell tells its columns.
            return parts if len(parts) == len(spans) else None
        spans[near[0]] = (start, end)
    return spans


def parts_of(raw: str, rule: str, wanted: int = 0) -> list[tuple[int, int]]:
    """Return start and end of each cell of a ruled line, without blanks around the words.

    Bars at both ends of the line border the table; with `wanted` cells they part empty cells.
    """
    return list(_parts_of(raw, rule, wanted))


@lru_cache(maxsize=512)
def _parts_of(raw: str, rule: str, wanted: int) -> tuple[tuple[int, int], ...]:
    if not rule:
        return ()
    gap = re.compile(r"[ ]{2,}" if rule == "  " else re.escape(rule))
    bounds = [0, *(at for m in gap.finditer(raw) for at in m.span()), len(raw)]
    found: list[tuple[int, int]] = []
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        words = raw[start:end]
        if words.strip():
            lead = len(words) - len(words.lstrip())
            found.append((start + lead, start + len(words.rstrip())))
        elif rule != "  ":
            found.append((start, start))
    if rule == "|" and len(found) > 1 and len(found) != wanted:
        if found[0][0] == found[0][1] and raw.lstrip().startswith("|"):
            found.pop(0)
        if found[-1][0] == found[-1][1] and raw.rstrip().endswith("|"):
            found.pop()
    return tuple(found)


def _of_cells(raw: str, rule: str, order: DateOrder | None, own: date | None) -> Columns:
    """Return the columns of a heading whose cells are parted by a rule."""
    parts = parts_of(raw, rule)
    if len(parts) < _MIN_CELLS or len(raw) > 2 * _MAX_HEADING:
        return NO_COLUMNS
    kinds: list[str] = []
    moments: list[Moment | None] = []
    dated: list[bool] = []
    for start, end in parts:
        words = raw[start:end]
        if len(words) > _MAX_CELL:
            return NO_COLUMNS
        m = _MOMENT.search(words)
        rest = _WORDS_AROUND.sub(" ", words[: m.start()] + " " + words[m.end() :]) if m else words
        kind = "value" if m and not rest.strip() else kind_of_heading(rest)
        if kind == "unknown" and (re.search(r"\d", words) or known_name(words, 0) is not None):
            return NO_COLUMNS
        kinds.append(kind)
        dated.append(m is not None)
        moments.append(moment_of(m.group(), order, own) if m else None)
    if rule != "\t" and len(parts) == _MIN_CELLS and set(kinds) != {"name", "value"}:
        return NO_COLUMNS
    kinds = _with_name(kinds, dated)
    if not kinds:
        return NO_COLUMNS
    names = [i for i, kind in enumerate(kinds) if kind == "name"]
    # Tables that are printed side by side have a current column each.
    bounds = [0, *names[1:], len(kinds)]
    tables = [_current(kinds[a:b], moments[a:b], dated[a:b]) for a, b in pairwise(bounds)]
    return Columns(
        kinds=tuple(kind for table in tables for kind in table.kinds),
        days=tuple(day for table in tables for day in table.days),
        ruled=rule,
        starts=tuple(start for start, _ in parts),
        doubtful=any(table.doubtful for table in tables),
    )


def _with_name(kinds: list[str], dated: list[bool]) -> list[str]:
    """Complete the kinds with the column of names; return no kinds if this is no heading."""
    known = [kind for kind in kinds if kind not in ("", "unknown")]
    values = [i for i, kind in enumerate(kinds) if kind in ("value", "split")]
    unknown = kinds.count("unknown")
    if not values or unknown > len(known):
        return []
    series = sum(dated[i] for i in values)
    if "name" in kinds:
        undated = series < len(values) or series > 1 or bool(_MEASURED & set(kinds))
        return kinds if undated else []
    first_is_name = kinds[0] in ("", "unknown") or (kinds[0] == "date" and series > 1)
    if not first_is_name or not (_MEASURED & set(kinds) or series > 1):
        return []
    return ["name", *kinds[1:]]


def _columns_of(line: str, order: DateOrder | None, own: date | None) -> Columns:
    if len(line) > _MAX_HEADING or not _LIKELY.search(line):
        return NO_COLUMNS
    rest = line
    found: list[tuple[int, str, Moment | None, bool]] = []
    for m in _DATES.finditer(line):
        found.append((m.start(), "value", moment_of(m.group(), order, own), True))
        rest = rest[: m.start()] + " " * len(m.group()) + rest[m.end() :]
    if re.search(r"\d", rest):
        return NO_COLUMNS
    doubtful: list[int] = []
    for m in _HEADINGS.finditer(rest):
        found.append((m.start(), m.lastgroup or "", None, False))
        if m.lastgroup == "previous" and " " in m.group():
            doubtful.append(m.end())
    rest = _HEADINGS.sub(" ", rest).replace("|", " ")
    kinds = {kind for _, kind, _, _ in found}
    if "value" not in kinds and len(doubtful) == 1:
        # `PRIOR RESULT` without another column of values names two columns.
        found.append((doubtful[0], "value", None, False))
        kinds.add("value")
    if "value" not in kinds or not kinds & {"unit", "range", "flag", "previous"}:
        return NO_COLUMNS
    is_dated = any(dated for _, _, _, dated in found)
    if len(rest.split()) > _MAX_OTHER_WORDS or (is_dated and "name" not in kinds):
        return NO_COLUMNS
    found.sort(key=lambda column: column[0])
    return _current(
        [kind for _, kind, _, _ in found],
        [moment for _, _, moment, _ in found],
        [dated for _, _, _, dated in found],
    )


def _current(
    kinds: Sequence[str], moments: Sequence[Moment | None], dated: Sequence[bool]
) -> Columns:
    """Choose the column of the current values; all other columns of values are earlier."""
    values = [i for i, kind in enumerate(kinds) if kind == "value"]
    plain = [i for i in values if not dated[i]]
    latest: int | None = 0
    if not plain and len(values) > 1:
        latest = latest_of([moments[i] for i in values])
    current = plain[0] if plain else values[latest or 0] if values else -1
    day = days_of(moments[current]) if not plain and values else None
    named: list[str] = []
    for i, kind in enumerate(kinds):
        if i not in values or i == current:
            named.append(kind)
        else:
            named.append("also" if day and days_of(moments[i]) == day else "previous")
    days = tuple(moment.day if moment else None for moment in moments)
    return Columns(tuple(named), days, doubtful=latest is None)
