"""The local narrative: supported sentences in plain English, within limits, nothing in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pytest

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative import check
from pipeline.providers.local.narrative.answer import drafts, narrate
from pipeline.providers.prompts import Question, read_prompt, render_narrative
from tests.support.narrative_cited import FACTS, made_drug, made_fact
from tests.support.narrative_facts import generated_sets

JUNE = date(2024, 6, 1)
TOKEN = "0123456789abcdef"


def told(
    facts: Sequence[EntityFacts], *, sentences: int = 30, words: int = 40, record: int = 0
) -> list[str]:
    limits = {"sentences": sentences, "words": words, "record": record}
    question = read_prompt(render_narrative(TOKEN, facts, limits))
    reply = narrate(question)
    known = {each.key: each for each in facts}
    assert reply.item_token == TOKEN
    for sentence in reply.sentences:
        assert check(sentence.text, [known[key] for key in sentence.ids], max_words=words) == ()
    return [sentence.text for sentence in reply.sentences]


def of(keys: str) -> list[EntityFacts]:
    return [FACTS[key] for key in keys.split()]


def test_every_sentence_about_generated_texts_is_supported() -> None:
    refused, written = [], 0
    for name, facts in generated_sets(184, 5):
        known = {each.key: each for each in facts}
        for draft in drafts(facts, words=40, record=False):
            written += 1
            reasons = check(draft.text, [known[key] for key in draft.keys])
            if reasons:
                refused.append((name, draft.text, reasons))

    assert written > 150
    assert not refused


def test_tells_an_encounter_in_the_order_of_importance() -> None:
    assert told(of("glu bp htn dm hf lis met pen cod lat fever chills fst echo war fluv")) == [
        "At the office visit on March 5, 2024, the patient had hypertension and type 2 diabetes.",
        "Heart failure was suspected.",
        (
            "The patient was taking lisinopril 10 mg by mouth daily and"
            " metoprolol succinate 25 mg by"
            " mouth twice daily."
        ),
        "Allergies included penicillin (hives), codeine (vomiting), and latex.",
        "The laboratory result was glucose 168 mg/dL (high, reference range 70-99).",
        "Vital signs included blood pressure 152/86 mmHg.",
        "Warfarin 5 mg daily was stopped.",
        "Echocardiogram was planned.",
        "Immunizations include influenza vaccine on October 2, 2023.",
        "The patient had no fever or chills.",
        "The family history includes stroke.",
    ]


def test_tells_a_record_with_the_date_of_every_fact() -> None:
    metoprolol = replace(FACTS["met"], key="later", dose="50 mg", encounter_date=JUNE)

    assert told([*of("met htn"), metoprolol], record=1) == [
        "On March 5, 2024, the patient had hypertension.",
        "On June 1, 2024, the patient was taking metoprolol succinate 50 mg by mouth twice daily.",
        "On March 5, 2024, the patient was taking metoprolol succinate 25 mg by mouth twice daily.",
    ]


def test_tells_a_repeated_fact_of_a_record_once_at_its_latest_date() -> None:
    later = replace(FACTS["htn"], key="later", encounter_date=JUNE)

    assert told([FACTS["htn"], later], record=1) == [
        "On June 1, 2024, the patient had hypertension."
    ]


def test_tells_both_sides_of_a_contradiction_with_their_dates() -> None:
    fever = replace(FACTS["fever"], key="later", negated=False, encounter_date=JUNE)
    tolerated = replace(FACTS["pen"], key="none", negated=True, encounter_date=JUNE)

    assert told([*of("fever pen"), fever, tolerated], record=1) == [
        "On March 5, 2024, allergies included penicillin (hives).",
        "On June 1, 2024, the patient had no allergy to penicillin.",
        "On June 1, 2024, the patient reported fever.",
        "On March 5, 2024, the patient had no fever.",
    ]


@pytest.mark.parametrize(("sentences", "words"), [(0, 40), (1, 40), (3, 40), (12, 12), (12, 5)])
def test_keeps_the_limits(sentences: int, words: int) -> None:
    texts = told(list(FACTS.values()), sentences=sentences, words=words)

    assert len(texts) <= sentences
    assert all(len(text.split()) <= words for text in texts)


def test_a_short_narrative_never_drops_that_a_medication_was_stopped() -> None:
    stopped = replace(FACTS["war"], key="stopped", name="lisinopril", dose=None, frequency=None)

    assert told([*of("htn lis bp glu"), stopped], sentences=2) == [
        "At the office visit on March 5, 2024, the patient had hypertension.",
        "Lisinopril was stopped.",
    ]


def test_many_results_leave_room_for_the_other_kinds() -> None:
    labs = [
        made_fact(f"n{n}", "lab", f"Analyte {chr(65 + n)}", value=f"{n}.5", abnormal_flag="H")
        for n in range(26)
    ]

    texts = told([*labs, *of("bp echo fever")], sentences=6)

    assert len(texts) == 6
    assert "The patient had no fever." in texts


@pytest.mark.parametrize(
    "facts",
    [
        made_fact("e1", "condition", "asthma", accepted=False),
        made_fact("e1", "condition", "asthma", negated=None),
        made_fact("e1", "condition", "asthma", certainty="hypothetical"),
        made_fact("e1", "condition", "asthma", experiencer="other"),
        made_drug("e1", "digoxin", certainty="possible"),
        made_fact("e1", "lab", "Sodium", value="130", flags=("disputed:value",)),
    ],
)
def test_says_nothing_about_a_fact_in_doubt(facts: EntityFacts) -> None:
    assert told([facts]) == []


def test_leaves_out_a_disputed_attribute() -> None:
    digoxin = made_drug("e1", "digoxin", dose="0.125 mg", flags=("not_grounded:dose",))

    assert told([replace(digoxin, encounter_date=None)]) == ["The patient was taking digoxin."]


def test_merges_entities_that_say_the_same() -> None:
    again = replace(FACTS["htn"], key="again", name="hypertension")

    reply = narrate(
        Question(
            kind="narrative",
            item_token=TOKEN,
            include_zones=False,
            slices=(),
            facts=(FACTS["htn"], again),
        )
    )

    assert [sentence.ids for sentence in reply.sentences] == [["htn", "again"]]


@pytest.mark.parametrize("record", [0, 1])
def test_tells_no_bare_name_beside_the_same_name_with_its_details(record: int) -> None:
    full = FACTS["mtf"]
    bare = replace(full, key="bare", dose=None, strength=None, route=None, frequency=None)
    other = replace(bare, key="other", name="Insulin")

    sentences = told([bare, full, other], record=record)

    assert sum(sentence.lower().count("metformin") for sentence in sentences) == 1
    assert any(full.dose in sentence for sentence in sentences if full.dose)
    assert any("insulin" in sentence.lower() for sentence in sentences)


def test_tells_the_steps_of_a_taper_in_order() -> None:
    assert told(of("pred1 pred2")) == [
        "The steps of the regimen were prednisone 40 mg daily, then prednisone 20 mg daily."
    ]


def test_a_sentence_about_steps_tells_of_one_drug() -> None:
    steps = [
        made_fact(f"{drug}{n}", "medication", drug, dose=f"{3 - n} mg", step=n, status="active")
        for drug in ("dexamethasone", "clonazepam")
        for n in (1, 2)
    ]

    assert told(steps) == [
        "The steps of the regimen were dexamethasone 2 mg, then dexamethasone 1 mg.",
        "The steps of the regimen were clonazepam 2 mg, then clonazepam 1 mg.",
    ]


def test_a_record_without_entities_has_no_narrative() -> None:
    assert told([]) == []


def test_a_short_narrative_tells_anticoagulants_allergies_and_the_most_abnormal_results() -> None:
    conditions = [made_fact(f"c{n}", "condition", f"condition {chr(65 + n)}") for n in range(40)]
    drugs = [
        made_fact(f"d{n}", "medication", f"drug {chr(65 + n)}", dose="5 mg", status="active")
        for n in range(20)
    ]
    apixaban = made_fact("a", "medication", "apixaban", dose="5 mg", status="active")
    labs = [
        made_fact(
            f"n{n}", "lab", f"Analyte {chr(65 + n)}", value=f"{10 + n}", abnormal_flag="H",
            attributes={
                "value": {"number": 10 + n}, "reference_range": {"low": 1, "high": 9},
                "computed_flag": "H",
            },
        )
        for n in range(20)
    ]  # fmt: skip

    texts = told([*conditions, *drugs, apixaban, *labs, *of("pen")], sentences=8)

    assert any("apixaban 5 mg" in text for text in texts)
    assert any("penicillin" in text for text in texts)
    assert any("Analyte T 29" in text or "analyte T 29" in text for text in texts)
