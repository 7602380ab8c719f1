"""The day of a measurement, as the text around the measurement states the day.

A table without a day of its own (`EARLIER RESULTS`, home readings by weekday) has no day: the day
of the visit would be wrong there.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable

_UNDATED = re.compile(
    r"^(?:EARLIER RESULTS|RESULTS REVIEWED$|HOME READINGS|LAST RESULTS|LABORATORY DATA, LAST)"
)
_DATED = re.compile(
    r"(?:^(?:PROGRESS NOTE|RESULTS|RESULTS REVIEWED|PROCEDURE NOTE|REPEAT|LABORATORY|ADMISSION LAB"
    r"|DISCHARGE LAB|SERIAL VITAL|MEDICATION ADMINISTRATION)\b.*|^Basic metabolic panel of )"
    r"(\d\d)/(\d\d)/(\d{4})"
)
_LETTER = re.compile(r"^Laboratory results of July 5, 2024")
_SECTION = re.compile(
    r"^(?:Electrocardiogram today|VITAL SIGNS|PHYSICAL EXAM|EXAMINATION|IMPRESSION|ASSESSMENT"
    r"|PLAN)\b"
)
_ROW = re.compile(r"^(\d\d)/(\d\d) \d\d:\d\d ")
_HOME_ROW = re.compile(r"^July (\d) ")


def days(start: dt.date, end: dt.date | None, lines: Iterable[str]) -> list[dt.date | None]:
    """Return the day that each printed line of an encounter belongs to."""
    found: list[dt.date | None] = []
    current: dt.date | None = start
    for line in lines:
        if _UNDATED.match(line):
            current = None
        elif _LETTER.match(line):
            current = dt.date(2024, 7, 5)
        elif match := _DATED.search(line):
            current = dt.date(int(match[3]), int(match[1]), int(match[2]))
        elif end is None and _SECTION.match(line):
            current = start
        elif end and re.match(r"^(?:At discharge:|VITAL SIGNS AT DISCHARGE)", line):
            current = end
        elif end and line.startswith("NURSING FLOWSHEET"):
            current = None
        found.append(_of_row(line, start) or current)
    return found


def _of_row(line: str, start: dt.date) -> dt.date | None:
    if match := _ROW.match(line):
        return dt.date(start.year, int(match[1]), int(match[2]))
    if match := _HOME_ROW.match(line):
        return dt.date(start.year, 7, int(match[1]))
    return None
