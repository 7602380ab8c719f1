"""Vital signs in running text, in lists and in flowsheets.

A value that no living body can show is not read. A statement with an unexplained number is reported
without its value.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pipeline.clinical.date_forms import DATE_FORM
from pipeline.clinical.page_text.lines import bullet_end
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.text.latest_reading import Moment, days_of, latest_of, moment_of
from pipeline.providers.local.vitals.context import (
    is_earlier,
    is_expected,
    is_heading_of_goals,
    owner_of,
)
from pipeline.providers.local.vitals.findings import found_vital, not_understood
from pipeline.providers.local.vitals.flowsheets import read_flowsheets
from pipeline.providers.local.vitals.grammar import read_statement
from pipeline.providers.local.vitals.reading import VitalReading
from pipeline.providers.local.vitals.tables import read_vital_tables
from pipeline.providers.local.vitals.vital_signs import (
    BP,
    NAMES,
    NO_BODY,
    SPO2,
    Vital,
    plausible,
    vital_of,
)

_PAIN_ONLY = re.compile(r"score|level|scale|rating|intensity", re.I)
_BARE_SPO2 = re.compile(
    (
        r"(?<![\w./-])(?P<value>\d{2,3})[ ]?(?P<unit>%)[ ]*(?:on[ ]|with[ ])?(?:RA\b|room[ ]air"
        r"|\d+(?:\.\d)?[ ]?L(?:iters)?(?:/min)?\b[ ]?(?:NC|O2|nasal)?)"
    ),
    re.I,
)
_OF_ONE_PRESSURE = re.compile(r"[SD]BPs?[ ]*(?:of|is|was|[:=<>≤≥])*[ ]*\d")
_OF_MAXIMUM = re.compile(r"T[ -]?max|Tm", re.I)
"""Names of a highest value: a further value is another thing."""
_BARE_BP = re.compile(r"(?<![\w./])(?P<value>\d{2,3}/\d{2,3})[ ]?(?P<unit>mm[ ]?Hg)", re.I)
_COMPARED = re.compile(r"(?:[<>≤≥=]|\b(?:than|over|above|below|under|to))[ ]*$", re.I)
_EARLIER = re.compile(
    r"\b(?:baseline|previous|prior|last|earlier|former|past|old|yesterday['’]?s?"
    r"|lowest|highest|nadir|peak|max(?:imum|imal)?|min(?:imum|imal)?"
    r"|last[ ](?:visit|week|month"
    r"|year)['’]?s?)(?:[ ](?:recorded|known|documented|visit|clinic|office))?[ ]+$",
    re.I,
)
_DATED = re.compile(rf"\bon[ ]({DATE_FORM}),?[ ](?:(?:his|her|the|their|patient's)[ ])?$", re.I)
_BEFORE = 240
"""The most characters before a name that can make its values goals or conditions."""
_BESIDE_REACH = 40
"""The most characters between the vital signs of two lines."""
_MAX_BULLETS = 8
_TOLD = re.compile(r"[ ]+(?:was|is|of|at)[ ]+", re.I)
"""The words of a sentence between a pulse and its value."""
_BESIDE = re.compile(
    r"\b(?:BP|HR|RR|SpO2|pulse|temp|BMI|vitals?|vs|weight|height|wt|ht|vit|satur\w+)\b", re.I
)


def read_vitals(reading: DocumentState) -> None:
    """Add every vital sign.

    Flowsheets are read first, so that their headings are not read as names.
    """
    read_vital_tables(reading)
    read_flowsheets(reading)
    goal_lines = _lines_of_goals(reading)
    at = reach = 0
    explained = bytearray(len(reading.unstruck))
    for m in NAMES.finditer(reading.unstruck):
        if m.start() >= at and not reading.is_claimed(m.start(), m.end()):
            at, reach = _read(reading, vital_of(m), m, goal_lines)
            explained[m.start() : reach] = b"\1" * (reach - m.start())
        if _OF_ONE_PRESSURE.match(reading.unstruck, m.start()):
            # The same letters can mean a disease.
            reading.claim(m.start(), m.end())
    for vital, bare in ((SPO2, _BARE_SPO2), (BP, _BARE_BP)):
        for m in bare.finditer(reading.unstruck):
            span = m.start("value"), m.end("unit")
            if reading.is_claimed(*span) or explained.find(1, *span) >= 0:
                continue
            compared = _COMPARED.search(reading.unstruck, max(0, span[0] - 12), span[0])
            if not plausible(vital, m["value"]) or compared:
                continue
            if not _is_expected(reading, m.start(), goal_lines):
                reading.add(found_vital(reading, vital, span, vital.key, m["value"], m["unit"]))


def _read(
    reading: DocumentState, vital: Vital, m: re.Match[str], goal_lines: frozenset[int]
) -> tuple[int, int]:
    """Add the readings behind one name.

    Return where the next name can begin, and where the explained words end.
    """
    start, name, text = m.start(), m["name"], reading.unstruck
    if NO_BODY.search(text, max(0, start - 14), start):
        return m.end(), m.end()
    goal = _is_expected(reading, start, goal_lines)
    statement = read_statement(text, vital, m.end(), goal=goal)
    readings = [r for r in statement.readings if not reading.is_claimed(r.start, r.end)]
    if not readings or not _is_sure(reading, vital, m, readings[0]):
        end = max(m.end(), statement.end) if statement.readings else m.end()
        return end, statement.reach
    if not statement.understood:
        reading.add(not_understood(reading, vital, name, start, statement.end))
        return statement.end, statement.reach
    first = text[start : m.end()]
    own = _own_before(reading, start)
    owner = owner_of(own)
    dated = _DATED.search(own)
    earlier = _EARLIER.search(own) is not None or is_earlier(own)
    if dated is not None and readings[0].day is None:
        readings[0].day = dated[1]
    moments = [_moment(reading, part) for part in readings]
    latest = latest_of(moments) if len(readings) > 1 and None not in moments else 0
    if latest is None and len({days_of(moment) for moment in moments}) > 1:
        reading.add(not_understood(reading, vital, name, start, statement.end))
        return statement.end, statement.reach
    latest_days = days_of(moments[latest or 0])
    for index, (part, moment) in enumerate(zip(readings, moments, strict=True)):
        if index and not (part.now or part.earlier) and _base_name(first) != first:
            continue
        if index and _OF_MAXIMUM.fullmatch(first):
            continue
        begins = start if index == 0 else part.start
        words = _base_name(first) if index and part.now else first
        begins = start if words != first else begins
        found = found_vital(reading, vital, (begins, part.end), words, part.value, part.unit)
        past = part.earlier or (earlier and not part.now) or _is_older(reading, part, moment)
        past = past or (None not in moments and days_of(moment) != latest_days)
        reading.add(
            replace(
                found,
                temporality="historical" if past else found.temporality,
                experiencer=owner or found.experiencer,
                date=moment.day if moment else None,
            )
        )
    return max(m.end(), statement.end), statement.reach


def _base_name(name: str) -> str:
    """Return the plain name: `Dry weight 82 kg, today 86 kg` names two different weights."""
    words = name.split()
    return words[-1] if words[-1].lower() in ("weight", "wt") else name


def _own_before(reading: DocumentState, start: int) -> str:
    """Return the words of the sentence before `start`."""
    first = max(reading.assertions.sentence_at(start).start, start - _BEFORE)
    return reading.unstruck[first:start]


def _is_expected(reading: DocumentState, start: int, goal_lines: frozenset[int]) -> bool:
    """Return whether the words or the heading before `start` state a goal or a condition."""
    if is_expected(_own_before(reading, start)):
        return True
    zone = reading.zones.at(start)
    if (
        zone is not None
        and zone.heading
        and re.search(r"\b(?:goals?|targets?)\b", zone.heading, re.I)
    ):
        return True
    return reading.line_at(start) in goal_lines


def _lines_of_goals(reading: DocumentState) -> frozenset[int]:
    """Return the indexes of the list items below a heading such as `Call your doctor if:`."""
    found: list[int] = []
    left = 0
    for index, line in enumerate(reading.lines):
        text = line.text[:_BEFORE]
        if not text.strip():
            continue
        if bullet_end(text) == len(text) - len(text.lstrip()):
            left = _MAX_BULLETS if is_heading_of_goals(text) else 0
        elif left:
            found.append(index)
            left -= 1
    return frozenset(found)


def _is_sure(reading: DocumentState, vital: Vital, m: re.Match[str], first: VitalReading) -> bool:
    """Return whether a doubtful name or a bare number is a vital sign at this place."""
    name = m["name"]
    if len(name) == 1 and not _beside_vitals(reading, m.start(), first.end):
        return False
    if vital.key == "pain" and "10" not in first.value and not _PAIN_ONLY.search(name):
        return False
    bare = not first.unit and first.value.replace(",", "").replace(".", "").isdigit()
    if name == "HR" or name.lower() == "heart rate":
        return True
    if vital.key == "HR" and _TOLD.fullmatch(reading.unstruck, m.end(), first.start):
        return True
    if vital.key in ("height", "weight", "HR") and bare:
        return _beside_vitals(reading, m.start(), first.end)
    return True


def _beside_vitals(reading: DocumentState, start: int, end: int) -> bool:
    """Return whether a doubtful mark is in a vitals section or beside another vital sign."""
    if reading.zones.type_at(start) == "vitals":
        return True
    text = reading.unstruck
    last = reading.findings[-1] if reading.findings else None
    if last is not None and last.category == "vital" and last.value and last.end <= start:
        between = text[last.end : start]
        if len(between) <= _BESIDE_REACH and between.count("\n") == 1:
            return True
    first = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    line = text[first:start] + " " + text[end : stop if stop >= 0 else len(text)]
    return bool(_BESIDE.search(line)) or bool(re.search(r"\b\d{2,3}/\d{2,3}\b", line))


def _moment(reading: DocumentState, part: VitalReading) -> Moment | None:
    """Return the date beside a reading."""
    words = part.day or part.part
    return moment_of(words, reading.date_order, reading.own_day) if words else None


def _is_older(reading: DocumentState, part: VitalReading, moment: Moment | None) -> bool:
    """Return whether a reading has a date other than the document's own date."""
    if part.day is not None:
        return part.day not in reading.own_dates
    own = reading.own_day
    return bool(part.part and moment and moment.day and own and moment.day < own.isoformat())
