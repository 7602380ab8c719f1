"""The cells of a laboratory row, recognized by their shape, and the name in front of them.

Every token of a row becomes a cell, a part of the name, or an unexplained word. Values are returned
as printed; nothing is computed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pipeline.providers.local.labs.analytes import known_name
from pipeline.providers.local.labs.patterns import (
    BETWEEN,
    BOUND,
    CLOCK,
    COMMENT,
    DATE,
    EARLY_FLAG,
    FLAG,
    GROUPED,
    MARK,
    NO_RESULT,
    NUM,
    ORDINAL,
    POWER,
    RAISED,
    RANGE_LABEL,
    SIGN,
    TEXT,
    TITER,
    UNIT,
)

MEASURES = frozenset({"number", "bound", "titer", "text", "ordinal", "range"})
"""Kinds of cells that can be a value or a range."""
_SPECK = re.compile(r"(?:[ |\t]|(?<![^ |\t])[.,·•_—–~`'‘’;-](?![^ |\t]))*")
"""The text between cells: blanks, rules, and single marks such as a scanner's dust."""
_END = r"(?=[ |\t,;]|\.?$)"
_CELL = re.compile(
    rf"(?P<paren_flag>[(\[]{FLAG}[*!]*[)\]])"
    rf"|(?P<paren_range>[\[(](?:{RANGE_LABEL})?(?P<inner>{BETWEEN}|{BOUND}|{GROUPED}|{TEXT})"
    rf"(?:[ ]?(?:{UNIT}))?[\])])"
    rf"|(?P<label_range>{RANGE_LABEL}(?P<labelled>{GROUPED}|{BETWEEN}|{BOUND})){_END}"
    rf"|(?P<power>{POWER})(?![\w/^])"
    rf"|(?P<date>{DATE})(?:[ ]{CLOCK})?{_END}"
    rf"|(?P<foot>\[[1-9]\]|\([1-9]\)|[†‡§*]?⁽?[{RAISED}]{{1,2}}(?:[ ,]?[{RAISED}])*⁾?"
    rf"|\^[a-z1-9]|\[[a-e]\]|[†‡§#^@]|[a-e]){_END}"
    rf"|(?P<other>[\[(](?:{NUM})(?:[ ]?(?:{UNIT}))?[\])]){_END}"
    rf"|(?P<paren>\((?:[^()\d\n]|\b\d{{4}}\b(?=[ ]?(?:h\b|hrs?\b|\)))|{CLOCK}|{DATE}){{1,40}}\))"
    rf"|(?P<sexes>{GROUPED})(?=[ |\t(]|$)"
    rf"|(?P<range>{BETWEEN})(?=[ |\t)(,;]|\.?$)"
    rf"|(?P<titer>(?:{SIGN}[ ]?)?{TITER}){_END}"
    rf"|(?P<bound>{BOUND})"
    rf"|(?P<ordinal>{ORDINAL}){_END}"
    rf"|(?P<number>[-+]?(?:{NUM}))(?![\d:/-])"
    rf"|(?P<unit>{UNIT})(?![\w/^])"
    rf"|(?P<none>{NO_RESULT}){_END}"
    rf"|(?P<comment>{COMMENT}){_END}"
    rf"|(?P<flag>{FLAG}[*!]*(?![\w/.,%(-])|\*{{1,3}}{_END}|!{{1,2}}{_END})"
    rf"|(?P<text>{TEXT}){_END}"
    rf"|(?P<word>[^ |\t\n]+)"
)
_BEHIND = re.compile(
    rf"(?P<flag>\(?{FLAG}[*!]*\)?|\*{{1,3}}|!{{1,2}})(?![\w/.,%*-])"
    rf"|(?P<foot>{MARK})(?![\w/.])"
    rf"|(?=[ |\t,;)]|\.?$)"
    rf"|(?!s(?!\w))(?={UNIT}(?![\w/^]))"
)
"""What may touch the last digit of a value."""
_TOKEN = re.compile(r"[^ |\t\n]*")
_EARLY_FLAG = re.compile(rf"[ |\t]+[(\[]?{EARLY_FLAG}[)\]]?(?=[ |\t]+(?:{SIGN}[ ]?)?[.\d])")
_NAME_PAREN = re.compile(r"[ ]?\((?:[A-Za-z][^()\n]{0,24}|25-?OH|\d,25[^()\n]{0,12})\)(?![\w])")
_NAME_WORD = re.compile(
    r"[ ]?,?[ ]?(?:\d{1,2}(?:,\d{1,2})?-(?:[A-Za-z]{2,}[\w-]*)"
    r"|[A-Za-z][\w'’.+-]*(?:/[A-Za-z][\w-]*)*"
    r"|&)(?=[ ,|:\t(]|$)"
)
_METHOD = re.compile(
    r"[ ]?,?[ ]?(?:calc(?:ulated)?|fasting|random|estimated|est|urine|serum|plasma"
    r"|whole[ ]blood|csf|venous|arterial|capillary)\.?(?=[ ,|:\t(]|$)",
    re.I,
)
_TAIL_UNIT = re.compile(r"[ ](?:(?P<percent>%)|#|ratio|index|titers?)(?=[ :|\t])", re.I)
_STOP_WORD = re.compile(
    r"[ ]?,?[ ]?(?:was|were|is|are|be|been|has|had|have|at|on|in|of|to|from|by|the|a|an|with"
    r"|if|when|then|now|up|down|goal|target|today|yesterday|last|shows?|showed|came|remain\w*"
    r"|stable|improved|rose|fell|went|drop\w*|risen|fallen|declin\w*|climb\w*|trend\w*|doubled|halved|exceed\w*"
    r"|worsen\w*|peak\w*|return\w*|required|needed|should|must|increased|decreased|elevated|see|refer|ref|reference|not"
    r"|none|no|and|or|for|over|under|greater|less|than|pending|hemolyzed|normal|range)(?![\w/-])"
    r"(?!-)",
    re.I,
)
_CELL_WORD = re.compile(
    rf"[ ]?,?[ ]?(?:{TEXT}|{NO_RESULT}|{COMMENT}|\(?{FLAG}[*!]*\)?(?![.-])|{UNIT}|{GROUPED})"
    rf"(?=[ |\t,;:(]|\.?$)"
)


