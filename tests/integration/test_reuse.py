"""Identical bytes of one owner reuse earlier results, under new ids and without a call."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from pipeline.core.states import JobStatus
from pipeline.execution.reuse.replies import StepReplies
from pipeline.models import (
    Encounter,
    EnrichedEntity,
    Entity,
    ExtractionFlight,
    Job,
    KeptReply,
    NarrativeSentence,
    Page,
    PageAssignment,
    ProcessedDocument,
    ProviderCall,
    RecordListItem,
    Reuse,
    ReviewItem,
    Session,
    ShellFile,
    Summary,
)
from tests.support import records
from tests.support.databases import as_owner
from tests.support.short_records import short_record

ALL = {"pages", "pass05", "pass1", "pass2", "pass3"}
AT_THE_START = 2
"""Readings of the version of the code table before the first call of a pass."""
OF_THE_RECORD = {
    "id",
    "shell_file_id",
    "healthcare_encounter_id",
    "processing_session_id",
    "patient_id",
    "pass1_metrics_id",
    "discovery_session_id",
    "created_at",
    "entities_published_at",
    "zone_result_id",
    "narrative_id",
}
"""Columns that differ between two records with equal results."""


def results(record: ShellFile) -> dict[str, list[dict[str, Any]]]:
    """Return the results of a record without its ids, in order."""
    found = {
        "pages": Page.objects.filter(shell_file=record).order_by("page_number"),
        "encounters": Encounter.objects.filter(shell_file=record).order_by("encounter_index"),
        "spans": PageAssignment.objects.filter(discovery_session__shell_file=record).order_by(
            "page_number", "start_offset"
        ),
        "enriched": EnrichedEntity.objects.filter(shell_file=record).order_by(
            "healthcare_encounter__encounter_index", "entity__entity_index"
        ),
        "lists": RecordListItem.objects.filter(shell_file=record).order_by("kind", "item_index"),
        "sentences": NarrativeSentence.objects.filter(shell_file=record).order_by(
            "narrative__narrative_index", "sentence_index"
        ),
        "entities": Entity.objects.filter(shell_file=record).order_by(
            "healthcare_encounter__encounter_index", "entity_index"
        ),
    }
    kept = {
        name: [{k: v for k, v in row.items() if k not in OF_THE_RECORD} for row in rows.values()]
        for name, rows in found.items()
    }
    text = json.dumps(kept, default=str)
    # An id of an own entity or encounter is its place; any other id stays, and makes a difference.
    for encounter in Encounter.objects.filter(shell_file=record):
        text = text.replace(str(encounter.id), f"encounter {encounter.encounter_index}")
    for entity in Entity.objects.filter(shell_file=record).select_related("healthcare_encounter"):
        place = f"entity {entity.healthcare_encounter.encounter_index}.{entity.entity_index}"
        text = text.replace(str(entity.id), place)
    named: dict[str, list[dict[str, Any]]] = json.loads(text)
    return named


def calls_of(record: ShellFile) -> int:
    return ProviderCall.objects.filter(processing_session__shell_file=record).count()


@pytest.fixture(autouse=True)
def _every_pass(settings: Any) -> None:
    settings.SKIPPED_PASSES = ()


@pytest.fixture
def extracted(cloned_db: str, redis_db: object) -> ShellFile:
    return records.completed_record(records.LAB, owner="cli")


def test_a_second_upload_has_equal_results_under_new_ids_and_no_call(extracted: ShellFile) -> None:
    second = records.completed_record(records.LAB, owner="cli")

    assert Job.objects.get(shell_file=second).status == JobStatus.COMPLETED
    assert calls_of(extracted) > 0
    assert calls_of(second) == 0
    assert results(second) == results(extracted)
    assert all(results(second).values())
    for model in (Encounter, Entity, Page, EnrichedEntity, NarrativeSentence, RecordListItem):
        mine = set(model.objects.filter(shell_file=second).values_list("id", flat=True))
        assert not mine & set(
            model.objects.filter(shell_file=extracted).values_list("id", flat=True)
        )
    assert ReviewItem.objects.count() == 2
    summary = Summary.objects.get(shell_file=second)
    assert (summary.total_tokens_used, int(summary.total_cost_usd)) == (0, 0)
    assert (
        summary.entities_extracted_total
        == Summary.objects.get(shell_file=extracted).entities_extracted_total
    )
    assert (
        summary.manual_review_required
        == Summary.objects.get(shell_file=extracted).manual_review_required
    )
    own = set(Entity.objects.filter(shell_file=second).values_list("id", flat=True))
    enriched = EnrichedEntity.objects.filter(shell_file=second)
    assert set(enriched.values_list("entity_id", flat=True)) <= own
    for model in (NarrativeSentence, RecordListItem):
        cited = model.objects.filter(shell_file=second).values_list("entity_ids", flat=True)
        assert set(chain(*cited)) <= own
    saved = Reuse.objects.filter(shell_file=second)
    assert {r.step for r in saved} == ALL
    assert {r.source_id for r in saved} == {extracted.id}
    assert sum(r.calls_saved for r in saved) == calls_of(extracted)


def test_a_record_that_only_reused_is_no_source(extracted: ShellFile) -> None:
    records.completed_record(records.LAB, owner="cli")
    third = records.completed_record(records.LAB, owner="cli")

    assert calls_of(third) == 0
    assert set(ProcessedDocument.objects.values_list("shell_file_id", flat=True)) == {extracted.id}
    assert {r.source_id for r in Reuse.objects.filter(shell_file=third)} == {extracted.id}
    assert not ExtractionFlight.objects.exists()


@pytest.mark.parametrize("owner", ["user:7", ""])
def test_reuse_never_crosses_owners(extracted: ShellFile, owner: str) -> None:
    other = records.completed_record(records.LAB, owner=owner)

    assert calls_of(other) == calls_of(extracted)
    assert not Reuse.objects.exists()
    assert results(other) == results(extracted)


def test_a_record_without_an_owner_keeps_nothing(cloned_db: str, redis_db: object) -> None:
    records.completed_record(records.LAB)

    assert not KeptReply.objects.exists()
    assert not ProcessedDocument.objects.exists()


def test_force_extracts_again_and_is_the_newest_source(extracted: ShellFile) -> None:
    forced = records.completed_record(records.LAB, owner="cli", is_forced=True)
    third = records.completed_record(records.LAB, owner="cli")

    assert calls_of(forced) == calls_of(extracted)
    assert calls_of(third) == 0
    assert {r.source_id for r in Reuse.objects.filter(shell_file=third)} == {forced.id}


@pytest.mark.parametrize(
    "changed",
    [
        {"PASS1_DISABLE_ZONES": True},
        {"PASS_INPUT": "pdf"},
    ],
    ids=["zones", "input mode"],
)
def test_another_setting_extracts_again(extracted: ShellFile, changed: dict[str, Any]) -> None:
    with override_settings(**changed):
        other = records.completed_record(records.LAB, owner="cli")

    steps = set(
        ProviderCall.objects.filter(processing_session__shell_file=other).values_list(
            "step", flat=True
        )
    )
    assert steps == ALL - {"pages"}
    assert {r.step for r in Reuse.objects.filter(shell_file=other)} == {"pages"}


def test_a_new_code_table_runs_only_the_passes_with_codes_again(
    extracted: ShellFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.execution.reuse.conditions.code_table_version", lambda: "next")

    other = records.completed_record(records.LAB, owner="cli")

    calls = ProviderCall.objects.filter(processing_session__shell_file=other)
    assert set(calls.values_list("step", flat=True)) == {"pass2", "pass3"}
    assert {r.step for r in Reuse.objects.filter(shell_file=other)} == {"pages", "pass05", "pass1"}
    assert results(other) == results(extracted)


def test_codes_that_are_loaded_during_a_pass_belong_to_the_next_pass(
    cloned_db: str, redis_db: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def loaded_meanwhile() -> str:
        asked.append("")
        return "old" if len(asked) <= AT_THE_START else "next"

    # `board` and the replies of Pass 2 read the version; the load commits before the pass ends.
    monkeypatch.setattr("pipeline.execution.reuse.conditions.code_table_version", loaded_meanwhile)
    settings_of_pass2 = override_settings(SKIPPED_PASSES=("pass1_5", "pass3"))
    with settings_of_pass2:
        first = records.completed_record(records.LAB, owner="cli")

    noted = ProcessedDocument.objects.get(shell_file=first, step="pass2")
    assert noted.code_table_version == "old"
    monkeypatch.setattr("pipeline.execution.reuse.conditions.code_table_version", lambda: "old")
    with settings_of_pass2:
        second = records.completed_record(records.LAB, owner="cli")
    assert calls_of(second) == 0


def test_the_patient_check_judges_reused_pages_for_their_own_patient(
    cloned_db: str, redis_db: object, tmp_path: Path
) -> None:
    jane, john = tmp_path / "jane.pdf", tmp_path / "john.pdf"
    short_record(jane, 2, patient="Wrenfield, Odalys M.")
    short_record(john, 2, patient="Quarrington, Thaddeus B.")
    first = records.completed_record(jane, owner="cli", patient_reference="ref-jane")
    records.completed_record(john, owner="cli", patient_reference="ref-john")

    wrong = records.completed_record(jane, owner="cli", patient_reference="ref-john")
    right = records.completed_record(jane, owner="cli", patient_reference="ref-jane")
    unknown = records.completed_record(jane, owner="cli")

    assert first.encounters.count() == right.encounters.count() == unknown.encounters.count() == 2
    assert not wrong.encounters.exists()
    assert not Entity.objects.filter(shell_file=wrong).exists()
    assert {warning["code"] for warning in wrong.warnings} >= {"PATIENT_MISMATCH"}
    assert Session.objects.get(shell_file=wrong).requires_human_review
    for record in (wrong, right, unknown):
        assert calls_of(record) == 0
        patients = Entity.objects.filter(shell_file=record).values_list("patient_id", flat=True)
        assert set(patients) <= {record.patient_id}
        enriched = EnrichedEntity.objects.filter(shell_file=record)
        assert set(enriched.values_list("patient_id", flat=True)) <= {record.patient_id}


def test_a_source_that_held_its_pages_extracts_them_for_their_own_patient(
    cloned_db: str, redis_db: object, tmp_path: Path
) -> None:
    jane, john = tmp_path / "jane.pdf", tmp_path / "john.pdf"
    short_record(jane, 2, patient="Wrenfield, Odalys M.")
    short_record(john, 2, patient="Quarrington, Thaddeus B.")
    records.completed_record(john, owner="cli", patient_reference="ref-john")
    records.completed_record(jane, owner="cli", patient_reference="ref-john")

    right = records.completed_record(jane, owner="cli")

    assert right.encounters.count() == 2
    calls = ProviderCall.objects.filter(processing_session__shell_file=right)
    assert "pass05" not in set(calls.values_list("step", flat=True))
    assert "pass1" in set(calls.values_list("step", flat=True))


def test_a_split_item_is_reused_from_the_replies_to_its_parts(
    cloned_db: str, redis_db: object
) -> None:
    fault = [{"fault": "truncated", "kind": "entities", "times": 1}]
    with records.through_emulator(fault), records.no_breaker():
        first = records.completed_record(records.VISITS, owner="cli")
        assert ProviderCall.objects.exclude(split="").exists()
        second = records.completed_record(records.VISITS, owner="cli")

    assert calls_of(second) == 0
    assert results(second) == results(first)


def test_a_kept_reply_that_cannot_be_read_is_asked_for_again(extracted: ShellFile) -> None:
    with as_owner():
        KeptReply.objects.filter(step="pass1").update(reply=b"broken")

    second = records.completed_record(records.LAB, owner="cli")

    calls = ProviderCall.objects.filter(processing_session__shell_file=second)
    assert set(calls.values_list("step", flat=True)) == {"pass1"}
    assert results(second) == results(extracted)


def test_a_source_that_vanishes_before_the_write_gives_nothing(
    extracted: ShellFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = StepReplies._judged

    def vanishing(self: Any, found: Any) -> Any:
        judged = real(self, found)
        # On the connection of this thread: the judging thread has its own.
        gone.append(True)
        return judged

    gone: list[bool] = []

    def present(self: Any, judged: Any) -> Any:
        with as_owner():
            ShellFile.objects.filter(id=extracted.id).delete()
        return there(self, judged)

    there = StepReplies._present
    monkeypatch.setattr(StepReplies, "_judged", vanishing)
    monkeypatch.setattr(StepReplies, "_present", present)

    second = records.completed_record(records.LAB, owner="cli")

    assert gone
    assert Job.objects.get(shell_file=second).status == JobStatus.COMPLETED
    assert calls_of(second) > 0
    assert {r.step for r in Reuse.objects.filter(shell_file=second)} == {"pages"}


@pytest.mark.parametrize("version", ["PROMPT_VERSION", "SCHEMA_VERSION"])
def test_another_version_extracts_again(
    extracted: ShellFile, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"pipeline.execution.reuse.conditions.{version}", "next")

    other = records.completed_record(records.LAB, owner="cli")

    assert calls_of(other) == calls_of(extracted)


def test_another_model_extracts_again(extracted: ShellFile) -> None:
    with records.through_emulator():
        other = records.completed_record(records.LAB, owner="cli")
        with override_settings(GEMINI_MODEL="gemini-3.1-pro"):
            third = records.completed_record(records.LAB, owner="cli")
        fourth = records.completed_record(records.LAB, owner="cli")

    assert calls_of(other) == calls_of(third) > 0
    assert calls_of(fourth) == 0
    assert {r.source_id for r in Reuse.objects.filter(shell_file=fourth, step="pass1")} == {
        other.id
    }


def test_a_deleted_source_is_no_source(extracted: ShellFile) -> None:
    calls = calls_of(extracted)
    with as_owner():
        ShellFile.objects.filter(id=extracted.id).delete()

    second = records.completed_record(records.LAB, owner="cli")

    assert calls_of(second) == calls
    assert not Reuse.objects.exists()


def test_a_pass_that_failed_is_no_source(cloned_db: str, redis_db: object) -> None:
    with records.no_breaker(), records.through_emulator(records.OUTAGE):
        failed = records.run_record(records.submit(records.LAB, owner="cli"))
        assert Job.objects.get(shell_file=failed).status == JobStatus.FAILED
        assert set(
            ProcessedDocument.objects.filter(shell_file=failed).values_list("step", flat=True)
        ) == {"pages", "pass05"}
        second = records.run_record(records.submit(records.LAB, owner="cli"))

    assert {r.step for r in Reuse.objects.filter(shell_file=second)} == {"pages", "pass05"}
