"""The ready scenarios end as their files say, and the emulator's log shows that nothing is lost."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.models import Count, Q, QuerySet

from gemini_emulator import Emulator
from gemini_emulator.recorded_rows import prove_log
from gemini_emulator.request_log import LogLine
from gemini_emulator.scenario import load_scenario
from pipeline.core.states import IncidentState, JobStatus
from pipeline.models import (
    Batch,
    Chunk,
    EncounterResult,
    Entity,
    Incident,
    Job,
    ProviderCall,
    ShellFile,
)
from pipeline.operations import operator_actions
from pipeline.ratelimit import RateLimiter
from pipeline.ratelimit.quota_reset import day_ends_at
from pipeline.stages.intake import Received
from tests.support import records
from tests.support.record_runs import RECORD_PATIENCE_S, astray, ended
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, children, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-scenarios"),
    pytest.mark.slow(reason="whole records under each fault: 63 s"),
]

Start = Callable[..., WorkerCommand]

RECORDS = 3
SMALL = {
    "PASS05_CHUNK_PAGES": 2,
    "PASS1_BATCH_MIN_PAGES": 1,
    "PASS1_BATCH_MAX_PAGES": 1,
    "PASS1_BATCH_HARD_CEILING": 1,
}
"""Settings for many calls of one or two pages."""
FOUND = ("category", "name", "value", "dose", "page_number", "char_start", "char_end", "accepted")
EXPECTED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "garbage": (
        {},
        {"PARSE_JSON", "PARSE_SCHEMA", "EMPTY_RESPONSE", "REPLY_MISMATCH"},
    ),
    "slow": ({"CALL_DEADLINE_S": 16.0}, {"API_TIMEOUT"}),
}
"""By scenario: the settings for its scale, and the codes that must appear."""
SURE = ("500", "503-deadline", "429-bare", "bad-json", "wrong-token")
"""Faults that each mixed day contains."""


@pytest.fixture
def start(start_pool: Start, module_redis: Any) -> Iterator[Start]:
    """Provide a function that starts workers for an emulator, with an empty rate limiter."""
    module_redis.flushdb()
    started: list[WorkerCommand] = []

    def start(emulator: Emulator, **settings: Any) -> WorkerCommand:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini", GEMINI_BASE_URL=emulator.url, **{**SMALL, **settings}
        )
        started.append(pool)
        return pool

    yield start
    for pool in started:
        pool.stop()


def submitted(folder: Path, count: int, visits: int, *, pages: int = 1) -> list[Received]:
    return [
        records.submit(short_record(folder / f"{n}.pdf", visits, pages=pages, patient=f"P{n}"))
        for n in range(count)
    ]


def rows(model: Any, received: Sequence[Received]) -> QuerySet[Any]:
    """Return the batches, chunks, calls and encounter results of these records."""
    files = [each.shell_file_id for each in received]
    return model.objects.filter(processing_session__shell_file__in=files)  # type: ignore[no-any-return]


def outcomes(received: Sequence[Received]) -> Counter[str]:
    return Counter(rows(ProviderCall, received).values_list("outcome", flat=True))


def assert_all_completed(received: Sequence[Received]) -> None:
    jobs = ended(*received)
    assert [(job.status, job.last_error) for job in jobs] == [("completed", None)] * len(jobs)
    for each in received:
        assert not astray(ShellFile.objects.get(id=each.shell_file_id))


def assert_no_attempt_was_spent(received: Sequence[Received]) -> None:
    for model in (Batch, Chunk):
        seen = set(rows(model, received).values_list("status", "attempt_count"))
        assert seen == {("succeeded", 1)}


def assert_proved(log: Iterable[LogLine]) -> Counter[str]:
    """Check that nothing was lost, doubled or swapped, and return the counts."""
    proof = prove_log(list(log))
    assert proof.findings == []
    return proof.counts


# The scheduler resumes the records that a breaker has parked: on a busy machine some slow calls are
# half of the few last calls.
@pytest.mark.usefixtures("scheduler")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_scenario_shows_what_it_says_and_loses_nothing(
    name: str, start: Start, tmp_path: Path
) -> None:
    settings, codes = EXPECTED[name]
    received = submitted(tmp_path, RECORDS, 12)

    with Emulator(scenario=name, scale=0.01, seed=3) as emulator:
        pool = start(emulator, PASS1_MAX_RETRIES=5, **settings)
        assert_all_completed(received)
        log = emulator.log()
        pool.stop()

    assert codes <= set(outcomes(received))
    counts = assert_proved(log)
    assert counts["items"] == counts["accepted calls"] > 30


@pytest.mark.usefixtures("scheduler")
def test_throttled_calls_spend_no_attempt_and_are_all_redistributed(
    start: Start, tmp_path: Path
) -> None:
    received = submitted(tmp_path, RECORDS, 12)
    # The calls are limited from 2 s to 5 s after the first call. With one call of 0.3 s at a time
    # in each of three records, the 39 calls last longer than 2 s on every machine.
    scale = 2 * settings.TIME_SCALE

    with Emulator(scenario="throttle", scale=scale, seed=3) as emulator:
        quota = {"GEMINI_RPM": 60, "GEMINI_TPM": 200_000, "GATE_WINDOW_S": 60 * scale}
        pool = start(emulator, PASS1_CONCURRENCY_LIMIT=1, **quota)
        assert_all_completed(received)
        counters = RateLimiter.for_("gemini", settings.GEMINI_MODEL).state().counters
        log = emulator.log()
        pool.stop()

    assert set(outcomes(received)) == {"OK", "RATE_LIMIT"}
    assert_no_attempt_was_spent(received)
    assert counters.rate_limit_generations >= 1
    assert counters.rate_limited_items_stored == counters.rate_limited_items_redistributed > 0
    assert_proved(log)


def test_a_used_up_daily_quota_parks_all_jobs_until_its_reset_or_an_operators_resume(
    start: Start, scheduler: WorkerCommand, tmp_path: Path
) -> None:
    received = submitted(tmp_path, RECORDS, 8)
    jobs = Job.objects.filter(id__in=[each.job_id for each in received])

    with Emulator(scenario="daily-quota", scale=0.01, seed=3) as emulator:
        pool = start(emulator)
        still = {JobStatus.PARKED, JobStatus.COMPLETED}
        until(lambda: still.issuperset(jobs.values_list("status", flat=True)), RECORD_PATIENCE_S)
        parked = list(jobs.filter(status=JobStatus.PARKED))
        incident = Incident.objects.get(kind="quota")
        answered = Counter(line.outcome for line in emulator.log())["ok"]

        emulator.advance_clock(timedelta(minutes=5).total_seconds())
        # A tick could release the jobs between the end of the incident and the operator's release.
        scheduler.stop()
        resumed = operator_actions.provider_resume("gemini", reason="the day is over")
        assert_all_completed(received)
        log = emulator.log()
        pool.stop()

    assert answered == 40
    assert incident.resumes_at == day_ends_at(incident.first_failure_at)
    assert {job.park_reason for job in parked} == {
        f"a quota of gemini {settings.GEMINI_MODEL} is used up"
    }
    assert {job.parked_until for job in parked} == {incident.resumes_at}
    assert (resumed.incidents, resumed.released) == (1, len(parked))
    assert set(outcomes(received)) == {"OK", "QUOTA_EXHAUSTED"}
    assert_no_attempt_was_spent(received)
    assert Incident.objects.get(id=incident.id).state == IncidentState.CLOSED
    assert_proved(log)


def test_truncated_answers_are_halved_and_find_what_whole_ones_do(
    start: Start, tmp_path: Path
) -> None:
    whole = [records.completed_record(short_record(tmp_path / "whole.pdf", 6, pages=4))]
    received = [records.submit(tmp_path / "whole.pdf") for _ in range(RECORDS)]

    with Emulator(scenario="truncation", scale=0.01, seed=3) as emulator:
        pool = start(
            emulator,
            PASS1_BATCH_MIN_PAGES=4,
            PASS1_BATCH_MAX_PAGES=8,
            PASS1_BATCH_HARD_CEILING=8,
        )
        assert_all_completed(received)
        log = emulator.log()
        pool.stop()

    assert set(outcomes(received)) == {"OK", "OUTPUT_TRUNCATED"}
    assert_no_attempt_was_spent(received)
    played = {line.outcome for line in log}
    assert "truncated" in played
    assert played & {"loop", "loop-newlines"}
    assert rows(ProviderCall, received).exclude(split="").exists()
    found = entities(whole[0].id)
    assert found
    for each in received:
        assert entities(each.shell_file_id) == found
    assert_proved(log)


def entities(shell_file_id: Any) -> list[tuple[Any, ...]]:
    found = Entity.objects.filter(shell_file_id=shell_file_id).values_list(*FOUND)
    return sorted(found, key=str)


@pytest.mark.timeout(1200)
def test_on_a_mixed_day_thirty_records_complete_or_fail_whole(
    start: Start, scheduler: WorkerCommand, tmp_path: Path
) -> None:
    received = submitted(tmp_path, 30, 3)
    scale = settings.TIME_SCALE

    mixed = load_scenario("mixed").model_dump(mode="json")
    # By chance, a fault of 3 % can miss all calls, and a slow machine can miss a phase.
    mixed["fault"] = [{"fault": fault, "attempt": 1, "times": 1} for fault in SURE] + mixed["fault"]

    with Emulator(scenario=mixed, scale=scale, seed=3) as emulator:
        pool = start(
            emulator,
            GEMINI_RPM=300,
            GATE_WINDOW_S=60 * scale,
            CALL_DEADLINE_S=40.0,
            # A single batch does not open the circuit breaker, and must survive half a minute.
            PASS1_MAX_RETRIES=8,
        )
        kill_a_step(received)
        jobs = ended(*received)
        log = emulator.log()
        pool.stop()

    seen = outcomes(received)
    assert {"API_5XX", "API_TIMEOUT", "RATE_LIMIT", "PARSE_JSON", "REPLY_MISMATCH"} <= set(seen)
    refused = {line.item_token for line in log if line.outcome == "finish"}
    failed = rows(Batch, received).filter(status="failed")
    assert {batch.id.hex for batch in failed} == refused
    assert {batch.error_code for batch in failed} <= {"CONTENT_BLOCKED"}
    assert {job.status for job in jobs} <= {JobStatus.COMPLETED, JobStatus.FAILED}
    assert_whole(received)
    counts = assert_proved(log)
    assert counts["accepted calls"] == counts["items"] - failed.count()


def kill_a_step(received: Sequence[Received]) -> None:
    """Kill the horse of a step of Pass 1; the scheduler lets a different worker take the job."""
    at_work = Job.objects.filter(
        id__in=[each.job_id for each in received],
        current_step="pass1",
        status=JobStatus.PROCESSING,
        worker_id__isnull=False,
    )
    left: list[Job] = []
    while not left:
        name = until(
            lambda: at_work.order_by("-step_started_at").values_list("worker_id", flat=True)[:1],
            RECORD_PATIENCE_S,
        )[0]
        worker = int(str(name).split("-")[-2])
        # The stopped worker must not claim the job of the killed worker.
        os.kill(worker, signal.SIGSTOP)
        for horse in children(worker):
            os.kill(horse, signal.SIGKILL)
        left = list(at_work.filter(worker_id=name))
        os.kill(worker, signal.SIGCONT)


def assert_whole(received: Sequence[Received]) -> None:
    """Check that each encounter has all of its entities, or none and a failed batch."""
    results: list[EncounterResult] = list(
        rows(EncounterResult, received)
        .select_related("healthcare_encounter")
        .annotate(
            left=Count("batches", filter=~Q(batches__status="succeeded")),
        )
    )
    shown = set(
        Entity.objects.filter(shell_file__in=[each.shell_file_id for each in received]).values_list(
            "healthcare_encounter_id", flat=True
        )
    )
    assert results
    for result in results:
        is_complete = result.status == "succeeded"
        assert is_complete == (result.left == 0)  # type: ignore[attr-defined]
        assert result.status in {"succeeded", "failed"}
        published = result.healthcare_encounter.entities_published_at is not None
        assert published == is_complete
        if not is_complete:
            assert result.healthcare_encounter_id not in shown
