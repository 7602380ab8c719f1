"""Nothing changes what a person decided: no raw write, no retry, no extraction again, no reuse."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError, connection, transaction
from psycopg import sql

from pipeline.clinical.attributes import ATTRIBUTES
from pipeline.core.states import JobStatus, Step
from pipeline.migrations._review_guard import _DERIVED
from pipeline.models import (
    Encounter,
    EncounterResult,
    EnrichedEntity,
    Entity,
    Job,
    LockedField,
    ReviewDecision,
    ReviewItem,
    ShellFile,
)
from pipeline.operations import operator_actions
from pipeline.operations.review import queue
from pipeline.operations.review.closing import renew_results
from pipeline.operations.review.decisions import move_to_encounter
from pipeline.operations.review.fields import DERIVED, PRINTED
from pipeline.workers import run_step
from tests.support import records
from tests.support.databases import as_owner
from tests.support.review_rows import (
    ANNA,
    a_found_entity,
    a_reviewed_record,
    another_encounter,
    claimed,
    encounter_of,
    entities_of,
    says,
)

ENTITIES, ENRICHED = "pass1_entity_detections", "pass2_enriched_entities"
SET_ONE = sql.SQL("UPDATE pass1_entity_detections SET {} = %s")
INSERT = sql.SQL(
    "INSERT INTO pass1_entity_detections ({0})"
    " SELECT {0} FROM json_populate_record(NULL::pass1_entity_detections, %s::json)"
)


def run(statement: str | sql.Composable, *parameters: Any) -> int:
    """Run one statement in a savepoint of its own; return the number of changed rows."""
    with transaction.atomic(), connection.cursor() as cursor:
        text = statement if isinstance(statement, str) else statement.as_string()
        cursor.execute(text, parameters or None)
        return int(cursor.rowcount)


def state(entity: Entity) -> dict[str, Any]:
    """Return all columns of an entity and of its attributes, without place in the list."""
    columns: dict[str, Any] = dict(Entity.objects.filter(id=entity.id).values()[0])
    del columns["entity_index"], columns["pass1_metrics_id"]
    enriched = dict(EnrichedEntity.objects.filter(entity_id=entity.id).values().first() or {})
    enriched.pop("zone_result_id", None)
    return {"entity": columns, "enriched": enriched}


def found_again(entity: Entity, **other: object) -> None:
    """Insert a row like an entity's, as the flush of a later extraction does."""
    row = {**Entity.objects.filter(id=entity.id).values()[0], "id": uuid4(), "verdict": None}
    names = [name for name in row if name not in ("historical", "created_at")]
    run(
        INSERT.format(sql.SQL(", ").join(map(sql.Identifier, names))),
        json.dumps({**row, **other}, cls=DjangoJSONEncoder),
    )


@pytest.fixture
def decided(db: None) -> Entity:
    """Provide an entity with a corrected dose."""
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    says(item, entity, "correct", dose="50 mg")
    entity.refresh_from_db()
    return entity


OTHER: dict[str, object] = {
    "category": "lab", "name": "x", "page_number": 2, "char_start": 1, "char_end": 99,
    "page_end": 2, "quote": "x", "alignment": "layout", "verdict": None, "value": "1",
    "unit": "x", "reference_range": "1-2", "abnormal_flag": "H", "strength": "1", "dose": "1 mg",
    "previous_dose": "1", "route": "x", "frequency": "x", "status": "stopped", "step": 2,
    "reaction": "x", "entity_date": "2020-01-01", "negated": True, "temporality": "planned",
    "certainty": "possible", "experiencer": "family", "zone_type": "x", "engine": "x",
    "rule": "x", "engine_confidence": 0.1, "ocr_confidence": 1.0, "confidence": 0.1,
    "review_flags": '["x"]', "second_reading": '{"x": 1}',
}  # fmt: skip
"""Another value for each column of an entity."""


