"""CSV: one row for each entity, after RFC 4180, in UTF-8 with a byte order mark.

A spreadsheet runs a cell that begins like a formula. Such a text gets an apostrophe in front. A
text that begins with an apostrophe gets a second one, so a reader takes away exactly one.
A number of the column `value`, such as `-2.5`, stays as it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

from pipeline.exports.columns import COLUMNS, Column, ColumnKind, json_text
from pipeline.exports.source import RecordSource

MARK = "\ufeff"
"""The byte order mark, by which spreadsheets recognise UTF-8."""
ESCAPE = "'"
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_UNSEEN = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*"
_FORMULA = re.compile(rf"{_UNSEEN}[=+\-@＝＋－＠﹦﹢﹣﹫−]|[\t\r\n']")
"""How a formula begins (OWASP, `CSV Injection`), with wide and small forms, the minus sign, blanks
and unseen characters; and the escape."""
NOTE = "notice"
"""The last column: what the reader must know about the record, in every row."""
_HEADER = (*(column.name for column in COLUMNS), NOTE)


class _LastLine:
    """The file of `csv.writer`, which keeps the one line that was written last."""

    text = ""

    def write(self, text: str) -> int:
        """Keep the line."""
        self.text = text
        return len(text)


def csv_table(source: RecordSource) -> Iterator[str]:
    """Yield the table, line by line; without entities one row holds the notice."""
    line = _LastLine()
    # With quotes, a program that also divides at semicolons or tabs finds the same cells.
    writer = csv.writer(line, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(_HEADER)
    yield MARK + line.text
    record, note = source.record, " ".join(source.record.notices)
    is_empty = True
    for entity in source.entities():
        is_empty = False
        writer.writerow([*(_cell(c, c.value(record, entity)) for c in COLUMNS), note])
        yield line.text
    if is_empty and note:
        of_record = {"record_id": str(record.id), "generation": str(record.generation)}
        of_record["record_incomplete"] = _word(record.is_incomplete)
        writer.writerow([*(of_record.get(c.name, "") for c in COLUMNS), note])
        yield line.text


def shown(text: str) -> str:
    """Return a text as a cell that no spreadsheet runs."""
    return f"{ESCAPE}{text}" if _FORMULA.match(text) else text


def _cell(column: Column, value: Any) -> str:
    if value is None:
        return ""
    if column.kind is ColumnKind.BOOLEAN:
        return _word(value)
    if column.kind in (ColumnKind.INTEGER, ColumnKind.FLOAT, ColumnKind.DATE):
        return str(value)
    if column.kind is ColumnKind.NUMBER_TEXT and _NUMBER.fullmatch(value):
        return str(value)
    if column.kind is ColumnKind.LIST:
        return shown(" ".join(value))
    return shown(json_text(value) or "" if column.kind is ColumnKind.JSON else value)


def _word(value: bool) -> str:
    return "true" if value else "false"
