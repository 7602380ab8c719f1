"""Laboratory results: rows of tables, and values in running text."""

from __future__ import annotations

import re

from pipeline.providers.local.analytes import Analyte, find_analytes
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.experiencer import person_kind
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.lab_prose import inherits, states_no_value, values_behind
from pipeline.providers.local.lab_tables import read_tables

_OTHER_PERSON = re.compile(
    r"\b(?:mother|father|mom|dad|parent|brother|sister|sibling|son|daughter|aunt|uncle|cousin"
    r"|husband|wife|spouse|partner|roommate|donor|friend|neighbor|grand(?:mother|father|parent)"
    r"|twin|fianc[eé]e?|boyfriend|girlfriend|caregiver)(?:['’]s|s['’])[ ]+(?:\w+[ ]+){0,2}$"
    r"|\b(?:donor|roommate|twin)[ ]+$",
    re.I,
)
_LONGER_NAME = re.compile(r"[A-Za-z0-9]-$|\b\d{1,2}[- ]?(?:OH|hydroxy|alpha|beta)[ -]+$", re.I)
"""The beginning of a name whose end is another analyte's name (`17-OH progesterone`)."""


def read_labs(reading: DocumentState) -> None:
    """Add every laboratory value."""
    read_tables(reading)
    _read_prose(reading)


def _read_prose(reading: DocumentState) -> None:
    dropped_end = -1
    for start, end, analyte in find_analytes(reading.tokens):
        if reading.is_claimed(start, end) or not _could_be(reading, start, end, analyte):
            continue
        sentence = reading.assertions.sentence_at(start)
        limit = max(sentence.end, end)
        values = values_behind(reading.text, sentence.start, start, end, limit, analyte)
        if not values or reading.is_claimed(start, values[-1].end):
            continue
        listed = dropped_end > sentence.start and inherits(reading.text, dropped_end, start)
        if listed or states_no_value(reading.text, sentence.start, start, end):
            dropped_end = values[-1].end
            continue
        experiencer = reading.judge(start, end).experiencer
        owner = _OTHER_PERSON.search(reading.text[max(sentence.start, start - 60) : start])
        if owner is not None:
            experiencer = person_kind(owner.group())
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
                    experiencer=experiencer if experiencer != "patient" else None,
                    rule="lab.prose.v1",
                    engine_confidence=0.9 if value.unit else 0.75,
                    zone=reading.zones.type_at(start),
                )
            )


def _could_be(reading: DocumentState, start: int, end: int, analyte: Analyte) -> bool:
    """Reject parts of longer names; accept one- and two-letter names only as listed."""
    if _LONGER_NAME.search(reading.text[max(0, start - 12) : start]):
        return False
    word = reading.text[start:end]
    return len(word) > 2 or word in analyte.names
