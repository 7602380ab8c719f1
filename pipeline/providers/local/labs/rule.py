"""Laboratory results: rows of tables, and values in running text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pipeline.clinical.page_text.lines import Sentence
from pipeline.providers.local.assertions.experiencer import person_kind
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.labs.analytes import Analyte, find_analytes
from pipeline.providers.local.labs.dated_values import SeriesDates
from pipeline.providers.local.labs.patterns import decimal_signs
from pipeline.providers.local.labs.prose import (
    ProseValue,
    inherits,
    statement_behind,
    states_no_value,
)
from pipeline.providers.local.labs.specimens import doubt_specimens
from pipeline.providers.local.labs.tables import read_tables
from pipeline.providers.local.text.latest_reading import Moment, latest_of
from pipeline.providers.local.text.tokens import tokenize

_OTHER_PERSON = re.compile(
    r"\b(?:mother|father|mom|dad|parent|brother|sister|sibling|son|daughter|aunt|uncle|cousin"
    r"|husband|wife|spouse|partner|roommate|donor|friend|neighbor|grand(?:mother|father|parent)"
    r"|twin|fianc[eé]e?|boyfriend|girlfriend|caregiver)(?:['’]s|s['’])[ ]+(?:\w+[ ]+){0,2}$"
    r"|\b(?:donor|roommate|twin)[ ]+$",
    re.I,
)
_IN_LIST = re.compile(r"[ \n]*(?:[,;/|]|and|&)?[ \n]*(?:and[ ])?(?:the[ ]|serum[ ])?")
_FLUID = re.compile(
    r"(?<![\w-])(?:(?:pleural|ascitic|ascites|peritoneal|synovial|pericardial|cerebrospinal|csf"
    r"|amniotic|joint|drain|bile|gastric)[ ]+(?:fluid[ ]+)?|(?:24[ -]?(?:hour|hr|h)[ ]+)?"
    r"(?:urine|urinary|stool|fecal|cord[ ]blood|sweat|saliva(?:ry)?)[ ]+)$",
    re.I,
)
"""The fluid before a test's name, without which the name means the test in blood."""
_VALUE_BEFORE = re.compile(r"(?<![\w.,])\d[\d.,]*[ ]?[%+][ ]$|(?<=[A-Za-z,(] )\d[\d.,]*[ ]$")
_NUMBER_CELL = re.compile(
    r"(?:^|(?<=[ ]))[<>≤≥]?[ ]?\d[\d.,]*(?:[ ]?[-–][ ]?\d[\d.,]*)?(?:\^[a-z1-9])?(?=[ ])"
    r"(?![ ]?[:)])"
)
_FUNCTION_WORD = re.compile(
    r"\b(?:is|was|were|are|the|and|with|of|on|for|to|in|at|had|has|his|her|patient|from|after|then"
    r"|but|a|an|labs?|notable|showed|shows|including|by|mg|mcg|mEq|units?)\b|[:;,]",
    re.I,
)
"""Words and signs of running text, which no row of numbers has."""
_PRESCRIBED = frozenset(
    {"digoxin", "lithium", "magnesium", "mag", "calcium", "iron", "zinc", "folate", "folic acid"}
    | {"vitamin d", "vitamin b12", "vit b12", "b12", "testosterone", "estradiol", "progesterone"}
)
"""Substances that are measured and prescribed: `Digoxin 0.125` can be a level or a dose."""
_LEVEL = re.compile(
    r"\b(?:levels?|serum|labs?|trough|result(?:s|ed)?|is|was|were|of|at|=)\b|[:=]", re.I
)
_LONGER_NAME = re.compile(r"[A-Za-z0-9]-$|\b\d{1,2}[- ]?(?:OH|hydroxy|alpha|beta)[ -]+$", re.I)
"""The beginning of a name whose end is another analyte's name (`17-OH progesterone`)."""


def read_labs(reading: DocumentState) -> None:
    """Add every laboratory value."""
    first = len(reading.findings)
    read_tables(reading)
    _read_prose(reading)
    _doubt_signs(reading, first)
    doubt_specimens(reading, first)


def _doubt_signs(reading: DocumentState, first: int) -> None:
    """Take back values whose decimal sign contradicts the other values of the source."""
    signs = {
        at: decimal_signs(f"{found.value} {found.reference_range or ''}")
        for at, found in enumerate(reading.findings[first:], start=first)
        if found.category == "lab" and found.value
    }
    counts = Counter(sign for proved in signs.values() for sign in proved)
    if len(counts) < 2:
        return
    most = max(counts.values())
    usual = {sign for sign, count in counts.items() if count == most}
    for at, proved in signs.items():
        if proved and (len(usual) > 1 or not proved <= usual):
            found = reading.findings[at]
            unclear = _not_understood(reading, found.start, found.head_end, found.end)
            reading.findings[at] = replace(unclear, name=found.name)


