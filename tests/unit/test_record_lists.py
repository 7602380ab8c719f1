"""The lists across encounters: what is joined, what stays apart, what contradicts."""

from __future__ import annotations

import cProfile
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clinical.record_lists.build import record_lists
from pipeline.clinical.record_lists.exclusions import excluded_pairs
from pipeline.clinical.record_lists.items import ContradictionKind, ListedFact, ListItem, ListKind
from pipeline.clinical.record_lists.statements import ListStatement, statement_of
from tests.support.listed_facts import FIRST, condition, dosed, fact, kinds, lab


def test_one_entry_holds_all_encounters_of_a_problem() -> None:
    items = record_lists(
        [
            condition("Hypertension", "I10"),
            condition("HTN", "I10", encounter=2, code_display="Essential (primary) hypertension"),
            condition("hypertension", encounter=1),
        ]
    )

    (item,) = items
    assert (item.kind, item.name, item.code) == (
        ListKind.PROBLEM,
        "Hypertension",
        "ICD10CM|I10",
    )
    assert [each.int - 1_000_000 for each in item.encounter_ids] == [0, 1, 2]
    assert item.summary["first_seen"] == "2024-03-11"
    assert item.summary["last_seen"] == "2024-03-13"


@pytest.mark.parametrize(
    "pair",
    [
        (condition("knee pain"), condition("hip pain")),
        (
            condition("pleural effusion", "J90", attributes={"laterality": "left"}),
            condition("pleural effusion", "J90", attributes={"laterality": "right"}),
        ),
        (
            condition("colitis", "K52.9", code_display="Noninfective gastroenteritis and colitis"),
            condition("gastroenteritis", "K52.9", code_display="Noninfective … and colitis"),
        ),
        (dosed("metoprolol succinate", "50"), dosed("metoprolol tartrate", "25", encounter=1)),
        (
            dosed("metoprolol succinate", "5", attributes={"ingredient": "metoprolol"}),
            dosed("metoprolol tartrate", "5", attributes={"ingredient": "metoprolol"}),
        ),
        (
            fact("allergy", "codeine", code="ICD10CM|Z88.5"),
            fact("allergy", "morphine", code="ICD10CM|Z88.5"),
        ),
        (lab("Neutrophils", "74", "%"), lab("Neutrophils", "8.7", "10*3/uL")),
        (lab("Glucose", "90", "mg/dL"), lab("Glucose, Urine", "90", "mg/dL")),
        (lab("Glucose", "90", "mg/dL"), lab("Glucose", "5", "mmol/L")),
        (lab("Glucose", "90", "mg/dL", code="LOINC|2345-7"), lab("Glucose", "5", "mmol/L")),
    ],
)
def test_different_subjects_stay_apart(pair: tuple[ListedFact, ListedFact]) -> None:
    assert len(record_lists(pair)) == 2


def test_a_brand_joins_its_ingredient_and_a_form_is_no_other_drug() -> None:
    items = record_lists(
        [
            dosed("acetaminophen", "500"),
            dosed("Tylenol", "500", attributes={"ingredient": "acetaminophen"}),
            dosed("Acetaminophen tablets", "500", attributes={"ingredient": "acetaminophen"}),
        ]
    )

    assert [len(item.entity_ids) for item in items] == [3]


@pytest.mark.parametrize(
    "entity",
    [
        condition("pneumonia", accepted=False),
        condition("stroke", experiencer="family"),
        condition("stroke", zone_type="family_history"),
        condition("stroke", experiencer="other"),
        condition("heart failure", certainty="possible"),
        condition("heart failure", attributes={"verification_status": "differential"}),
        condition("fall", temporality="planned"),
        condition("pneumonia", negated=True),
        condition("pneumonia", attributes={"verification_status": "refuted"}),
        fact("medication", "warfarin", status="not_started"),
        fact("medication", "warfarin", status="entered_in_error"),
        fact("medication", "ibuprofen", negated=True),
        fact("allergy", "latex", negated=True),
        fact("symptom", "cough"),
        fact("vital", "BP"),
    ],
)
def test_what_supports_no_entry(entity: ListedFact) -> None:
    assert record_lists([entity]) == []


def test_a_condition_affirmed_and_denied_on_one_day_is_a_contradiction() -> None:
    affirmed, denied = condition("murmur", "R01.1"), condition("Murmur", negated=True)

    (item,) = record_lists([affirmed, denied])

    (found,) = item.contradictions
    assert found.kind is ContradictionKind.AFFIRMED_AND_DENIED
    assert set(found.entity_ids) == {affirmed.entity_id, denied.entity_id}
    assert item.entity_ids == (affirmed.entity_id,)
    assert "2024-03-11" in found.message


