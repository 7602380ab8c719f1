"""Every example of the page for clinicians is what the engine and the checks of Pass 1 publish."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from evaluation.attributes import COLUMNS
from evaluation.expectations import ASIDE
from evaluation.published import ANY, ReadText, Row, publish
from pipeline.core.types import PageText
from pipeline.providers.schemas import EntityReply, FoundEntity
from pipeline.stages.pass1.review_flags import Flag
from tests.support.generator.published import HEAD

PAGE = (Path(__file__).parents[2] / "docs" / "for-clinicians.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(
    r"```text(?: scan (?P<confidence>\d+))?\n(?P<text>(?:(?!```).)*?)\n```\n\n"
    r"(?:```json\n(?P<reply>(?:(?!```).)*?)\n```\n\n)?"
    r"\| entry \| published \| flags \| accepted \|\n\|[-|]+\|\n(?P<table>(?:\|[^\n]*\|\n)+)",
    re.S,
)
NEXT_PAGE = "\n--- next page ---\n"
CODES = re.compile(r"^### `(\w+)`", re.M)
OTHER_NEXT_PAGE = "\n--- next page ---\n"


class Example(NamedTuple):
    """One example of the page."""

    text: str
    confidence: float | None
    """The confidence of every word, if the page is a scan."""
    reply: str | None
    rows: list[list[str]]


def examples() -> list[Example]:
    found = []
    for match in EXAMPLE.finditer(PAGE):
        lines = match["table"].strip().split("\n")
        rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
        confidence = float(match["confidence"]) if match["confidence"] else None
        found.append(Example(match["text"], confidence, match["reply"], rows))
    return found


def rows_of(example: Example) -> Sequence[Row]:
    texts = [f"{HEAD}{text}\n" for text in example.text.split(NEXT_PAGE)]
    pages = {
        number: ReadText(text=text, ocr_words=_words(text, example.confidence))
        for number, text in enumerate(texts, start=1)
    }
    if example.reply is None:
        return publish(pages).rows
    entities = [FoundEntity.model_validate(each) for each in json.loads(example.reply)]

    def answer(_: Sequence[PageText]) -> EntityReply:
        return EntityReply(item_token=ANY.hex, entities=entities)

    return publish(pages, answer).rows


def _words(text: str, confidence: float | None) -> list[tuple[int, int, float]]:
    if confidence is None:
        return []
    return [(*word.span(), confidence) for word in re.finditer(r"\S+", text)]


def columns(words: str) -> dict[str, object]:
    """Return the columns that a cell such as `value 4.1, step 2` states."""
    names = {attribute: column for column, attribute in reversed(COLUMNS.items())}
    names |= {"negated": "negated", "previous dose": "previous_dose"}
    stated: dict[str, object] = {}
    for part in filter(None, words.split(", ")):
        name = next(n for n in sorted(names, key=len, reverse=True) if part.startswith(f"{n} "))
        value = part.removeprefix(f"{name} ")
        stated[names[name]] = True if value == "yes" else value
    return stated


def fits(row: Row, cells: list[str]) -> bool:
    entry, published, flags, accepted = cells
    category, _, name = entry.partition(" ")
    return (
        row["category"] == category
        and name.lower() in row["name"].lower()
        and all(_same(row[column], value) for column, value in columns(published).items())
        and sorted(row["review_flags"]) == sorted(filter(None, flags.split(", ")))
        and row["accepted"] is (accepted == "yes")
    )


def _same(found: object, value: object) -> bool:
    return found is value if value is True else str(found) == value


def is_current(row: Row) -> bool:
    is_aside = any(row[column] in values for column, values in ASIDE.items())
    return bool(row["accepted"]) and not row["review_flags"] and not is_aside


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.text.split("\n")[-1][:40])
def test_an_example_is_what_is_published(example: Example) -> None:
    rows = list(rows_of(example))

    for cells in example.rows:
        category = cells[0].partition(" ")[2]
        if cells[0].startswith("no current "):
            name = category.partition(" ")[2].lower()
            assert not any(is_current(row) and name in row["name"].lower() for row in rows), cells
        elif cells[0].startswith("no "):
            assert not any(row["category"] == category for row in rows), cells
        else:
            assert any(fits(row, cells) for row in rows), (cells, _shown(rows))


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.text.split("\n")[-1][:40])
def test_an_example_hides_no_current_entry(example: Example) -> None:
    listed = [cells for cells in example.rows if not cells[0].startswith("no ")]

    current = [row for row in rows_of(example) if is_current(row)]

    assert all(any(fits(row, cells) for cells in listed) for row in current), _shown(current)


def _shown(rows: Sequence[Row]) -> list[dict[str, object]]:
    hidden = ("id", "page_number", "char_start", "char_end", "confidence", "engine_confidence")
    return [
        {k: v for k, v in row.items() if v and k not in hidden and not k.endswith("_id")}
        for row in rows
    ]


def test_the_page_explains_every_flag() -> None:
    assert set(CODES.findall(PAGE)) == set(Flag)


def test_the_page_has_an_example_of_each_flag() -> None:
    shown = {
        flag for example in examples() for cells in example.rows for flag in cells[2].split(", ")
    }

    # The database sets the one flag beside the decision of a reviewer (`test_locked_fields.py`).
    # Only a drawn page can hide words (`test_suspect_pages.py`).
    of_the_engine = set(Flag) - {Flag.REVIEWED_PLACE, Flag.HIDDEN_TEXT}
    assert {flag.partition(":")[0] for flag in shown} >= of_the_engine
