"""Laboratory tables: find the headings, read the rows, and report rows that are not understood.

A table's heading decides the order of its columns, even across a page break.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from pipeline.clinical.date_forms import DateOrder
from pipeline.clinical.page_text.lines import PrintedLine, bullet_end
from pipeline.providers.local.assertions.experiencer import person_kind
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.labs.analytes import Analyte, find_analytes, known_name
from pipeline.providers.local.labs.cells import NameCell, cells_of, of_a_sentence
from pipeline.providers.local.labs.columns import (
    NO_COLUMNS,
    Columns,
    cells_by_column,
    columns_of,
    parts_of,
)
from pipeline.providers.local.labs.continued_cells import NameTail, joined_range, name_tail
from pipeline.providers.local.labs.rows import read_row
from pipeline.providers.local.labs.ruled_rows import read_ruled
from pipeline.providers.local.labs.series import SeriesTable, series_table_of
from pipeline.providers.local.labs.statement import Row
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.text.latest_reading import MOMENT, Moment, latest_of, moment_of
from pipeline.providers.local.text.struck_words import without_struck
from pipeline.providers.local.text.tokens import tokenize
from pipeline.providers.schemas import ZoneType

_MAX_NAME_WORDS = 10
_MAX_LINE = 240
_MAX_UNKNOWN_WORDS = 20
_AMOUNTS = frozenset({"mg", "g", "mcg", "ng", "mL", "units", "unit", "mEq", "mmol", "U"})
"""Units of a dose, not of a concentration: a laboratory value has them only beside a range."""
_CONCENTRATION = re.compile(r"/[ ]?(?:[dmµuμnpf]?L|mm3|hpf|lpf)(?![A-Za-z/])", re.I)
_MIN_CELLS = 3
_MIN_BESIDE = 2
_MAX_ROW_WORDS = 20
_DIGIT = re.compile(r"\d")
_ZONES_OF_TABLES = (None, "labs", "other", "header", "procedures", "imaging")
_ZONES_OF_DRUGS = ("medications", "allergies", "immunizations")
_NOT_A_NAME = re.compile(
    r"\b(?:page|phone|fax|tel|date|time|dob|mrn|street|road|suite|accession|collected|reported"
    r"|received"
    r"|specimen|account|id|room|clia|age|sex|born|npi|zip|box|visit|tablets?|mg|mcg|units|daily"
    r"|bid|po)\b|\d{3}-\d{4}",
    re.I,
)
_OWNER = re.compile(
    r"\b(?:donor|mother|maternal|father|paternal|partner|spouse|husband|wife|sibling|brother|sister"
    r"|roommate)(?:['’]s)?\b",
    re.I,
)
"""Another person in a test's name."""
_MAY_HEAD = re.compile(r"result|value|current|observed|finding|\bref|range|unit|\t", re.I)
"""A quick look: lines without such a word or a TAB are no heading."""


_BLOCK = re.compile(
    r"\W*(?:(?:labs?|laborator(?:y|ies)|results?|values?|data|collected|collection|drawn|date|time|cbc"
    r"|bmp|cmp|chemistry|hematology|from|on|of|for|dated|as[ ]of|[:,(/-])[ ]*){0,6}"
    rf"(?P<when>{MOMENT})(?:[ ]*(?:labs?|laboratory|results?|values?))*\W*",
    re.I,
)
"""A line that says when the values below were measured."""


@dataclass(slots=True)
class _Walk:
    """The table that the walk over the lines is in."""

    columns: Columns = NO_COLUMNS
    series: SeriesTable | None = None
    dated: dict[tuple[str, str | None], list[tuple[Moment, int]]] = field(default_factory=dict)
    """The dates of rows by name, each with the index of its finding."""
    block: Moment | None = None
    """The date in the heading above the rows (`Labs 05/01/2025:`)."""
    block_zone: ZoneType | None = None
    """The kind of section of that heading; the date says nothing about the next section."""


_SENTENCE_END = re.compile(r"[a-z]{5,}\.\s*$")