def test_a_past_or_later_statement_denies_nothing() -> None:
    items = record_lists(
        [
            condition("pneumonia", temporality="historical"),
            condition("pneumonia", negated=True),
            condition("murmur"),
            condition("murmur", negated=True, encounter=1),
        ]
    )

    assert kinds(items) == []


def test_two_statuses_of_one_day_contradict() -> None:
    items = record_lists(
        [
            condition("delirium", attributes={"clinical_status": "active"}),
            condition("delirium", attributes={"clinical_status": "resolved"}),
            dosed("aspirin", "81"),
            fact("medication", "aspirin", status="stopped", negated=True),
        ]
    )

    assert kinds(items) == [ContradictionKind.STATUS_CONFLICT] * 2
    assert "status" not in items[0].summary
    assert "current" not in items[1].summary


def test_a_stop_of_an_earlier_day_contradicts_nothing() -> None:
    stopped = {"stop": "2022-08-19"}
    items = record_lists(
        [
            dosed("aspirin", "81"),
            fact(
                "medication",
                "aspirin",
                status="stopped",
                temporality="historical",
                attributes=stopped,
            ),
        ]
    )

    assert kinds(items) == []


def test_a_stopped_drug_is_listed_as_stopped() -> None:
    (item,) = record_lists([fact("medication", "aspirin", status="stopped", negated=True)])

    assert item.summary["current"]["status"] == "stopped"


def test_a_printed_dose_that_was_not_structured_is_compared() -> None:
    doses = [fact("medication", "digoxin", dose=dose) for dose in ("125 mcg", "0.25 mg")]
    same = [fact("medication", "digoxin", dose=dose) for dose in ("125 mcg", "0.125 mg")]

    assert kinds(record_lists(doses)) == [ContradictionKind.TWO_DOSES]
    assert kinds(record_lists(same)) == []


def test_a_degree_is_no_part_of_a_name() -> None:
    same = [condition("mild COPD exacerbation"), condition("COPD exacerbation")]
    other = [condition("mild cognitive impairment"), condition("cognitive impairment")]

    assert (len(record_lists(same)), len(record_lists(other))) == (1, 2)


def test_a_later_stop_is_the_current_state() -> None:
    taken = dosed("aspirin", "81")
    stopped = fact("medication", "aspirin", status="stopped", negated=True, encounter=1)

    (item,) = record_lists([taken, stopped])

    assert item.contradictions == ()
    assert item.summary["current"]["status"] == "stopped"
    assert item.entity_ids == (taken.entity_id, stopped.entity_id)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dosed("lisinopril", "10"), dosed("lisinopril", "1", "g")),
        (dosed("lisinopril", "10"), dosed("Lisinopril", "20", entity_date=FIRST)),
        (dosed("insulin", "10", "[IU]"), dosed("insulin", "12", "[IU]")),
    ],
)
def test_two_doses_of_one_day_contradict(one: ListedFact, other: ListedFact) -> None:
    (item,) = record_lists([one, other])

    assert kinds([item]) == [ContradictionKind.TWO_DOSES]
    assert "current" not in item.summary


def test_two_doses_of_one_stay_name_no_day() -> None:
    last = FIRST + timedelta(days=5)
    stay = [dosed("furosemide", number, until=last) for number in ("40", "80")]
    dated = [
        dosed("furosemide", number, until=last, entity_date=FIRST + timedelta(days=day))
        for day, number in enumerate(("40", "80"))
    ]

    (item,) = record_lists(stay)

    (found,) = item.contradictions
    assert found.message == "furosemide: 40 mg and 80 mg in one encounter"
    assert kinds(record_lists(dated)) == []


@pytest.mark.parametrize(
    "other",
    [
        dosed("prednisone", "0.03", "g"),
        dosed("prednisone", "10", encounter=1),
        dosed("prednisone", "10", timing={"count": 1}),
        dosed("prednisone", "10", temporality="historical"),
        dosed("prednisone", "10", temporality="planned"),
        dosed("prednisone", "1", "{tablet}"),
    ],
)
def test_other_statements_are_no_second_dose(other: ListedFact) -> None:
    assert kinds(record_lists([dosed("prednisone", "30"), other])) == []


def test_the_steps_of_a_taper_are_one_regimen() -> None:
    steps = [dosed("prednisone", str(30 - 10 * i), step=i + 1) for i in range(3)]

    assert kinds(record_lists(steps)) == []


def test_two_frequencies_of_one_dose_contradict() -> None:
    twice = {"frequency": "2", "period": "1", "period_unit": "d"}
    every_12_h = {"frequency": "1", "period": "12", "period_unit": "h"}

    two = [dosed("apixaban", "5"), dosed("apixaban", "5", timing=twice)]
    same = [dosed("apixaban", "5", timing=every_12_h), dosed("apixaban", "5", timing=twice)]

    assert kinds(record_lists(two)) == [ContradictionKind.TWO_FREQUENCIES]
    assert kinds(record_lists(same)) == []


