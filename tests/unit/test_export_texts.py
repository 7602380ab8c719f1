"""CSV that no spreadsheet runs, and HTML that no text of a document can change."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.exports.columns import COLUMNS
from pipeline.exports.csv_table import csv_table, shown
from pipeline.exports.html_page import html_page
from pipeline.exports.rows import PageRow
from tests.support.export_rows import MemorySource, a_record, an_entity

HOSTILE = '</pre><script>alert(1)</script><img src=x onerror="alert(1)"> & \u202egnp'


def table(source: MemorySource) -> list[dict[str, str]]:
    text = "".join(csv_table(source)).removeprefix("\ufeff")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def page(*entities: Any, text: str, **record: Any) -> str:
    pages = [PageRow(1, text, "text_layer"), PageRow(2, "second page", "text_layer")]
    return "".join(html_page(MemorySource(a_record(**record), entities, pages)))


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        "＝1",
        "'=1",
        "--2",
        "\u200b=1",
        "\ufeff@x",
        "\x01+1",
        "\u3000=1",
        "﹦1",
        "−1+1",
    ],
)
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    (row,) = table(MemorySource(rows=[an_entity(name=text, value=text.replace("-1", "-1x"))]))

    assert row["name"] == f"'{text}"
    assert row["value"][0] == "'"


@pytest.mark.parametrize("number", ["-2.5", "5.10", "0", "-7", "10"])
def test_a_number_of_the_column_value_stays_a_number(number: str) -> None:
    (row,) = table(MemorySource(rows=[an_entity(value=number)]))

    assert row["value"] == number


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_one_apostrophe_taken_away_gives_the_text_back(text: str) -> None:
    cell = shown(text)

    assert cell.removeprefix("'") == text if cell != text else not text.startswith("'")
    assert not re.match(r"[\s\x00-\x1f\u200b\ufeff]*[=+\-@]", cell)


def test_quotes_commas_and_line_ends_come_back_from_a_cell() -> None:
    quote = 'a, "b"\r\nc\nd'

    (row,) = table(MemorySource(rows=[an_entity(quote=quote, attributes={"x": ['"', ","]})]))

    assert row["quote"] == quote
    assert row["attributes"] == '{"x": ["\\"", ","]}'
    assert list(row) == [*(column.name for column in COLUMNS), "notice"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_text_with_another_separator_is_one_cell_for_programs_that_divide_there(
    separator: str,
) -> None:
    quote = f"a{separator}=1+1"

    text = "".join(csv_table(MemorySource(rows=[an_entity(quote=quote)])))

    assert f'"{quote}"' in text
    (row,) = table(MemorySource(rows=[an_entity(quote=quote)]))
    assert row["quote"] == quote


def test_an_incomplete_record_without_entities_still_says_so() -> None:
    record = a_record(incomplete_note="Record incomplete: Pass 1 failed.")

    (row,) = table(MemorySource(record))

    assert row["record_incomplete"] == "true"
    assert row["notice"].startswith("Record incomplete: Pass 1 failed.")


class Elements(HTMLParser):
    """Collects the elements and attributes of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_no_text_of_a_document_becomes_an_element() -> None:
    entity = an_entity(
        name=HOSTILE, category=HOSTILE, quote=HOSTILE, value=HOSTILE, code=HOSTILE,
        code_system=HOSTILE, temporality=HOSTILE, review_flags=[HOSTILE], char_end=9,
    )  # fmt: skip
    harmless = page(an_entity(), text="asthma")

    made = page(
        entity, text=HOSTILE, pseudonym=HOSTILE, incomplete_note=HOSTILE,
        warnings=[{"message": HOSTILE, "code": "X"}],
    )  # fmt: skip

    found, plain = Elements(made), Elements(harmless)
    assert found.names - {"ul", "li", "b"} <= plain.names
    assert found.attributes <= plain.attributes
    assert not {"script", "img"} & found.names
    assert "\u202e" not in made
    assert "default-src 'none'" in made.replace("&#x27;", "'")


def test_each_mark_has_a_shape_and_a_word_and_flags_are_signs() -> None:
    made = page(
        an_entity(1, category="lab", char_start=0, char_end=7, review_flags=["relocated"]),
        an_entity(2, negated=True, char_start=8, char_end=14),
        text="glucose asthma",
    )

    assert '<mark class="k-lab">glucose</mark>' in made
    assert "■1⚑" in made
    assert "▲2⊘" in made
    assert "■ lab" in made
    assert "denied" in made


def test_the_text_of_a_page_is_whole_whatever_overlaps() -> None:
    text = "chronic kidney disease stage 3"
    made = page(
        an_entity(1, char_start=0, char_end=22),
        an_entity(2, char_start=8, char_end=30),
        an_entity(3, char_start=None, char_end=None, accepted=False, alignment="unaligned"),
        text=text,
    )

    (shown_text,) = re.findall(r"<pre>(.*?)</pre>", made.split("Page 2")[0], re.DOTALL)
    assert re.sub(r"<sup>.*?</sup>|<[^>]+>", "", shown_text) == text
    assert "its text is not on the page" in made


def test_a_quote_over_two_pages_is_marked_on_both() -> None:
    made = page(
        an_entity(1, quote="first page\nsecond", char_start=0, char_end=6, page_end=2),
        text="first page",
    )

    assert '<mark class="k-condition">first page</mark>' in made
    assert '<mark class="k-condition">second</mark>' in made


def test_an_entity_of_a_page_without_a_stored_text_is_shown() -> None:
    made = page(an_entity(page_number=7, name="gout"), text="asthma")

    assert "gout" in made.split("Page 7")[1]


def test_a_page_with_held_text_says_so_and_a_warning_names_its_pages() -> None:
    pages = [PageRow(6, "", "text_layer", is_held=True), PageRow(7, "asthma", "text_layer")]
    warning = {"code": "X", "message": "These pages name another patient.", "pages": [6]}

    made = "".join(html_page(MemorySource(a_record(warnings=[warning]), page_rows=pages)))

    assert "These pages name another patient. (page 6)" in made
    before, after = made.split('<section aria-labelledby="p7">')
    assert "names, or may belong to, another patient" in before
    assert "another patient" not in after


def test_title_and_notices_come_first() -> None:
    made = page(an_entity(), text="asthma", incomplete_note="Record incomplete: x.")

    head = made.split("<h2>")[0]
    assert "Record incomplete: x." in head
    assert "Not reviewed by a person" in head
    assert "<title>Record 00000000-" in head