def read_tables(reading: DocumentState) -> None:
    """Add every laboratory value that a row of a table states."""
    walk = _Walk()
    lines = [
        (
            line,
            without_struck(line.text),
            without_struck(reading.document.raw[line.start : line.end]),
        )
        for line in reading.lines
    ]
    taken = -1
    for index, (line, text, raw) in enumerate(lines):
        if index <= taken or not text.strip():
            continue
        # A sentence is no row of headings (`Colonoscopy today: normal findings.`).
        if _MAY_HEAD.search(raw) and not ("\t" not in raw and _SENTENCE_END.search(raw)):
            head = columns_of(text, raw, reading.date_order, reading.own_day)
            if head:
                _end_series(reading, walk)
                walk.columns = head
                reading.claim(line.start, line.end)
                continue
            series = series_table_of(raw) if "\t" in raw else None
            if series is not None:
                _end_series(reading, walk)
                walk.series = series
                reading.claim(line.start, line.end)
                continue
        if walk.columns and _is_other_heading(reading, line, text, raw):
            walk.columns = NO_COLUMNS
            continue
        if walk.block is not None and reading.zones.type_at(line.start) != walk.block_zone:
            walk.block = None
        # A date with a full stop is the end of a sentence that the line before begins.
        if not text.rstrip().endswith(".") and (m := _BLOCK.fullmatch(text)) is not None:
            walk.block = moment_of(m["when"], reading.date_order, reading.own_day)
            walk.block_zone = reading.zones.type_at(line.start)
            continue
        if walk.series is not None and "\t" in raw:
            if walk.series.add(line.start, text, raw):
                reading.claim(line.start, line.end)
                continue
            _end_series(reading, walk)
        taken = max(taken, _read_line(reading, lines, index, walk))
    _settle(reading, walk)


def _read_line(
    reading: DocumentState,
    lines: Sequence[tuple[PrintedLine, str, str]],
    index: int,
    walk: _Walk,
) -> int:
    """Read one line, and the next lines that continue its cells. Return the last line read."""
    line, text, raw = lines[index]
    columns = walk.columns
    if columns and reading.zones.type_at(line.start) in _ZONES_OF_DRUGS:
        columns = walk.columns = NO_COLUMNS
    if columns.ruled == "\t" and "\t" not in raw:
        columns = replace(columns, ruled="")
    spans = cells_by_column(raw, columns) if columns.ruled else None
    beside = _rows_beside(text, raw, columns, spans, reading.date_order)
    if beside and not reading.is_claimed(line.start, line.end):
        for found in beside:
            name = text[found.name.start : found.name.end]
            _report(reading, line, text, found, name, walk, columns, end=None)
        return index
    begin = bullet_end(text)
    if columns and columns.kinds[0] != "name":
        begin = len(text) - len(text.lstrip())
    first = spans[columns.kinds.index("name")] if spans is not None else (begin, len(text))
    if len(text) > _MAX_LINE or reading.is_claimed(line.start + first[0], line.start + first[1]):
        return index
    if spans is None and not _may_be_row(text, begin, columns):
        return index
    row = read_row(text, begin, columns, raw, reading.date_order)
    if spans is None and columns and columns.kinds[0] != "name":
        listed = list(find_analytes(tokenize(text)))
        if len(listed) == 1 and (row is None or not row.understood):
            row = _row_around(text, listed[0])
    if row is None:
        return index
    name = text[row.name.start : row.name.end].strip(" :|.-–\t")
    if not name or len(name.split()) > _MAX_NAME_WORDS:
        return index
    if row.unit in _AMOUNTS and not row.reference_range:
        return index
    tail, last = NameTail(), index
    if spans is not None:
        row, last = joined_range(row, columns, lines, index)
    if row.understood and (row.name.known or row.unit or spans is not None):
        tail = name_tail(name, lines[last + 1 : last + 2], in_table=spans is not None)
    if tail.doubtful:
        row = replace(row, understood=False)
    if tail.words:
        name, last = f"{name} {tail.words}", last + 1
        row = replace(row, name=row.name._replace(known=tail.known or row.name.known))
    _report(
        reading,
        line,
        text,
        row,
        name,
        walk,
        columns,
        end=lines[last][0].end if last > index else None,
    )
    return last


def _row_around(text: str, listed: tuple[int, int, Analyte]) -> Row | None:
    """Return the row around a test's name that is not understood; None for running text."""
    if not _DIGIT.search(text) or text.rstrip().endswith(".") or len(text.split()) > _MAX_ROW_WORDS:
        return None
    name = NameCell(listed[0], listed[1], known=True)
    first = len(text) - len(text.lstrip())
    return Row(name, first, len(text.rstrip()), understood=False, has_shape=True)