def test_each_clinical_column_is_known_to_this_test() -> None:
    technical = {
        "id", "pass1_metrics", "shell_file", "healthcare_encounter", "processing_session",
        "patient", "entity_index", "accepted", "historical", "created_at",
    }  # fmt: skip

    assert {field.name for field in Entity._meta.concrete_fields} - technical == set(OTHER)


@pytest.mark.parametrize("owns", [False, True], ids=["application", "owner"])
def test_a_raw_update_of_a_decided_entity_is_refused(decided: Entity, owns: bool) -> None:
    before = state(decided)

    for column, value in OTHER.items():
        with (
            pytest.raises(DatabaseError, match=r"a reviewer decided|check constraint"),
            as_owner() if owns else nullcontext(),
        ):
            run(SET_ONE.format(sql.Identifier(column)), value)

    assert state(decided) == before


def test_a_rejected_entity_cannot_be_accepted_by_a_raw_write(db: None) -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    says(item, entity, "reject")

    with pytest.raises(DatabaseError, match="pass1_entity_accepted_check"):
        run("UPDATE pass1_entity_detections SET accepted = true")


def test_a_raw_verdict_without_a_decision_is_refused(db: None) -> None:
    (entity,) = entities_of(a_reviewed_record())

    with pytest.raises(DatabaseError, match="verdict is locked"):
        run("UPDATE pass1_entity_detections SET verdict = 'rejected', accepted = false")
    with pytest.raises(DatabaseError, match="verdict without a decision"):
        found_again(entity, verdict="added", entity_index=7)


def test_an_undecided_entity_and_technical_columns_can_be_written(decided: Entity) -> None:
    other = a_found_entity(
        Encounter.objects.get(id=decided.healthcare_encounter_id), name="Warfarin", at=29
    )

    assert run("UPDATE pass1_entity_detections SET dose = '1 mg' WHERE id = %s", other.id) == 1
    assert (
        run("UPDATE pass1_entity_detections SET pass1_metrics_id = NULL WHERE id = %s", decided.id)
        == 1
    )


@pytest.mark.parametrize(
    "assignment",
    [
        "attributes = '{}'",
        'attributes = attributes || \'{"indication": "x"}\'',
        "code = '1', code_display = 'x'",
        "code = NULL, code_system = NULL",
        "category = 'lab'",
        "flags = '[\"x\"]'",
    ],
)
def test_a_raw_update_of_decided_attributes_is_refused(decided: Entity, assignment: str) -> None:
    before = state(decided)

    with pytest.raises(DatabaseError, match="a reviewer decided"):
        run(sql.SQL("UPDATE pass2_enriched_entities SET {}").format(sql.SQL(assignment)))
    with pytest.raises(DatabaseError, match="a reviewer decided"), as_owner():
        run(sql.SQL("UPDATE pass2_enriched_entities SET {}").format(sql.SQL(assignment)))

    assert state(decided) == before


@pytest.mark.parametrize("table", [ENTITIES, ENRICHED, "locked_fields", "review_decisions"])
def test_a_decided_table_cannot_be_truncated(decided: Entity, table: str) -> None:
    with pytest.raises(DatabaseError, match="permission denied"):
        run(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(table)))
    # PostgreSQL truncates no table with pending checks of a deferred constraint.
    run("SET CONSTRAINTS ALL IMMEDIATE")
    with pytest.raises(DatabaseError, match="TRUNCATE refused"), as_owner():
        run(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(table)))

    assert LockedField.objects.exists()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE locked_fields SET field = 'x'", "review_decisions alone"),
        ("DELETE FROM locked_fields", "review_decisions alone"),
        ("UPDATE review_decisions SET new_value = '\"x\"'", "append-only"),
        ("DELETE FROM review_decisions", "append-only"),
        ("DELETE FROM review_items", "append-only"),
        ("DELETE FROM healthcare_encounters", "decided about|append-only"),
        ("DELETE FROM ai_processing_sessions", "decided about"),
    ],
)
def test_locks_and_decisions_cannot_be_changed(decided: Entity, statement: str, words: str) -> None:
    before = state(decided), LockedField.objects.count(), ReviewDecision.objects.count()

    with pytest.raises(DatabaseError, match=f"permission denied|{words}"):
        run(statement)
    with pytest.raises(DatabaseError, match=words), as_owner():
        run(statement)

    assert (state(decided), LockedField.objects.count(), ReviewDecision.objects.count()) == before


