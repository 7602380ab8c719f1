"""Read a laboratory row whose cells are known by their place below the heading.

A cell is read only in its own column, and an empty cell stays empty. A cell that does not fit its
column makes the whole row not understood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.clinical.date_forms import DateOrder
from pipeline.providers.local.labs.analytes import known_name
from pipeline.providers.local.labs.cells import MEASURES, Cell, NameCell, cells_of
from pipeline.providers.local.labs.columns import Columns
from pipeline.providers.local.labs.patterns import (
    BLOOD_GROUP,
    FLAG,
    GROUPED,
    NO_RESULT,
    RAISED,
    UNIT,
    decimal_signs,
    is_mark_of_footnote,
    is_of_blood_group,
    printed,
)
from pipeline.providers.local.labs.statement import Row, RowReading
from pipeline.providers.local.text.latest_reading import MOMENT, moment_of

_NONE = re.compile(rf"{NO_RESULT}\.?|[-–—.*]+|n/?a\.?|nil", re.I)
_UNIT_CELL = re.compile(rf"(?:[(\[]?{UNIT}[)\]]?|[A-Za-zµμ%‰°][A-Za-zµμ%‰°./·*^²³() -]{{0,23}})")
_FLAG_CELL = re.compile(rf"[(\[]?(?:{FLAG}[*!]*|[*!#†‡@^]{{1,3}})[)\]]?")
_FLAG_WORDS = re.compile(r"[(\[]?[A-Za-z][A-Za-z /-]{0,24}[*!]*[)\]]?")
_LONE_NUMBER = re.compile(r"[\d.,]+")
_RANGE_SHAPE = re.compile(r"[^\t~|]{1,90}")
_BRACKETS = re.compile(r"[(\[](?P<inner>[^()\[\]]*)[)\]]")
_MARKS = re.compile(rf"(?:[ ]?(?:⁽?[{RAISED}]+⁾?|[*†‡§]+|\^[a-z1-9]|[(\[][1-9a-e][)\]]))+$")
_LEAD = re.compile(r"[*†‡•·\- ]*(?:\d{1,2}[.)][ ]+)?(?:(?:HH?|LL?)[ ]+(?=[A-Z][a-z]))?")
"""A bullet, a number or a flag before a name."""
_SITE = re.compile(r"[ ]0\d$")
"""The number of the laboratory's site behind a name."""
_FOOTNOTE = re.compile(r"[1-9]")
_MOMENT = re.compile(rf"{MOMENT}|{NO_RESULT}|", re.I)
_BOXED = re.compile(r"\[(?P<tick>[xX ])\][ ]*(?P<words>[^\[\]]*?)(?=[ ]*(?:\[|$))")
_SPOILED = re.compile(
    r"\b(?:error|erroneous|wrong|mislabel\w*|contaminat\w*|invalid\w*|disregard|cancel\w*"
    r"|reject\w*|unreliable|not[ ]valid|do[ ]not[ ]use|void|incorrect\w*)\b",
    re.I,
)
"""Comments that take the result back."""
_FINAL = re.compile(r"(?:final|complete|corrected|prelim(?:inary)?|verified|f|p|c)\.?", re.I)
_MAX_NAME_WORDS = 10


@dataclass(frozen=True, slots=True)
class ValueCell:
    """The parts of a cell with a value."""

    cell: Cell | None = None
    """None if the cell says that there is no result, or is empty."""
    unit: str | None = None
    flag: str | None = None
    mark: str = ""
    """A digit behind a blank, which may be the mark of a footnote."""
    day: str | None = None
    """The date inside the cell."""


class UnclearCellError(Exception):
    """A cell does not fit its column."""


def read_ruled(
    text: str,
    spans: Sequence[tuple[int, int]],
    columns: Columns,
    order: DateOrder | None,
) -> Row | None:
    """Read the row with one cell at each of `spans`; return None if the row has no name."""
    at = columns.kinds.index("name")
    name, flag = _name(text, *spans[at])
    if name is None:
        return None
    rest = [i for i, (start, end) in enumerate(spans) if i != at and end > start]
    if not rest:
        return None
    first, last = _bounds(spans)
    unclear = Row(name, first, last, understood=False, has_shape=True)
    if columns.doubtful:
        return unclear
    try:
        row = _read(text, name, spans, columns, order)
    except UnclearCellError:
        return unclear
    if flag is not None and row.flag and _plain(row.flag) != _plain(flag):
        return unclear
    return replace(row, flag=row.flag or flag) if row.current else row