_CHANGE = r"-{1,2}>|=>|→|(?:up|down|dropp?ed|rose|fell|now|goal|target)(?!\w)"
_CHANGE_WORD = re.compile(_CHANGE, re.I)
_SENTENCE_WORD = re.compile(rf"{_CHANGE}|{_STOP_WORD.pattern}", re.I)


def of_a_sentence(word: str, *, in_table: bool) -> bool:
    """Return whether a word belongs to a sentence, not to a row; in a table, an arrow does."""
    return (_CHANGE_WORD if in_table else _SENTENCE_WORD).match(word) is not None


class Cell(NamedTuple):
    """One token of a row at `text[start:end]`."""

    kind: str
    start: int
    end: int
    words: str


class NameCell(NamedTuple):
    """The name of a row, and whether the name is in the list of analytes."""

    start: int
    end: int
    known: bool


def name_at(text: str, begin: int, *, has_specimen: bool = False) -> NameCell | None:
    """Return the name that starts at `begin`, with its specimen and method; None if none does.

    With `has_specimen`, the specimen has a column of its own and is no part of the name.
    """
    known = known_name(text, begin)
    end = known if known is not None else begin
    while True:
        if end > begin and (m := _NAME_PAREN.match(text, end)):
            if cells_of(m.group(), 0)[0].kind not in ("paren", "word"):
                break
            end = m.end()
            continue
        if _EARLY_FLAG.match(text, end) and not text[begin:end].lower().endswith("factor"):
            break
        m = _NAME_WORD.match(text, end)
        if m is None or _STOP_WORD.match(text, end) or text[end : end + 2] == "  ":
            break
        is_cell = end > begin and _CELL_WORD.match(text, end)
        if is_cell and (has_specimen or not _METHOD.match(text, end)):
            break
        end = m.end()
    m = _TAIL_UNIT.match(text, end)
    if m and end > begin and (not m["percent"] or _unit_follows(text, m.end())):
        end = m.end()
    return NameCell(begin, end, known is not None) if end > begin else None


def _unit_follows(text: str, at: int) -> bool:
    return any(cell.kind == "unit" for cell in cells_of(text, at)[1:])


def cells_of(text: str, begin: int) -> list[Cell]:
    """Split the rest of a line into cells; kind `word` marks an unexplained token."""
    found: list[Cell] = []
    text = text.rstrip(" .|")
    at = begin
    while True:
        speck = _SPECK.match(text, at)
        at = speck.end() if speck else at
        m = _CELL.match(text, at)
        if m is None:
            return found
        kind = m.lastgroup or "word"
        for whole in ("paren_range", "label_range", "sexes"):
            if m[whole]:
                kind = whole
        words = m["inner"] or m["labelled"] or m[kind]
        at = m.end()
        if kind == "sexes":
            words = words.strip(" ,;/|")
            at = m.start() + len(m.group().rstrip(" ,;/|"))
        elif kind == "flag" or kind == "paren_flag":
            words = words.strip("()[]")
        kind = {
            "paren_range": "range",
            "label_range": "range",
            "sexes": "range",
            "paren_flag": "flag",
            "power": "unit",
        }.get(kind, kind)
        found.append(Cell(kind, m.start(), m.end(), words.strip()))
        if kind in ("number", "bound", "titer"):
            tail = _BEHIND.match(text, at)
            if tail is None:
                end = _token_end(text, at)
                found[-1] = Cell("word", m.start(), end, text[m.start() : end])
                at = end
            elif tail.lastgroup:
                found.append(Cell(tail.lastgroup, at, tail.end(), tail.group().strip("()")))
                at = tail.end()


def _token_end(text: str, at: int) -> int:
    m = _TOKEN.match(text, at)
    return m.end() if m else at