def _read_prose(reading: DocumentState) -> None:
    dropped_end = -1
    text = reading.unstruck
    times = SeriesDates(reading.date_order, reading.own_day)
    dated: dict[str, list[tuple[int, Moment]]] = {}
    last_end, lead = -1, None
    for start, end, analyte in find_analytes(reading.tokens):
        if reading.is_claimed(start, end) or not _could_be(reading, start, end, analyte):
            continue
        sentence = reading.assertions.sentence_at(start)
        fluid = _FLUID.search(text, max(sentence.start, start - 40), start)
        start = fluid.start() if fluid else start
        limit = max(sentence.end, end)
        last_end_before = last_end
        in_list = 0 <= last_end <= start and _IN_LIST.fullmatch(text, last_end, start)
        place = (sentence.start, start, end, limit)
        statement = statement_behind(text, place, analyte, times, lead if in_list else None)
        values = statement.values
        last_end, lead = (values[-1].end, statement.lead) if values else (-1, None)
        if not values or reading.is_claimed(start, values[-1].end):
            continue
        if values and _is_behind_its_value(text, start, last_end_before):
            continue
        if values and _is_in_row(text, start, end, values[0], last_end_before):
            reading.add(_not_understood(reading, start, end, values[-1].end))
            continue
        listed = dropped_end > sentence.start and inherits(text, dropped_end, start)
        if listed or states_no_value(text, sentence.start, start, end):
            dropped_end = values[-1].end
            continue
        experiencer = reading.judge(start, end).experiencer
        owner = _OTHER_PERSON.search(reading.text[max(sentence.start, start - 60) : start])
        if owner is not None:
            experiencer = person_kind(owner.group())
        perhaps_dose = not in_list and _is_perhaps_dose(reading, sentence, start, end, values)
        if perhaps_dose or not statement.understood:
            reading.add(_not_understood(reading, start, end, values[-1].end))
            continue
        if statement.when is not None:
            name = own_words(text[start:end]).lower()
            dated.setdefault(name, []).append((len(reading.findings), statement.when))
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
                    date=value.day,
                    experiencer=experiencer if experiencer != "patient" else None,
                    rule="lab.prose.v1",
                    engine_confidence=0.9 if value.unit else 0.75,
                    zone=reading.zones.type_at(start),
                )
            )
    for name, readings in dated.items():
        _settle(reading, readings)
        _settle_undated(reading, name, readings)


def _settle_undated(reading: DocumentState, name: str, readings: list[tuple[int, Moment]]) -> None:
    """Make a value of an earlier day historical if a value without a date follows it."""
    own = reading.own_day
    dated = {at for at, _ in readings}
    current = any(
        found.category == "lab"
        and found.name.lower() == name
        and found.value
        and found.date is None
        and found.temporality is None
        for at, found in enumerate(reading.findings)
        if at not in dated
    )
    for at, moment in readings if current and own else ():
        if moment.day is not None and own is not None and moment.day < own.isoformat():
            reading.findings[at] = replace(reading.findings[at], temporality="historical")


def _is_behind_its_value(text: str, start: int, last_end: int) -> bool:
    """Return whether the value is printed before the name (`85% neutrophils`)."""
    m = _VALUE_BEFORE.search(text, max(0, start - 12), start)
    return m is not None and m.start() >= last_end


def _settle(reading: DocumentState, readings: list[tuple[int, Moment]]) -> None:
    """Let the latest of several statements with a date be the current one."""
    if len(readings) < 2 or len({moment.keys for _, moment in readings}) < 2:
        return
    latest = latest_of([moment for _, moment in readings])
    for place, (at, _) in enumerate(readings):
        found = reading.findings[at]
        if latest is None:
            unclear = _not_understood(reading, found.start, found.head_end, found.end)
            reading.findings[at] = unclear
        elif place != latest:
            reading.findings[at] = replace(found, temporality="historical")


def _is_perhaps_dose(
    reading: DocumentState, sentence: Sentence, start: int, end: int, values: Sequence[ProseValue]
) -> bool:
    """Return whether a bare number behind a prescribed substance can be a dose."""
    if own_words(reading.text[start:end]).lower() not in _PRESCRIBED:
        return False
    if len(values) > 1 or values[0].unit or values[0].reference_range or values[0].flag:
        return False
    if reading.zones.type_at(start) == "labs":
        return False
    around = reading.text[sentence.start : start] + reading.text[end : sentence.end]
    has_neighbor = any(True for _ in find_analytes(tokenize(around)))
    return not has_neighbor and _LEVEL.search(around) is None


def _not_understood(reading: DocumentState, start: int, head_end: int, end: int) -> Finding:
    """Return a statement with an unexplained number: its name and its quote, without a value."""
    return Finding(
        category="lab",
        start=start,
        end=end,
        head_end=head_end,
        name=own_words(reading.text[start:head_end]),
        rule="lab.prose-not-understood.v1",
        engine_confidence=0.5,
        zone=reading.zones.type_at(start),
    )


def _is_in_row(text: str, start: int, end: int, value: ProseValue, last_end: int) -> bool:
    """Return whether the words are cells of a row whose columns are unknown.

    A number before the name belongs to the row. A value on the next line belongs to the next row.
    """
    first = max(text.rfind("\n", 0, start) + 1, last_end)
    before = text[first:start]
    if not _FUNCTION_WORD.search(before) and _NUMBER_CELL.search(before.lstrip()):
        return True
    place = text.rfind("\n", end, value.end)
    if place < 0 or text[place:].lstrip()[:1].isalpha():
        return False
    stop = text.find("\n", value.end)
    rest = text[value.end : stop if stop >= 0 else len(text)]
    return bool(re.search(r"[A-Za-z]{2}|\d", rest.split("(")[0]))


def _could_be(reading: DocumentState, start: int, end: int, analyte: Analyte) -> bool:
    """Reject parts of longer names; accept one- and two-letter names only as listed."""
    if _LONGER_NAME.search(reading.text[max(0, start - 12) : start]):
        return False
    word = reading.text[start:end]
    return len(word) > 2 or word in analyte.names