def test_an_allergy_that_is_tolerated_or_taken_contradicts() -> None:
    allergy = fact("allergy", "Amoxicillin", attributes={"substance": "Amoxicillin"}, encounter=1)
    tolerated = fact("allergy", "amoxicillin", negated=True, encounter=2)
    earlier, later = dosed("amoxicillin", "500"), dosed("amoxicillin", "500", encounter=3)

    def of(*others: ListedFact) -> list[ContradictionKind]:
        items = record_lists([allergy, *others])
        return kinds([item for item in items if item.kind is ListKind.ALLERGY])

    assert of(tolerated) == [ContradictionKind.ALLERGIC_AND_TOLERATED]
    assert of(later) == [ContradictionKind.ALLERGIC_AND_TAKEN]
    assert of(earlier) == []


def test_excluded_codes_of_one_encounter_contradict_on_both_entries() -> None:
    notes = {"E10.9": ("E11",), "J90": ("A15-A19",)}
    together = [condition("type 1 diabetes", "E10.9"), condition("type 2 diabetes", "E11.65")]
    apart = [condition("type 1 diabetes", "E10.9"), condition("T2DM", "E11.65", encounter=1)]

    items = record_lists(together, notes)

    assert kinds(items) == [ContradictionKind.CODES_EXCLUDED] * 2
    assert kinds(record_lists(together)) == []
    assert kinds(record_lists(apart, notes)) == []


def test_a_note_names_codes_prefixes_and_ranges() -> None:
    codes = ["E07.9", "E08.1", "E10.9", "E13.9", "E14", "J44", "J44.9", "J45.20"]
    notes = {"E14": ("E08-E13",), "J45.20": ("J44",), "J44": ("J44",)}

    assert list(excluded_pairs(codes, notes)) == [
        ("E08.1", "E14"),
        ("E10.9", "E14"),
        ("E13.9", "E14"),
        ("J44", "J44.9"),
        ("J44", "J45.20"),
        ("J44.9", "J45.20"),
    ]


def test_a_series_is_in_the_order_of_days_with_one_group_per_unit() -> None:
    code = "LOINC|2951-2"
    items = record_lists(
        [
            lab("Sodium", "138", "mmol/L", code=code, encounter=3),
            lab("sodium", "134", "mmol/L", code=code, encounter=1),
            lab("Na", "135", "meq/L", code=code, encounter=2),
            lab("Sodium", "131", "mmol/L", code=code, temporality="historical"),
        ]
    )

    (item,) = items
    groups = {group["unit"]: group["values"] for group in item.summary["groups"]}
    assert [value["number"] for value in groups["mmol/L"]] == ["134", "138", "131"]
    assert "date" not in groups["mmol/L"][-1]
    assert [value["number"] for value in groups["meq/L"]] == ["135"]


def test_a_result_of_a_stay_has_the_days_of_the_stay_and_no_day_of_its_own() -> None:
    until = FIRST + timedelta(days=5)
    (item,) = record_lists(
        [
            lab("Creatinine", "1.36", "mg/dL", encounter=20),
            lab("Creatinine", "1.52", "mg/dL", until=until),
            lab("Creatinine", "1.29", "mg/dL", until=until, entity_date=FIRST + timedelta(days=2)),
            lab("Creatinine", "1.18", "mg/dL", until=FIRST, day=FIRST - timedelta(days=90)),
        ]
    )

    (group,) = item.summary["groups"]
    assert [(v["number"], v.get("date"), v.get("stay")) for v in group["values"]] == [
        ("1.18", None, "2023-12-12 to 2024-03-11"),
        ("1.52", None, "2024-03-11 to 2024-03-16"),
        ("1.29", "2024-03-13", None),
        ("1.36", "2024-03-31", None),
    ]


def test_flags_stay_visible() -> None:
    (item,) = record_lists([dosed("lisinopril", "10", flags=("disputed:dose",))])

    assert item.summary["flags"] == ["disputed:dose"]
    assert item.summary["current"]["flags"] == ["disputed:dose"]


def test_the_document_explains_every_contradiction() -> None:
    document = (Path(__file__).parents[2] / "docs" / "record-lists.md").read_text("utf-8")

    assert set(re.findall(r"^\| `(\w+)` \|", document, re.MULTILINE)) == set(ContradictionKind)


_NAMES = st.sampled_from(["lisinopril", "Lisinopril", "aspirin", "hypertension", "sodium"])


