"""Laboratory results: rows of tables in any order of columns, and values in running text.

A table's heading decides the order of its columns, even across a page break. A row that is not
understood is reported without a value.
"""

from __future__ import annotations

import re

from pipeline.providers.local.analytes import Analyte, find_analytes, known_name
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.experiencer import person_kind
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.lab_cells import cells_of, of_a_sentence
from pipeline.providers.local.lab_columns import NO_COLUMNS, Columns, columns_of
from pipeline.providers.local.lab_prose import inherits, states_no_value, values_behind
from pipeline.providers.local.lab_rows import Row, read_row
from pipeline.providers.local.lexicon import lexicon
from pipeline.providers.local.lines import PrintedLine, bullet_end
from pipeline.providers.local.tokens import tokenize

_MAX_NAME_WORDS = 8
_MAX_LINE = 200
_MAX_UNKNOWN_WORDS = 20
_AMOUNTS = frozenset({"mg", "g", "mcg", "ng", "mL", "units", "unit", "mEq", "mmol", "U"})
"""Units of a dose, not of a concentration: a laboratory value has them only beside a range."""
_ONLY_WORDS = re.compile(r"[A-Za-z][A-Za-z -]{2,30}")
_DIGIT = re.compile(r"\d")
_ZONES_OF_TABLES = (None, "labs", "other", "header", "procedures", "imaging")
_NOT_A_NAME = re.compile(
    r"\b(?:page|phone|fax|tel|date|time|dob|mrn|street|road|suite|accession|collected|reported"
    r"|received"
    r"|specimen|account|id|room|clia|age|sex|born|npi|zip|box|visit|tablets?|mg|mcg|units|daily"
    r"|bid|po)\b|\d{3}-\d{4}",
    re.I,
)
_OTHER_PERSON = re.compile(
    r"\b(?:mother|father|mom|dad|parent|brother|sister|sibling|son|daughter|aunt|uncle|cousin"
    r"|husband|wife|spouse|partner|roommate|donor|friend|neighbor|grand(?:mother|father|parent)"
    r"|twin|fianc[eé]e?|boyfriend|girlfriend|caregiver)(?:['’]s|s['’])[ ]+(?:\w+[ ]+){0,2}$"
    r"|\b(?:donor|roommate|twin)[ ]+$",
    re.I,
)
_LONGER_NAME = re.compile(r"[A-Za-z0-9]-$|\b\d{1,2}[- ]?(?:OH|hydroxy|alpha|beta)[ -]+$", re.I)
"""The beginning of a name whose end is another analyte's name (`17-OH progesterone`)."""


def read_labs(reading: DocumentState) -> None:
    """Add every laboratory value."""
    columns = NO_COLUMNS
    for index, line in enumerate(reading.lines):
        if not line.text.strip():
            continue
        head = columns_of(line.text, reading.document.raw[line.start : line.end])
        if head:
            columns = head
            reading.claim(line.start, line.end)
            continue
        after = reading.lines[index + 1] if index + 1 < len(reading.lines) else None
        _read_line(reading, line, columns, after)
    _read_prose(reading)


def _read_line(
    reading: DocumentState, line: PrintedLine, columns: Columns, after: PrintedLine | None
) -> None:
    begin = bullet_end(line.text)
    if columns and columns.kinds[0] != "name":
        begin = len(line.text) - len(line.text.lstrip())
    if len(line.text) > _MAX_LINE:
        return
    if reading.is_claimed(line.start + begin, line.end):
        return
    if not _may_be_row(line.text, begin, columns):
        return
    row = read_row(line.text, begin, columns, reading.document.raw[line.start : line.end])
    if row is None:
        return
    name = line.text[row.name.start : row.name.end].strip(" :|.-–\t")
    if not name or len(name.split()) > _MAX_NAME_WORDS:
        return
    known = row.name.known
    if row.unit in _AMOUNTS and not row.reference_range:
        return
    if not row.understood:
        if row.has_shape and (known or (columns and _may_be_analyte(reading, line, name))):
            _add_unclear(reading, line, row, name, columns)
        return
    if row.current is None and not row.earlier:
        if row.has_shape and known:
            reading.claim(line.start, line.end)
        return
    shaped = bool(row.unit and row.reference_range) or (bool(columns) and row.sure)
    if after is not None and (known or row.unit) and _is_wrapped(name, after.text):
        _add_row(reading, line, row, f"{name} {after.text.strip()}", end=after.end)
        return
    measured = bool(row.unit and "/" in row.unit and row.reference_range)
    if not known and not (shaped and _may_be_analyte(reading, line, name, measured=measured)):
        return
    if known and not (row.sure or columns or reading.zones.type_at(line.start) == "labs"):
        return
    _add_row(reading, line, row, name)