def _read(
    text: str,
    name: NameCell,
    spans: Sequence[tuple[int, int]],
    columns: Columns,
    order: DateOrder | None,
) -> Row:
    values: dict[int, ValueCell] = {}
    ranges: dict[int, tuple[str, str | None]] = {}
    units: dict[int, str] = {}
    flags: dict[int, str] = {}
    days: dict[int, str] = {}
    whens: list[str] = []
    for index, (kind, (start, end)) in enumerate(zip(columns.kinds, spans, strict=True)):
        words = text[start:end]
        if not words or kind in ("name", "other"):
            continue
        if kind in ("value", "also", "previous", "split"):
            values[index] = value_of_cell(
                text,
                start,
                end,
                order,
                dated=kind == "previous",
                blood_group=is_of_blood_group(text[name.start : name.end]),
            )
        elif kind == "range":
            if found := _range(words):
                ranges[index] = found
        elif kind == "unit":
            if not _NONE.fullmatch(words):
                units[index] = _unit(words)
        elif kind in ("flag", "status", ""):
            if (flag := _flag(words, kind)) is not None:
                flags[index] = flag
        elif kind in ("date", "previous_date"):
            if not _MOMENT.fullmatch(words):
                raise UnclearCellError
            moment = moment_of(words, order, None)
            if moment is not None and moment.day:
                days[index] = moment.day
            if kind == "date":
                whens.append(words)
        elif kind in ("low", "high"):
            if not all(cell.kind in ("number", "bound", "none") for cell in cells_of(words, 0)):
                raise UnclearCellError
        elif _SPOILED.search(words):
            raise UnclearCellError
    row = _row(text, name, spans, columns, (values, ranges, units, flags, days))
    if row.earlier or not whens:
        return row
    return replace(row, moment=moment_of(" ".join(whens), order, None))


def _row(
    text: str,
    name: NameCell,
    spans: Sequence[tuple[int, int]],
    columns: Columns,
    parts: tuple[
        dict[int, ValueCell],
        dict[int, tuple[str, str | None]],
        dict[int, str],
        dict[int, str],
        dict[int, str],
    ],
) -> Row:
    values, ranges, units, flags, days = parts
    kinds = columns.kinds
    main = [i for i, kind in enumerate(kinds) if kind in ("value", "split")]
    filled = [i for i in main if i in values and values[i].cell is not None]
    if len(filled) > 1:
        raise UnclearCellError
    current_at = filled[0] if filled else main[0] if main else 0
    unit = _own(units, current_at, kinds, "unit")
    own_units = {v.unit for v in values.values() if v.unit} | {u for _, u in ranges.values() if u}
    if unit is None and len(own_units) == 1:
        unit = next(iter(own_units))
    elif any(_plain(u) != _plain(unit or "") for u in own_units):
        raise UnclearCellError
    reference = _own({i: words for i, (words, _) in ranges.items()}, current_at, kinds, "range")
    flag = _own(flags, current_at, kinds, "flag", "status", "")
    current: RowReading | None = None
    earlier: list[RowReading] = []
    for index, value in values.items():
        cell = value.cell
        if cell is None:
            continue
        _check(cell, value, reference, unit)
        reading = RowReading(
            printed(cell.words) or "",
            cell.start,
            cell.end,
            value.day or _day(index, columns, days),
        )
        if index in main:
            current = reading
            if value.flag and flag and _plain(value.flag) != _plain(flag):
                raise UnclearCellError
            flag = flag or value.flag
        else:
            earlier.append(replace(reading, past=kinds[index] == "previous"))
    first, last = _bounds(spans)
    return Row(
        name=name,
        start=first,
        end=last,
        understood=True,
        has_shape=True,
        sure=bool(unit or reference or flag),
        current=current,
        earlier=tuple(earlier),
        unit=printed(unit),
        reference_range=printed(reference),
        flag=flag if current is not None else None,
    )


