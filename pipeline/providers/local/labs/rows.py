"""Explain every token of a laboratory row, or say that the row is not understood.

The heading line decides which cell is the value. Without a heading the shape decides. A row with an
unexplained token, with a number too many, or with two possible readings has no value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from pipeline.clinical.date_forms import DateOrder
from pipeline.providers.local.labs.analytes import find_analytes, known_name
from pipeline.providers.local.labs.brackets import BracketMeaning, meaning_of, with_dates
from pipeline.providers.local.labs.cells import (
    MEASURES,
    Cell,
    NameCell,
    cells_of,
    name_at,
    of_a_sentence,
)
from pipeline.providers.local.labs.columns import Columns, cells_by_column
from pipeline.providers.local.labs.patterns import (
    BLOOD_GROUP,
    RANGE_TEXT,
    decimal_signs,
    figure,
    is_mark_of_footnote,
    is_of_blood_group,
    printed,
)
from pipeline.providers.local.labs.ruled_rows import read_ruled
from pipeline.providers.local.labs.statement import Row, RowReading
from pipeline.providers.local.text.latest_reading import moment_of
from pipeline.providers.local.text.tokens import tokenize

_GAP = re.compile(r"\t|[ ]{2,}")
_LONE = re.compile(r"(?<!\S)[<>≤≥]?=?[-+]?\d[\d.,/]*%?(?!\S)|[:=]")
"""A number between blanks, or a sign between a name and its value."""
_METHOD = re.compile(r"(?:[ ]+[A-Za-z][A-Za-z-]{2,}(?![\w/])){1,2}(?=[ ]+[<>≤≥]?[ ]?\d)")
"""The words of a column between the name and the value."""
_MAX_NAME_WORDS = 6
_MAX_CELLS = 24
_MAX_MEASURES = 8
_EXPECTED = re.compile(RANGE_TEXT)
_DOSING = re.compile(
    r"(?:daily|weekly|bid|tid|qid|po|iv|tablets?|tabs?|capsules?|diet|puffs?|mg|mcg|prn)(?!\w)",
    re.I,
)
"""Words of a medication line."""
_FOOTNOTES = frozenset("123456789")
_SITES = _FOOTNOTES | {f"0{figure}" for figure in _FOOTNOTES}
"""Marks behind a range: a footnote, or the number of the laboratory's site."""
_UNLIKELY_FALL = 10.0
"""A one-digit number beside a value ten times as large is an earlier value or a footnote."""


def read_row(
    text: str, begin: int, columns: Columns, raw: str = "", order: DateOrder | None = None
) -> Row | None:
    """Read the row that starts at `begin`; return None if no name is there.

    `raw` is the line as printed, with the TABs between its cells. `order` is the order of day and
    month in the source.
    """
    spans = cells_by_column(raw or text, columns) if columns.ruled else None
    if spans is not None:
        return read_ruled(text, spans, columns, order)
    name, cells = _name_and_cells(text, begin, columns, raw or text)
    if name is None or not cells or len(cells) > _MAX_CELLS:
        return None
    if columns.ruled == "\t" or columns.doubtful:
        # The cells of the row do not fit the heading, so their columns are unknown.
        shape = _has_shape(cells, known=name.known, in_table=True)
        return Row(name, name.start, len(text.rstrip(" .|")), understood=False, has_shape=shape)
    cells = with_dates(_with_words(_with_blood_group(text, name, cells)), order)
    start, end = min(name.start, cells[0].start), len(text.rstrip(" .|"))
    shape = _has_shape(cells, known=name.known, in_table=bool(columns))
    unclear = Row(name, start, end, understood=False, has_shape=shape)
    units = [cell for cell in cells if cell.kind == "unit"]
    flags = [c.words for c in cells if c.kind == "flag" and c.words.strip("*!")]
    if any(cell.kind == "word" for cell in cells) or len({u.words for u in units}) > 1:
        return unclear
    if len(flags) > 1 and len({f.strip("*!").upper() or f for f in flags}) > 1 + ("*" in flags):
        return unclear
    if "code" in columns.kinds and any(cell.kind in MEASURES for cell in cells):
        # Any number can be the code, because only blanks part the columns.
        return unclear
    if _says_no_result(cells):
        blank = not any(c.kind in ("number", "ordinal") for c in cells)
        return Row(name, start, end, understood=blank, has_shape=shape)
    chosen = _choose(cells, columns, order, raw or text, counted=_counted(units))
    if chosen is None:
        return unclear
    value, earlier, reference = chosen
    if _signs_differ(value, reference):
        return unclear
    bracket = meaning_of(cells, value.end) if value is not None else BracketMeaning.SAME
    if bracket is BracketMeaning.UNCLEAR or (bracket is BracketMeaning.EARLIER and earlier):
        return unclear
    counts = value is not None and value.value.isdigit() and not units
    if counts and reference and _EXPECTED.fullmatch(reference):
        # `HPV 16 Not detected`: the number belongs to the name.
        return unclear
    dates = [cell.words for cell in cells if cell.kind == "date"]
    moment = moment_of(dates[0], order, None) if len(dates) == 1 and not earlier else None
    if moment is not None and value is not None and value.day is None:
        value = replace(value, day=moment.day)
    if bracket is BracketMeaning.EARLIER and value is not None:
        earlier = (value,)
        value = None
    return Row(
        name=name,
        start=start,
        end=max(cell.end for cell in cells),
        understood=True,
        has_shape=shape,
        sure=bool(units or reference or flags),
        current=value,
        earlier=earlier,
        unit=printed(units[0].words) if units else None,
        reference_range=printed(reference),
        flag=flags[0] if flags else None,
        moment=moment,
    )


