"""Pages that are too long for one call are halved, from the real client to the entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.models import QuerySet

from gemini_emulator.recorded_rows import prove_log
from gemini_emulator.request_log import LogLine
from pipeline.execution.splits import pages_of, token_of
from pipeline.models import Batch, Chunk, Entity, Incident, Job, ProviderCall, ShellFile
from pipeline.operations import operator_actions
from pipeline.ratelimit import RateLimiter
from pipeline.stages.intake import Received
from pipeline.workers import run_step
from tests.support import records
from tests.support.databases import as_owner
from tests.support.record_runs import astray
from tests.support.short_records import short_record

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("splitting")]

PAGES = 10
Fault = Mapping[str, Any]
FOUND = ("category", "name", "value", "dose", "page_number", "char_start", "char_end", "accepted")


@pytest.fixture(autouse=True)
def _one_batch(settings: Any) -> None:
    settings.PASS1_BATCH_MIN_PAGES = PAGES
    settings.LEASE_S, settings.CALL_DEADLINE_S = 2400, 2400.0


def discovered(folder: Path, pages: int = PAGES) -> Received:
    received = records.submit(short_record(folder / "record.pdf", 1, pages=pages))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    return received


def detect(faults: list[Fault]) -> list[LogLine]:
    """Run Pass 1 against a service with these faults, and return the service's log."""
    with records.through_emulator(faults) as emulator:
        run_step.run_step("pass1")
        return emulator.log()


def entities(received: Received) -> list[tuple[Any, ...]]:
    rows = Entity.objects.filter(shell_file_id=received.shell_file_id)
    return sorted(rows.values_list(*FOUND), key=str)


def calls(row: Batch | Chunk) -> Counter[tuple[str, str, bool]]:
    return Counter(calls_of(row).values_list("split", "outcome", "accepted"))


def calls_of(row: Batch | Chunk) -> QuerySet[ProviderCall, ProviderCall]:
    return ProviderCall.objects.filter(work_item_id=row.id)


def test_the_parts_of_a_row_hold_its_pages_once_each_and_echo_tokens_of_their_own() -> None:
    row = Batch().id

    leaves = [pages_of(range(1, 11), name) for name in ("00", "01", "10", "11")]

    assert [page for leaf in leaves for page in leaf] == list(range(1, 11))
    assert len({token_of(row, name) for name in ("", "0", "1", "00", "01")}) == 5
    assert token_of(row, "") == row.hex


@pytest.mark.parametrize("fault", ["truncated", "loop", "400-tokens"])
def test_a_batch_that_is_too_long_is_halved_and_finds_the_same_entities(
    tmp_path: Path, fault: str
) -> None:
    whole = discovered(tmp_path)
    detect([])
    halved = discovered(tmp_path)

    log = detect([{"fault": fault, "kind": "entities", "times": 1}])

    (batch,) = Batch.objects.filter(pass1_encounter_result__shell_file_id=halved.shell_file_id)
    code = (batch.transient_error_history or [{}])[0]["error_code"]
    assert code == ("CONTEXT_TOO_LARGE" if fault == "400-tokens" else "OUTPUT_TRUNCATED")
    assert (batch.status, batch.attempt_count, batch.error_code) == ("succeeded", 1, None)
    assert calls(batch) == {("", code, False): 1, ("0", "OK", True): 1, ("1", "OK", True): 1}
    ranges = calls_of(batch).exclude(split="").order_by("split")
    assert list(ranges.values_list("page_range_start", "page_range_end")) == [(1, 5), (6, 10)]
    assert entities(halved) == entities(whole) != []
    assert not astray(ShellFile.objects.get(id=halved.shell_file_id))
    # The local engine answered the chunk, so the log has no call for the chunk.
    assert [f for f in prove_log(log).findings if " without an accepted call" not in f] == []


def test_pages_are_halved_down_to_one_which_fails_with_the_cause(tmp_path: Path) -> None:
    received = discovered(tmp_path)

    detect([{"fault": "truncated", "page": 1}])

    (batch,) = Batch.objects.filter(pass1_encounter_result__shell_file_id=received.shell_file_id)
    assert (batch.status, batch.error_code) == ("failed", "OUTPUT_TRUNCATED")
    assert (batch.error_context or {})["final_underlying_error"] == "OUTPUT_TRUNCATED"
    assert calls(batch) == {
        **{(name, "OUTPUT_TRUNCATED", False): 1 for name in ("", "0", "00", "000", "0000")},
        **{(name, "OK", True): 1 for name in ("1", "01", "001", "0001")},
    }
    assert Job.objects.get(id=received.job_id).error_code == "OUTPUT_TRUNCATED"
    assert entities(received) == []


