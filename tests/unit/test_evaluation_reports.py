"""Inputs with expectations: each outcome is counted, and a bad file is named in one line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluation.attributes import AttributeOutcome, Tally
from evaluation.expectations import Reading, check
from evaluation.paper import can_draw, draw
from evaluation.reports import BadDataError, cases, judge
from evaluation.run import evaluate
from tests.support.generator.published import HEAD

SIBLINGS = Path(__file__).parents[1] / "fixtures" / "reports"
SODIUM = {"category": "lab", "name": "sodium"}
MISSED, WRONG, FLAGGED, RIGHT = (
    AttributeOutcome.MISSED,
    AttributeOutcome.WRONG,
    AttributeOutcome.FLAGGED,
    AttributeOutcome.RIGHT,
)


def row(**changed: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "category": "lab",
        "name": "Sodium",
        "value": "128",
        "unit": "mmol/L",
        "accepted": True,
        "review_flags": [],
    }
    fields = ("negated", "temporality", "certainty", "experiencer", "status")
    return plain | dict.fromkeys(fields) | changed


CHECKED = {
    "right": ({"want": "present", **SODIUM, "value": "128"}, [row()], True, [RIGHT, RIGHT]),
    "a part of the value": (
        {"want": "present", **SODIUM, "value_has": "12"},
        [row()],
        True,
        [RIGHT, RIGHT],
    ),
    "nothing": ({"want": "present", **SODIUM, "value": "128"}, [], False, [MISSED, MISSED]),
    "another value": (
        {"want": "present", **SODIUM, "value": "128"},
        [row(value="141")],
        False,
        [RIGHT, WRONG],
    ),
    "another value with a flag": (
        {"want": "present", **SODIUM, "value": "128"},
        [row(value="141", review_flags=["x"])],
        False,
        [FLAGGED, FLAGGED],
    ),
    "without a value": (
        {"want": "present", **SODIUM, "value": "128"},
        [row(value=None)],
        False,
        [RIGHT, MISSED],
    ),
    "a lost denial": (
        {"want": "present", **SODIUM, "negated": True},
        [row()],
        False,
        [RIGHT, WRONG],
    ),
    "of the past": (
        {"want": "present", **SODIUM, "historical": True},
        [row(temporality="historical")],
        True,
        [RIGHT, RIGHT],
    ),
    "absent": ({"want": "absent", **SODIUM}, [], True, [RIGHT]),
    "absent and said": ({"want": "absent", **SODIUM}, [row()], False, [WRONG]),
    "absent and planned": (
        {"want": "absent", **SODIUM},
        [row(status="planned")],
        True,
        [RIGHT],
    ),
    "absent and flagged": (
        {"want": "absent", **SODIUM, "value": "128"},
        [row(review_flags=["x"])],
        True,
        [FLAGGED],
    ),
    "absent, of a relative": (
        {"want": "absent", **SODIUM},
        [row(experiencer="family")],
        True,
        [RIGHT],
    ),
    "never, even with a flag": (
        {"want": "not", **SODIUM},
        [row(review_flags=["x"])],
        False,
        [WRONG],
    ),
}


@pytest.mark.parametrize(
    ("want", "rows", "holds", "outcomes"), CHECKED.values(), ids=CHECKED.keys()
)
def test_each_expectation_has_its_outcomes(
    want: dict[str, Any],
    rows: list[dict[str, Any]],
    outcomes: list[AttributeOutcome],
    *,
    holds: bool,
) -> None:
    checked = check(want, Reading(rows=rows))

    assert checked.holds is holds
    assert [outcome for *_, outcome in checked.outcomes] == outcomes


@pytest.mark.parametrize(
    ("want", "reading", "holds"),
    [
        ({"want": "date", "value": "2025-01-05"}, Reading(dates=frozenset(["2025-01-05"])), True),
        ({"want": "date", "value": "2025-01-05"}, Reading(dates=frozenset(["2025-05-01"])), False),
        ({"want": "no_known_allergies"}, Reading(no_known_allergies=(True,)), True),
        ({"want": "no_known_allergies", "value": False}, Reading(), True),
        (
            {"want": "no_known_allergies", "value": False},
            Reading(no_known_allergies=(True,)),
            False,
        ),
        ({"want": "not_completed_silently"}, Reading(), False),
        (
            {"want": "not_completed_silently"},
            Reading(warnings=frozenset(["NO_ENTITIES_FOUND"])),
            False,
        ),
        ({"want": "not_completed_silently"}, Reading(warnings=frozenset(["PARTLY_READ"])), True),
        ({"want": "not_completed_silently"}, Reading(refusal="INPUT_INVALID"), True),
    ],
)
def test_expectations_about_the_record(
    want: dict[str, Any], reading: Reading, *, holds: bool
) -> None:
    assert check(want, reading).holds is holds


def write_case(folder: Path, name: str, text: str, *expect: dict[str, Any]) -> None:
    draw([HEAD + text], folder / f"{name}.pdf")
    content = {"id": name, "input": f"{name}.pdf", "expect": expect}
    (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def write_texts(folder: Path, *items: dict[str, Any]) -> None:
    (folder / "short.json").write_text(json.dumps(items), encoding="utf-8")


LIST = {"want": "present", "category": "medication", "name": "lisinopril", "dose": "20 mg"}


def test_a_folder_of_pdfs_and_short_texts_is_judged_as_a_record_is_read(tmp_path: Path) -> None:
    write_case(
        tmp_path,
        "a",
        "MEDICATIONS\nLisinopril 20 mg daily",
        LIST,
        {"want": "date", "value": "2025-01-05"},
    )
    write_texts(
        tmp_path,
        {"id": "b", "text": "MEDICATIONS\nLisinopril 20 mg daily", "expect": [LIST]},
        {
            "id": "c",
            "text": "MEDICATIONS\nLisinopril 10 mg \N{RIGHTWARDS ARROW} 20 mg",
            "expect": [LIST],
        },
        {"id": "d", "text": "MEDICATIONS\nLisinopril 10 mg daily", "expect": [LIST]},
    )

    found = evaluate(tmp_path)

    assert [(r.id, r.is_whole, r.is_wrong) for r in found.reports] == [
        ("a", True, False),
        ("b", True, False),
        ("c", True, False),
        ("d", False, True),
    ]
    doses = found.attributes.counts["medication", "dose"]
    assert (doses[RIGHT], doses[WRONG]) == (3, 1)


def test_a_file_that_the_reader_refuses_fails_by_name_and_is_judged(tmp_path: Path) -> None:
    write_case(tmp_path, "a", "MEDICATIONS", LIST, {"want": "not_completed_silently"})
    (tmp_path / "a.pdf").write_bytes(b"\x7fELF" + bytes(100))

    (result,) = judge(cases(tmp_path))

    assert [each.holds for each in result.checked] == [False, True]


def test_a_tab_of_a_short_text_is_a_column_of_the_page(tmp_path: Path) -> None:
    text = "LABS\nTEST\tRESULT\tUNITS\nSodium\t128\tmmol/L"
    expected = {"want": "present", **SODIUM, "value": "128", "unit": "mmol/L"}
    write_texts(tmp_path, {"id": "a", "text": text, "expect": [expected]})

    (result,) = judge(cases(tmp_path))

    assert result.is_whole


def test_only_texts_of_a_standard_font_are_drawn() -> None:
    assert can_draw("Temp 38 °C\t≤ 5".replace("≤", "<"))
    assert not can_draw("10 mg \N{RIGHTWARDS ARROW} 20 mg")


BAD = {
    "EVAL_BAD_JSON": '{"id": "a"',
    "EVAL_BAD_CASE": '[{"id": "a", "expect": []}]',
    "EVAL_INPUT_MISSING": '{"id": "a", "input": "gone.pdf", "expect": []}',
    "EVAL_BAD_EXPECTATION": '[{"id": "a", "text": "b", "expect": [{"want": "perhaps"}]}]',
}
BAD_EXPECTATIONS = (
    {"want": "present", "category": "lab"},
    {"want": "present", "category": "lab", "name": "("},
    {"want": "date"},
    "present",
)


@pytest.mark.parametrize(("code", "content"), BAD.items())
def test_a_bad_file_is_named_with_a_code_in_one_line(
    tmp_path: Path, code: str, content: str
) -> None:
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")

    with pytest.raises(CommandError) as refused:
        call_command("evaluate", str(tmp_path))

    assert str(refused.value).startswith(f"{code}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("expectation", BAD_EXPECTATIONS)
def test_a_bad_expectation_is_refused(tmp_path: Path, expectation: object) -> None:
    write_texts(tmp_path, {"id": "a", "text": "b", "expect": [expectation]})

    with pytest.raises(BadDataError, match="EVAL_BAD_EXPECTATION"):
        cases(tmp_path)


def test_a_json_file_without_expectations_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"id": "a"}', encoding="utf-8")
    (tmp_path / "queue.json").write_text('{"expect": {}, "steps": []}', encoding="utf-8")

    assert cases(tmp_path) == []


def test_the_command_prints_the_attributes_first_and_names_inputs_that_fail(tmp_path: Path) -> None:
    write_texts(
        tmp_path,
        {"id": "first", "text": "MEDICATIONS\nLisinopril 20 mg daily", "expect": [LIST]},
        {"id": "second", "text": "MEDICATIONS\nLisinopril 10 mg daily", "expect": [LIST]},
    )
    out = io.StringIO()

    call_command("evaluate", str(tmp_path), stdout=out)

    printed = out.getvalue()
    assert "wrong and unflagged" in printed.splitlines()[2]
    assert "1 (50.0%)" in printed
    assert "1 of 2 inputs with expectations whole" in printed
    assert "not whole: second (wrong)" in printed


def test_the_command_prints_the_attributes_as_json(tmp_path: Path) -> None:
    write_texts(
        tmp_path, {"id": "a", "text": "MEDICATIONS\nLisinopril 20 mg daily", "expect": [LIST]}
    )
    out = io.StringIO()

    call_command("evaluate", str(tmp_path), "--json", stdout=out)

    found = json.loads(out.getvalue())
    assert [(line["category"], line["attribute"]) for line in found["attributes"]] == [
        ("medication", "name"),
        ("medication", "dose"),
        ("all", ""),
    ]
    assert found["reports"]["whole"] == 1


def test_a_tally_sums_the_lines_and_orders_the_attributes() -> None:
    tally = Tally()
    for category, attribute, outcome in (
        ("medication", "dose", RIGHT),
        ("lab", "unit", WRONG),
        ("lab", "name", RIGHT),
    ):
        tally.add(category, attribute, outcome)

    lines = tally.scores()

    assert [(line.category, line.attribute) for line in lines] == [
        ("lab", "name"),
        ("lab", "unit"),
        ("medication", "dose"),
        ("all", ""),
    ]
    assert lines[-1].as_json()["wrong_per_1000"] == pytest.approx(333.33)
