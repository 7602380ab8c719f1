"""Laboratory results: rows of tables in any order of columns, and values in running text.

A table's heading decides the order of its columns, even across a page break. Without a heading the
shape of the cells decides.
"""

from __future__ import annotations

import re

from pipeline.providers.local.analytes import Analyte, find_analytes, known_name
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.lab_cells import Cells, columns_of, inline_value, read_cells
from pipeline.providers.local.lexicon import lexicon
from pipeline.providers.local.lines import PrintedLine, bullet_end
from pipeline.providers.local.tokens import tokenize

_MAX_NAME_WORDS = 8
_ZONES_OF_TABLES = (None, "labs", "other", "header", "procedures", "imaging")
_SPECIMEN = re.compile(r"[ ]+(?:urine|serum|plasma|blood|csf|whole blood)(?![\w,])", re.I)
_NOT_A_NAME = re.compile(
    r"\b(?:page|phone|fax|tel|date|time|dob|mrn|street|road|suite|accession|collected|reported"
    r"|received"
    r"|specimen|account|id|room|clia|age|sex|born|npi|zip|box|visit|tablets?|mg|mcg|units|daily"
    r"|bid|po)\b|\d{3}-\d{4}",
    re.I,
)


def read_labs(reading: DocumentState) -> None:
    """Add every laboratory value."""
    order: tuple[str, ...] = ()
    for line in reading.lines:
        if not line.text.strip():
            continue
        head = columns_of(line.text)
        if head:
            order = head
            reading.claim(line.start, line.end)
            continue
        _read_row(reading, line, order)
    _read_prose(reading)


def _read_row(reading: DocumentState, line: PrintedLine, order: tuple[str, ...]) -> None:
    begin = bullet_end(line.text)
    if reading.is_claimed(line.start + begin, line.end):
        return
    name_end = known_name(line.text, begin)
    known = name_end is not None
    if name_end is not None:
        specimen = _SPECIMEN.match(line.text, name_end)
        name_end = specimen.end() if specimen else name_end
    cells, name_end = _cells_behind(line.text, begin, name_end, order)
    if cells is None or cells.value is None:
        return
    name = line.text[begin:name_end].strip(" :|.-–\t")
    if not name or len(name.split()) > _MAX_NAME_WORDS:
        return
    sure = bool(cells.unit or cells.reference_range or cells.flag)
    shaped = bool(cells.unit and cells.reference_range) or (bool(order) and sure)
    if not known and not (shaped and _may_be_analyte(reading, line, name)):
        return
    if known and not (sure or order or reading.zones.type_at(line.start) == "labs"):
        return
    start = line.start + begin
    reading.add(
        Finding(
            category="lab",
            start=start,
            end=line.start + cells.end,
            head_end=line.start + name_end,
            name=own_words(name),
            value=cells.value,
            unit=cells.unit,
            reference_range=cells.reference_range,
            abnormal_flag=cells.flag,
            rule="lab.row.v1" if known else "lab.row-unknown.v1",
            strength=0.97 if known and sure else 0.8,
            zone=reading.zones.type_at(start),
        )
    )


def _may_be_analyte(reading: DocumentState, line: PrintedLine, name: str) -> bool:
    """Return whether `name` may be an unlisted analyte, not the beginning of a text line."""
    if _NOT_A_NAME.search(name) or not name[0].isalpha() or ":" in name:
        return False
    if reading.zones.type_at(line.start) not in _ZONES_OF_TABLES:
        return False
    return not any(m.reading("medication") for m in lexicon().find(tokenize(name)))


def _cells_behind(
    text: str, begin: int, name_end: int | None, order: tuple[str, ...]
) -> tuple[Cells | None, int]:
    """Return the cells that fill the rest of a line, and the end of the name before them."""
    first = name_end if name_end is not None else begin
    for m in re.finditer(r"[ |:\t]+", text[first:]):
        at = first + m.start()
        cells = read_cells(text, at, order)
        if cells is not None and not text[cells.end :].strip(" |.\t*"):
            return cells, at
        if at - first > 60:
            break
    return None, first


def _read_prose(reading: DocumentState) -> None:
    for start, end, analyte in find_analytes(reading.tokens):
        if reading.is_claimed(start, end) or not _could_be(reading, start, end, analyte):
            continue
        sentence = reading.assertions.sentence_at(start)
        value = inline_value(reading.text, end, max(sentence.end, end), analyte)
        if value is None:
            continue
        if reading.is_claimed(start, value.end):
            continue
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
                rule="lab.prose.v1",
                strength=0.9 if value.unit else 0.75,
                zone=reading.zones.type_at(start),
            )
        )


def _could_be(reading: DocumentState, start: int, end: int, analyte: Analyte) -> bool:
    """Accept one- and two-letter names only in their listed spelling."""
    word = reading.text[start:end]
    return len(word) > 2 or word in analyte.names