def _may_be_row(text: str, begin: int, columns: Columns) -> bool:
    """Return whether a line is worth a full reading. Most lines of a note are not."""
    if known_name(text, begin) is not None or (columns and columns.kinds[0] != "name"):
        return True
    if len(text.split()) > _MAX_UNKNOWN_WORDS or not _DIGIT.search(text):
        return False
    return bool(columns) or "/" in text or "%" in text


def _is_wrapped(name: str, after: str) -> bool:
    """Return whether the words of the next line complete an analyte's name."""
    words = after.strip()
    if not _ONLY_WORDS.fullmatch(words) or known_name(words, 0) == len(words):
        return False
    whole = f"{name} {words}"
    return known_name(whole, 0) == len(whole)


def _add_row(
    reading: DocumentState, line: PrintedLine, row: Row, name: str, *, end: int | None = None
) -> None:
    """Add the values of a row. `end` is the end of a name that the next line completes."""
    known = row.name.known or end is not None
    start = line.start + row.name.start
    readings = [(r, True) for r in row.earlier]
    if row.current is not None:
        readings.insert(0, (row.current, False))
    first = min([row.name.start, *(r.start for r, _ in readings)])
    for reading_, earlier in readings:
        reading.add(
            Finding(
                category="lab",
                start=line.start + first,
                end=line.start + reading_.end if earlier else end or line.start + row.end,
                head_end=line.start + row.name.end,
                name=own_words(name),
                value=reading_.value,
                unit=row.unit,
                reference_range=row.reference_range,
                abnormal_flag=None if earlier else row.flag,
                date=reading_.date.isoformat() if reading_.date else None,
                temporality="historical" if earlier else None,
                rule="lab.row.v1" if known else "lab.row-unknown.v1",
                engine_confidence=0.97 if known and row.sure else 0.8,
                zone=reading.zones.type_at(start),
            )
        )


def _add_unclear(
    reading: DocumentState, line: PrintedLine, row: Row, name: str, columns: Columns
) -> None:
    """Report a row that has an unexplained token, unless running text explains the line."""
    words = [cell for cell in cells_of(line.text, row.name.end) if cell.kind == "word"]
    if words and all(cell.words in (",", ";", "and") for cell in words):
        return
    if any(
        of_a_sentence(cell.words, in_table=bool(columns))
        or known_name(line.text, cell.start) is not None
        for cell in words
    ):
        return
    start = line.start + row.name.start
    reading.add(
        Finding(
            category="lab",
            start=start,
            end=line.start + row.end,
            head_end=line.start + row.name.end,
            name=own_words(name),
            rule="lab.row-not-understood.v1",
            engine_confidence=0.5,
            zone=reading.zones.type_at(start),
        )
    )


def _may_be_analyte(
    reading: DocumentState, line: PrintedLine, name: str, *, measured: bool = False
) -> bool:
    """Return whether `name` may be an unlisted analyte, not the beginning of a text line.

    A drug's name is an analyte if a concentration and a range are `measured`.
    """
    if _NOT_A_NAME.search(name) or not name[0].isalnum() or ":" in name:
        return False
    if reading.zones.type_at(line.start) not in _ZONES_OF_TABLES:
        return False
    return measured or not any(m.reading("medication") for m in lexicon().find(tokenize(name)))


def _read_prose(reading: DocumentState) -> None:
    dropped_end = -1
    for start, end, analyte in find_analytes(reading.tokens):
        if reading.is_claimed(start, end) or not _could_be(reading, start, end, analyte):
            continue
        sentence = reading.assertions.sentence_at(start)
        limit = max(sentence.end, end)
        values = values_behind(reading.text, sentence.start, start, end, limit, analyte)
        if not values or reading.is_claimed(start, values[-1].end):
            continue
        listed = dropped_end > sentence.start and inherits(reading.text, dropped_end, start)
        if listed or states_no_value(reading.text, sentence.start, start, end):
            dropped_end = values[-1].end
            continue
        experiencer = reading.judge(start, end).experiencer
        owner = _OTHER_PERSON.search(reading.text[max(sentence.start, start - 60) : start])
        if owner is not None:
            experiencer = person_kind(owner.group())
        for value in values:
            reading.add(
                Finding(
                    category="lab",
                    start=start,
                    end=value.end,
                    head_end=end,
                    name=own_words(reading.text[start:end]),
                    value=value.value,
                    unit=value.unit,
                    reference_range=value.reference_range,
                    abnormal_flag=value.flag,
                    temporality=value.temporality,
                    experiencer=experiencer if experiencer != "patient" else None,
                    rule="lab.prose.v1",
                    engine_confidence=0.9 if value.unit else 0.75,
                    zone=reading.zones.type_at(start),
                )
            )


def _could_be(reading: DocumentState, start: int, end: int, analyte: Analyte) -> bool:
    """Reject parts of longer names; accept one- and two-letter names only as listed."""
    if _LONGER_NAME.search(reading.text[max(0, start - 12) : start]):
        return False
    word = reading.text[start:end]
    return len(word) > 2 or word in analyte.names
