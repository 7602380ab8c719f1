"""The heading line of a laboratory table: the kinds of its columns in their printed order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from pipeline.providers.local.dates import date_at
from pipeline.providers.local.lab_patterns import DATE

_HEADINGS = re.compile(
    r"\b(?:"
    r"(?P<date>(?:collect(?:ion|ed)[ ]|drawn[ ])?"
    r"date(?:/time)?(?:[ ]collected)?|collected|drawn|time)"
    r"|(?P<previous>(?:previous|prior|prev|last|earlier|historical|old)\b\.?"
    r"(?:[ ](?:results?|values?))?)"
    r"|(?P<range>(?:ref(?:erence)?\.?|normal|biological[ ]ref(?:erence)?\.?|expected)[ ]?"
    r"(?:ranges?|intervals?|values?|limits?)?|ranges?|interval|limits)"
    r"|(?P<value>(?:your|current|new|latest|today's|recent|patient)[ ](?:results?|values?)|current"
    r"|results?|values?|observed|finding)"
    r"|(?P<flag>(?:abn(?:ormal)?\.?[ ])?flags?|abn(?:ormal)?|status|h/l|interp(?:retation)?)"
    r"|(?P<unit>units?|uom)"
    r"|(?P<other>specimen|method|sample|source|loinc|code|site|comments?|notes?|lab(?=[ ]*$))"
    r"|(?P<name>(?:lab[ ])?test(?:[ ]name)?s?|component|analyte|name|procedure|assay|lab|parameter"
    r"|determination|exam)"
    r")\b\.?",
    re.I,
)
_DATES = re.compile(DATE, re.I)
_LIKELY = re.compile(r"result|value|current|observed|finding|\bref|range|unit", re.I)
_MAX_HEADING = 160
_MAX_OTHER_WORDS = 3


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table, from left to right; no columns if no heading is known."""

    kinds: tuple[str, ...] = ()
    """name, value, previous, range, flag, unit, date or other."""
    dates: tuple[date | None, ...] = ()
    """The date in each column's heading."""
    ruled: str = ""
    """What parts the cells: a TAB, a vertical bar, or wide gaps; "" if only blanks do."""
    starts: tuple[int, ...] = ()
    """Where each column begins, if wide gaps part the cells."""

    def __bool__(self) -> bool:
        return bool(self.kinds)


NO_COLUMNS = Columns()


def columns_of(line: str, raw: str = "") -> Columns:
    """Return the columns if `line` is a table's heading, else no columns.

    `raw` is the line as printed; a TAB between two headings is visible there only.
    """
    found = _columns_of(line)
    return _ruled(raw or line) or found if found else found


def cells_by_column(raw: str, columns: Columns) -> list[tuple[int, int]] | None:
    """Return start and end of each column's cell; None if the rules of the table do not tell."""
    parts = _parts(raw, columns.ruled)
    if columns.ruled in ("\t", "|"):
        spans = parts + [(len(raw), len(raw))] * (len(columns.kinds) - len(parts))
        return spans if len(parts) > 1 and len(spans) == len(columns.kinds) else None
    if columns.ruled != "  " or len(parts) < 2:
        return None
    spans = [(len(raw), len(raw))] * len(columns.kinds)
    for start, end in parts:
        near = [i for i, at in enumerate(columns.starts) if abs(at - start) <= 1]
        if len(near) != 1 or spans[near[0]][0] < len(raw):
            return None
        spans[near[0]] = (start, end)
    return spans


def _ruled(raw: str) -> Columns | None:
    """Return the columns of a heading whose cells are parted by a rule."""
    rule = next((r for r in ("\t", "|", "  ") if r in raw.strip()), "")
    parts = _parts(raw, rule) if rule else []
    if len(parts) < 3:
        return None
    kinds: list[str] = []
    dates: list[date | None] = []
    for start, end in parts:
        words = raw[start:end]
        day = date_at(words) if _DATES.search(words) else None
        matches = [m.lastgroup or "" for m in _HEADINGS.finditer(words)]
        kind = "date" if "date" in matches else matches[0] if matches else "other"
        kinds.append("value" if day else kind)
        dates.append(day.day if day else None)
    if "name" not in kinds or "value" not in kinds:
        return None
    found = [(i, kind, day) for i, (kind, day) in enumerate(zip(kinds, dates, strict=True))]
    named = _newest_first_named(found)
    return Columns(named.kinds, named.dates, rule, tuple(start for start, _ in parts))


def _parts(raw: str, rule: str) -> list[tuple[int, int]]:
    """Return start and end of each cell of a ruled line, without blanks around the words."""
    if not rule:
        return []
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
    if rule == "|" and len(found) > 1:
        if found[0][0] == found[0][1] and raw.lstrip().startswith("|"):
            found.pop(0)
        if found[-1][0] == found[-1][1] and raw.rstrip().endswith("|"):
            found.pop()
    return found


def _columns_of(line: str) -> Columns:
    if len(line) > _MAX_HEADING or not _LIKELY.search(line):
        return NO_COLUMNS
    rest = line
    found: list[tuple[int, str, date | None]] = []
    for m in _DATES.finditer(line):
        day = date_at(line, m.start())
        found.append((m.start(), "value", day.day if day else None))
        rest = rest[: m.start()] + " " * len(m.group()) + rest[m.end() :]
    if re.search(r"\d", rest):
        return NO_COLUMNS
    doubtful: list[int] = []
    for m in _HEADINGS.finditer(rest):
        found.append((m.start(), m.lastgroup or "", None))
        if m.lastgroup == "previous" and " " in m.group():
            doubtful.append(m.end())
    rest = _HEADINGS.sub(" ", rest).replace("|", " ")
    kinds = {kind for _, kind, _ in found}
    if "value" not in kinds and len(doubtful) == 1:
        # `PRIOR RESULT` without another column of values names two columns.
        found.append((doubtful[0], "value", None))
        kinds.add("value")
    if "value" not in kinds or not kinds & {"unit", "range", "flag", "previous"}:
        return NO_COLUMNS
    if len(rest.split()) > _MAX_OTHER_WORDS or (_dated(found) and "name" not in kinds):
        return NO_COLUMNS
    found.sort(key=lambda column: column[0])
    return _newest_first_named(found)


def _dated(found: list[tuple[int, str, date | None]]) -> bool:
    return any(day is not None for _, _, day in found)


def _newest_first_named(found: list[tuple[int, str, date | None]]) -> Columns:
    """Name one column of values the current column, and the others earlier columns."""
    days = [day for _, kind, day in found if kind == "value" and day is not None]
    values = [i for i, (_, kind, _) in enumerate(found) if kind == "value"]
    current = values[0]
    if days and len(days) == len(values):
        current = next(i for i in values if found[i][2] == max(days))
    kinds = tuple(
        "previous" if kind == "value" and i != current else kind
        for i, (_, kind, _) in enumerate(found)
    )
    return Columns(kinds, tuple(day for _, _, day in found))
