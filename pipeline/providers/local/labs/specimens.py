"""Take back the values that the laboratory itself doubts: a hemolyzed or contaminated specimen.

The doubt is printed behind the value, or in a comment line below the row. A comment that names
tests doubts these tests. A comment below the last row of a block can mean each row of the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipeline.clinical.page_text.lines import PrintedLine
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import unclear_name
from pipeline.providers.local.labs.analytes import find_analytes
from pipeline.providers.local.text.tokens import tokenize

_DOUBT = re.compile(
    r"\bha?emoly[sz]ed\b|\blipa?emi[ac]\b|\bclotted\b|\bclump(?:ed|ing)\b|\bplatelet[ ]clumps\b"
    r"|\bcontaminat\w+"
    r"|\b(?:spurious|pseudo-?(?:hyper|hypo)\w+|unreliable|inaccurate|mislabell?ed|misidentified)\w*"
    r"|\b(?:false|falsely|artificially|artifactually)[ ](?:elevated|increased|raised|high|low"
    r"|lowered|decreased|depressed)\b|\bwrong[ ](?:patient|blood|tube|specimen|sample)\b"
    r"|\b(?:specimen|sample)[ ](?:integrity|compromised|delayed|too[ ]old|diluted)\b"
    r"|\bdrawn[ ](?:above|from|near)[ ](?:the[ ]|an[ ]|a[ ])?(?:iv|line|infusion)\b"
    r"|\binterpret[ ](?:with|results?[ ]with)[ ]caution\b|\bresults?[ ](?:is|are|may[ ]be)[ ]"
    r"(?:invalid|affected|compromised|questionable)\b",
    re.I,
)
"""Words of a laboratory that doubts its own value."""
_HEMOLYSIS = re.compile(r"\bha?emolysis\b", re.I)
"""In a comment a doubt; in a sentence about the patient perhaps the diagnosis."""
_MARKED_HEMOLYSIS = re.compile(
    r"[(\[*–-][ ]*(?:(?:moderate|gross|marked|specimen|sample)[ ])?ha?emolysis\b", re.I
)
_NO_DOUBT = re.compile(
    r"(?:\b(?:no|not|non|without|negative[ ]for|free[ ]of|absence[ ]of|nor)[ -]+"
    r"(?:\w+[ ]){0,2}|\b(?:slight(?:ly)?|mild(?:ly)?|minimal(?:ly)?|trace)[ ])$",
    re.I,
)
"""Before the word: no fault, or a fault despite which the laboratory reports its value."""
_INDEX_BEHIND = re.compile(
    r"[ ]*(?:index|screen|h[ ]?index)?[ ]*[:=]?[ ]*(?:none|absent|negative|no\b|nil|0\b|normal"
    r"|not[ ](?:detected|present|seen))",
    re.I,
)
"""Behind the word: the specimen was looked at and is sound (`Hemolysis index: 0`)."""
_COMMENT = re.compile(
    r"\W*(?:comments?|notes?|remarks?|specimens?|samples?|results?|interpret\w*|caution|warning"
    r"|grossly|moderately|slightly|markedly|mildly|ha?emoly\w+|lipa?emi\w+|contaminat\w+|clotted"
    r"|false\w*|spurious\w*|pseudo\w+|unreliable|possible|probable|suspect\w*|repeat\w*|redraw\w*"
    r"|recollect\w*|test[ ]repeated)\b",
    re.I,
)
"""The beginning of a line, or of a sentence, about the values before."""
_SENTENCE = re.compile(r"[.;](?=\s|$)")
_MOST_LINES = 3
"""Comment lines below a row that are read."""


def doubt_specimens(reading: DocumentState, first: int) -> None:
    """Take back the values of doubted specimens among the findings from `first` on."""
    for at in sorted(set(_doubted(reading, first))):
        if reading.findings[at].value:
            reading.findings[at] = unclear_name(reading.findings[at], "specimen")


def _doubted(reading: DocumentState, first: int) -> Iterator[int]:
    """Yield the places of the findings whose specimen is doubted."""
    if not (_DOUBT.search(reading.text) or _HEMOLYSIS.search(reading.text)):
        return
    lines = list(reading.lines)
    rows: list[list[int]] = [[] for _ in lines]
    ordered = sorted(
        (found.start, at)
        for at, found in enumerate(reading.findings[first:], start=first)
        if found.category == "lab"
    )
    index = 0
    for start, at in ordered:
        while index + 1 < len(lines) and lines[index + 1].start <= start:
            index += 1
        rows[index].append(at)
    for index, own in enumerate(rows):
        if own:
            yield from _behind_values(reading, lines[index], own)
            yield from _below(reading, lines, rows, index)


def _behind_values(reading: DocumentState, line: PrintedLine, own: Sequence[int]) -> Iterator[int]:
    """Yield the values of a line with a doubt between the value and the next value."""
    starts = [reading.findings[at].start for at in own[1:]]
    for at, stop in zip(own, [*starts, None], strict=True):
        end = max(line.end, reading.findings[at].end) if stop is None else stop
        sentence, further = _halves(reading.text[reading.findings[at].head_end : end])
        if _doubts(sentence, _DOUBT, _MARKED_HEMOLYSIS) or (
            _COMMENT.match(further) and _doubts(_halves(further)[0], _DOUBT, _HEMOLYSIS)
        ):
            yield at


def _below(
    reading: DocumentState, lines: Sequence[PrintedLine], rows: Sequence[list[int]], index: int
) -> Iterator[int]:
    """Yield the values that the comment lines below the row of `index` doubt."""
    last = index
    comments: list[str] = []
    for below in range(index + 1, min(index + 1 + _MOST_LINES, len(lines))):
        text = lines[below].text
        if rows[below] or not text.strip() or not (comments or _COMMENT.match(text)):
            break
        comments.append(text)
        last = below
    words = " ".join(comments)
    if not _doubts(words, _DOUBT, _HEMOLYSIS):
        return
    block = list(_block(lines, rows, index))
    named = {words[start:end].lower() for start, end, _ in find_analytes(tokenize(words))}
    if named:
        yield from (
            at for at in block if any(each in reading.findings[at].name.lower() for each in named)
        )
        return
    is_last = last + 1 >= len(lines) or not rows[last + 1]
    yield from block if is_last else rows[index]


def _block(lines: Sequence[PrintedLine], rows: Sequence[list[int]], index: int) -> Iterator[int]:
    """Yield the values of the rows up to `index`, back to an empty line."""
    for above in range(index, -1, -1):
        if not lines[above].text.strip():
            return
        yield from rows[above]


def _halves(text: str) -> tuple[str, str]:
    """Return the first sentence, and what follows."""
    found = _SENTENCE.search(text)
    return (text, "") if found is None else (text[: found.start()], text[found.end() :])


def _doubts(text: str, *patterns: re.Pattern[str]) -> bool:
    return any(
        not _NO_DOUBT.search(text[: found.start()]) and not _INDEX_BEHIND.match(text, found.end())
        for pattern in patterns
        for found in pattern.finditer(text)
    )
