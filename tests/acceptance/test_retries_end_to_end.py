"""Records run through real workers and the real client while the service misbehaves.

Three records meet one script of faults at the same time. `CURED` sees only faults that a retry
cures. `BROKEN` sees two permanent faults. `UNSEEN` sees one permanent fault in Pass 0.5.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from gemini_emulator import Emulator
from gemini_emulator.request_log import LogLine
from pipeline.models import (
    Batch,
    CascadeChain,
    Chunk,
    DiscoveryMetrics,
    Encounter,
    EncounterResult,
    Entity,
    EntityMetrics,
    Job,
    PageAssignment,
    PendingEncounter,
    ProviderCall,
    ReconciliationEntry,
    Session,
    ShellFile,
    Summary,
)
from tests.support import records
from tests.support.record_runs import astray, ended
from tests.support.short_records import PATIENT, short_record
from tests.support.workers import WorkerCommand

pytestmark = pytest.mark.xdist_group("acceptance-retries")

CURED, BROKEN, UNSEEN = "cured", "broken", "unseen"
DEADLINE_S = 4.0
TRANSIENT: dict[int, tuple[list[str], dict[str, Any]]] = {
    1: (["RATE_LIMIT"] * 2, {"fault": "429", "attempt": "1-2", "retry_after_s": 0.2}),
    2: (["API_5XX"], {"fault": "500", "attempt": 1}),
    3: (["API_5XX"] * 2, {"fault": "503", "attempt": "1-2"}),
    4: (["PARSE_JSON"], {"fault": "bad-json", "attempt": 1}),
    5: (["API_TIMEOUT"], {"fault": "hang", "attempt": 1}),
    6: (["REPLY_MISMATCH"], {"fault": "wrong-token", "attempt": 1}),
    7: (["EMPTY_RESPONSE"], {"fault": "empty", "attempt": 1}),
    8: (["PARSE_SCHEMA"], {"fault": "wrong-shape", "attempt": 1}),
    9: (["API_5XX"], {"fault": "reset", "attempt": 1}),
    10: (["API_TIMEOUT"], {"fault": "slow", "attempt": 1, "delay_s": DEADLINE_S + 0.1}),
    11: (["RATE_LIMIT"], {"fault": "429-bare", "attempt": 1}),
}
"""By page of `CURED`: the history that its batch must have, and the rule that causes it."""
FAULTS = (
    *({"kind": "entities", "page": page, **rule} for page, (_, rule) in TRANSIENT.items()),
    # The run must still last when the late reply of page 10 arrives.
    {"kind": "entities", "page": 5, "attempt": 2, "fault": "slow", "delay_s": 2.2},
    {"kind": "entities", "page": 13, "fault": "500"},
    {"kind": "entities", "page": 15, "fault": "truncated"},
    {"kind": "discovery", "page": 9, "attempt": 1, "fault": "500"},
    {"kind": "discovery", "page": 17, "fault": "503"},
)


class EndedRecords:
    """The three ended records, and the log of the emulator."""

    def __init__(self, files: dict[str, ShellFile], log: list[LogLine], pool: WorkerCommand):
        self.files = files
        self.log = log
        self.pool = pool

    def batches(self, name: str) -> list[Any]:
        rows = Batch.objects.filter(pass1_encounter_result__shell_file=self.files[name])
        return list(rows.order_by("page_range_start"))

    def batch(self, name: str, page: int) -> Any:
        (batch,) = [b for b in self.batches(name) if b.page_range_start == page]
        return batch

    def calls(self, name: str) -> list[ProviderCall]:
        return list(ProviderCall.objects.filter(processing_session__shell_file=self.files[name]))


@pytest.fixture(scope="module")
def ran(
    start_pool: Callable[..., WorkerCommand], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EndedRecords]:
    """Provide the three records after their way through one pool."""
    folder = tmp_path_factory.mktemp("records")
    with Emulator(faults=FAULTS) as emulator:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini",
            GEMINI_BASE_URL=emulator.url,
            CALL_DEADLINE_S=DEADLINE_S / 0.05,
            PASS05_CHUNK_PAGES=8,
            PASS1_BATCH_MIN_PAGES=1,
            PASS1_BATCH_MAX_PAGES=1,
            PASS1_BATCH_HARD_CEILING=1,
            PASS1_CONCURRENCY_LIMIT=16,
            # More failures at once would be an outage, and an outage spends no attempt.
            GATE_BREAKER_FAILURES=1000,
        )
        received = {
            name: records.submit(short_record(folder / f"{name}.pdf", visits, pages=pages))
            for name, visits, pages in ((BROKEN, 8, 2), (CURED, 12, 1), (UNSEEN, 24, 1))
        }
        ended(*received.values())
        files = {n: ShellFile.objects.get(id=r.shell_file_id) for n, r in received.items()}
        yield EndedRecords(files, emulator.log(), pool)


def work_of(call: ProviderCall) -> UUID:
    """Return the id of the batch or chunk of a call."""
    work = call.work_item_id
    assert work is not None
    return work


def test_a_record_whose_faults_all_pass_completes(ran: EndedRecords) -> None:
    record = ran.files[CURED]

    job: Any = Job.objects.get(shell_file=record)

    assert (job.status, job.last_error, job.error_code) == ("completed", None, None)
    assert record.status == "pass1_complete"
    assert Encounter.objects.filter(shell_file=record).count() == 12
    assert not astray(record)


@pytest.mark.parametrize("page", TRANSIENT)
def test_a_batch_that_succeeds_after_failures_keeps_their_history(
    ran: EndedRecords, page: int
) -> None:
    codes, _ = TRANSIENT[page]

    batch = ran.batch(CURED, page)

    history = batch.transient_error_history
    assert (batch.status, batch.had_transient_failure) == ("succeeded", True)
    assert [entry["error_code"] for entry in history] == codes
    assert [entry["attempt"] for entry in history] == list(range(1, len(codes) + 1))
    assert all(entry["retry_delay_ms"] is not None for entry in history)
    assert (batch.error_code, batch.error_message, batch.error_context) == (None, None, None)


@pytest.mark.parametrize("page", TRANSIENT)
def test_a_limited_call_spends_no_attempt_and_any_other_one(ran: EndedRecords, page: int) -> None:
    codes, _ = TRANSIENT[page]

    batch = ran.batch(CURED, page)

    limited = codes.count("RATE_LIMIT")
    assert batch.rate_limit_waits == limited
    assert batch.attempt_count == len(codes) - limited + 1


def test_a_limited_call_is_not_repeated_before_the_servers_hint(ran: EndedRecords) -> None:
    token = ran.batch(CURED, 1).id.hex
    asked = [line.time for line in ran.log if line.item_token == token]

    assert len(asked) == 3
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(asked))


def test_a_batch_without_failures_has_no_history(ran: EndedRecords) -> None:
    batch = ran.batch(CURED, 12)

    assert (batch.attempt_count, batch.had_transient_failure) == (1, False)
    assert not batch.transient_error_history


def test_a_chunk_that_succeeds_after_a_failure_keeps_its_history(ran: EndedRecords) -> None:
    chunks = Chunk.objects.filter(discovery_session__shell_file=ran.files[CURED])
    chunk: Any = chunks.get(page_range_start=9)

    assert (chunk.status, chunk.attempt_count) == ("succeeded", 2)
    assert [entry["error_code"] for entry in chunk.transient_error_history] == ["API_5XX"]


def test_a_failed_batch_says_that_and_why_its_attempts_were_used_up(ran: EndedRecords) -> None:
    batch = ran.batch(BROKEN, 13)

    context = batch.error_context
    assert (batch.status, batch.error_code) == ("failed", "MAX_RETRIES_EXCEEDED")
    assert batch.attempt_count == batch.max_attempts == 3
    assert context["final_underlying_error"] == "API_5XX"
    assert context["final_underlying_message"].startswith("HTTP 500")
    assert [set(entry) for entry in context["attempt_history"]] == [
        {"attempt", "error_code", "error_message", "timestamp", "retry_delay_ms"}
    ] * 3
    assert [entry["attempt"] for entry in context["attempt_history"]] == [1, 2, 3]
    assert [entry["retry_delay_ms"] is None for entry in context["attempt_history"]] == [
        False,
        False,
        True,
    ]
    assert batch.output is None


def test_a_batch_that_fails_at_once_carries_its_underlying_error_as_well(ran: EndedRecords) -> None:
    batch = ran.batch(BROKEN, 15)

    assert (batch.status, batch.error_code) == ("failed", "OUTPUT_TRUNCATED")
    assert batch.error_context["final_underlying_error"] == "OUTPUT_TRUNCATED"
    assert batch.rate_limit_waits == 0


def test_other_encounters_complete_beside_a_failed_one(ran: EndedRecords) -> None:
    results = EncounterResult.objects.filter(shell_file=ran.files[BROKEN]).order_by(
        "healthcare_encounter__encounter_index"
    )

    assert [r.status for r in results] == ["succeeded"] * 6 + ["failed"] * 2
    for result in results[:6]:
        published = Entity.objects.filter(healthcare_encounter=result.healthcare_encounter)
        assert published.filter(accepted=True).count() == result.total_entities_detected > 0
    assert not astray(ran.files[BROKEN])


def test_nothing_of_a_failed_encounter_is_visible(ran: EndedRecords) -> None:
    for page in (13, 15):
        encounter = ran.batch(BROKEN, page).healthcare_encounter

        assert not Entity.objects.filter(healthcare_encounter=encounter).exists()
        assert encounter.entities_published_at is None
    on_its_pages = Entity.objects.filter(shell_file=ran.files[BROKEN], page_number__gte=13)
    assert not on_its_pages.exists()


def test_the_succeeded_batch_of_a_failed_encounter_keeps_its_output(ran: EndedRecords) -> None:
    sibling = ran.batch(BROKEN, 14)

    assert sibling.status == "succeeded"
    assert sibling.output["entities"]


def test_a_failed_encounter_names_how_many_of_its_batches_failed_and_which(
    ran: EndedRecords,
) -> None:
    result = ran.batch(BROKEN, 13).pass1_encounter_result

    assert (result.batches_total, result.batches_failed, result.batches_succeeded) == (2, 1, 1)
    assert (result.failure_batch_index, result.error_code) == (0, "MAX_RETRIES_EXCEEDED")
    assert result.error_summary == (
        "1 of 2 batches failed: batch 1 (page 13): API_5XX. Succeeded: 2."
    )


def test_the_record_fails_as_a_whole_and_keeps_its_last_completed_pass(ran: EndedRecords) -> None:
    record = ran.files[BROKEN]
    first = ran.batch(BROKEN, 13)
    job: Any = Job.objects.get(shell_file=record)
    session = Session.objects.get(shell_file=record)
    summary = Summary.objects.get(shell_file=record)

    assert record.status == "pass05_complete"
    assert (job.status, job.current_step) == ("failed", "pass1")
    assert (session.session_status, session.pass1_status) == ("failed", "failed")
    assert (summary.processing_status, summary.failure_stage) == ("failed", "pass1")
    for row in (session, summary):
        assert row.failure_encounter_id == first.healthcare_encounter_id
        assert row.error_code == "MAX_RETRIES_EXCEEDED"
    assert summary.failure_batch_index == 0
    assert job.error_details["underlying_error"] == "API_5XX"
    assert job.error_details["failure_encounter_id"] == str(first.healthcare_encounter_id)
    assert len(job.error_details["attempt_history"]) == 3
    assert job.last_error.endswith(", batch 1 of 2 (page 13): API_5XX ×3; 2 of 8 encounters failed")
    listed = (summary.error_drill_down or {})["failures"]
    assert [(f["pages"], f["underlying_error"]) for f in listed] == [
        ([13, 13], "API_5XX"),
        ([15, 15], "OUTPUT_TRUNCATED"),
    ]


def test_the_totals_of_a_failed_pass_count_what_succeeded(ran: EndedRecords) -> None:
    metrics = EntityMetrics.objects.get(shell_file=ran.files[BROKEN])

    assert (metrics.encounters_total, metrics.encounters_succeeded) == (8, 6)
    assert (metrics.encounters_failed, metrics.batches_total) == (2, 16)
    assert metrics.batches_succeeded == 14
    assert metrics.error_code == "MAX_RETRIES_EXCEEDED"


def test_a_chunk_that_fails_for_good_publishes_nothing_of_its_pass(ran: EndedRecords) -> None:
    record = ran.files[UNSEEN]
    job: Any = Job.objects.get(shell_file=record)
    session = record.discovery_session
    failed = Chunk.objects.get(discovery_session=session, page_range_start=17)

    assert record.status == "pages_complete"
    assert (job.status, job.current_step, job.error_code) == (
        "failed",
        "pass05",
        "MAX_RETRIES_EXCEEDED",
    )
    assert (failed.status, failed.attempt_count) == ("failed", 3)
    assert (failed.error_details or {})["final_underlying_error"] == "API_5XX"
    assert job.last_error == "chunk 3 (pages 17–24): API_5XX ×3; 1 of 3 chunks failed"
    assert (session.status, session.chunks_failed, session.chunks_succeeded) == ("failed", 1, 2)
    for model in (PendingEncounter, PageAssignment, CascadeChain, ReconciliationEntry):
        assert not model._default_manager.filter(discovery_session=session).exists()
    assert not Encounter.objects.filter(shell_file=record).exists()


def test_the_chunks_that_succeeded_keep_their_replies_for_a_retry(ran: EndedRecords) -> None:
    chunks: Any = Chunk.objects.filter(
        discovery_session__shell_file=ran.files[UNSEEN], status="succeeded"
    )

    assert [bool(chunk.output["encounters"]) for chunk in chunks] == [True, True]


@pytest.mark.parametrize("name", [CURED, BROKEN, UNSEEN])
def test_every_call_that_the_service_saw_is_in_the_call_log_once(
    ran: EndedRecords, name: str
) -> None:
    calls = [call for call in ran.calls(name) if call.outcome != "LATE"]
    in_ledger = Counter(work_of(call).hex for call in calls)

    seen = Counter(line.item_token for line in ran.log if line.item_token in in_ledger)

    assert in_ledger == seen


@pytest.mark.parametrize("name", [CURED, BROKEN, UNSEEN])
def test_each_reply_of_the_service_is_accepted_once_or_its_loss_is_explained(
    ran: EndedRecords, name: str
) -> None:
    calls = ran.calls(name)
    accepted = {call.response_id: call for call in calls if call.accepted}
    late = {call.response_id for call in calls if call.outcome == "LATE"}
    tokens = {work_of(call).hex for call in calls}

    good = [
        line for line in ran.log if line.item_token in tokens and line.outcome in {"ok", "slow"}
    ]

    assert {line.response_id for line in good} == accepted.keys() | late
    assert len({work_of(call) for call in accepted.values()}) == len(accepted)
    chunks = Chunk.objects.filter(discovery_session__shell_file=ran.files[name])
    rows = [*ran.batches(name), *chunks]
    assert len(accepted) == sum(row.status == "succeeded" for row in rows)


def test_a_reply_that_came_too_late_is_counted_and_changes_nothing(ran: EndedRecords) -> None:
    batch = ran.batch(CURED, 10)

    outcomes = {call.outcome: call for call in ProviderCall.objects.filter(work_item_id=batch.id)}

    assert outcomes.keys() == {"API_TIMEOUT", "LATE", "OK"}
    assert outcomes["LATE"].input_tokens > 0
    assert not outcomes["LATE"].accepted
    assert batch.input_tokens == outcomes["LATE"].input_tokens + outcomes["OK"].input_tokens


@pytest.mark.parametrize("name", [CURED, BROKEN, UNSEEN])
def test_tokens_add_up_from_call_to_report_card(ran: EndedRecords, name: str) -> None:
    calls = ran.calls(name)
    summary = Summary.objects.get(shell_file=ran.files[name])

    assert summary.total_tokens_used == sum(
        c.input_tokens + c.output_tokens + c.thinking_tokens for c in calls
    )
    assert summary.total_cost_usd == sum(c.cost_usd for c in calls)
    for metrics, step in (
        (DiscoveryMetrics.objects.get(shell_file=ran.files[name]), "pass05"),
        (EntityMetrics.objects.filter(shell_file=ran.files[name]).first(), "pass1"),
    ):
        of_step = [call for call in calls if call.step == step]
        assert (metrics is not None) is bool(of_step)
        if metrics is not None:
            assert metrics.input_tokens == sum(call.input_tokens for call in of_step)
            assert metrics.output_tokens == sum(call.output_tokens for call in of_step)
    for batch in ran.batches(name):
        own = [call for call in calls if call.work_item_id == batch.id]
        assert batch.input_tokens == sum(call.input_tokens for call in own)
        assert batch.output_tokens == sum(call.output_tokens for call in own)
    for result in EncounterResult.objects.filter(shell_file=ran.files[name]):
        own_batches = [b for b in ran.batches(name) if b.pass1_encounter_result_id == result.id]
        assert result.total_input_tokens == sum(b.input_tokens or 0 for b in own_batches)
        assert result.total_output_tokens == sum(b.output_tokens or 0 for b in own_batches)
        assert result.total_retries_used == sum(max(0, b.attempt_count - 1) for b in own_batches)


def test_no_error_says_more_than_our_own_words(ran: EndedRecords) -> None:
    said = json.dumps(
        [
            [b.error_message, b.error_context, b.transient_error_history]
            for name in ran.files
            for b in ran.batches(name)
        ],
    )

    assert not [word for word in PATIENT.replace(",", "").split()[:2] if word in said]
