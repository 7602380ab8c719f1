"""Cells of a laboratory row that continue on the next lines: names and reference ranges.

A next line with a further value, unit or flag makes the row not understood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.clinical.page_text.lines import PrintedLine
from pipeline.providers.local.labs.analytes import known_name
from pipeline.providers.local.labs.columns import Columns, cells_by_column
from pipeline.providers.local.labs.statement import Row

Lines = Sequence[tuple[PrintedLine, str, str]]
"""Each line with its words and with its words as printed, both without struck-through words."""
_ONLY_WORDS = re.compile(r"[A-Za-z][A-Za-z ,()/-]{2,30}")
_TAILS = re.compile(
    r"(?:hormone|antibod(?:y|ies)|antigen|phosphatase|aminotransferase|transaminase|transferase"
    r"|dehydrogenase|nitrogen|hemoglobin|globulin|binding|capacity|saturation|concentration|volume"
    r"|width|count|ratio|index|time|rate|factor|acid|peptide|protein|clearance|receptor|inhibitor"
    r"|enzyme|kinase|oxidase|test|screen|quantitative|qualitative|quant|total|direct|calculated"
    r"|free|absolute|serum|plasma|blood|ultrasensitive|sensitive|assay|level|igg|igm|iga|ige|ab|ag"
    r"|abs?)(?:[ ,/()-]+(?:[a-z]+))?",
    re.I,
)
"""Words that end a test's name and begin none."""
_READ = frozenset({"value", "also", "previous", "split", "unit", "flag", "low", "high"})


@dataclass(frozen=True, slots=True)
class NameTail:
    """The words of the next line that complete a name; "" if there are none."""

    words: str = ""
    known: bool = False
    doubtful: bool = False
    """The next line may complete the name, but no rule of the table shows that."""


def name_tail(name: str, after: Lines, *, in_table: bool) -> NameTail:
    """Return the words of the line `after` a row that complete the row's name."""
    words = after[0][1].strip() if after else ""
    if in_table and words[:1].islower() and _TAILS.fullmatch(words):
        return NameTail(words, known=known_name(f"{name} {words}", 0) is not None)
    if not _ONLY_WORDS.fullmatch(words) or known_name(words, 0) == len(words):
        return NameTail()
    whole = f"{name} {words}"
    if known_name(whole, 0) == len(whole):
        return NameTail(words, known=True)
    if not _TAILS.fullmatch(words) or words.isupper():
        return NameTail()
    return NameTail(words) if in_table else NameTail(doubtful=True)


def joined_range(row: Row, columns: Columns, lines: Lines, index: int) -> tuple[Row, int]:
    """Join the lines whose cells continue a ruled row. Return the row and the last line read."""
    last = index
    for line, text, raw in lines[index + 1 :]:
        spans = cells_by_column(raw, columns) if columns.ruled in raw else None
        if not text.strip() or spans is None:
            break
        words = [text[start:end].strip() for start, end in spans]
        if words[columns.kinds.index("name")] or not any(words):
            break
        last += 1
        ranged = " ".join(
            w for kind, w in zip(columns.kinds, words, strict=True) if kind == "range" and w
        )
        spoiled = any(w and kind in _READ for kind, w in zip(columns.kinds, words, strict=True))
        if spoiled or (ranged and not row.reference_range):
            row = replace(row, understood=False)
        elif ranged:
            row = replace(row, reference_range=f"{row.reference_range} {ranged}")
        row = replace(row, end=max(row.end, line.end - lines[index][0].start))
    return row, last
