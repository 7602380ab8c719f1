"""The structured attributes of allergies, immunizations and procedures, and of hostile texts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clinical.attributes import MedicationAttributes
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.clinical.immunizations import dose_number_of
from pipeline.clinical.medications.status import STATUSES
from pipeline.clinical.structured import Printed
from pipeline.clinical.structurers import structured
from pipeline.models.assertions import MedicationStatus

DAY = date(2024, 5, 6)


def facts(category: str, name: str = "Examplin", **values: Any) -> EntityFacts:
    return EntityFacts(
        key="e1", category=category, name=name, quote=name, page=1,
        **({"encounter_date": DAY} | values),
    )  # fmt: skip


def values_of(printed: Printed) -> tuple[dict[str, Any], tuple[str, ...]]:
    found = structured(printed)
    return found.attributes.model_dump(mode="json", exclude_none=True), found.flags


def test_the_statuses_are_those_of_the_model() -> None:
    assert set(MedicationStatus.values) == STATUSES


@pytest.mark.parametrize(
    ("known", "printed", "flags"),
    [
        ({"negated": True}, {}, ()),
        ({"negated": True}, {"verification": "confirmed"}, ("status_contradicts:status",)),
        ({"negated": True}, {"status": "active"}, ("status_contradicts:status",)),
    ],
)
def test_a_denied_allergy_is_refuted(
    known: dict[str, Any], printed: dict[str, str], flags: tuple[str, ...]
) -> None:
    found, raised = values_of(
        Printed(facts=facts("allergy", "latex", **known), severity="severe", **printed)
    )
    assert found == {"substance": "latex", "verification_status": "refuted"}
    assert raised == flags


def test_an_allergy_keeps_what_is_printed() -> None:
    found, flags = values_of(
        Printed(
            facts=facts("allergy", "Penicillin"), reaction="hives", severity="Severe",
            status="active",
        )
    )  # fmt: skip
    assert found == {
        "substance": "Penicillin", "reaction": "hives", "severity": "severe",
        "clinical_status": "active",
    }  # fmt: skip
    assert flags == ()


def test_no_known_allergies_are_no_substance() -> None:
    assert values_of(Printed(facts=facts("allergy", "NKDA"))) == ({}, ())


def test_an_allergy_of_a_relative_keeps_its_substance_only() -> None:
    printed = Printed(facts=facts("allergy", "Penicillin", experiencer="family"), severity="severe")
    assert values_of(printed)[0] == {"substance": "Penicillin"}


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("2 of 3", 2), ("#2", 2), ("dose 2", 2), ("Dose #3", 3), ("second", 2), ("second dose", 2),
        ("2nd dose", 2), ("dose 1 of 2", 1), ("1", 1), ("booster", None), ("second booster", None),
        ("2/3", None), ("0.5 mL", None), ("4 of 3", None), ("high dose", None), ("12345", None),
        ("", None), (None, None), ("two of 3", 2), ("0", None),
    ],
)  # fmt: skip
def test_the_number_of_a_dose(printed: str | None, number: int | None) -> None:
    assert dose_number_of(printed) == number


@pytest.mark.parametrize(
    ("known", "printed", "expected", "flags"),
    [
        ({"negated": False, "entity_date": date(2022, 10, 11)}, {},
         {"status": "completed", "occurrence": "2022-10-11"}, ()),
        ({"negated": False}, {"start": "10/2022"},
         {"status": "completed", "occurrence": "2022-10"}, ()),
        ({"negated": True, "entity_date": date(2022, 10, 11)}, {}, {"status": "not-done"}, ()),
        ({"temporality": "planned"}, {"start": "2025"}, {"status": "planned"}, ()),
        ({"negated": True}, {"status": "completed"}, {"status": "not-done"},
         ("status_contradicts:status",)),
        ({"negated": False, "entity_date": date(2022, 10, 11)}, {"start": "2/29/2021"},
         {"status": "completed", "occurrence": "2022-10-11"}, ()),
        ({"negated": False, "entity_date": date(2022, 10, 11)}, {"start": "3/15/2021"},
         {"status": "completed"}, ("date_not_understood:occurrence",)),
        ({}, {}, {}, ()),
        ({"negated": False}, {}, {}, ()),
        ({"negated": False}, {"status": "completed"}, {"status": "completed"}, ()),
    ],
)  # fmt: skip
def test_an_immunization(
    known: dict[str, Any], printed: dict[str, str], expected: dict[str, str], flags: tuple[str, ...]
) -> None:
    found, raised = values_of(Printed(facts=facts("immunization", "Tdap", **known), **printed))
    assert found == {"product": "Tdap"} | expected
    assert raised == flags


@pytest.mark.parametrize(
    ("known", "printed", "expected", "flags"),
    [
        ({"negated": False}, {"start": "March 2019"}, {"performed": "2019-03"}, ()),
        ({"negated": False}, {"start": "March 2019", "status": "completed"},
         {"status": "completed", "performed": "2019-03"}, ()),
        ({"negated": True}, {"start": "March 2019"}, {"status": "not-done"}, ()),
        ({"temporality": "planned"}, {"start": "2025"}, {"status": "preparation"}, ()),
        ({"temporality": "historical"}, {"laterality": "L"},
         {"status": "completed", "laterality": "left"}, ()),
        ({"certainty": "possible"}, {}, {"status": "unknown"}, ()),
        ({"negated": True}, {"status": "completed"}, {"status": "not-done"},
         ("status_contradicts:status",)),
        ({}, {"body_site": "knee"}, {"body_site": "knee"}, ()),
        ({"negated": False}, {}, {}, ()),
    ],
)  # fmt: skip
def test_a_procedure(
    known: dict[str, Any], printed: dict[str, str], expected: dict[str, str], flags: tuple[str, ...]
) -> None:
    found, raised = values_of(Printed(facts=facts("procedure", **known), **printed))
    assert found == expected
    assert raised == flags


def test_a_side_that_the_name_denies_is_left_out() -> None:
    printed = Printed(facts=facts("procedure", "right knee arthroscopy"), laterality="left")
    assert "laterality" not in values_of(printed)[0]


@pytest.mark.parametrize(
    ("known", "printed", "status", "is_flagged"),
    [
        ({"status": "active"}, {"status": "active"}, "active", False),
        ({"status": "active"}, {}, "active", False),
        ({"status": "stopped"}, {"status": "active"}, "stopped", True),
        ({"status": "active", "negated": True}, {}, "active", True),
        ({"status": "stopped", "negated": True}, {}, "stopped", False),
        ({"status": "stopped", "negated": False}, {}, "stopped", False),
        ({"status": "not_started", "negated": False}, {}, "not_started", True),
        ({}, {"status": "discontinued"}, None, True),
        ({"status": "active"}, {"stop": "4/30/2024"}, "active", True),
        ({"status": "active"}, {"stop": "6/30/2024"}, "active", False),
        ({"status": "active"}, {"stop": "2024"}, "active", False),
        ({"status": "stopped"}, {"stop": "3/15/2024"}, "stopped", False),
    ],
)
def test_the_status_of_a_medication(
    known: dict[str, Any], printed: dict[str, str], status: str | None, is_flagged: bool
) -> None:
    found, flags = values_of(Printed(facts=facts("medication", **known), **printed))
    assert found.get("status") == status
    assert ("status_contradicts:status" in flags) is is_flagged


ATORVASTATIN = Candidate(system="UNII", code="A0JWA85V8F", display="ATORVASTATIN", score=0.9)


@pytest.mark.parametrize(
    ("name", "code", "printed", "ingredient"),
    [
        ("Lipitor", "UNII|A0JWA85V8F", None, "atorvastatin"),
        ("Lipitor", None, None, None),
        ("Lipitor", None, "Lipitor", None),
        ("Lipitor", None, "atorvastatin", "atorvastatin"),
        ("Atorvastatin", None, None, "Atorvastatin"),
        ("MS", "UNII|A0JWA85V8F", "morphine", None),
    ],
)
def test_the_ingredient(
    name: str, code: str | None, printed: str | None, ingredient: str | None
) -> None:
    known = facts("medication", name, code=code, candidates=(ATORVASTATIN,))
    assert values_of(Printed(facts=known, ingredient=printed))[0].get("ingredient") == ingredient


TEXT = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="0123456789.,/-½ mgtabletsdailyBIDqhPRN()#~\t\n", max_size=60),
    st.sampled_from(
        ["9" * 5000, "1/0 tablet", "1e400 mg", "-5 mg", "٣ mg", "５００ mg", "20 mg" * 60, "\x00",
         "0.000000001 mg", "NaN mg", "1/2/3/4", "q0h", "every 0 days", "0 times daily", "1-0-0-0-1",
         "q999999999h", "\ud800", "2024-13-45", "Infinity tablets", "1,2,3,4 mg"]
    ),
)  # fmt: skip
FIELDS = ("ingredient", "strength", "dose", "route", "frequency", "start", "stop", "status",
          "verification", "severity", "indication", "body_site", "laterality", "substance",
          "reaction", "product", "dose_number")  # fmt: skip


@given(
    category=st.sampled_from(["medication", "allergy", "immunization", "procedure"]),
    printed=st.dictionaries(st.sampled_from(FIELDS), TEXT),
    name=TEXT,
)
def test_no_text_raises(category: str, printed: dict[str, str], name: str) -> None:
    known = facts(category, name, previous_dose=printed.get("dose"))
    found = structured(Printed(facts=known, **printed))
    json.dumps(found.attributes.model_dump(mode="json", exclude_none=True))


NUMBERS = st.decimals(min_value="0.25", max_value="2000", places=2).filter(lambda n: n > 0)


@given(number=NUMBERS, times=st.integers(min_value=1, max_value=9))
def test_the_daily_dose_is_dose_times_frequency(number: Decimal, times: int) -> None:
    printed = Printed(
        facts=facts("medication"), dose=f"{number} mg", frequency=f"{times} times per day"
    )
    found = structured(printed).attributes
    assert isinstance(found, MedicationAttributes)
    assert found.daily_dose is not None
    assert found.daily_dose.number == number * times
    assert found.daily_dose.unit == "mg/d"


@given(
    number=NUMBERS, pieces=st.integers(min_value=1, max_value=9),
    hours=st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24]),
)  # fmt: skip
def test_pieces_of_one_strength_multiply(number: Decimal, pieces: int, hours: int) -> None:
    printed = Printed(
        facts=facts("medication"), dose=f"{pieces} tablets", frequency=f"q{hours}h",
        strength=f"{number} mg",
    )  # fmt: skip
    found = structured(printed).attributes
    assert isinstance(found, MedicationAttributes)
    assert found.daily_dose is not None
    assert found.daily_dose.number == number * pieces * 24 / hours
    as_needed = structured(replace(printed, frequency=f"q{hours}h PRN")).attributes
    assert isinstance(as_needed, MedicationAttributes)
    assert as_needed.daily_dose is None