def _name_and_cells(
    text: str, begin: int, columns: Columns, raw: str
) -> tuple[NameCell | None, list[Cell]]:
    """Return the name and all cells around the name."""
    if columns and "name" in columns.kinds and columns.kinds[0] != "name":
        listed = list(find_analytes(tokenize(text)))
        before = cells_of(text, begin)
        at = next((cell.start for cell in before if cell.kind == "word"), begin)
        at = listed[0][0] if len(listed) == 1 else at
        lead = cells_of(text[:at], begin)
        name = name_at(text, at, has_specimen="specimen" in columns.kinds)
        return name, lead + (cells_of(text, name.end) if name else [])
    beside = columns.kinds[1:2]
    name = name_at(text, begin, has_specimen=bool({"specimen", "other"} & set(columns.kinds)))
    if name is None:
        return None, []
    known = known_name(text, begin)
    if known is not None and beside == ("other",):
        # The words between the name and the first number are the method's.
        method = _METHOD.match(text, known)
        return NameCell(begin, known, known=True), cells_of(text, method.end() if method else known)
    cell_end = _end_of_first_cell(text, begin, raw)
    if cell_end > name.end:
        name = NameCell(begin, cell_end, name.known)
    colon = name.end + len(text[name.end :]) - len(text[name.end :].lstrip(" "))
    start = colon + 1 if text[colon : colon + 1] in (":", "=") else name.end
    return name, cells_of(text, start)


def _end_of_first_cell(text: str, begin: int, raw: str) -> int:
    """Return where the first cell of a ruled row ends, if the cell contains only a name; else 0."""
    gap = _GAP.search(raw, begin)
    words = text[begin : gap.start()].rstrip(" :") if gap else ""
    if not words or _LONE.search(words) or len(words.split()) > _MAX_NAME_WORDS:
        return 0
    known = known_name(words, 0)
    rest = cells_of(words, known) if known else []
    joined = known is not None and words[known : known + 1] in ("-", "/")
    plain = joined or all(cell.kind in ("word", "paren", "comment", "foot") for cell in rest)
    return begin + len(words) if plain and gap and gap.end() < len(raw.rstrip()) else 0


def _signs_differ(value: RowReading | None, reference: str | None) -> bool:
    """Return whether value and range have different decimal signs (`13,2` beside `12.0-16.0`)."""
    signs = decimal_signs(value.value if value else "") | decimal_signs(reference or "")
    return len(signs) > 1


def _says_no_result(cells: Sequence[Cell]) -> bool:
    """Return whether words like `see note` are printed where the value belongs."""
    first = next((cell.kind for cell in cells if cell.kind in MEASURES | {"none"}), None)
    return first == "none"


def _with_blood_group(text: str, name: NameCell, cells: list[Cell]) -> list[Cell]:
    """Take `A positive` behind the name of a blood group as one value."""
    if not is_of_blood_group(text[name.start : name.end]):
        return cells
    m = BLOOD_GROUP.match(text, cells[0].start)
    if m is None:
        return cells
    rest = [cell for cell in cells if cell.start >= m.end()]
    return [Cell("text", m.start(), m.end(), m.group()), *rest]


