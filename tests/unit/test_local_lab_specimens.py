"""A value that the laboratory doubts is left out, and an earlier value is not present."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page

SODIUM = "Sodium   140   135-145 mmol/L"
POTASSIUM = "Potassium   6.8  H   3.5-5.0 mmol/L"
GLUCOSE = "Glucose   99   70-100 mg/dL"


def labs(*lines: str) -> list[FoundEntity]:
    text = "\n".join(lines) + "\n"
    return [entity for entity in ask(page(text)).entities if entity.category == "lab"]


def values(*lines: str) -> dict[str, str | None]:
    return {entity.name.lower(): entity.value for entity in labs(*lines)}


@pytest.mark.parametrize(
    "doubt",
    [
        "HEMOLYZED SPECIMEN",
        "haemolysed",
        "(grossly hemolyzed)",
        "- hemolysis",
        "CLOTTED",
        "lipemic sample",
        "Specimen contaminated",
        "mislabeled specimen",
        "falsely elevated",
        "drawn above IV",
        "result may be affected",
        "interpret with caution",
    ],
)
def test_a_doubt_in_the_row_of_a_value_leaves_the_value_out(doubt: str) -> None:
    assert values(f"{POTASSIUM}   {doubt}", SODIUM) == {"potassium": None, "sodium": "140"}


@pytest.mark.parametrize(
    "comment",
    [
        "Comment: specimen hemolyzed, result may be falsely elevated",
        "Hemolyzed specimen.",
        "Note: hemolysis present",
        "** Grossly hemolyzed; repeat suggested",
    ],
)
def test_a_comment_below_a_row_doubts_the_row(comment: str) -> None:
    found = values(POTASSIUM, comment, SODIUM)

    assert found == {"potassium": None, "sodium": "140"}


def test_a_comment_below_the_last_row_doubts_every_row_of_the_block() -> None:
    found = values(GLUCOSE, "", SODIUM, POTASSIUM, "Comment: specimen hemolyzed")

    assert found == {"glucose": "99", "sodium": None, "potassium": None}


def test_a_comment_that_names_a_test_doubts_this_test_alone() -> None:
    comment = "Comment: Potassium may be falsely elevated due to hemolysis."

    found = values(SODIUM, POTASSIUM, GLUCOSE, comment)

    assert found == {"sodium": "140", "potassium": None, "glucose": "99"}


@pytest.mark.parametrize(
    "comment",
    [
        "Hemolysis index: 0",
        "Comment: no hemolysis",
        "Specimen not hemolyzed",
        "Lipemia: none",
        "Blood cultures were contaminated.",
        "Autoimmune hemolysis is unlikely.",
    ],
)
def test_a_sound_specimen_and_another_statement_leave_the_value(comment: str) -> None:
    assert values(POTASSIUM, comment, SODIUM) == {"potassium": "6.8", "sodium": "140"}


def test_a_doubt_in_a_sentence_reaches_the_value_before_it_alone() -> None:
    found = values("Labs: sodium 140, potassium 6.8 (grossly hemolyzed), glucose 99.")

    assert found == {"sodium": "140", "potassium": None, "glucose": "99"}


@pytest.mark.parametrize(
    "text",
    [
        "Nadir hemoglobin 6.9 g/dL.",
        "Lowest recorded hemoglobin 6.9 g/dL.",
        "Hemoglobin 6.9 g/dL (nadir).",
        "Hemoglobin reached its nadir at 6.9 g/dL.",
        "Highest hemoglobin was 6.9 g/dL.",
        "Hemoglobin peaked at 6.9 g/dL.",
    ],
)
def test_an_extreme_value_is_not_the_present_value(text: str) -> None:
    found = [(entity.value, entity.temporality) for entity in labs(text)]

    assert found in ([("6.9", "historical")], [(None, None)], [])


@pytest.mark.parametrize("row", ["Hemoglobin 6.9 g/dL", "Hemoglobin   6.9   12-16 g/dL"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("baseline", [("6.9", "historical")]),
        ("previous", [("6.9", "historical")]),
        ("last year", [("6.9", "historical")]),
        ("pre-op", [("6.9", "historical")]),
        ("outside hospital", [("6.9", "historical")]),
        ("nadir", [("6.9", "historical")]),
        ("goal", []),
        ("mother", []),
        ("donor", []),
        ("cancelled", []),
        ("entered in error", []),
        ("fasting", [("6.9", None)]),
        ("on admission", [("6.9", None)]),
        ("see note", [("6.9", None)]),
        ("calculated", [("6.9", None)]),
    ],
)
def test_words_in_brackets_behind_a_value_are_read(
    row: str, words: str, expected: list[tuple[str, str | None]]
) -> None:
    text = f"{row} ({words})."

    found = [(entity.value, entity.temporality) for entity in labs(text) if entity.value]

    assert found == expected


@pytest.mark.parametrize(
    "words",
    [
        "improved from last year",
        "unchanged since last visit",
        "lower than previous",
        "mother, last year",
    ],
)
def test_a_comparison_or_another_person_does_not_make_a_value_historical(words: str) -> None:
    found = labs(f"Hemoglobin   6.9   12-16 g/dL   ({words})")

    assert "historical" not in [entity.temporality for entity in found]


def test_a_date_in_brackets_is_the_date_of_the_value() -> None:
    (entity,) = labs("Hemoglobin   6.9   12-16 g/dL (05 Jan 2019)")

    assert (entity.value, entity.date) == ("6.9", "2019-01-05")


def test_a_year_in_brackets_which_can_be_a_time_makes_the_row_unclear() -> None:
    assert values("Hemoglobin   6.9   12-16 g/dL   (2019)") == {"hemoglobin": None}