def test_after_a_failure_of_one_half_only_that_half_is_requested_again(tmp_path: Path) -> None:
    received = discovered(tmp_path)
    detect(
        [
            {"fault": "truncated", "kind": "entities", "times": 1},
            {"fault": "500", "kind": "entities", "page": 6},
        ]
    )
    (batch,) = Batch.objects.all()
    assert (batch.status, batch.error_code) == ("failed", "MAX_RETRIES_EXCEEDED")
    operator_actions.record_retry(received.shell_file_id, reason="a test")

    log = detect([])

    batch.refresh_from_db()
    assert [line.item_token for line in log] == [token_of(batch.id, "1")]
    assert (batch.status, batch.attempt_count, batch.max_attempts) == ("succeeded", 4, 6)
    assert Counter(name for name, _, accepted in calls(batch).elements() if accepted) == {
        "0": 1,
        "1": 1,
    }
    assert Job.objects.get(id=received.job_id).status == "completed"


def test_a_worker_that_died_between_halves_leaves_only_the_missing_one_to_ask_for(
    tmp_path: Path,
) -> None:
    received = discovered(tmp_path)
    detect(
        [
            {"fault": "truncated", "kind": "entities", "times": 1},
            {"fault": "429-day", "kind": "entities", "page": 6},
        ]
    )
    job, (batch,) = Job.objects.get(id=received.job_id), Batch.objects.all()
    assert (job.status, batch.status) == ("parked", "pending")
    assert ("0", "OK", True) in calls(batch)
    # The state after a killed worker and the recovery of its lease.
    Job.objects.filter(id=job.id).update(status="pending", parked_until=None, incident=None)
    Incident.objects.update(state="closed", closed_at=job.created_at)
    RateLimiter.for_("gemini", settings.GEMINI_MODEL).resume()

    log = detect([])

    batch.refresh_from_db()
    assert [line.item_token for line in log] == [token_of(batch.id, "1")]
    assert batch.status == "succeeded"
    assert entities(received) != []


def test_a_split_without_its_stored_reply_is_requested_again_and_accepted_once(
    tmp_path: Path,
) -> None:
    received = discovered(tmp_path)
    detect(
        [
            {"fault": "truncated", "kind": "entities", "times": 1},
            {"fault": "500", "kind": "entities", "page": 6},
        ]
    )
    (batch,) = Batch.objects.all()
    with as_owner():
        for call in calls_of(batch):
            if hasattr(call, "payload"):
                call.payload.delete()
    operator_actions.record_retry(received.shell_file_id, reason="a test")

    log = detect([])

    batch.refresh_from_db()
    assert {line.item_token for line in log} == {token_of(batch.id, name) for name in "01"}
    assert batch.status == "succeeded"
    assert calls(batch)["0", "OK", True] == calls(batch)["0", "OK", False] == 1


def test_a_chunk_that_is_too_long_is_halved_and_finds_the_same_encounters(
    tmp_path: Path,
) -> None:
    def discover(faults: list[Fault]) -> tuple[Received, list[LogLine]]:
        received = records.submit(short_record(tmp_path / "record.pdf", 3, pages=3))
        run_step.run_step("pages")
        with records.through_emulator(faults) as emulator:
            run_step.run_step("pass05")
            return received, emulator.log()

    whole, _ = discover([])

    halved, log = discover([{"fault": "truncated", "kind": "discovery", "times": 1}])

    (chunk,) = Chunk.objects.filter(discovery_session__shell_file_id=halved.shell_file_id)
    assert chunk.status == "succeeded"
    assert calls(chunk) == {
        ("", "OUTPUT_TRUNCATED", False): 1,
        ("0", "OK", True): 1,
        ("1", "OK", True): 1,
    }
    assert assigned(halved) == assigned(whole) != []
    assert prove_log(log).findings == []
    assert ProviderCall.objects.filter(work_item_id=chunk.id, accepted=True).count() == 2


def assigned(received: Received) -> list[dict[str, Any]]:
    return records.rows(
        "SELECT e.encounter_index, a.page_number, a.start_offset, a.end_offset"
        " FROM pass05_page_assignments a LEFT JOIN healthcare_encounters e"
        " ON e.id = a.healthcare_encounter_id JOIN pass05_progressive_sessions s"
        " ON s.id = a.discovery_session_id WHERE s.shell_file_id = %s ORDER BY 2, 3",
        str(received.shell_file_id),
    )