def _rows_beside(
    text: str,
    raw: str,
    columns: Columns,
    spans: Sequence[tuple[int, int]] | None,
    order: DateOrder | None,
) -> list[Row]:
    """Return the rows of a line that prints several tests side by side."""
    if spans is not None:
        names = [i for i, kind in enumerate(columns.kinds) if kind == "name"]
        if len(names) < _MIN_BESIDE:
            return []
        found = []
        for first, stop in pairwise([*names, len(spans)]):
            part = replace(columns, kinds=columns.kinds[first:stop], days=columns.days[first:stop])
            row = read_ruled(text, spans[first:stop], part, order)
            found += [row] if row else []
        return found
    rule = "\t" if "\t" in raw else "  "
    parts = parts_of(raw, rule) if not columns and rule in raw.strip() else []
    starts = [
        i for i, (a, b) in enumerate(parts) if b - a > 1 and known_name(text[a:b], 0) == b - a
    ]
    if len(starts) < _MIN_BESIDE or starts[0] != 0:
        return []
    bounds = [parts[i][0] for i in starts]
    ends = [parts[i - 1][1] for i in [*starts[1:], len(parts)]]
    read = [
        read_row(text[:end], start, NO_COLUMNS, raw[:end], order)
        for start, end in zip(bounds, ends, strict=True)
    ]
    return [row for row in read if row is not None] if all(read) else []


def _report(
    reading: DocumentState,
    line: PrintedLine,
    text: str,
    row: Row,
    name: str,
    walk: _Walk,
    columns: Columns,
    *,
    end: int | None,
) -> None:
    """Add the findings of a row. `end` is the end of the last line that continues the row."""
    known = row.name.known
    if not row.understood:
        if columns.ruled and not known and _is_label(text, row, len(columns.kinds)):
            return
        if row.has_shape and (known or (columns and _may_be_analyte(reading, line, name))):
            _add_unclear(reading, line, text, row, name, columns)
        return
    if row.current is None and not row.earlier:
        if row.has_shape and known:
            reading.claim(line.start, line.end)
        return
    in_labs = reading.zones.type_at(line.start) == "labs"
    shaped = bool(row.unit and row.reference_range) or (bool(columns) and row.sure)
    if in_labs and row.unit and _CONCENTRATION.search(row.unit):
        shaped = True
    measured = bool(columns.ruled and row.reference_range) or bool(
        row.unit and "/" in row.unit and (in_labs or row.reference_range)
    )
    if not known and not (
        shaped
        and _may_be_analyte(reading, line, name, measured=measured, ruled=bool(columns.ruled))
    ):
        if columns.ruled and _may_be_analyte(reading, line, name, ruled=True):
            # No other rule may read the cells of a table of results as running text.
            reading.claim(line.start + row.start, line.start + row.end)
        return
    if known and not (row.sure or columns or in_labs):
        return
    moment = row.moment or walk.block
    if moment is not None and row.current is not None:
        # Each note has results of its own: results of the next day do not make them history.
        key = (own_words(name).lower(), reading.note_day_at(line.start))
        walk.dated.setdefault(key, []).append((moment, len(reading.findings)))
    _add_row(reading, line, row, name, end=end)


def _is_label(text: str, row: Row, columns: int) -> bool:
    """Return whether a line below a table is a label with its value (`Patient: ...  MRN: ...`)."""
    behind = text[row.name.end : row.name.end + 1]
    filled = len(re.split(r"\t|[ ]{2,}|[|]", text[row.start : row.end].strip()))
    return behind == ":" or ":" in text[row.start : row.name.end] or filled * 2 < columns


def _settle(reading: DocumentState, walk: _Walk) -> None:
    """Leave the tables: the latest of several dated rows of one test is current."""
    for rows in walk.dated.values():
        if len({moment.keys for moment, _ in rows}) < 2:
            continue
        latest = latest_of([moment for moment, _ in rows])
        for place, (moment, at) in enumerate(rows):
            found = reading.findings[at]
            if latest is None:
                reading.findings[at] = _without_value(found)
            else:
                earlier = place != latest and reading.precedes(moment)
                when = "historical" if earlier else found.temporality
                reading.findings[at] = replace(found, temporality=when, date=moment.day)
    _end_series(reading, walk)