@st.composite
def listed(draw: st.DrawFn) -> ListedFact:
    category = draw(st.sampled_from(["condition", "medication", "allergy", "lab", "symptom"]))
    number = draw(st.sampled_from(["5", "10", "20"]))
    by_category: dict[str, dict[str, Any]] = {
        "medication": {"dose": {"printed": number, "number": number, "unit": "mg"}},
        "lab": {"value": {"printed": number, "number": number, "unit": "mmol/L"}},
        "condition": {"clinical_status": draw(st.sampled_from(["active", "resolved"]))},
    }
    return fact(
        category,
        draw(_NAMES),
        encounter=draw(st.integers(0, 3)),
        attributes=by_category.get(category, {}),
        accepted=draw(st.booleans()),
        negated=draw(st.sampled_from([None, False, True])),
        temporality=draw(st.sampled_from([None, "current", "historical", "planned"])),
        certainty=draw(st.sampled_from([None, "certain", "possible"])),
        experiencer=draw(st.sampled_from([None, "patient", "family"])),
        status=draw(st.sampled_from([None, "active", "stopped", "not_started"])),
        code=draw(st.sampled_from([None, "ICD10CM|I10", "LOINC|2951-2", "UNII|E7199S1YWR"])),
        day=draw(st.sampled_from([None, FIRST, FIRST + timedelta(days=1)])),
    )


@given(st.lists(listed(), max_size=25))
def test_every_affirmed_entity_is_in_exactly_one_entry(facts: list[ListedFact]) -> None:
    items = record_lists(facts)

    affirmed = [each.entity_id for each in facts if statement_of(each) is ListStatement.AFFIRMED]
    counts = [sum(each in item.entity_ids for item in items) for each in affirmed]
    assert counts == [1] * len(affirmed)
    accepted = {each.entity_id for each in facts if each.facts.accepted}
    assert all(accepted.issuperset(item.entity_ids) for item in items)


@given(st.lists(listed(), max_size=15), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(
    facts: list[ListedFact], order: random.Random
) -> None:
    shuffled = list(facts)
    order.shuffle(shuffled)

    assert record_lists(shuffled) == record_lists(facts)


@pytest.mark.parametrize("ids", [(1, 2), (2, 1)])
def test_two_series_of_one_name_keep_the_order_of_the_record(ids: tuple[int, int]) -> None:
    """Entity ids are random. An order by id would differ between two runs of one step."""
    results = (lab("WBC", "8.7", "10*3/uL"), lab("WBC", "74", "%", encounter=1))
    facts = [
        replace(each, entity_id=UUID(int=number)) for each, number in zip(results, ids, strict=True)
    ]

    assert [item.entity_ids for item in record_lists(facts)] == [(f.entity_id,) for f in facts]


@given(
    st.lists(listed(), max_size=10),
    st.decimals(min_value=1, max_value=500, places=1),
    st.decimals(min_value=1, max_value=500, places=1),
)
def test_two_doses_of_one_day_always_contradict(
    others: list[ListedFact], one: Any, other: Any
) -> None:
    pair = [dosed("zolpidem", str(one)), dosed("Zolpidem", str(other))]

    items = [item for item in record_lists([*pair, *others]) if item.name.casefold() == "zolpidem"]

    assert (ContradictionKind.TWO_DOSES in kinds(items)) is (one != other)


CALLS_PER_ENTITY = 330
"""Calls of functions for each entity at most; 208 to 314 today."""


@pytest.mark.parametrize("subjects", [1, 400, 10_000])
def test_four_times_the_entities_are_four_times_the_work(subjects: int) -> None:
    _, few = _listed_with_calls(2_500, subjects)
    items, many = _listed_with_calls(10_000, subjects)

    assert many < 4.5 * few
    assert many < CALLS_PER_ENTITY * 10_000
    assert len(items) >= min(subjects, 2_500)


def _listed_with_calls(amount: int, subjects: int) -> tuple[list[ListItem], int]:
    """Return the lists of some entities, and the number of function calls that they cost."""
    facts = list(_many(amount, subjects))
    notes = {f"A{n % 90 + 10}.{n}": ("B10-B99",) for n in range(300)}
    profile = cProfile.Profile()
    items = profile.runcall(record_lists, facts, notes)
    return items, sum(entry.callcount for entry in profile.getstats())


def _many(amount: int, subjects: int) -> Iterator[ListedFact]:
    for number in range(amount):
        place, subject = number % 97, number // 4 % subjects
        match number % 4:
            case 0:
                code = f"A{subject % 90 + 10}.{subject}"
                yield condition(f"condition {subject}", code, encounter=place)
            case 1:
                yield dosed(f"drug {subject}", str(number), encounter=place)
            case 2:
                yield lab(f"analyte {subject}", str(number % 50), "mg/dL", encounter=place)
            case _:
                yield fact("allergy", f"drug {subject}", encounter=place)