def test_a_decision_without_a_claim_is_refused(decided: Entity) -> None:
    item = ReviewItem.objects.get()
    queue.release(item.id, ANNA)

    with pytest.raises(DatabaseError, match="only the holder"), transaction.atomic():
        ReviewDecision.objects.create(
            token=uuid4(), review_item=item, shell_file_id=item.shell_file_id,
            entity_id=decided.id, action="correct", field="dose", new_value="1 mg",
            decided_by=ANNA, round=1,
        )  # fmt: skip


def test_an_old_decision_does_not_permit_a_later_write(cloned_db: str) -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    says(item, entity, "correct", dose="50 mg")
    says(item, entity, "correct", dose="75 mg")

    with pytest.raises(DatabaseError, match="dose is locked"):
        run("UPDATE pass1_entity_detections SET dose = '50 mg'")

    entity.refresh_from_db()
    assert entity.dose == "75 mg"


def test_an_erased_record_takes_its_decisions_along(decided: Entity) -> None:
    with as_owner():
        run("DELETE FROM shell_files WHERE id = %s", decided.shell_file_id)

    left = (Entity, EnrichedEntity, LockedField, ReviewDecision, ReviewItem)
    assert [model.objects.count() for model in left] == [0] * 5


def test_a_deleted_entity_stays_and_is_marked_until_it_is_found_again(decided: Entity) -> None:
    before = state(decided)

    with as_owner():
        assert run("DELETE FROM pass1_entity_detections") == 0
    marked = set(LockedField.objects.values_list("unmatched_at", flat=True))
    # The same entity with another dose, as a later extraction reads it.
    found_again(decided, dose="10 mg", name="Metoprolol")

    assert None not in marked
    assert state(decided) == before
    assert list(Entity.objects.values_list("id", flat=True)) == [decided.id]
    assert not LockedField.objects.filter(unmatched_at__isnull=False).exists()


def test_another_reading_of_a_decided_place_is_flagged_and_no_result(decided: Entity) -> None:
    found_again(decided, dose="10 mg", entity_index=1)

    found = Entity.objects.get(dose="10 mg")
    assert (found.accepted, found.review_flags) == (False, ["reviewed_place"])


@pytest.mark.parametrize(
    ("other", "is_result"),
    [
        ({"char_start": 5, "char_end": 40}, False),
        ({"char_start": 0, "char_end": 4}, False),
        ({"category": "condition"}, False),
        ({"category": "condition", "name": "gout"}, True),
        ({"char_start": 10, "char_end": 40}, True),
        ({"page_number": 2}, True),
    ],
)
def test_a_rejected_entity_does_not_come_back_with_a_longer_or_shorter_quote(
    db: None, other: dict[str, Any], is_result: bool
) -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    says(item, entity, "reject")

    found_again(entity, **{"entity_index": 1, "accepted": True, **other})

    found = Entity.objects.get(verdict=None)
    assert (found.accepted, found.review_flags == ["reviewed_place"]) == (is_result, not is_result)


def test_a_kept_entity_makes_room_for_the_new_order(decided: Entity) -> None:
    with as_owner():
        run("DELETE FROM pass1_entity_detections")
    found_again(decided, char_start=30, char_end=37)

    places = Entity.objects.values_list("entity_index", "char_start")
    assert set(places) == {(0, 30), (-1, decided.char_start)}
    assert not LockedField.objects.filter(unmatched_at__isnull=True).exists()


def test_an_entity_that_was_moved_is_not_found_a_second_time_at_its_origin(db: None) -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    origin = encounter_of(item)
    target = another_encounter(item)
    move_to_encounter(item.id, ANNA, entity.id, target.id, token=uuid4())
    with as_owner():
        run("DELETE FROM pass1_entity_detections")

    found_again(entity, healthcare_encounter_id=origin.id)

    assert Entity.objects.get().healthcare_encounter_id == target.id


