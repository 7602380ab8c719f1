"""Adds the truth of Passes 1.5 to 3 to the truth of a printed record."""

from __future__ import annotations

import datetime as dt

from samples import truth
from samples.clinical import dates, entities, lists, narratives
from samples.layout import Book, LineLayout
from samples.markup import Mention

_CELLS = 5
"""A row of a medication table has this number of cells or more."""


def extend(name: str, book: Book, record: truth.Record) -> truth.Record:
    """Return `record` with codes, structured values, lists and facts of narratives."""
    encounters = [
        encounter.model_copy(update={"entities": _entities(name, book, encounter)})
        for encounter in record.encounters
    ]
    found = record.model_copy(update={"encounters": encounters})
    return found.model_copy(
        update={"lists": lists.of(name, found), "narratives": narratives.BY_RECORD.get(name, [])}
    )


def _entities(name: str, book: Book, encounter: truth.EncounterTruth) -> list[truth.EntityTruth]:
    layout = book.encounters[encounter.index]
    lines = [line for sheet in book.sheets for line in sheet.lines if line.encounter is layout]
    days = dates.days(encounter.date_start, encounter.date_end, (line.text for line in lines))
    printed = [
        (line, day, mention)
        for line, day in zip(lines, days, strict=True)
        for mention in line.mentions
    ]
    return [
        entity.model_copy(
            update={
                "clinical": entities.truth_of(entity, _place(name, encounter, line, day, mention))
            }
        )
        for entity, (line, day, mention) in zip(encounter.entities, printed, strict=True)
    ]


def _place(
    name: str,
    encounter: truth.EncounterTruth,
    line: LineLayout,
    day: dt.date | None,
    mention: Mention,
) -> entities.SampleSetting:
    others = [m for m in line.mentions if m.category in ("condition", "symptom")]
    row = mention is line.mentions[0] and len(line.segments) >= _CELLS
    return entities.SampleSetting(
        record=name,
        encounter=encounter.index,
        visit=encounter.date_start,
        day=day,
        indication=others[0].name if row and others else None,
    )
