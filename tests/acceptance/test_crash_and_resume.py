"""Workers that stop, die or lose their lease in mid-record lose nothing and repeat nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from gemini_emulator import Emulator
from gemini_emulator.recorded_rows import prove_log
from medproc.env import PROJECT_ROOT
from pipeline.core.states import Step
from pipeline.execution.splits import token_of
from pipeline.models import Batch, Chunk, Encounter, Entity, Job, Page, ProviderCall, ShellFile
from pipeline.operations import operator_actions
from pipeline.providers.local import LocalProvider
from pipeline.queueing.queues import queue_depths
from pipeline.stages.intake import Received
from pipeline.transitions import Flush, Lease, claim, row_of, write
from tests.support import records
from tests.support.databases import no_connections
from tests.support.emulator import entities_request, gemini
from tests.support.record_runs import astray, ended, take_over
from tests.support.rows import crashes_of
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, children, is_alive, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-crashes"),
    pytest.mark.slow(reason="workers are killed and stopped in the middle of records: 110 s"),
]

Start = Callable[..., WorkerCommand]
CALLS = 2
"""Calls in flight, the maximum loss of one kill."""
SLOW_PAGE = 12
"""The batch that begins on this page stays in flight until its worker is killed."""
SLOW_S = 100.0
"""Less than the call deadline of this module, 120 s."""


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    """Provide a service with calls of 0.3 s, so that a test can interrupt a step."""
    with Emulator(latency="0.3/call", latency_map={f"entities {SLOW_PAGE}": SLOW_S}) as emulator:
        yield emulator


@pytest.fixture
def start(start_pool: Start, emulator: Emulator, module_redis: Any) -> Iterator[Start]:
    """Provide a function that starts pools, and stop these pools at the end of the test."""
    module_redis.flushdb()
    started: list[WorkerCommand] = []

    def start(*arguments: str, **settings: Any) -> WorkerCommand:
        started.append(
            start_pool(
                *arguments,
                MEDPROC_PROVIDER="gemini",
                GEMINI_BASE_URL=emulator.url,
                PASS05_CHUNK_PAGES=1,
                PASS1_BATCH_MIN_PAGES=1,
                PASS1_BATCH_MAX_PAGES=1,
                PASS1_BATCH_HARD_CEILING=1,
                PASS1_CONCURRENCY_LIMIT=CALLS,
                **settings,
            )
        )
        return started[-1]

    yield start
    for pool in started:
        for horse in pool.horses():
            os.kill(horse, signal.SIGKILL)
        pool.stop()
    # The next wake-up would find the jobs that a test has left in the queue.
    with connection.cursor() as cursor:
        cursor.execute("UPDATE job_queue SET status = 'cancelled' WHERE completed_at IS NULL")


def submitted(folder: Path, visits: int, pages: int = 1) -> Received:
    return records.submit(short_record(folder / "record.pdf", visits, pages=pages))


def batches(received: Received, **columns: Any) -> list[Any]:
    rows = Batch.objects.filter(
        pass1_encounter_result__shell_file_id=received.shell_file_id, **columns
    )
    return list(rows.order_by("page_range_start"))


def chunks(received: Received, **columns: Any) -> list[Any]:
    rows = Chunk.objects.filter(discovery_session__shell_file_id=received.shell_file_id, **columns)
    return list(rows.order_by("chunk_index"))


def job_of(received: Received) -> Any:
    return Job.objects.get(id=received.job_id)


def asked(emulator: Emulator, rows: list[Any]) -> Counter[str]:
    """Count the calls of each row that the service has seen."""
    tokens = {row.id.hex for row in rows}
    return Counter(line.item_token for line in emulator.log() if line.item_token in tokens)


def assert_whole(received: Received, emulator: Emulator) -> None:
    """Check that a record has completed with each batch built from one accepted reply.

    Every other success in the service's log went to a worker that was killed.
    """
    assert [job.last_error for job in ended(received)] == [None]
    record = ShellFile.objects.get(id=received.shell_file_id)
    assert record.status == "pass1_complete"
    assert not astray(record)
    accepted = ProviderCall.objects.filter(processing_session__shell_file=record, accepted=True)
    found = Counter(call.work_item_id for call in accepted)
    assert found == Counter(row.id for row in (*batches(received), *chunks(received)))
    assert not Encounter.objects.filter(shell_file=record, entities_published_at=None).exists()
    tokens = {row.id.hex for row in (*batches(received), *chunks(received))}
    proof = prove_log([line for line in emulator.log() if line.item_token in tokens])
    assert proof.findings == []


def the_horse(pool: WorkerCommand) -> int:
    """Return the only horse; that of the step before may still be on its way out."""
    (horse,) = until(lambda: found if len(found := pool.horses()) == 1 else [])
    return horse


def test_a_step_whose_connection_is_cut_continues_and_repeats_no_call(
    start: Start, emulator: Emulator, tmp_path: Path
) -> None:
    received = submitted(tmp_path, 8)
    pool = start()
    until(lambda: batches(received, status="succeeded"))

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    assert_whole(received, emulator)
    assert "(POSTGRES_AWAY)" in pool.printed()
    assert set(asked(emulator, batches(received)).values()) == {1}
    assert job_of(received).lease_gen == 3


@pytest.mark.parametrize(("step", "rows_of"), [("pass1", batches), ("pass05", chunks)])
def test_a_step_with_a_stop_request_drains_and_is_resumed_elsewhere(
    start: Start,
    emulator: Emulator,
    tmp_path: Path,
    step: str,
    rows_of: Callable[..., list[Any]],
) -> None:
    received = submitted(tmp_path, SLOW_PAGE - 2)
    pool = start()
    until(lambda: job_of(received).current_step == step and rows_of(received, status="succeeded"))

    exit_code = pool.stop()

    assert exit_code == 0
    job = job_of(received)
    assert (job.status, job.current_step, job.worker_id) == ("pending", step, None)
    assert (job.retry_count, job.crash_count) == (0, 0)
    done, left = rows_of(received, status="succeeded"), rows_of(received, status="pending")
    assert done
    assert left
    assert len(done) + len(left) == len(rows_of(received))
    assert {row.attempt_count for row in left} == {0}
    assert queue_depths([step]) == {step: 1}

    start()

    assert_whole(received, emulator)
    assert set(asked(emulator, rows_of(received)).values()) == {1}


def test_a_killed_horse_costs_no_result_that_was_committed(
    start: Start, emulator: Emulator, tmp_path: Path
) -> None:
    received = submitted(tmp_path, 8)
    pool = start()
    until(lambda: len(batches(received, status="succeeded")) >= 3)

    os.kill(the_horse(pool), signal.SIGKILL)
    until(lambda: not pool.horses())
    kept = batches(received, status="succeeded")
    published = set(Entity.objects.filter(shell_file_id=received.shell_file_id).values_list("id"))
    take_over(received.job_id)

    assert_whole(received, emulator)
    calls = asked(emulator, batches(received))
    assert {calls[batch.id.hex] for batch in kept} == {1}
    # The successes since the last flush and the calls in flight are requested again.
    assert sum(calls.values()) - len(calls) <= CALLS + CALLS * 4
    assert published <= set(
        Entity.objects.filter(shell_file_id=received.shell_file_id).values_list("id")
    )
    assert {batch.attempt_count for batch in batches(received)} == {1}


def test_pages_that_were_committed_are_not_read_again_after_a_kill(
    start: Start, tmp_path: Path
) -> None:
    received = submitted(tmp_path, 400)
    pool = start("--queues", "pages", "--workers", "1")
    until(lambda: ShellFile.objects.get(id=received.shell_file_id).pages_read)

    os.kill(the_horse(pool), signal.SIGKILL)
    until(lambda: not pool.horses())
    pages = Page.objects.filter(shell_file_id=received.shell_file_id)
    kept = set(pages.values_list("id", flat=True))
    assert job_of(received).current_step == "pages"
    take_over(received.job_id)
    until(lambda: job_of(received).current_step == "pass05")

    assert kept <= set(pages.values_list("id", flat=True))
    assert list(pages.order_by("id").values_list("page_number", flat=True)) == [*range(1, 401)]


def test_an_encounter_whose_batches_have_all_succeeded_is_published_without_a_call(
    start: Start, emulator: Emulator, tmp_path: Path
) -> None:
    received = submitted(tmp_path, SLOW_PAGE // 2, pages=2)
    pool = start()
    until(lambda: len(batches(received, status="succeeded")) == SLOW_PAGE - 1)
    os.kill(the_horse(pool), signal.SIGKILL)
    until(lambda: not pool.horses())
    take_over_unheard(received)
    lease = claim(Step.PASS1, "between-success-and-publication")
    assert lease is not None
    succeed_without_publishing(lease, batches(received)[-1])
    before = asked(emulator, batches(received))

    take_over(received.job_id)

    assert [job.last_error for job in ended(received)] == [None]
    assert asked(emulator, batches(received)) == before
    last = batches(received)[-1]
    entities = Entity.objects.filter(healthcare_encounter_id=last.healthcare_encounter_id)
    assert {entity.page_number for entity in entities} == {SLOW_PAGE - 1, SLOW_PAGE}
    assert not astray(ShellFile.objects.get(id=received.shell_file_id))


def test_a_worker_killed_between_two_halves_loses_only_the_one_in_flight(
    start_pool: Start, module_redis: Any, tmp_path: Path
) -> None:
    module_redis.flushdb()
    received = submitted(tmp_path, 1, pages=10)
    faults: list[dict[str, Any]] = [
        {"fault": "truncated", "kind": "entities", "times": 1},
        {"fault": "slow", "kind": "entities", "page": 6, "attempt": 1, "delay_s": 60},
    ]
    with Emulator(faults=faults) as emulator:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini", GEMINI_BASE_URL=emulator.url, PASS1_BATCH_MIN_PAGES=10
        )
        until(lambda: ProviderCall.objects.filter(split="0", accepted=True).exists())
        os.kill(the_horse(pool), signal.SIGKILL)
        until(lambda: not pool.horses())

        take_over(received.job_id)
        (job,) = ended(received)
        log = emulator.log()
        pool.stop()

    (batch,) = batches(received)
    assert (job.last_error, batch.status) == (None, "succeeded")
    times = Counter(line.item_token for line in log)
    # The killed call is in the log only if its answer was due before the end of the log.
    assert [times[token_of(batch.id, name)] for name in ("", "0")] == [1, 1]
    assert times[token_of(batch.id, "1")] in {1, 2}
    assert prove_log(log).findings == []


def take_over_unheard(received: Received) -> None:
    """Return a job to the queue without a wake-up."""
    with transaction.atomic():
        take_over(received.job_id)
        transaction.get_connection().run_on_commit.clear()


def succeed_without_publishing(lease: Lease, batch: Any) -> None:
    """Commit the success of a one-page batch, and die before the publication of its encounter."""
    number = batch.page_range_start
    page = Page.objects.get(shell_file_id=lease.shell_file_id, page_number=number)
    request = entities_request(token=batch.id.hex, page=number, text=page.text)
    batch.output = (
        LocalProvider().generate(request).output.model_dump(mode="json", exclude_defaults=True)
    )
    batch.status, batch.attempt_count, batch.completed_at = "succeeded", 1, timezone.now()
    write(lease, Flush(work=Batch, items=[row_of(batch)]))


def test_a_horse_that_slept_beyond_its_lease_asks_nothing_and_writes_nothing(
    start: Start, emulator: Emulator, tmp_path: Path
) -> None:
    received = submitted(tmp_path, 8)
    pool = start(LEASE_S=80)
    until(lambda: len(batches(received, status="succeeded")) >= 2)
    orphan = the_horse(pool)
    (worker,) = (each for each in children(pool.pid) if orphan in children(each))
    until(lambda: stopped_outside_a_transaction(orphan, received))
    # A sleeping machine stops the worker too, which would end a horse that sleeps alone.
    os.kill(worker, signal.SIGSTOP)

    try:
        with a_scheduler():
            ended(received)
        before, calls = state_of(received), asked(emulator, batches(received))
        os.kill(orphan, signal.SIGCONT)
        until(lambda: "lease_lost" in pool.printed())
    finally:
        os.kill(worker, signal.SIGCONT)

    until(lambda: orphan not in pool.horses())
    assert state_of(received) == before
    # Each call takes the same time, so this answer comes after all earlier calls of the horse.
    gemini(emulator.url).generate(entities_request())
    assert asked(emulator, batches(received)) == calls
    assert_whole(received, emulator)


def test_an_orphan_whose_worker_was_killed_writes_nothing_once_its_job_is_taken(
    start: Start, emulator: Emulator, tmp_path: Path
) -> None:
    """Kill only the parent: the horse runs on with its lease until another worker has the job."""
    received = submitted(tmp_path, 8)
    pool = start("--queues", "pages", "pass05", "pass1", "--workers", "1")
    until(lambda: len(batches(received, status="succeeded")) >= 2)
    orphan = the_horse(pool)
    (worker,) = children(pool.pid)
    worker_name = job_of(received).worker_id

    os.kill(worker, signal.SIGKILL)
    assert operator_actions.jobs_reconcile().recovered == 0
    assert job_of(received).worker_id == worker_name
    gen = job_of(received).lease_gen
    take_over(received.job_id)
    written = calls_under(received, gen)

    until(lambda: "lease_lost" in pool.printed())
    until(lambda: not is_alive(orphan))
    assert_whole(received, emulator)
    assert calls_under(received, gen) == written
    (crash,) = crashes_of(job_of(received))
    assert (crash["worker_id"], crash["step"]) == (worker_name, "pass1")
    assert job_of(received).lease_gen > crash["lease_gen"]


def test_a_worker_killed_with_its_horse_is_recovered_by_the_scheduler_alone(
    start: Start, emulator: Emulator, tmp_path: Path
) -> None:
    received = submitted(tmp_path, 6)
    pool = start("--queues", "pages", "pass05", "pass1", "--workers", "1", LEASE_S=120)
    until(lambda: batches(received, status="succeeded"))
    horse, (worker,) = the_horse(pool), children(pool.pid)

    with a_scheduler():
        for pid in (worker, horse):
            os.kill(pid, signal.SIGKILL)

        assert_whole(received, emulator)
    (crash,) = crashes_of(job_of(received))
    assert crash["step"] == "pass1"
    assert (job_of(received).crash_count, job_of(received).retry_count) == (0, 0)


def test_a_horse_that_dies_three_times_in_a_step_leaves_a_dead_letter_at_once(
    start: Start, emulator: Emulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worker reports the death of its horse, so that the job need not wait for its lease."""
    received = submitted(tmp_path, SLOW_PAGE)
    pool = start()
    with a_scheduler():
        for crash in (1, 2, 3):
            until(lambda: job_of(received).current_step == "pass1")
            until(lambda: job_of(received).status == "processing" and pool.horses())
            os.kill(the_horse(pool), signal.SIGKILL)
            until(partial(has_crashed, received, crash))
        (job,) = ended(received)

    assert (job.status, job.error_code, job.crash_count) == ("dead", "WORKER_LOST", 3)
    assert job.error_details is not None
    assert [each["step"] for each in crashes_of(job)] == ["pass1"] * 3
    assert ShellFile.objects.get(id=received.shell_file_id).status == "pass05_complete"
    call_command("explain", str(job.id))
    said = capsys.readouterr().out
    assert "is dead: the process that ran this step was lost 3 times" in said
    assert said.count("was lost in Pass 1 at") == 3
    record_entities = Entity.objects.filter(shell_file_id=received.shell_file_id)
    published = Encounter.objects.filter(
        shell_file_id=received.shell_file_id, entities_published_at__isnull=False
    )
    assert set(record_entities.values_list("healthcare_encounter_id", flat=True)) <= set(
        published.values_list("id", flat=True)
    )


