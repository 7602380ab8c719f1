"""Lists without known headings that are printed as rows, so that each row names several things.

The page does not say whether the right name belongs to the left name, or to a list of its own. Such
names are reported without values, as not understood.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from pipeline.clinical.page_text.lines import PrintedLine, bullet_end
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, unclear_name

_LEAST_ROWS = 2
_MOST_LISTS = 3
_MOST_WORDS = 7
"""Words of the longest usual heading of a list."""
_LISTED = ("condition", "symptom", "medication", "allergy", "procedure")
_TABLE_WORDS = """
    drug medication medications medicine name allergen allergy substance agent reaction reactions
    severity diagnosis diagnoses condition conditions problem problems disease indication reason
    indications status comment comments note notes treatment therapy treated with used for taken
    finding findings symptom symptoms result type category description dose sig instructions side
    effect effects complication complications cause complaint and of the or / & generic brand
    action details route frequency freq strength dosage start started stop stopped date since onset
    code icd system body site instruction directions how often when purpose why what diagnosed
    prescriber provider refills quantity qty number no item form rxnorm snomed
"""
_HEAD_WORDS = frozenset(_TABLE_WORDS.split())
"""The words that head the columns of a table."""
_PERSON = re.compile(
    r"\b(?:famil\w+|relatives?|parents?|mother|father|mom|dad|sisters?|brothers?|siblings?|sons?"
    r"|daughters?|child(?:ren)?|grand\w+|aunts?|uncles?|cousins?|husband|wife|spouse|partner|donor"
    r"|twin|others?)\b",
    re.I,
)
_Cell = tuple[int, int]


def flag_twin_lists(reading: DocumentState) -> None:
    """Replace the findings of rows that name several things by findings not understood."""
    if "\t" not in reading.document.raw or len(reading.findings) < 2 * _LEAST_ROWS:
        return
    found = sorted(reading.findings, key=lambda each: each.start)
    starts = [each.start for each in found]
    doubtful: set[int] = set()
    for head, *run in _runs(reading):
        rows = [
            [found[bisect_left(starts, a) : bisect_left(starts, b)] for a, b in _cells(reading, at)]
            for at in (head, *run)
        ]
        heads = [reading.document.raw[a:b] for a, b in _cells(reading, head)]
        if _is_head(heads, rows[0], _cells(reading, head)) and _are_twins(heads, rows[1:]):
            doubtful |= {id(each) for cells in rows[1:] for cell in cells for each in cell}
    if doubtful:
        reading.findings = [
            unclear_name(each, "twin-list") if id(each) in doubtful else each
            for each in reading.findings
        ]


def _runs(reading: DocumentState) -> Iterator[list[PrintedLine]]:
    """Yield the lines below each other with the same number of cells, none of them empty."""
    run: list[PrintedLine] = []
    width = 0
    for line in reading.lines:
        cells = reading.document.raw[line.start : line.end].split("\t")
        is_row = 1 < len(cells) <= _MOST_LISTS and all(
            cell.strip() and ":" not in cell for cell in cells
        )
        if run and (not is_row or len(cells) != width):
            if len(run) > _LEAST_ROWS:
                yield run
            run = []
        if is_row:
            run.append(line)
            width = len(cells)
    if len(run) > _LEAST_ROWS:
        yield run


def _cells(reading: DocumentState, line: PrintedLine) -> list[_Cell]:
    found, at = [], line.start
    for cell in reading.document.raw[line.start : line.end].split("\t"):
        found.append((at, at + len(cell)))
        at += len(cell) + 1
    return found


def _is_head(
    heads: Sequence[str], findings: Sequence[Sequence[Finding]], places: Sequence[_Cell]
) -> bool:
    """Return whether a row holds headings of lists, and not the usual headings of a table."""
    if any(re.search(r"\d", head) or len(head.split()) > _MOST_WORDS for head in heads):
        return False
    if all(set(re.findall(r"[\w/&]+", head.lower())) <= _HEAD_WORDS for head in heads):
        return False
    return not any(
        each.start <= start + bullet_end(head) and each.head_end >= end
        for cell, head, (start, end) in zip(findings, heads, places, strict=True)
        for each in cell
    )


def _are_twins(heads: Sequence[str], rows: Sequence[Sequence[Sequence[Finding]]]) -> bool:
    """Return whether most rows name several things, and the kinds do not part the columns."""
    named = [[[e for e in cell if e.category in _LISTED] for cell in cells] for cells in rows]
    twins = [cells for cells in named if sum(map(bool, cells)) > 1]
    if len(twins) < _LEAST_ROWS or 2 * len(twins) < len(rows):
        return False
    kinds = [
        {_kind(each) for cells in twins for each in cells[column]} for column in range(len(heads))
    ]
    is_parted = kinds in ([{"illness"}, {"dosed"}], [{"dosed"}, {"illness"}])
    return not is_parted or any(map(_PERSON.search, heads))


def _kind(found: Finding) -> str:
    if found.category == "medication":
        return "dosed" if found.dose or found.strength else "drug"
    return "illness" if found.category in ("condition", "symptom") else found.category
