"""The local engine disputes what it reads differently, and nothing that it has not assessed."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Thread
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from medproc.env import PROJECT_ROOT
from pipeline.core.types import PageSlice
from pipeline.models import Batch
from pipeline.providers.local import LocalProvider
from pipeline.providers.local.engine import placed_entities, read
from pipeline.providers.local.local_reading import SecondReading
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1 import second_reader
from pipeline.stages.pass1.second_reader import SecondReader
from tests.support.pass1_rows import rows_of


def read_twice(text: str, category: str, quote: str, **fields: Any) -> dict[str, Any]:
    """Return the row of one entity of a model's reply about a page."""
    name = fields.pop("name", quote)
    entity = FoundEntity.model_validate(
        {"category": category, "page": 1, "quote": quote, "name": name, **fields}
    )
    (row,) = rows_of([entity], text, read_twice=True)
    return row


@pytest.mark.parametrize(
    ("text", "category", "quote", "fields", "attribute", "read"),
    [
        (
            "Potassium 4.1 mmol/L 3.5-5.1", "lab", "Potassium 4.1 mmol/L 3.5-5.1",
            {"name": "Potassium", "value": "4.1", "unit": "mmol/L", "reference_range": "3.5-5.1",
             "abnormal_flag": None}, None, None,
        ),
        (
            "D-dimer 20.10 H <0.50", "lab", "D-dimer 20.10 H <0.50",
            {"name": "D-dimer", "value": "<0.50"}, "value", "20.10",
        ),
        (
            "Hemoglobin A1c 7.2 % 4.0-5.6", "lab", "Hemoglobin A1c 7.2 %",
            {"name": "Hemoglobin", "value": "7.2", "unit": "%"}, "name", "Hemoglobin A1c",
        ),
        (
            "Metformin increased from 500 mg to 1000 mg twice daily.", "medication",
            "Metformin increased from 500 mg to 1000 mg twice daily",
            {"name": "Metformin", "dose": "500 mg"}, "dose", "1000 mg",
        ),
        (
            "The patient denies chest pain.", "symptom", "chest pain",
            {"negated": False}, "negated", True,
        ),
        ("The patient denies chest pain.", "symptom", "chest pain", {}, "negated", True),
        (
            "Her mother had breast cancer.", "condition", "breast cancer",
            {"experiencer": "patient"}, "experiencer", "family",
        ),
        (
            "Her mother had breast cancer.", "condition", "breast cancer", {},
            "experiencer", "family",
        ),
        (
            "Assessment: possible pneumonia.", "condition", "pneumonia",
            {"certainty": "certain"}, "certainty", "possible",
        ),
    ],
)  # fmt: skip
def test_another_reading_is_disputed_and_stored(
    text: str, category: str, quote: str, fields: dict[str, Any], attribute: str | None, read: Any
) -> None:
    row = read_twice(text, category, quote, **fields)

    if attribute is None:
        assert (row["review_flags"], row["second_reading"]) == ([], None)
    else:
        assert f"disputed:{attribute}" in row["review_flags"]
        assert row["second_reading"][attribute] == read
        assert row["accepted"] is False


@pytest.mark.parametrize(
    ("text", "category", "quote", "fields"),
    [
        ("The patient denies chest pain.", "symptom", "chest pain", {"negated": True}),
        ("Takes lisinopril 20 mg daily.", "medication", "lisinopril 20 mg daily",
         {"name": "lisinopril", "dose": "20mg", "frequency": "once daily"}),
        ("Takes lisinopril 20 mg daily.", "medication", "lisinopril", {}),
        ("Her mother had breast cancer.", "condition", "breast cancer", {"experiencer": "family"}),
        ("Qwertimab noted in the chart.", "medication", "Qwertimab", {}),
        ("Influenza A antigen: Negative", "lab", "Influenza A antigen: Negative",
         {"name": "Influenza A antigen", "value": "Negative"}),
    ],
)  # fmt: skip
def test_the_same_reading_or_none_is_not_disputed(
    text: str, category: str, quote: str, fields: dict[str, Any]
) -> None:
    row = read_twice(text, category, quote, **fields)

    assert row["review_flags"] == []


def test_a_denial_that_the_sentence_does_not_make_is_flagged() -> None:
    row = read_twice("Chest x-ray on Monday.", "procedure", "Chest x-ray", negated=True)

    assert set(row["review_flags"]) & {"not_in_quote:negated", "disputed:negated"}
    assert not row["accepted"]


def test_a_relative_whom_the_sentence_does_not_name_is_flagged() -> None:
    row = read_twice("Asthma since childhood.", "condition", "Asthma", experiencer="family")

    assert not row["accepted"]


@pytest.mark.parametrize(
    ("category", "quote", "claim"),
    [
        ("condition", "Asthma", {"certainty": "possible"}),
        ("condition", "Asthma", {"certainty": "hypothetical"}),
        ("condition", "Asthma", {"temporality": "planned"}),
        ("medication", "albuterol", {"status": "stopped"}),
        ("medication", "albuterol", {"status": "not_started"}),
    ],
)
def test_a_doubt_or_a_stop_that_the_sentence_does_not_state_is_flagged(
    category: str, quote: str, claim: dict[str, str]
) -> None:
    (attribute,) = claim

    row = read_twice("Asthma is noted. Uses albuterol.", category, quote, **claim)

    named = {f"not_in_quote:{attribute}", f"disputed:{attribute}"}
    assert named & {*row["review_flags"]}
    assert not row["accepted"]