def test_a_worker_that_cannot_renew_its_lease_in_time_stops_and_writes_nothing_more(
    start: Start, emulator: Emulator, tmp_path: Path
) -> None:
    received = submitted(tmp_path, SLOW_PAGE - 2)
    pool = start("--queues", "pages", "pass05", "pass1", "--workers", "1", LEASE_S=80)
    until(lambda: batches(received, status="succeeded"))

    with no_connections():
        until(lambda: "lease_lost" in pool.printed())
        until(lambda: not pool.horses())

    assert job_of(received).status == "processing"
    # Answers arrived while the process could not write, and no answer was written afterwards.
    answered = sum(asked(emulator, batches(received)).values())
    assert len(calls_under(received, job_of(received).lease_gen)) < answered
    # Its worker is alive, so the worker requeues the step, and no crash is counted.
    until(lambda: job_of(received).status == "pending")
    # The reconciler sends the wake-up, but not right after the row has changed.
    with a_scheduler():
        assert_whole(received, emulator)
    assert (job_of(received).retry_count, job_of(received).crash_count) == (0, 0)


def has_crashed(received: Received, times: int) -> bool:
    return bool(job_of(received).crash_count == times)


@contextmanager
def a_scheduler() -> Iterator[subprocess.Popen[bytes]]:
    """Run the real scheduler on the module's database."""
    scheduler = subprocess.Popen(
        [sys.executable, "manage.py", "rqcron"], cwd=PROJECT_ROOT, stderr=subprocess.DEVNULL
    )
    try:
        yield scheduler
    finally:
        scheduler.terminate()
        assert scheduler.wait(timeout=180) == 0


