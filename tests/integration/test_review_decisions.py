"""A reviewer accepts, corrects, rejects, adds and moves; each decision keeps both values."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline.core.errors import UserError
from pipeline.models import (
    DecisionAction,
    EnrichedEntity,
    Entity,
    LockedField,
    ReviewDecision,
    ShellFile,
)
from pipeline.operations.review.decisions import (
    MissedEntity,
    accept_all_unflagged,
    add_missed_entity,
    decide,
    move_to_encounter,
)
from tests.support.review_rows import (
    ANNA,
    BERT,
    TEXT,
    a_found_entity,
    a_reviewed_record,
    another_encounter,
    claimed,
    encounter_of,
    entities_of,
    says,
)

pytestmark = pytest.mark.django_db


def test_an_acceptance_makes_the_entity_a_result_and_locks_its_verdict() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    decided = says(item, entity, "accept")

    entity.refresh_from_db()
    assert (entity.verdict, entity.accepted) == ("accepted", True)
    (decision,) = ReviewDecision.objects.all()
    assert decided.decision_ids == (decision.id,)
    assert (decision.action, decision.field, decision.old_value, decision.new_value) == (
        "accept", "verdict", None, "accepted",
    )  # fmt: skip
    assert (decision.decided_by, decision.round, decision.category) == (ANNA, 1, "medication")
    assert (decision.page_number, decision.char_start, decision.engine) == (1, 0, "local-rules-3")
    (lock,) = LockedField.objects.all()
    assert (lock.entity_id, lock.field, lock.decision_id) == (entity.id, "verdict", decision.id)
    assert lock.healthcare_encounter_id == entity.healthcare_encounter_id


def test_a_rejected_entity_is_no_result() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    says(item, entity, "reject")

    entity.refresh_from_db()
    assert (entity.verdict, entity.accepted) == ("rejected", False)


def test_a_corrected_dose_makes_its_attributes_again_and_keeps_the_others() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    says(item, entity, "correct", dose="50 mg")

    entity.refresh_from_db()
    enriched = EnrichedEntity.objects.get(entity=entity)
    assert (entity.dose, entity.verdict) == ("50 mg", "corrected")
    assert enriched.attributes["dose"] == {
        "printed": "50 mg", "number": "50", "unit": "mg", "printed_unit": "mg",
    }  # fmt: skip
    assert enriched.attributes["timing"]["printed"] == "BID"
    assert enriched.code == "6918"
    values = dict(ReviewDecision.objects.values_list("field", "new_value"))
    assert values["dose"] == "50 mg"
    assert values["attributes.dose"] == enriched.attributes["dose"]
    assert dict(ReviewDecision.objects.values_list("field", "old_value"))["dose"] == "25 mg"
    assert set(LockedField.objects.values_list("field", flat=True)) == set(values)


def test_a_corrected_name_takes_the_code_of_the_old_name_away() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    says(item, entity, "correct", name="warfarin")

    enriched = EnrichedEntity.objects.get(entity=entity)
    assert (enriched.code_system, enriched.code, enriched.code_display) == (None, None, None)
    assert "ingredient" not in enriched.attributes


def test_an_attribute_is_corrected_by_itself() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    says(item, entity, "correct", attributes__indication="hypertension", attributes__dose=None)

    attributes = EnrichedEntity.objects.get(entity=entity).attributes
    assert attributes["indication"] == "hypertension"
    assert "dose" not in attributes


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "swallowed"},
        {"entity_date": "2026-13-40"},
        {"name": "  "},
        {"step": 0},
        {"dose": "a\nb"},
        {"dose": "9" * 2_001},
        {"colour": "red"},
        {"quote": "another text"},
        {"attributes.dose": {"number": "5"}},
        {"attributes.colour": "red"},
        {"code": "RXNORM|no such code"},
        {"code": "6918"},
        {"dose": "25 mg"},
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_and_changes_nothing(changes: dict[str, object]) -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    with pytest.raises(UserError) as refused:
        decide(item.id, ANNA, entity.id, DecisionAction.CORRECT, token=uuid4(), changes=changes)

    assert refused.value.code == "VALUE_INVALID"
    assert "9" * 2_001 not in refused.value.message
    entity.refresh_from_db()
    assert (entity.verdict, entity.dose) == (None, "25 mg")
    assert not ReviewDecision.objects.exists()


def test_a_person_can_change_a_decision_and_both_are_kept() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    says(item, entity, "accept")
    says(item, entity, "reject")
    says(item, entity, "correct", dose="50 mg")

    entity.refresh_from_db()
    assert (entity.verdict, entity.accepted, entity.dose) == ("corrected", True, "50 mg")
    verdicts = ReviewDecision.objects.filter(field="verdict").order_by("created_at")
    assert list(verdicts.values_list("old_value", "new_value")) == [
        (None, "accepted"), ("accepted", "rejected"), ("rejected", "corrected"),
    ]  # fmt: skip
    lock = LockedField.objects.get(field="verdict")
    assert lock.decision.new_value == "corrected"


def test_the_same_request_twice_is_one_decision() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    token = uuid4()

    first = decide(item.id, ANNA, entity.id, DecisionAction.REJECT, token=token)
    second = decide(item.id, ANNA, entity.id, DecisionAction.REJECT, token=token)

    assert (first.is_repeated, second.is_repeated) == (False, True)
    assert first.decision_ids == second.decision_ids
    assert ReviewDecision.objects.count() == 1


def test_only_the_holder_decides() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)

    with pytest.raises(UserError) as refused:
        says(item, entity, "accept", BERT)

    assert refused.value.code == "REVIEW_NOT_HELD"
    assert not ReviewDecision.objects.exists()


def test_an_entity_of_another_record_is_not_found() -> None:
    item, other = claimed(a_reviewed_record()), a_reviewed_record()
    (entity,) = entities_of(other)

    with pytest.raises(UserError) as refused:
        says(item, entity, "accept")

    assert refused.value.code == "NOT_FOUND"


def test_accept_all_waits_for_flagged_entities() -> None:
    item = claimed(a_reviewed_record(entities=3))
    flagged = a_found_entity(encounter_of(item), name="Warfarin", at=30, flags=True)

    with pytest.raises(UserError) as refused:
        accept_all_unflagged(item.id, ANNA, token=uuid4())
    says(item, flagged, "reject")
    decided = accept_all_unflagged(item.id, ANNA, token=uuid4())

    assert refused.value.code == "REVIEW_FLAGS_OPEN"
    assert decided.count == 3
    assert [each.verdict for each in entities_of(item)] == ["accepted"] * 3 + ["rejected"]
    assert LockedField.objects.count() == 4


def test_accept_all_twice_is_one_decision_for_each_entity() -> None:
    item = claimed(a_reviewed_record(entities=3))
    token = uuid4()

    accept_all_unflagged(item.id, ANNA, token=token)
    again = accept_all_unflagged(item.id, ANNA, token=token)

    assert (again.is_repeated, again.count) == (True, 3)
    assert ReviewDecision.objects.count() == 3


def test_a_missed_entity_is_added_with_its_words_and_attributes() -> None:
    item = claimed(a_reviewed_record())
    start = TEXT.index("Warfarin 5 mg")
    missed = MissedEntity(
        encounter_id=encounter_of(item).id, page=1, start=start, end=start + 13,
        category="medication", name="Warfarin", printed={"dose": "5 mg", "frequency": "daily"},
    )  # fmt: skip

    decided = add_missed_entity(item.id, ANNA, missed, token=uuid4())

    assert decided.entity_id is not None
    added = Entity.objects.get(id=decided.entity_id)
    assert (added.quote, added.name, added.dose) == ("Warfarin 5 mg", "Warfarin", "5 mg")
    assert (added.verdict, added.accepted, added.engine) == ("added", True, "reviewer")
    attributes = EnrichedEntity.objects.get(entity=added).attributes
    assert attributes["dose"]["number"] == "5"
    assert set(LockedField.objects.values_list("field", flat=True)) == {"verdict", "entity"}


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (4, 4), (0, 9_999), (9_000, 9_004)])
def test_a_missed_entity_needs_words_of_its_page(start: int, end: int) -> None:
    item = claimed(a_reviewed_record())
    missed = MissedEntity(
        encounter_id=encounter_of(item).id, page=1, start=start, end=end, category="lab"
    )

    with pytest.raises(UserError) as refused:
        add_missed_entity(item.id, ANNA, missed, token=uuid4())

    assert refused.value.code == "VALUE_INVALID"


def test_a_moved_entity_is_found_in_the_other_encounter_and_locked_at_its_origin() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    origin = entity.healthcare_encounter_id
    target = another_encounter(item)

    move_to_encounter(item.id, ANNA, entity.id, target.id, token=uuid4())

    entity.refresh_from_db()
    assert (entity.healthcare_encounter_id, entity.verdict) == (target.id, "corrected")
    assert EnrichedEntity.objects.get(entity=entity).healthcare_encounter_id == target.id
    assert set(LockedField.objects.values_list("healthcare_encounter_id", flat=True)) == {origin}


def test_a_review_never_changes_the_status_of_the_record() -> None:
    item = claimed(a_reviewed_record())
    before = ShellFile.objects.values_list("status", "updated_at").get(id=item.shell_file_id)

    says(item, entities_of(item)[0], "reject")

    after = ShellFile.objects.values_list("status", "updated_at").get(id=item.shell_file_id)
    assert after == before


def test_the_statements_of_a_decision_do_not_grow_with_the_record() -> None:
    counts = []
    for entities in (1, 40):
        item = claimed(a_reviewed_record(entities=entities))
        one = entities_of(item)[0]
        with CaptureQueriesContext(
            connection,
        ) as decision:
            says(item, one, "correct", dose="50 mg")
        with CaptureQueriesContext(connection) as all_others:
            accept_all_unflagged(item.id, ANNA, token=uuid4())
        counts.append((len(decision), len(all_others)))

    assert counts[0] == counts[1]