def test_the_same_words_as_allergy_and_as_symptom_are_disputed() -> None:
    row = read_twice("The patient reports cough.", "allergy", "cough")

    assert row["second_reading"]["category"] == "symptom"
    assert not row["accepted"]


def test_each_step_of_a_taper_is_compared_with_its_own_step() -> None:
    text = "Prednisone 40 mg daily for 3 days, then 20 mg daily for 3 days, then 10 mg daily."
    quote = text.removesuffix(".")

    def steps(*doses: str) -> list[dict[str, Any]]:
        found = [
            FoundEntity(
                category="medication", page=1, quote=quote, name="Prednisone",
                dose=dose, frequency="daily", step=step,
            )
            for step, dose in enumerate(doses, start=1)
        ]  # fmt: skip
        return rows_of(found, text, read_twice=True)

    right = steps("40 mg", "20 mg", "10 mg")
    wrong = steps("40 mg", "40 mg", "10 mg")

    assert [row["dose"] for row in right] == ["40 mg", "20 mg", "10 mg"]
    assert [row["review_flags"] for row in right] == [[], [], []]
    assert [row["accepted"] for row in wrong] == [True, False, True]
    assert wrong[1]["second_reading"] == {"dose": "20 mg"}


def test_an_allergy_that_the_engine_reads_as_a_medication_is_disputed() -> None:
    row = read_twice(
        "MEDICATIONS\nWarfarin 5 mg daily", "allergy", "Warfarin 5 mg daily", name="Warfarin"
    )

    assert row["second_reading"]["category"] == "medication"
    assert not row["accepted"]


def test_the_engines_own_reply_is_not_read_again() -> None:
    batch = Batch(id=uuid4(), ai_model_used=LocalProvider.model)

    with patch.object(second_reader, "SecondReading") as reading:
        assert SecondReader().take(batch, lambda: ()) is None

    reading.assert_not_called()


def test_a_models_reply_is_read_once_and_forgotten_after_publication() -> None:
    batch = Batch(id=uuid4(), ai_model_used="gemini-x")
    reader = SecondReader()
    slices = (PageSlice(page=1, start=0, text="Asthma."),)

    with patch.object(second_reader, "SecondReading", wraps=SecondReading) as reading:
        reader.prepare(batch.id, lambda: slices)
        reader.prepare(batch.id, lambda: slices)
        first = reader.take(batch, lambda: slices)
        again = reader.take(batch, lambda: slices)

    assert first is not None
    assert [e.name for e in first.entities()] == ["Asthma"]
    assert again is not first
    assert reading.call_count == 2


def test_a_ready_reading_is_taken_while_another_batch_is_read() -> None:
    """The executor's thread must keep its heartbeats while dozens of threads read."""
    batch = Batch(id=uuid4(), ai_model_used="gemini-x")
    reader = SecondReader()
    slices = (PageSlice(page=1, start=0, text="Asthma."),)
    reader.prepare(batch.id, lambda: slices)
    is_reading, go_on = Event(), Event()

    def slowly() -> Sequence[PageSlice]:
        is_reading.set()
        assert go_on.wait(60)
        return slices

    other = Thread(target=reader.prepare, args=(uuid4(), slowly), daemon=True)
    other.start()
    assert is_reading.wait(60)
    taken: list[SecondReading | None] = []
    taking = Thread(target=lambda: taken.append(reader.take(batch, lambda: slices)), daemon=True)

    taking.start()
    taking.join(20)

    assert len(taken) == 1
    go_on.set()
    other.join()


def test_a_reading_returns_the_entities_that_the_engine_reports() -> None:
    text = (PROJECT_ROOT / "samples" / "visit.txt").read_text()
    slices = (
        PageSlice(page=1, start=0, text=text),
        PageSlice(page=2, start=40, text="\ud800 Gout."),
    )
    state = read(slices)

    found = SecondReading(slices).entities()

    assert len(found) > 5
    assert found == placed_entities(state, include_zones=True)


def test_a_row_that_the_engine_does_not_understand_leaves_the_reply_alone_as_reader() -> None:
    text = "LABORATORY\nPotassium 4.1 5.7 9.9 mmol/L 12 qq 3.5-5.1"
    reading = SecondReading((PageSlice(page=1, start=0, text=text),))
    quote = text.splitlines()[1]
    row = read_twice(text, "lab", quote, name="Potassium", value="4.1", unit="mmol/L")

    assert [e.rule.endswith("not-understood.v1") for e in reading.entities()] == [True]
    assert "read_once" in row["review_flags"]
    assert not any(flag.startswith("disputed") for flag in row["review_flags"])


def test_an_earlier_value_that_the_reply_gives_as_the_value_is_disputed() -> None:
    row = read_twice(
        "Creatinine 1.4 mg/dL, up from 1.1", "lab", "Creatinine 1.4 mg/dL, up from 1.1",
        name="Creatinine", value="1.1",
    )  # fmt: skip

    assert row["second_reading"] == {"temporality": "historical"}
    assert not row["accepted"]


def test_the_reaction_to_another_allergen_is_flagged() -> None:
    row = read_twice(
        "Allergies: penicillin (hives), sulfa (rash)", "allergy", "penicillin (hives)",
        name="penicillin", reaction="rash",
    )  # fmt: skip

    assert "not_in_quote:reaction" in row["review_flags"]