def calls_under(received: Received, gen: int) -> list[Any]:
    """Return the calls recorded under a lease."""
    rows = ProviderCall.objects.filter(
        processing_session__shell_file_id=received.shell_file_id, lease_gen=gen
    )
    return list(rows.order_by("id").values_list("id", "outcome"))


def stopped_outside_a_transaction(horse: int, received: Received) -> bool:
    """Stop a process while it holds no lock, as a sleeping machine usually does."""
    os.kill(horse, signal.SIGSTOP)
    try:
        with transaction.atomic():
            Job.objects.select_for_update(nowait=True).get(id=received.job_id)
            return True
    except OperationalError:
        os.kill(horse, signal.SIGCONT)
        return False


def state_of(received: Received) -> list[Any]:
    """Return the current state of all rows that a step of Pass 1 writes."""
    found: list[Any] = []
    with connection.cursor() as cursor:
        for table in (
            "job_queue",
            "pass1_batch_results",
            "pass1_encounter_results",
            "pass1_entity_detections",
            "pass1_entity_metrics",
            "provider_calls",
            "ai_processing_sessions",
            "ai_processing_summary",
            "shell_files",
        ):
            cursor.execute(f"SELECT to_jsonb(t) FROM {table} t ORDER BY t.id")  # noqa: S608
            found += cursor.fetchall()
    return found
