"""The verbs of a work item write the right fields, and refuse impossible moves."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from pipeline.core.errors import ErrorCode
from pipeline.core.states import WORK_MOVES, WorkStatus
from pipeline.models import Batch, Chunk, ZoneResult
from pipeline.models.packed_output import PackedOutput
from pipeline.models.work_item import FailureEntry
from pipeline.transitions import row_of

AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = AT + timedelta(seconds=2)


def an_entry(code: ErrorCode, split: str = "") -> FailureEntry:
    entry: FailureEntry = {
        "attempt": 1,
        "error_code": code.value,
        "error_message": f"failed with {code}",
        "timestamp": AT.isoformat(),
        "retry_delay_ms": None,
    }
    return {**entry, "split": split} if split else entry


def test_a_success_stores_output_and_counts_and_keeps_the_history() -> None:
    batch = Batch()
    batch.begin(AT)
    batch.record_failure(an_entry(ErrorCode.API_5XX))

    batch.succeed({"entities": []}, {"entities_detected": 3, "zones_detected": 1}, LATER)

    assert (batch.status, batch.duration_ms) == (WorkStatus.SUCCEEDED, 2000)
    assert (batch.output, batch.entities_detected, batch.zones_detected) == ({"entities": []}, 3, 1)
    assert (batch.error_code, batch.had_transient_failure) == (None, True)


def test_an_output_is_compressed_until_its_publication_and_is_written_as_it_was() -> None:
    zone = ZoneResult(healthcare_encounter_id=uuid4(), processing_session_id=uuid4())
    output = {"enriched": [{"id": "e1", "name": "Ödem 5 µg", "step": None}] * 200, "rejected": 0}
    zone.begin(AT)

    zone.succeed(output, {"entities_enriched": 200, "attributes_rejected": 0}, LATER)

    assert isinstance(zone.output, PackedOutput)
    assert zone.output == zone.unpacked_output == row_of(zone)["output"] == output
    assert zone.output.size < len(json.dumps(output)) / 10
    assert zone.output["rejected"] == 0
    assert len(zone.output) == 2


def test_a_failure_names_the_last_error_of_its_own_split() -> None:
    batch = Batch()
    batch.begin(AT)
    batch.record_failure(an_entry(ErrorCode.PARSE_JSON, "0"))
    batch.record_failure(an_entry(ErrorCode.API_5XX, "1"))

    batch.fail(ErrorCode.MAX_RETRIES_EXCEEDED, "all attempts are used up", LATER, split="0")

    assert batch.status == WorkStatus.FAILED
    assert batch.error_code == ErrorCode.MAX_RETRIES_EXCEEDED
    assert batch.error_context is not None
    assert batch.error_context["final_underlying_error"] == "PARSE_JSON"
    assert len(batch.error_context["attempt_history"]) == 2


def test_a_chunk_keeps_the_context_of_its_failure_twice_until_it_begins_again() -> None:
    chunk = Chunk()
    chunk.begin(AT)
    chunk.fail(ErrorCode.API_4XX, "refused", LATER)
    failed_with = chunk.error_details

    chunk.begin(LATER)

    assert failed_with is not None
    assert failed_with["final_underlying_error"] == "API_4XX"
    assert (chunk.error_details, chunk.error_context, chunk.completed_at) == (None, None, None)


def test_the_context_of_a_failure_shows_a_refund_that_comes_later() -> None:
    batch = Batch()
    batch.begin(AT)
    position = batch.record_failure(an_entry(ErrorCode.API_5XX))
    batch.fail(ErrorCode.MAX_RETRIES_EXCEEDED, "all attempts are used up", LATER)

    batch.refund_failure(position)

    assert batch.error_context is not None
    assert batch.error_context["attempt_history"][0]["refunded"] is True


def test_tokens_of_all_calls_are_added_up() -> None:
    batch = Batch()

    batch.record_call("model-a", input_tokens=5, output_tokens=1)
    batch.record_call("model-b", input_tokens=2, output_tokens=0)

    assert (batch.ai_model_used, batch.input_tokens, batch.output_tokens) == ("model-b", 7, 1)


@pytest.mark.parametrize("before", list(WorkStatus))
@pytest.mark.parametrize("after", list(WorkStatus))
def test_only_the_moves_of_the_table_are_made(before: WorkStatus, after: WorkStatus) -> None:
    batch = Batch(status=before)
    verbs = {
        WorkStatus.PENDING: batch.interrupt,
        WorkStatus.PROCESSING: lambda: batch.begin(AT),
        WorkStatus.SUCCEEDED: lambda: batch.succeed(
            {}, {"entities_detected": 0, "zones_detected": 0}, LATER
        ),
        WorkStatus.FAILED: lambda: batch.fail(ErrorCode.API_4XX, "refused", LATER),
    }

    if before is after or (before, after) in WORK_MOVES:
        verbs[after]()
        assert batch.status == after
    else:
        with pytest.raises(ValueError, match="never moves"):
            verbs[after]()
