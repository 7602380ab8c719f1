"""The FHIR mapping: what an entity becomes, its statuses, and a lossless way there and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from fhir.resources.R4B.bundle import Bundle
from fhirclient.models import bundle as fhirclient_bundle
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.clinical.attributes import (
    ConditionAttributes,
    LabAttributes,
    MedicationAttributes,
    Quantity,
    Range,
    Timing,
)
from pipeline.exports.fhir.bundle import bundle
from pipeline.exports.rows import EntityRow, SentenceRow
from tests.support import fhir_rows
from tests.support.export_rows import MemorySource, a_record, an_entity
from tests.support.exported import parsed, plain


def exported(*rows: EntityRow, **record: Any) -> dict[str, Any]:
    return parsed("".join(bundle(MemorySource(a_record(**record), rows))))


def resource(**fields: Any) -> dict[str, Any]:
    """Return the resource of one entity, from a bundle that both models accept."""
    entity = an_entity(**fields)
    made = exported(entity)
    Bundle.model_validate(made)
    fhirclient_bundle.Bundle(plain(made), strict=True)
    found: dict[str, Any] = fhir_rows.by_url(made)[f"urn:uuid:{entity.id}"]
    return found


def code_of(concept: dict[str, Any]) -> str:
    code: str = concept["coding"][0]["code"]
    return code


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "Condition"),
        ({"category": "symptom"}, "Condition"),
        ({"negated": True}, "Condition"),
        ({"temporality": "historical"}, "Condition"),
        ({"certainty": "possible"}, "Condition"),
        ({"certainty": "hypothetical"}, "Basic"),
        ({"temporality": "planned"}, "Basic"),
        ({"accepted": False}, "Basic"),
        ({"experiencer": "other"}, "Basic"),
        ({"experiencer": "family"}, "FamilyMemberHistory"),
        ({"zone_type": "family_history"}, "FamilyMemberHistory"),
        ({"experiencer": "patient", "zone_type": "family_history"}, "Basic"),
        ({"experiencer": "family", "negated": True}, "Basic"),
        ({"experiencer": "family", "certainty": "possible"}, "Basic"),
        ({"experiencer": "family", "category": "procedure"}, "Basic"),
        ({"experiencer": "family", "status": "entered_in_error"}, "Basic"),
        ({"experiencer": "family", "attributes": {"verification_status": "refuted"}}, "Basic"),
        ({"experiencer": "family", "attributes": {"verification_status": "differential"}}, "Basic"),
        ({"category": "lab", "value": "5.10"}, "Observation"),
        ({"category": "lab", "negated": True}, "Basic"),
        ({"category": "vital", "certainty": "possible"}, "Basic"),
        ({"category": "lab", "temporality": "planned"}, "Basic"),
        ({"category": "medication"}, "MedicationStatement"),
        ({"category": "medication", "certainty": "hypothetical"}, "Basic"),
        ({"category": "allergy"}, "AllergyIntolerance"),
        ({"category": "allergy", "attributes": {}}, "Basic"),
        ({"category": "immunization"}, "Basic"),
        ({"category": "immunization", "attributes": {"status": "planned"}}, "Basic"),
        ({"category": "immunization", "attributes": {"status": "completed"}}, "Immunization"),
        ({"category": "immunization", "negated": True}, "Immunization"),
        ({"category": "procedure"}, "Procedure"),
        ({"category": "procedure", "certainty": "possible"}, "Basic"),
        ({"category": "unheard of"}, "Basic"),
    ],
)
def test_only_a_stated_fact_of_the_patient_becomes_a_clinical_resource(
    fields: dict[str, Any], kind: str
) -> None:
    assert resource(**fields)["resourceType"] == kind


@pytest.mark.parametrize(
    ("fields", "verification", "clinical"),
    [
        ({}, None, None),
        ({"negated": True}, "refuted", None),
        ({"certainty": "possible"}, "unconfirmed", None),
        ({"attributes": {"verification_status": "differential"}}, "differential", None),
        ({"attributes": {"verification_status": "confirmed"}, "negated": True}, "refuted", None),
        ({"temporality": "historical"}, None, "inactive"),
        ({"attributes": {"clinical_status": "resolved"}, "temporality": "historical"}, None,
         "resolved"),
        ({"status": "entered_in_error", "temporality": "historical"}, "entered-in-error", None),
        ({"attributes": {"clinical_status": "active"}, "negated": True}, "refuted", None),
        ({"attributes": {"clinical_status": "active"}, "temporality": "historical"}, None, None),
        ({"attributes": {"verification_status": "confirmed"}, "certainty": "possible"},
         "unconfirmed", None),
    ],
)  # fmt: skip
def test_the_statuses_of_a_condition_follow_its_assertion(
    fields: dict[str, Any], verification: str | None, clinical: str | None
) -> None:
    made = resource(**fields)

    found = [made.get(each) for each in ("verificationStatus", "clinicalStatus")]
    assert [each and code_of(each) for each in found] == [verification, clinical]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "unknown"),
        ({"status": "active"}, "active"),
        ({"status": "changed"}, "active"),
        ({"status": "stopped"}, "stopped"),
        ({"status": "on_hold"}, "on-hold"),
        ({"status": "planned"}, "intended"),
        ({"status": "not_started"}, "not-taken"),
        ({"status": "entered_in_error"}, "entered-in-error"),
        ({"negated": True}, "not-taken"),
        ({"status": "active", "negated": True}, "unknown"),
        ({"status": "active", "temporality": "historical"}, "unknown"),
        ({"status": "active", "temporality": "planned"}, "intended"),
        ({"status": "active", "certainty": "possible"}, "unknown"),
        ({"temporality": "planned"}, "intended"),
    ],
)
def test_a_medication_is_active_only_if_nothing_says_otherwise(
    fields: dict[str, Any], status: str
) -> None:
    assert resource(category="medication", **fields)["status"] == status


def test_an_allergy_has_the_clinical_status_that_fhir_requires() -> None:
    stated = resource(category="allergy")
    denied = resource(category="allergy", negated=True)

    assert code_of(stated["clinicalStatus"]) == "active"
    assert (code_of(denied["clinicalStatus"]), code_of(denied["verificationStatus"])) == (
        "inactive",
        "refuted",
    )


def test_a_number_keeps_its_digits_in_the_text_of_the_bundle() -> None:
    value = {"printed": "5.10", "number": "5.10", "unit": "mmol/L", "printed_unit": "mmol/L"}
    entity = an_entity(category="lab", value="5.10", attributes={"value": value})

    text = "".join(bundle(MemorySource(rows=[entity])))

    assert '"value":5.10,' in text


def test_a_comparator_and_an_exclusive_bound_are_never_lost_as_plain_numbers() -> None:
    found = resource(
        category="lab",
        attributes={
            "value": {"printed": "<0.01", "number": "0.01", "comparator": "<", "unit": "ng/mL"},
            "reference_range": {"printed": "<0.04", "high": "0.04", "high_is_exclusive": True},
        },
    )

    assert found["valueQuantity"]["comparator"] == "<"
    (bound,) = found["referenceRange"]
    assert (bound["text"], "high" in bound) == ("<0.04", False)


def test_a_blood_pressure_has_two_components_and_no_value() -> None:
    each = [{"printed": n, "number": n, "unit": "mm[Hg]"} for n in ("124", "72")]
    found = resource(
        category="vital", attributes={"components": each}, code_system="LOINC", code="85354-9"
    )

    values = [(code_of(c["code"]), c["valueQuantity"]["value"]) for c in found["component"]]
    assert values == [("8480-6", 124), ("8462-4", 72)]
    assert "valueQuantity" not in found


def test_a_code_appears_only_where_one_was_chosen() -> None:
    without = resource()
    chosen = resource(code_system="ICD10CM", code="J45.909", code_display="Asthma")

    assert without["code"] == {"text": "asthma"}
    assert chosen["code"]["coding"] == [
        {"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "J45.909", "display": "Asthma"}
    ]


def test_flagged_held_and_unreviewed_resources_are_tagged_and_listed() -> None:
    flagged = an_entity(100, review_flags=["relocated"])
    held = an_entity(101, accepted=False, review_flags=["unaligned"])
    plain_one = an_entity(102)

    open_review = exported(flagged, held, plain_one)
    closed = exported(flagged, held, plain_one, is_review_closed=True)

    tags = {each.id: fhir_rows.tags(fhir_rows.by_url(open_review)[f"urn:uuid:{each.id}"])
            for each in (flagged, held, plain_one)}  # fmt: skip
    assert tags[flagged.id] == {"not-reviewed", "flagged"}
    assert tags[held.id] == {"not-reviewed", "flagged", "held"}
    assert tags[plain_one.id] == {"not-reviewed"}
    assert _listed(open_review) == {str(flagged.id), str(held.id), str(plain_one.id)}
    assert _listed(closed) == {str(flagged.id), str(held.id)}
    cut = exported(plain_one, is_review_closed=True, incomplete_note="Record incomplete: x.")
    statuses = [next(fhir_rows.resources(of, "Composition"))["status"]
                for of in (open_review, closed, cut)]  # fmt: skip
    assert statuses == ["preliminary", "final", "preliminary"]


def test_a_rejected_entity_is_no_finding_and_waits_for_no_reviewer() -> None:
    rejected = an_entity(accepted=False, verdict="rejected", review_flags=["relocated"])
    disputed = an_entity(101, accepted=False, verdict="disputed")
    corrected = an_entity(102, verdict="corrected", review_flags=["relocated"])

    made = exported(rejected, disputed, corrected)

    urls = fhir_rows.by_url(made)
    found = [urls[f"urn:uuid:{each.id}"] for each in (rejected, disputed, corrected)]
    assert [each["resourceType"] for each in found] == ["Basic", "Basic", "Condition"]
    assert [fhir_rows.tags(each) for each in found] == [
        {"rejected"},
        {"not-reviewed", "held"},
        set(),
    ]
    assert _listed(made) == {str(disputed.id)}


def broken_rules(resource: dict[str, Any]) -> list[str]:
    """Return the invariants of FHIR R4 that a resource breaks; the two models check none."""
    status = resource.get("clinicalStatus")
    code = status and code_of(status)
    verification = resource.get("verificationStatus")
    is_error = verification is not None and code_of(verification) == "entered-in-error"
    period = resource.get("effectivePeriod", {})
    start, end = period.get("start", ""), period.get("end", "")
    size = min(len(start), len(end))
    rules = {
        "con-4": "abatementDateTime" in resource
        and code not in ("inactive", "remission", "resolved"),
        "con-5 or ait-2": is_error and status is not None,
        "ait-1": resource["resourceType"] == "AllergyIntolerance"
        and not is_error
        and status is None,
        "obs-6": "dataAbsentReason" in resource and any(k.startswith("value") for k in resource),
        # FHIRPath knows no order of days with unequal precision and equal beginning.
        "per-1": size > 0
        and (start[:size] > end[:size] or (start[:size] == end[:size] and start != end)),
    }
    return [name for name, is_broken in rules.items() if is_broken]


def _listed(made: dict[str, Any]) -> set[str]:
    (composition,) = fhir_rows.resources(made, "Composition")
    (section,) = (s for s in composition["section"] if s["title"] == "Not yet reviewed")
    return {each["reference"].removeprefix("urn:uuid:") for each in section["entry"]}


def test_an_incomplete_record_says_so_in_title_tags_and_outcome() -> None:
    made = exported(an_entity(), incomplete_note="Record incomplete: 1 of 2 encounters failed.")

    (composition,) = fhir_rows.resources(made, "Composition")
    (outcome,) = fhir_rows.resources(made, "OperationOutcome")
    assert composition["title"].endswith("record incomplete")
    assert "record-incomplete" in fhir_rows.tags(made)
    assert outcome["issue"][0]["code"] == "incomplete"


def test_hostile_text_stays_text() -> None:
    name = '<script>alert(1)</script>" \x0c\u202e&'

    found = resource(name=name, quote=name)

    assert found["code"]["text"] == name.replace("\x0c", "\ufffd")


def test_no_two_encounters_have_one_identifier() -> None:
    made = [exported(an_entity(), id=UUID(int=number)) for number in (1, 2)]

    values = [
        each["identifier"][0]["value"]
        for bundle_ in made
        for each in fhir_rows.resources(bundle_, "Encounter")
    ]
    assert len(set(values)) == 2


def test_the_provenance_names_a_person_where_a_person_wrote_the_value() -> None:
    added = an_entity(engine="reviewer", verdict="added")
    corrected = an_entity(101, verdict="corrected")

    made = exported(added, corrected)

    agents = {
        each["target"][0]["reference"]: [
            (agent["type"]["text"], agent["who"].get("display", "a machine"))
            for agent in each["agent"]
        ]
        for each in fhir_rows.resources(made, "Provenance")
    }
    assert agents[f"urn:uuid:{added.id}"] == [("found the entity", "a reviewer")]
    assert agents[f"urn:uuid:{corrected.id}"] == [
        ("found the entity", "a machine"),
        ("corrected the entity", "a reviewer"),
    ]
    devices = [each["deviceName"][0]["name"] for each in fhir_rows.resources(made, "Device")]
    assert "reviewer" not in devices


@pytest.mark.parametrize("code", ["\ufffe", "\uffff", "\x0b"])
def test_a_sentence_with_a_character_that_xml_forbids_is_well_formed(code: str) -> None:
    sentence = SentenceRow(UUID(int=9), 1, 0, f"The patient had as{code}thma.", [UUID(int=100)])

    made = "".join(bundle(MemorySource(rows=[an_entity()], sentence_rows=[sentence])))

    ((_, text, _),) = fhir_rows.sentences(parsed(made))
    assert text == "The patient had as\ufffdthma."


numbers = st.decimals(
    min_value=Decimal("0.001"), max_value=Decimal(10_000), places=2, allow_nan=False
)
words = st.sampled_from(["mg", "5 mg", "twice daily", "left knee", "since 2019", "<b>&"])
days = st.sampled_from(["2024", "2024-03", "2024-03-11"])
quantities = st.builds(
    Quantity,
    printed=words,
    number=st.none() | numbers,
    comparator=st.none() | st.sampled_from(["<", ">="]),
    unit=st.none() | st.just("mg"),
    printed_unit=st.none() | st.just("mg"),
)
ranged = st.builds(Quantity, printed=words, number=numbers, high=numbers)
amounts = st.none() | quantities | ranged
ranges = st.builds(
    Range,
    printed=words,
    low=st.none() | numbers,
    high=st.none() | numbers,
    text=st.none() | st.just("negative"),
)
timings = st.builds(
    Timing,
    printed=words,
    frequency=st.sampled_from([None, Decimal(2), Decimal("1.5")]),
    period=st.sampled_from([None, Decimal(1), Decimal("0.5")]),
    period_unit=st.sampled_from([None, "d", "wk"]),
    when=st.sampled_from([(), ("HS",), ("AC", "MORN")]),
    as_needed=st.booleans(),
    count=st.none() | st.integers(1, 9),
)
some = st.none() | words
MODELS: dict[str, Any] = {
    "lab": st.builds(
        LabAttributes, value=amounts, value_text=st.none(), reference_range=st.none() | ranges,
        printed_flag=some, computed_flag=st.sampled_from([None, "H", "LL"]),
        effective=st.none() | days, converted=st.none(),
    ),
    "condition": st.builds(
        ConditionAttributes, clinical_status=st.sampled_from([None, "active", "resolved"]),
        verification_status=st.sampled_from(
            [None, "confirmed", "refuted", "provisional", "entered-in-error"]
        ),
        onset=st.none() | days, printed_onset=some, abatement=st.none() | days,
        severity=st.sampled_from([None, "mild"]), body_site=some,
        laterality=st.sampled_from([None, "left"]),
    ),
    "medication": st.builds(
        MedicationAttributes, ingredient=some, strength=st.lists(quantities, max_size=2).map(tuple),
        dose=amounts, daily_dose=amounts, previous_dose=amounts, route=some, printed_route=some,
        timing=st.none() | timings, start=st.none() | days, stop=st.none() | days,
        status=st.sampled_from([None, "active", "stopped"]), indication=some,
        step=st.none() | st.integers(1, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("category", MODELS)
@settings(max_examples=60)
@given(data=st.data())
def test_any_attributes_are_valid_fhir_and_come_back_as_they_were(
    category: str, data: st.DataObject
) -> None:
    attributes = data.draw(MODELS[category]).model_dump(mode="json")
    fields: dict[str, Any] = {
        "negated": data.draw(st.sampled_from([None, True, False])) if category != "lab" else None,
        "temporality": data.draw(st.sampled_from([None, "historical", "current"])),
        "certainty": data.draw(st.sampled_from([None, "certain", "hypothetical"])),
        "accepted": data.draw(st.booleans()),
    }
    entity = an_entity(category=category, attributes=attributes, **fields)

    made = exported(entity)

    Bundle.model_validate(made)
    fhirclient_bundle.Bundle(plain(made), strict=True)
    (row,) = fhir_rows.entities(made).values()
    assert broken_rules(fhir_rows.by_url(made)[f"urn:uuid:{entity.id}"]) == []
    assert row["attributes"] == fhir_rows.stated(attributes)
    assert (row["quote"], row["name"]) == (entity.quote, entity.name)
    assert {name: row.get(name) for name in fields} == fields