def _with_words(cells: list[Cell]) -> list[Cell]:
    """Take words like `Normal` as the value of a row that has no other value."""
    if any(cell.kind in MEASURES for cell in cells):
        return cells
    return [
        cell._replace(kind="text") if cell.kind == "flag" and len(cell.words) > 2 else cell
        for cell in cells
    ]


def _counted(units: Sequence[Cell]) -> bool:
    """Return whether the unit counts cells in a field, where a range is a value (`0-5 /HPF`)."""
    return any(unit.words.lower().endswith(("hpf", "lpf")) for unit in units)


def _has_shape(cells: Sequence[Cell], *, known: bool, in_table: bool) -> bool:
    kinds = [cell.kind for cell in cells]
    words = kinds.count("word")
    strong = sum(
        cell.kind in ("range", "bound", "titer", "flag")
        or (cell.kind == "unit" and ("/" in cell.words or "%" in cell.words))
        for cell in cells
    )
    numbers = sum(kind in ("number", "bound", "titer", "range") for kind in kinds)
    if not words and any(kind in MEASURES for kind in kinds):
        return True
    if not known and "unit" not in kinds:
        return False
    if in_table:
        unknown = [cell.words for cell in cells if cell.kind == "word"]
        spoken = any(_DOSING.match(w) or of_a_sentence(w, in_table=False) for w in unknown)
        return words <= 3 and not spoken and (numbers > 1 or (strong > 0 and numbers > 0))
    return bool(numbers and strong and words <= 1 and words < len(kinds) / 2)


_Choice = tuple[RowReading | None, tuple[RowReading, ...], str | None]


def _choose(
    cells: Sequence[Cell], columns: Columns, order: DateOrder | None, raw: str, *, counted: bool
) -> _Choice | None:
    """Return current value, earlier values and range; None without exactly one reading."""
    measures = _joined([cell for cell in cells if cell.kind in MEASURES])
    if not measures or len(measures) > _MAX_MEASURES:
        return None
    if not columns and _in_doubt(measures, cells, raw):
        return None
    for kept in _without_footnotes(measures, cells, raw):
        if kept is measures and _unlikely_fall(kept):
            continue
        found = _fits(kept, cells, columns, order, counted=counted)
        if found:
            first = found[0]
            return first if all(choice == first for choice in found) else None
    return None


def _in_doubt(measures: Sequence[Cell], cells: Sequence[Cell], raw: str) -> bool:
    """Return whether a row without a heading begins with a bound that may be the range."""
    if len(measures) == 2 and [m.kind for m in measures] == ["number", "bound"]:
        # `6.1 > 7.4` may be two values with an arrow between them.
        if _GAP.search(raw, measures[0].end, measures[1].start):
            return False
        return not any(cell.kind in ("unit", "flag") for cell in cells)
    if len(measures) < 2 or measures[0].kind != "bound":
        return False
    return measures[1].kind == "number" or not any(
        measures[0].end <= cell.start < measures[1].start and cell.kind in ("unit", "flag")
        for cell in cells
    )


def _joined(measures: list[Cell]) -> list[Cell]:
    """Join the two parts of a range like `Neg <1:20`, if a value is printed before the range."""
    if len(measures) < 3 or measures[-2].kind != "text":
        return measures
    text, bound = measures[-2:]
    if bound.kind not in ("bound", "titer") or bound.start - text.end > 2:
        return measures
    return [*measures[:-2], Cell("range", text.start, bound.end, f"{text.words} {bound.words}")]


def _unlikely_fall(measures: Sequence[Cell]) -> bool:
    """Return whether a one-digit number may be a footnote or an earlier value."""
    return any(
        cell.words in _FOOTNOTES
        and before.kind == "number"
        and figure(before.words) >= _UNLIKELY_FALL * figure(cell.words)
        for before, cell in pairwise(measures)
    )


def _without_footnotes(measures: list[Cell], cells: Sequence[Cell], raw: str) -> list[list[Cell]]:
    """Return the measures, then the measures without one possible footnote mark."""
    options = [measures]
    if not any(cell.kind in ("unit", "range", "bound") for cell in cells):
        return options
    for before, cell in pairwise(measures):
        marks = _SITES if before.kind == "range" else _FOOTNOTES
        if (
            cell.kind == "number"
            and cell.words in marks
            and _may_be_mark(before, cell, measures, raw)
        ):
            between = [c for c in cells if before.end <= c.start < cell.start]
            if all(c.kind in ("flag", "foot", "paren") for c in between):
                options.append([m for m in measures if m is not cell])
    return options if len(options) <= 2 else options[:1]


