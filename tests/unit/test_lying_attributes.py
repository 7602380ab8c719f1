"""A model that alters one attribute of a right reply is found out, and right replies are not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pipeline.clinical.facts import Candidate
from pipeline.providers.schemas import FoundAttributes
from pipeline.stages.pass2.assemble import enriched
from tests.support.altered_attributes import altered
from tests.support.enriched_text import answers_of, facts_of, slices_of

NOTES = (
    (
        "HISTORY OF PRESENT ILLNESS\n"
        "Left knee pain since March 2020. Severe headache for 3 days. Denies chest pain.\n"
        "Pneumonia in 2018, resolved. Lymphoma in remission. Suspected appendicitis.\n\n"
        "MEDICATIONS\n"
        "lisinopril 10 mg PO daily for hypertension\n"
        "metformin 500 mg tablet by mouth twice daily\n"
        "warfarin 5 mg PO at bedtime, stopped\n\n"
        "ALLERGIES\n"
        "Penicillin - hives\n"
    ),
    (
        "LABORATORY\n"
        "Test\tResult\tFlag\tUnits\tReference\n"
        "Sodium\t138\t\tmmol/L\t135-145\n"
        "Potassium\t3.1\tL\tmmol/L\t3.5-5.1\n"
        "Glucose\t198\tH\tmg/dL\t70-99\n\n"
        "VITALS\nBP 142/88 mmHg, HR 96 bpm, Temp 98.6 F\n\n"
        "IMMUNIZATIONS\nInfluenza vaccine given 10/12/2023\n\n"
        "PROCEDURES\nColonoscopy performed 05/14/2021\n"
    ),
    (
        "ASSESSMENT\n"
        "1. Hypertension - continue lisinopril 20 mg PO daily.\n"
        "2. Mild asthma and severe eczema.\n"
        "3. Cellulitis of left lower leg, start cephalexin 500 mg PO QID for 7 days.\n"
    ),
)


@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize("seed", range(5))
def test_an_altered_attribute_is_flagged(note: str, seed: int) -> None:
    rng = random.Random(seed)
    facts, slices = facts_of(note), slices_of(note)
    told = answers_of(note, facts)
    missed = []
    count = 0
    for each in facts:
        right = told[each.key]
        for name, reply in altered(each.category, right, rng):
            count += 1
            made = enriched(each, reply, right, slices, neighbours=facts)
            if not {f"not_grounded:{name}", f"disputed:{name}"} & set(made.flags):
                missed.append((each.quote, name, getattr(right, name), getattr(reply, name)))

    assert count > 20
    assert missed == []


@pytest.mark.parametrize("note", NOTES)
def test_a_right_reply_is_not_flagged(note: str) -> None:
    facts, slices = facts_of(note), slices_of(note)
    told = answers_of(note, facts)

    flags = {
        each.quote: made.flags
        for each in facts
        if (made := enriched(each, told[each.key], told[each.key], slices, neighbours=facts)).flags
    }

    assert flags == {}


@pytest.mark.parametrize("note", NOTES)
def test_the_page_alone_finds_altered_numbers_dates_and_names(note: str) -> None:
    rng = random.Random(7)
    facts, slices = facts_of(note), slices_of(note)
    told = answers_of(note, facts)
    names = ("value", "dose", "strength", "start", "stop", "ingredient", "substance", "severity",
             "laterality", "verification")  # fmt: skip
    missed = []
    for each in facts:
        bare = replace(
            each, value=None, strength=None, dose=None, previous_dose=None, reference_range=None
        )
        for name, reply in altered(each.category, told[each.key], rng):
            made = enriched(bare, reply, FoundAttributes(id=each.key), slices, neighbours=facts)
            if name in names and not any(flag.endswith(f":{name}") for flag in made.flags):
                missed.append((each.quote, name, getattr(reply, name)))

    assert missed == []


def _candidates(*rows: tuple[str, str]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(system="ICD10CM", code=code, display=display, score=0.5) for code, display in rows
    )


KNEES = _candidates(
    ("M25.561", "Pain in right knee"),
    ("M25.562", "Pain in left knee"),
    ("M25.569", "Pain in unspecified knee"),
)


@pytest.mark.parametrize(
    ("text", "code", "accepted", "flag"),
    [
        ("Left knee pain.", "ICD10CM|M25.562", "M25.562", None),
        ("Left knee pain.", "ICD10CM|M25.561", None, "code_uncertain"),
        ("Left knee pain.", "ICD10CM|M25.569", None, "code_uncertain"),
        ("Left knee pain.", "ICD10CM|M25.511", None, "code_refused"),
        ("Left knee pain.", "M25.562", None, "code_refused"),
        ("Knee pain.", "ICD10CM|M25.569", "M25.569", None),
        ("Knee pain.", "ICD10CM|M25.562", None, "code_uncertain"),
        ("Denies left knee pain.", "ICD10CM|M25.562", None, "code_uncertain"),
    ],
)
def test_a_code_that_contradicts_the_text_is_not_accepted(
    text: str, code: str, accepted: str | None, flag: str | None
) -> None:
    (facts,) = facts_of(text, candidates={"left knee pain": KNEES, "knee pain": KNEES})
    right = answers_of(text, [facts])[facts.key]

    made = enriched(facts, right.model_copy(update={"code": code}), right, slices_of(text))

    assert (made.code.code if made.code else None) == accepted
    assert [f for f in made.flags if f.startswith("code")] == ([flag] if flag else [])


def test_an_entity_that_a_model_leaves_out_keeps_the_text_of_pass_1() -> None:
    text = "lisinopril 10 mg PO daily"
    (facts,) = facts_of(text)

    made = enriched(facts, None, answers_of(text, [facts])[facts.key], slices_of(text))

    assert made.flags == ("not_enriched",)
    assert made.attributes["dose"]["printed"] == "10 mg"


@pytest.mark.parametrize(
    "odd", ["", " ", "\t", "²", "1e400", "02/30/2024", "½", "~~", "0/0", "\x00"]
)
@pytest.mark.parametrize("note", NOTES)
def test_no_text_of_a_reply_raises(note: str, odd: str) -> None:
    names = [name for name in FoundAttributes.model_fields if name != "id"]
    facts, slices = facts_of(note), slices_of(note)

    for each in facts:
        values: dict[str, Any] = {**dict.fromkeys(names, odd), "id": each.key}
        reply = FoundAttributes.model_construct(**values)
        made = enriched(each, reply, None, slices, neighbours=facts)

        assert "not_enriched" not in made.flags
