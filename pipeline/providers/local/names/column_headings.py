"""Cells that head the columns of a table: `Frequency` above the times of a drug is no symptom."""

from __future__ import annotations

import re

from pipeline.providers.local.labs.headings import kind_of_heading

_CELLS = re.compile(r"\t|[ ]{2,}|[ ]*\|[ ]*")
_OF_DRUGS = re.compile(
    r"(?:[a-z]+[ ])?(?:medications?|drugs?|medicines?|meds?|dos(?:e|age)|strength|route|frequency"
    r"|sig|directions|schedule|indication|supply|quantity|qty|refills?|prescriber|pharmacy)"
    r"|(?:last[ ]|time[ ])?(?:given|taken|administered|filled)(?:[ ]/[ ]\w+)?"
    r"|start(?:ed)?|stop(?:ped)?|initials|status|comments?|notes?|reason",
    re.I,
)
_DIGIT = re.compile("[0-9]")
_LEAST = 2
"""Other cells of the line that head a column."""


def is_column_heading(line: str, start: int, end: int) -> bool:
    """Return whether `line[start:end]` is a whole cell of a line that heads a table.

    A heading has no digit, and at least two of its other cells are known headings.
    """
    if _has_digit(line):
        return False
    others = 0
    is_cell = False
    at = 0
    for gap in (*_CELLS.finditer(line), None):
        stop = gap.start() if gap else len(line)
        cell = line[at:stop]
        if at <= start and end <= stop:
            is_cell = cell.strip() == line[start:end]
        elif _OF_DRUGS.fullmatch(cell.strip()) or _is_of_results(cell):
            others += 1
        at = gap.end() if gap else stop
    return is_cell and others >= _LEAST


def _has_digit(line: str) -> bool:
    if line.isascii():
        return _DIGIT.search(line) is not None
    return any(character.isdigit() for character in line)


def _is_of_results(cell: str) -> bool:
    return kind_of_heading(cell) not in ("", "other", "unknown")
