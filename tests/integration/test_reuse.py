"""Identical bytes of one owner reuse earlier results, under new ids and without a call."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from pipeline.core.states import JobStatus
from pipeline.models import (
    Encounter,
    Entity,
    ExtractionFlight,
    Job,
    KeptReply,
    Page,
    PageAssignment,
    ProcessedDocument,
    ProviderCall,
    Reuse,
    ReviewItem,
    ShellFile,
    Summary,
)
from pipeline.models.fields import ClockTimestamp
from tests.support import records
from tests.support.databases import as_owner

pytestmark = pytest.mark.usefixtures("long_lease")

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
        "entities": Entity.objects.filter(shell_file=record).order_by(
            "healthcare_encounter__encounter_index", "entity_index"
        ),
    }
    return {
        name: [{k: v for k, v in row.items() if k not in OF_THE_RECORD} for row in rows.values()]
        for name, rows in found.items()
    }


def calls_of(record: ShellFile) -> int:
    return ProviderCall.objects.filter(processing_session__shell_file=record).count()


@pytest.fixture
def extracted(cloned_db: str, redis_db: object) -> ShellFile:
    return records.completed_record(records.LAB, owner="cli")


def test_a_second_upload_has_equal_results_under_new_ids_and_no_call(extracted: ShellFile) -> None:
    second = records.completed_record(records.LAB, owner="cli")

    assert Job.objects.get(shell_file=second).status == JobStatus.COMPLETED
    assert calls_of(extracted) > 0
    assert calls_of(second) == 0
    assert results(second) == results(extracted)
    assert results(second)["entities"]
    for model in (Encounter, Entity, Page):
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
    saved = Reuse.objects.filter(shell_file=second)
    assert {r.step for r in saved} == {"pages", "pass05", "pass1"}
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

    assert calls_of(other) == calls_of(extracted)
    assert {r.step for r in Reuse.objects.filter(shell_file=other)} == {"pages"}


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

    assert calls_of(other) == calls_of(third) == calls_of(extracted)
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
    with records.no_breaker(), records.through_emulator(records.OUTAGE) as emulator:
        failed = records.run_record(records.submit(records.LAB, owner="cli"))
        assert Job.objects.get(shell_file=failed).status == JobStatus.FAILED
        emulator.faults.clear() if hasattr(emulator, "faults") else None
        assert set(
            ProcessedDocument.objects.filter(shell_file=failed).values_list("step", flat=True)
        ) == {"pages", "pass05"}
        second = records.run_record(records.submit(records.LAB, owner="cli"))

    assert {r.step for r in Reuse.objects.filter(shell_file=second)} == {"pages", "pass05"}
    assert Job.objects.filter(updated_at__lte=ClockTimestamp()).count() == 2
