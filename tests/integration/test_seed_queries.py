"""The agreed SQL queries run unchanged, except for the ids, and give the right answers.

One record completes with the local engine, one fails in an outage (seven batches), and one fails
in a single batch. The statements are the contract, so the tests adapt none.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from pipeline.models import Batch, Encounter, EncounterResult, Entity, ShellFile
from tests.support import records
from tests.support.records import rows
from tests.support.seed_sql import (
    FAILED_BATCHES,
    FAILED_ENCOUNTERS,
    FULL_PATH,
    OUTAGE,
    STALE_CANDIDATES,
    STALE_RESET,
    SUMMARY,
    TRANSIENT,
)

# One worker of the suite runs the records of this module once.
pytestmark = pytest.mark.xdist_group("seed_queries")


@dataclass(frozen=True)
class QueriedRecords:
    """The records of this module."""

    completed: str
    outage: str
    broken: str


@pytest.fixture(scope="module")
def ran(module_db: str, servers: Any) -> QueriedRecords:
    """Return one completed record and two failed ones, in a separate database."""
    return QueriedRecords(
        completed=str(records.completed_record().id),
        outage=str(records.failed_record(records.LAB, records.OUTAGE).id),
        broken=str(records.failed_record(records.VISITS, records.ONE_BROKEN_BATCH).id),
    )


def _ask(sql: str, *ids: str) -> list[dict[str, Any]]:
    return rows(sql, *ids)


def test_7_1_says_why_a_shell_file_failed(ran: QueriedRecords) -> None:
    completed, failed = _ask(SUMMARY, ran.completed), _ask(SUMMARY, ran.outage)

    assert completed == [
        {
            "processing_status": "pass1_only",
            "failure_stage": None,
            "error_code": None,
            "overall_success": True,
        }
    ]
    assert failed == [
        {
            "processing_status": "failed",
            "failure_stage": "pass1",
            "error_code": "MAX_RETRIES_EXCEEDED",
            "overall_success": False,
        }
    ]


def test_7_2_names_the_encounters_that_failed(ran: QueriedRecords) -> None:
    in_outage, broken = _ask(FAILED_ENCOUNTERS, ran.outage), _ask(FAILED_ENCOUNTERS, ran.broken)

    assert _ask(FAILED_ENCOUNTERS, ran.completed) == []
    assert len(in_outage) == 7
    assert {row["batches_failed"] for row in in_outage} == {1}
    first = Encounter.objects.get(shell_file_id=ran.broken, encounter_index=1)
    assert len(broken) == 1
    assert broken[0]["healthcare_encounter_id"] == first.id
    assert broken[0]["failure_batch_index"] == 0
    assert broken[0]["error_code"] == "MAX_RETRIES_EXCEEDED"
    assert (
        broken[0]["batches_failed"] + broken[0]["batches_succeeded"] == broken[0]["batches_total"]
    )
    assert "PARSE_JSON" in broken[0]["error_summary"]


def test_7_3_says_what_happened_to_the_failed_batch(ran: QueriedRecords) -> None:
    encounter = _ask(FAILED_ENCOUNTERS, ran.broken)[0]["healthcare_encounter_id"]

    found = _ask(FAILED_BATCHES, str(encounter))

    assert len(found) == 1
    batch = found[0]
    assert (batch["batch_index"], batch["page_range_start"]) == (0, 1)
    assert batch["attempt_count"] == 3
    assert batch["error_code"] == "MAX_RETRIES_EXCEEDED"
    context = _json(batch["error_context"])
    assert context["final_underlying_error"] == "PARSE_JSON"
    assert context["final_underlying_message"]
    assert [entry["attempt"] for entry in context["attempt_history"]] == [1, 2, 3]
    assert set(context["attempt_history"][0]) == {
        "attempt", "error_code", "error_message", "timestamp", "retry_delay_ms",
    }  # fmt: skip
    assert context["attempt_history"][-1]["retry_delay_ms"] is None


def test_7_4_shows_the_full_path_level_by_level(ran: QueriedRecords) -> None:
    path = _ask(FULL_PATH, ran.outage, ran.outage, ran.outage)

    levels = [row["level"] for row in path]
    assert Counter(levels) == {"batch": 8, "encounter": 8, "shell_file": 1}
    assert levels == sorted(levels)
    file = path[-1]
    assert (file["id"], file["status"], file["detail"]) == (ran.outage, "failed", "pass1")
    by_level = {
        level: Counter((row["status"], row["error_code"]) for row in path if row["level"] == level)
        for level in ("encounter", "batch")
    }
    expected = {("failed", "MAX_RETRIES_EXCEEDED"): 7, ("succeeded", None): 1}
    assert by_level == {"encounter": expected, "batch": expected}
    details = {row["detail"] for row in path}
    assert {"batches: 0/1 succeeded", "batches: 1/1 succeeded"} <= details
    assert {"pages 1-1, 3 attempts", "pages 5-5, 2 attempts"} <= details


def test_7_4_shows_a_completed_record_too(ran: QueriedRecords) -> None:
    path = _ask(FULL_PATH, ran.completed, ran.completed, ran.completed)

    assert {row["status"] for row in path} == {"succeeded", "pass1_only"}
    assert {row["error_code"] for row in path} == {None}


def test_9_1_finds_the_batch_that_failed_first_and_succeeded_then(ran: QueriedRecords) -> None:
    found = _ask(TRANSIENT)

    assert len(found) == 1
    last = Encounter.objects.get(shell_file_id=ran.outage, encounter_index=8)
    assert found[0]["healthcare_encounter_id"] == last.id
    assert found[0]["attempt_count"] == 2
    history = _json(found[0]["transient_error_history"])
    assert [(entry["attempt"], entry["error_code"]) for entry in history] == [(1, "API_5XX")]


def test_9_2_finds_only_batches_that_are_processing_for_ten_minutes(ran: QueriedRecords) -> None:
    batches = list(Batch.objects.filter(pass1_encounter_result__shell_file_id=ran.broken)[:3])
    with transaction.atomic():
        # The state after a killed worker; a real batch would need ten minutes to become stale.
        _set_back(batches[0].id, minutes=11)
        _set_back(batches[1].id, minutes=9)

        candidates = _ask(STALE_CANDIDATES)
        reset = _ask(STALE_RESET)
        after = Batch.objects.get(id=batches[0].id)
        transaction.set_rollback(True)

    assert [row["id"] for row in candidates] == [batches[0].id]
    assert reset == candidates
    assert (after.status, after.attempt_count) == ("pending", batches[0].attempt_count)
    assert Batch.objects.get(id=batches[0].id).status == batches[0].status
    assert _ask(STALE_CANDIDATES) == []


def test_9_3_tells_an_outage_from_single_failures(ran: QueriedRecords) -> None:
    assert _ask(OUTAGE, ran.completed) == []
    assert _ask(OUTAGE, ran.outage) == [
        {"root_cause": "API_5XX", "failed_count": 7, "assessment": "LIKELY_OUTAGE"}
    ]
    assert _ask(OUTAGE, ran.broken) == [
        {"root_cause": "PARSE_JSON", "failed_count": 1, "assessment": "INDIVIDUAL_FAILURES"}
    ]


def test_an_ended_step_leaves_no_encounter_half_way(ran: QueriedRecords) -> None:
    ended = EncounterResult.objects.values_list("status", flat=True)
    published = set(
        Encounter.objects.exclude(entities_published_at=None).values_list("id", flat=True)
    )
    succeeded = set(
        EncounterResult.objects.filter(status="succeeded").values_list(
            "healthcare_encounter_id", flat=True
        )
    )

    assert set(ended) == {"succeeded", "failed"}
    assert published == succeeded
    visible = set(Entity.objects.values_list("healthcare_encounter_id", flat=True))
    assert visible <= published


def test_failures_go_upwards_to_the_job(ran: QueriedRecords) -> None:
    file = ShellFile.objects.get(id=ran.broken)
    job = file.jobs.get()
    first = Encounter.objects.get(shell_file=file, encounter_index=1)

    assert file.status == "pass05_complete"
    assert (job.status, job.error_code) == ("failed", "MAX_RETRIES_EXCEEDED")
    assert job.error_details is not None
    assert job.error_details["stage"] == "pass1"
    assert job.error_details["underlying_error"] == "PARSE_JSON"
    assert UUID(job.error_details["failure_encounter_id"]) == first.id
    assert job.error_details["failure_batch_index"] == 0
    assert file.summary.failure_encounter_id == first.id
    assert file.summary.total_tokens_used > 0
    assert file.summary.total_cost_usd > 0
    assert [event["event"] for event in file.summary.business_events] == [
        "pages: completed", "pass05: completed", "pass1: MAX_RETRIES_EXCEEDED",
    ]  # fmt: skip


def _set_back(batch_id: UUID, *, minutes: int) -> None:
    rows(
        "UPDATE pass1_batch_results SET status = 'processing',"
        " started_at = NOW() - make_interval(mins => %s::integer) WHERE id = %s RETURNING 1",
        str(minutes),
        str(batch_id),
    )


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
