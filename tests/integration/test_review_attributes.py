"""A reviewer corrects the structured attributes of an entity, part by part, by the same form."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import Client

from observability.permissions import Role
from pipeline.models import EnrichedEntity, Entity, LockedField, ReviewDecision, ReviewItem
from tests.support.audit_rows import audit_events
from tests.support.review_forms import a_plain_record, does, form_on, held, url_of
from tests.support.review_rows import entities_of
from tests.support.users import client_of

pytestmark = pytest.mark.django_db

DOSE = "attributes.dose.number"
UNIT = "attributes.dose.unit"
STRENGTH = "attributes.strength.0"


@pytest.fixture
def reviewer() -> Client:
    """Return a client of a reviewer."""
    return client_of(Role.REVIEWER, "anna")


@pytest.fixture
def item(reviewer: Client) -> ReviewItem:
    """Insert a record of one medication, with a daily dose, and claim its review."""
    item = a_plain_record(entities=1)
    enriched = EnrichedEntity.objects.get(entity=entities_of(item)[0])
    daily = {"printed": "25mg BID", "number": "50", "unit": "mg"}
    enriched.attributes = {**enriched.attributes, "daily_dose": daily}
    enriched.save(update_fields=["attributes"])
    return held(reviewer, item)


def _form(**changed: str) -> dict[str, str]:
    """Return the posted fields: `DOSE` has the value 25 and `UNIT` mg in the form."""
    return {f"was_{DOSE}": "25", f"was_{UNIT}": "mg", DOSE: "25", UNIT: "mg", **changed}


def _attributes(entity: Entity) -> dict[str, Any]:
    stored: dict[str, Any] = EnrichedEntity.objects.get(entity=entity).attributes
    return stored


def test_the_form_shows_each_part_of_the_attributes(reviewer: Client, item: ReviewItem) -> None:
    answer = reviewer.get(url_of(item))

    fields = {each.name: each for each in answer.context["view"].attribute_fields}
    assert (fields[DOSE].label, fields[DOSE].value) == ("dose: number", "25")
    assert fields["attributes.timing.period_unit"].value == "d"
    assert ("wk", "wk") in fields["attributes.timing.period_unit"].options
    assert "attributes.daily_dose.number" not in fields
    assert "attributes.dose.printed" not in fields
    assert f'name="{DOSE}"' in answer.content.decode()


def test_a_corrected_part_is_decided_locked_and_audited_and_takes_computed_values_away(
    reviewer: Client, item: ReviewItem
) -> None:
    (entity,) = entities_of(item)
    before = _attributes(entity)["dose"]

    answer = does(reviewer, item, "correct", entity, **_form(**{DOSE: "50"}))

    assert answer.status_code == HTTPStatus.FOUND
    after = _attributes(entity)
    assert after["dose"] == {**before, "number": "50"}
    assert "daily_dose" not in after
    rows = {each.field: each for each in ReviewDecision.objects.all()}
    assert (rows["attributes.dose"].old_value, rows["attributes.dose"].new_value) == (
        before, after["dose"],
    )  # fmt: skip
    assert rows["attributes.daily_dose"].new_value is None
    lock = LockedField.objects.get(field="attributes.dose")
    assert (lock.healthcare_encounter_id, lock.category, lock.char_start) == (
        entity.healthcare_encounter_id, entity.category, entity.char_start,
    )  # fmt: skip
    written = next(row for row in audit_events() if row.action == "review correct")
    assert "attributes.dose" in written.facts["fields"]
    assert "50" not in str(written.facts["fields"])


def test_a_number_without_printed_words_is_refused_and_stays_in_the_open_form(
    reviewer: Client, item: ReviewItem
) -> None:
    (entity,) = entities_of(item)
    form = form_on(reviewer, item, "correct", entity)

    answer = reviewer.post(url_of(item, "correct"), {**form, f"{STRENGTH}.number": "25"})

    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "give the printed strength first" in answer.content.decode()
    read, others = answer.context["view"].attribute_groups
    assert (read.is_open, others.is_open) == (False, True)
    assert [each.value for each in others.fields if each.name == f"{STRENGTH}.number"] == ["25"]
    assert not ReviewDecision.objects.exists()


def test_the_database_keeps_a_corrected_attribute(reviewer: Client, item: ReviewItem) -> None:
    (entity,) = entities_of(item)
    does(reviewer, item, "correct", entity, **_form(**{DOSE: "50"}))
    kept = _attributes(entity)

    with pytest.raises(DatabaseError), transaction.atomic():
        EnrichedEntity.objects.filter(entity=entity).update(
            attributes={**kept, "dose": {"printed": "25mg", "number": "25", "unit": "mg"}}
        )

    assert _attributes(entity) == kept


def test_an_old_form_overwrites_no_newer_part(reviewer: Client, item: ReviewItem) -> None:
    (entity,) = entities_of(item)
    does(reviewer, item, "correct", entity, **_form(**{DOSE: "50"}))

    does(reviewer, item, "correct", entity, **_form(**{UNIT: "g"}))

    assert _attributes(entity)["dose"]["number"] == "50"
    assert _attributes(entity)["dose"]["unit"] == "g"


def test_a_unit_may_be_written_as_people_write_it(reviewer: Client, item: ReviewItem) -> None:
    (entity,) = entities_of(item)

    does(reviewer, item, "correct", entity, **_form(**{UNIT: "mcg"}))

    assert _attributes(entity)["dose"]["unit"] == "ug"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("attributes.dose.unit", "spoonz"),
        ("attributes.dose.number", "many"),
        ("attributes.dose.number", "NaN"),
        ("attributes.dose.printed", "50 mg"),
        ("attributes.dose", "50 mg"),
        ("attributes.dose.colour", "red"),
        ("attributes.dose.number.0", "5"),
        ("attributes.dose.0.number", "5"),
        ("attributes.strength.7.number", "5"),
        ("attributes.previous_dose.number", "5"),
        ("attributes.timing.period_unit", "fortnight"),
        ("attributes.indication", "a\nb"),
        ("attributes.", "5"),
        ("attributes.dose.", "5"),
        ("attributes.a.b.c.d.e", "5"),
    ],
)
def test_a_wrong_part_is_refused_in_words_and_stays_in_the_form(
    reviewer: Client, item: ReviewItem, path: str, value: str
) -> None:
    (entity,) = entities_of(item)
    before = _attributes(entity)

    answer = does(reviewer, item, "correct", entity, **_form(**{path: value}))

    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "Attributes." in answer.content.decode()
    assert _attributes(entity) == before
    assert not ReviewDecision.objects.exists()
    if path in (DOSE, UNIT):
        words = answer.content.decode()
        assert f'value="{value}"' in words
        assert '<details class="w-attributes" open>' in words