def test_attributes_that_follow_from_a_corrected_field_are_left_out_and_flagged(db: None) -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    with as_owner():
        run("DELETE FROM pass2_enriched_entities")
    says(item, entity, "correct", dose="50 mg")
    EnrichedEntity.objects.create(
        entity=entity, shell_file_id=entity.shell_file_id, patient_id=entity.patient_id,
        healthcare_encounter_id=entity.healthcare_encounter_id, category="medication",
        attributes={"dose": {"printed": "25 mg"}, "route": "oral"}, engine="x",
    )  # fmt: skip

    enriched = EnrichedEntity.objects.get()
    assert enriched.attributes == {"route": "oral"}
    assert enriched.flags == ["reviewed:dose"]


@pytest.mark.django_db
def test_the_trigger_and_the_correction_have_the_same_table_of_derived_attributes() -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT {}").format(sql.SQL(_DERIVED)))
        stored = json.loads(cursor.fetchone()[0])
    known = {name for model in ATTRIBUTES.values() for name in model.model_fields}

    assert {name: tuple(names) for name, names in stored.items()} == dict(DERIVED)
    assert {name for names in DERIVED.values() for name in names} <= known
    assert set(DERIVED) <= set(PRINTED)


@pytest.mark.usefixtures("cloned_db")
def test_concurrent_raw_writes_change_nothing_that_was_decided() -> None:
    item = claimed(a_reviewed_record(entities=12))
    stopped = threading.Event()
    refused = [0, 0, 0]

    def attack(number: int) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as raw:
            while not stopped.is_set():
                try:
                    raw.execute(
                        "UPDATE pass1_entity_detections SET dose = '666 mg', accepted = true"
                    )
                except psycopg.errors.InsufficientPrivilege:
                    refused[number] += 1
                except psycopg.errors.CheckViolation:
                    refused[number] += 1
                except psycopg.errors.DeadlockDetected:
                    # Two writers of all rows can wait for each other; the server ends one of them.
                    continue

    attackers = [threading.Thread(target=attack, args=(number,)) for number in range(3)]
    for each in attackers:
        each.start()
    try:
        for entity in entities_of(item)[:6]:
            says(item, entity, "correct", dose="50 mg")
        for entity in entities_of(item)[6:]:
            says(item, entity, "reject")
        patience = time.monotonic() + 30
        while not all(refused) and time.monotonic() < patience:
            stopped.wait(0.01)
    finally:
        stopped.set()
        for each in attackers:
            each.join()

    assert all(refused)
    rows = [(each.dose == "50 mg", each.verdict, each.accepted) for each in entities_of(item)]
    assert rows[:6] == [(True, "corrected", True)] * 6
    assert [row[1:] for row in rows[6:]] == [("rejected", False)] * 6


@pytest.fixture
def two_encounters(cloned_db: str, redis_db: Any, settings: Any) -> ShellFile:
    """Provide a record that the local engine has extracted, with its first encounters decided."""
    settings.LEASE_S = 2400.0
    settings.SKIPPED_PASSES = ("pass1_5",)
    return records.completed_record(records.LAB, owner="cli")


def decide_about_two(record: ShellFile) -> tuple[ReviewItem, Entity, Entity]:
    """Correct one entity of a record and reject another of the same encounter."""
    item = claimed(ReviewItem.objects.get(shell_file_id=record.id))
    labs = Entity.objects.filter(shell_file_id=record.id, category="lab", accepted=True)
    corrected, rejected = labs.filter(value__isnull=False).order_by(
        "healthcare_encounter__encounter_index", "entity_index"
    )[:2]
    says(item, corrected, "correct", value="999")
    says(item, rejected, "reject")
    return item, corrected, rejected