def _may_be_mark(before: Cell, cell: Cell, measures: Sequence[Cell], raw: str) -> bool:
    """Return whether a digit can mark a footnote: in the same cell, and not as lost decimals."""
    if "\t" in raw[before.end : cell.start]:
        return before.kind == "range"
    if before.kind == "range":
        return True
    ranges = [m.words for m in measures if m.kind in ("range", "bound") and m is not before]
    return is_mark_of_footnote(before.words, cell.words, ranges[-1] if ranges else None)


def _fits(
    measures: Sequence[Cell],
    cells: Sequence[Cell],
    columns: Columns,
    order: DateOrder | None,
    *,
    counted: bool,
) -> list[_Choice]:
    """Return every reading of the measures as columns, in the order of the heading."""
    slots = [i for i, k in enumerate(columns.kinds) if k in ("value", "also", "previous", "range")]
    if not columns:
        orders: list[list[tuple[str, int]]] = [
            [("value", -1), ("range", -1)],
            [("range", -1), ("value", -1)],
        ]
    else:
        orders = [[(columns.kinds[i], i) for i in slots]]
        if "range" not in columns.kinds:
            orders[0].append(("range", -1))
    value = next((i for i in slots if columns.kinds[i] != "range"), 0)
    late = "unit" not in columns.kinds or columns.kinds.index("unit") > value
    range_first = "range" in columns.kinds and columns.kinds.index("range") < value
    values = sum(kind != "range" for kind, _ in orders[0])
    for slots_in_order in orders:
        found: list[_Choice] = []
        for picked in combinations(range(len(slots_in_order)), len(measures)):
            pairs = [(slots_in_order[p], m) for p, m in zip(picked, measures, strict=True)]
            if not all(
                _suits(kind, m, cells, counted=counted, late=late, range_first=range_first)
                for (kind, _), m in pairs
            ):
                continue
            found.append(_choice(pairs, cells, columns, order))
        plain = [choice for choice in found if choice[0] is not None]
        if values == 1 and plain:
            return plain[:1]
        if found:
            return found
    return []


def _suits(
    kind: str, cell: Cell, cells: Sequence[Cell], *, counted: bool, late: bool, range_first: bool
) -> bool:
    if kind != "range":
        return (cell.kind != "range" or counted) and not (late and _behind_unit(cell, cells))
    if cell.kind == "text":
        first = cell is next(c for c in cells if c.kind in MEASURES)
        return (range_first or not first) and bool(_EXPECTED.fullmatch(cell.words))
    return cell.kind in ("range", "bound") or (cell.kind == "titer" and cell.words[0] != "1")


def _behind_unit(cell: Cell, cells: Sequence[Cell]) -> bool:
    """Return whether a bound is printed behind the unit, where ranges are printed."""
    return cell.kind == "bound" and any(c.kind == "unit" and c.end <= cell.start for c in cells)


def _choice(
    pairs: Sequence[tuple[tuple[str, int], Cell]],
    cells: Sequence[Cell],
    columns: Columns,
    order: DateOrder | None,
) -> _Choice:
    current: RowReading | None = None
    earlier: list[RowReading] = []
    reference: str | None = None
    for (kind, index), cell in pairs:
        if kind == "range":
            reference = cell.words
            continue
        words = printed(cell.words) or ""
        if kind == "value":
            current = RowReading(
                words, cell.start, cell.end, columns.days[index] if columns else None
            )
        else:
            earlier.append(
                RowReading(
                    words,
                    cell.start,
                    cell.end,
                    _day_of(index, cell, cells, columns, order),
                    past=kind != "also",
                )
            )
    return current, tuple(earlier), reference


def _day_of(
    index: int, cell: Cell, cells: Sequence[Cell], columns: Columns, order: DateOrder | None
) -> str | None:
    """Return the date of an earlier value: from its heading, or from the date cell behind it."""
    if columns.days[index] is not None:
        return columns.days[index]
    if columns.kinds[index + 1 : index + 2] == ("date",):
        for other in cells:
            if other.kind == "date" and other.start >= cell.end:
                moment = moment_of(other.words, order, None)
                return moment.day if moment else None
    return None