def _end_series(reading: DocumentState, walk: _Walk) -> None:
    """Add the cells of a table with a column for each test."""
    if walk.series is not None:
        for finding in walk.series.findings(reading):
            reading.add(finding)
        walk.series = None


def _is_other_heading(reading: DocumentState, line: PrintedLine, text: str, raw: str) -> bool:
    """Return whether a line heads a table of another kind, which ends the table of results."""
    if "\t" not in raw or _DIGIT.search(text) or known_name(text, 0) is not None:
        return False
    cells = [text[start:end] for start, end in parts_of(raw, "\t")]
    if len(cells) < _MIN_CELLS or not all(cells):
        return False
    kinds = {cell.kind for words in cells[1:] for cell in cells_of(words, 0)}
    return kinds <= {"word", "paren"} or reading.zones.type_at(line.start) not in _ZONES_OF_TABLES


def _without_value(finding: Finding) -> Finding:
    """Return the finding of a row that is not understood."""
    return replace(
        finding,
        value=None,
        unit=None,
        reference_range=None,
        abnormal_flag=None,
        date=None,
        rule="lab.row-not-understood.v1",
        engine_confidence=0.5,
    )


def _may_be_row(text: str, begin: int, columns: Columns) -> bool:
    """Return whether a line is worth a full reading. Most lines of a note are not."""
    if known_name(text, begin) is not None or (columns and columns.kinds[0] != "name"):
        return True
    if len(text.split()) > _MAX_UNKNOWN_WORDS or not _DIGIT.search(text):
        return False
    return bool(columns) or "/" in text or "%" in text


def _add_row(
    reading: DocumentState, line: PrintedLine, row: Row, name: str, *, end: int | None = None
) -> None:
    """Add the values of a row. `end` is the end of the last line that continues the row."""
    known = row.name.known
    start = line.start + row.name.start
    owner = _OWNER.search(name)
    person = person_kind(owner.group()) if owner else reading.judge(start, start + 1).experiencer
    readings = [(r, r.past) for r in row.earlier]
    if row.current is not None:
        readings.insert(0, (row.current, False))
    for reading_, earlier in readings:
        reading.add(
            Finding(
                category="lab",
                start=line.start + row.start,
                end=end or line.start + row.end,
                head_end=line.start + row.name.end,
                name=own_words(name),
                value=reading_.value,
                unit=row.unit,
                reference_range=row.reference_range,
                abnormal_flag=None if earlier else row.flag,
                date=reading_.day,
                temporality="historical" if earlier else None,
                experiencer=person if person != "patient" else None,
                rule="lab.row.v1" if known else "lab.row-unknown.v1",
                engine_confidence=0.97 if known and row.sure else 0.8,
                zone=reading.zones.type_at(start),
            )
        )


def _add_unclear(
    reading: DocumentState, line: PrintedLine, text: str, row: Row, name: str, columns: Columns
) -> None:
    """Report a row that has an unexplained token, unless running text explains the line."""
    if not columns.ruled and row.start >= row.name.start:
        cells = cells_of(text, row.name.end)
        if not columns and any(cell.kind in ("paren", "date") for cell in cells):
            return
        words = [cell for cell in cells if cell.kind == "word"]
        if words and all(cell.words in (",", ";", "and") for cell in words):
            return
        if any(
            of_a_sentence(cell.words, in_table=bool(columns))
            or known_name(text, cell.start) is not None
            for cell in words
        ):
            return
    start = line.start + row.name.start
    reading.add(
        Finding(
            category="lab",
            start=line.start + row.start,
            end=line.start + max(row.end, row.name.end),
            head_end=line.start + row.name.end,
            name=own_words(name),
            rule="lab.row-not-understood.v1",
            engine_confidence=0.5,
            zone=reading.zones.type_at(start),
        )
    )


def _may_be_analyte(
    reading: DocumentState,
    line: PrintedLine,
    name: str,
    *,
    measured: bool = False,
    ruled: bool = False,
) -> bool:
    """Return whether `name` may be an unlisted analyte, not the beginning of a text line.

    A drug's name is an analyte if a concentration and a range are `measured`. A `ruled` table of
    results can be in any section.
    """
    if _NOT_A_NAME.search(name) or not name[0].isalnum() or ":" in name:
        return False
    if not ruled and reading.zones.type_at(line.start) not in _ZONES_OF_TABLES:
        return False
    return measured or not any(m.reading("medication") for m in lexicon().find(tokenize(name)))