def test_an_extraction_again_keeps_decisions_and_marks_what_it_does_not_find(
    two_encounters: ShellFile,
) -> None:
    item, corrected, rejected = decide_about_two(two_encounters)
    before = state(corrected), state(rejected)
    encounter = corrected.healthcare_encounter_id
    of = Entity.objects.filter(healthcare_encounter_id=encounter)
    number = of.count()
    others = set(of.filter(verdict=None).values_list("id", flat=True))

    extract_again(encounter)

    assert (state(corrected), state(rejected)) == before
    assert of.count() == number
    assert not others & set(of.values_list("id", flat=True))
    assert not LockedField.objects.filter(unmatched_at__isnull=False).exists()

    # The page is read again, and its text lies elsewhere: the places of the decisions are gone.
    with as_owner():
        run("UPDATE shell_file_pages SET text = ' ' || text")
    extract_again(encounter)

    assert (state(corrected), state(rejected)) == before
    unmatched = LockedField.objects.filter(unmatched_at__isnull=False)
    assert set(unmatched.values_list("entity_id", flat=True)) == {corrected.id, rejected.id}
    renew_results(item.shell_file_id)


def extract_again(encounter_id: Any) -> None:
    """Run Pass 1 of one encounter again with the real stage, as its owner could arrange."""
    record = Encounter.objects.get(id=encounter_id).shell_file_id
    with as_owner():
        run("DELETE FROM pass1_entity_detections WHERE healthcare_encounter_id = %s", encounter_id)
        run("DELETE FROM pass2_zone_results WHERE healthcare_encounter_id = %s", encounter_id)
        run(
            "UPDATE healthcare_encounters SET entities_published_at = NULL WHERE id = %s",
            encounter_id,
        )
        # A batch is answered once, so the encounter gets new batches.
        EncounterResult.objects.filter(healthcare_encounter_id=encounter_id).delete()
        Job.objects.filter(shell_file_id=record).update(
            status=JobStatus.PENDING, current_step=Step.PASS1
        )
    run_step.run_step("pass1")
    assert Encounter.objects.get(id=encounter_id).entities_published_at is not None
    for step in ("pass2", "pass3"):
        run_step.run_step(step)


def test_a_retry_of_a_later_pass_keeps_decisions_and_contradicts_none(
    cloned_db: str, redis_db: Any, settings: Any
) -> None:
    settings.LEASE_S = 2400.0
    settings.SKIPPED_PASSES = ("pass1_5", "pass3")
    record = records.failed_record(records.LAB, [{"fault": "bad-json", "kind": "enrichment"}])
    item, corrected, rejected = decide_about_two(record)
    assert item.reason == "failed"
    before = state(corrected)["entity"], state(rejected)["entity"]
    queue.release(item.id, ANNA)

    operator_actions.record_retry(record.id, reason="a test")
    records.run_again(record.id)

    assert Job.objects.get(shell_file_id=record.id).status == JobStatus.COMPLETED
    assert (state(corrected)["entity"], state(rejected)["entity"]) == before
    enriched = EnrichedEntity.objects.get(entity_id=corrected.id)
    assert "value" not in enriched.attributes
    assert "reviewed:value" in enriched.flags
    item.refresh_from_db()
    # The flag of Pass 2 is newer than the decision, so a person looks again.
    assert (item.status, item.reason, item.figures["flagged"]) == ("open", "flagged", 1)


def test_a_reuse_copies_no_decision_and_changes_none(two_encounters: ShellFile) -> None:
    item, corrected, rejected = decide_about_two(two_encounters)
    before = state(corrected), state(rejected)

    again = records.completed_record(records.LAB, owner="cli")

    assert (state(corrected), state(rejected)) == before
    new = ReviewItem.objects.get(shell_file_id=again.id)
    assert (new.status, new.claimed_by, new.figures["reused"]) == ("open", None, True)
    assert not Entity.objects.filter(shell_file_id=again.id, verdict__isnull=False).exists()
    assert not LockedField.objects.filter(shell_file_id=again.id).exists()
    assert item.id != new.id