def _bounds(spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return where the first filled cell begins and the last one ends."""
    filled = [(start, end) for start, end in spans if end > start]
    return min(start for start, _ in filled), max(end for _, end in filled)


def _plain(words: str) -> str:
    return re.sub(r"[\s()\[\]*!.]", "", words).lower()


def _check(cell: Cell, value: ValueCell, reference: str | None, unit: str | None) -> None:
    """Refuse a value that may have lost its decimal point, and a range in place of a value."""
    if cell.kind == "range" and not (unit or "").lower().endswith(("hpf", "lpf")):
        raise UnclearCellError
    if len(decimal_signs(cell.words) | decimal_signs(reference or "")) > 1:
        raise UnclearCellError
    if value.mark and not is_mark_of_footnote(cell.words, value.mark, reference):
        raise UnclearCellError


def _own(found: dict[int, str], value_at: int, kinds: Sequence[str], *names: str) -> str | None:
    """Return the cell that belongs to the column of the current value."""
    columns = [i for i, kind in enumerate(kinds) if kind in names]
    if (
        len(columns) <= 1
        or len([k for k in kinds if k in ("value", "also", "previous", "split")]) <= 1
    ):
        words = {found[i] for i in columns if i in found}
        if len({_plain(w) for w in words}) > 1:
            raise UnclearCellError
        return next((found[i] for i in columns if i in found), None)
    # Several columns of a kind beside several columns of values: each follows its values.
    mine = [i for i in columns if i > value_at]
    first = mine[0] if mine else None
    others = [i for i, k in enumerate(kinds) if k in ("value", "also", "previous") and i > value_at]
    if first is None or (others and others[0] < first):
        if any(i in found for i in columns):
            raise UnclearCellError
        return None
    return found.get(first)


def _day(index: int, columns: Columns, days: dict[int, str]) -> str | None:
    """Return the date of the value in a column: from its heading, or from its column of dates."""
    if columns.days[index]:
        return columns.days[index]
    kinds = columns.kinds
    previous = [i for i, kind in enumerate(kinds) if kind == "previous"]
    dates = [i for i, kind in enumerate(kinds) if kind == "previous_date"]
    follows = {i: i + 1 for i in previous if kinds[i + 1 : i + 2] == ("date",)}
    if index in previous:
        if len(dates) == len(previous):
            return days.get(dates[previous.index(index)])
        return days.get(follows.get(index, -1))
    own = [i for i, kind in enumerate(kinds) if kind == "date" and i not in follows.values()]
    return days.get(own[0]) if len(own) == 1 else None


def _name(text: str, start: int, end: int) -> tuple[NameCell | None, str | None]:
    """Return the name in its cell, and a flag that is printed beside the name."""
    words = text[start:end]
    lead = _LEAD.match(words)
    start += lead.end() if lead else 0
    words = text[start:end]
    end -= len(words) - len(_MARKS.sub("", words).rstrip(" :*.|"))
    words = text[start:end]
    site = _SITE.search(words)
    end -= len(words) - site.start() if site else 0
    words = text[start:end]
    if not re.search(r"[A-Za-z]", words) or len(words.split()) > _MAX_NAME_WORDS:
        return None, None
    known = known_name(words, 0)
    flag = re.fullmatch(rf"[ ]+[(\[]?(?P<flag>{FLAG})[)\]]?", words[known:]) if known else None
    if known and flag:
        return NameCell(start, start + known, known=True), flag["flag"]
    return NameCell(start, end, known is not None), None


def value_of_cell(
    text: str,
    start: int,
    end: int,
    order: DateOrder | None = None,
    *,
    dated: bool = False,
    blood_group: bool = False,
) -> ValueCell:
    """Read a cell with a value, and the flag, unit or mark beside the value.

    The cell of an earlier value can be `dated`. A letter before `positive` is a `blood_group` or a
    flag. Raises UnclearCellError if a word of the cell is not explained.
    """
    if "[" in text[start:end] and _BOXED.search(text, start, end):
        return _ticked(text, start, end)
    if blood_group and BLOOD_GROUP.fullmatch(text, start, end):
        return ValueCell(Cell("text", start, end, text[start:end]))
    if _NONE.fullmatch(text[start:end]):
        return ValueCell()
    cells = cells_of(text[:end], start)
    measures = [cell for cell in cells if cell.kind in MEASURES]
    flags = [cell.words for cell in cells if cell.kind == "flag" and cell.words.strip("*!")]
    units = [cell.words for cell in cells if cell.kind == "unit"]
    mark, day = "", None
    if not measures and len(flags) == 1 and len(flags[0]) > 2 and len(cells) == 1:
        return ValueCell(cells[0]._replace(kind="text"))
    kinds = [measure.kind for measure in measures]
    is_marked = kinds in (["number", "number"], ["bound", "number"])
    if is_marked and _FOOTNOTE.fullmatch(measures[1].words):
        mark, measures = measures[1].words, measures[:1]
    if any(cell.kind == "none" for cell in cells) and not measures:
        return ValueCell()
    known = MEASURES | {"flag", "unit", "foot", "comment", "paren"}
    dates = [cell for cell in cells if cell.kind == "date"]
    if dated and len(dates) == 1:
        moment = moment_of(dates[0].words, order, None)
        day = moment.day if moment else None
        cells = [cell for cell in cells if cell.kind != "date"]
    if any(cell.kind not in known for cell in cells) or len(measures) != 1:
        raise UnclearCellError
    if len({_plain(flag) for flag in flags}) > 1 or len(units) > 1:
        raise UnclearCellError
    if any(cell.kind in ("paren", "comment") and _SPOILED.search(cell.words) for cell in cells):
        raise UnclearCellError
    return ValueCell(
        measures[0], units[0] if units else None, flags[0] if flags else None, mark, day
    )


def _ticked(text: str, start: int, end: int) -> ValueCell:
    """Read a cell with check boxes: the words of the only ticked box."""
    boxes = list(_BOXED.finditer(text, start, end))
    ticked = [m for m in boxes if m["tick"].strip()]
    if len(ticked) != 1 or _BOXED.sub("", text[start:end]).strip(" ,;/|"):
        raise UnclearCellError
    m = ticked[0]
    cells = cells_of(text[: m.end("words")], m.start("words"))
    if [cell.kind for cell in cells] != ["text"]:
        raise UnclearCellError
    return ValueCell(cells[0])


def _range(words: str) -> tuple[str, str | None] | None:
    """Return a printed range and the unit inside its cell; None if the cell gives no range."""
    if _NONE.fullmatch(words):
        return None
    bare = _MARKS.sub("", words).strip()
    m = _BRACKETS.fullmatch(bare)
    bare = m["inner"].strip() if m else bare
    if _LONE_NUMBER.fullmatch(bare) or _MOMENT.fullmatch(bare) or _FLAG_CELL.fullmatch(bare):
        raise UnclearCellError
    if not _RANGE_SHAPE.fullmatch(bare) or re.fullmatch(UNIT, bare):
        raise UnclearCellError
    cells = cells_of(bare, 0)
    if [cell.kind for cell in cells] == ["range", "unit"] and not re.match(GROUPED, bare):
        return cells[0].words, cells[1].words
    return bare, None


def _unit(words: str) -> str:
    """Return a printed unit. A word of another column is no unit."""
    if not _UNIT_CELL.fullmatch(words) or (_FLAG_CELL.fullmatch(words) and words != "U"):
        raise UnclearCellError
    if cells_of(words, 0)[0].kind in ("text", "none", "comment"):
        raise UnclearCellError
    m = _BRACKETS.fullmatch(words)
    return m["inner"] if m else words


def _flag(words: str, kind: str) -> str | None:
    """Return a printed flag; None for a footnote's mark and for a state of the report."""
    if _SPOILED.search(words):
        raise UnclearCellError
    if _NONE.fullmatch(words) or (kind == "status" and _FINAL.fullmatch(words)):
        return None
    bare = words.strip("()[] ")
    if _FLAG_CELL.fullmatch(words):
        return bare
    if _MARKS.fullmatch(words):
        return None
    if kind == "":
        raise UnclearCellError
    if re.fullmatch(UNIT, bare) or not _FLAG_WORDS.fullmatch(words):
        raise UnclearCellError
    return bare if kind == "flag" else None
