"""Real workers extract one file once, and a worker that is killed during a reuse leaves no half."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections, transaction

from pipeline.core.states import JobStatus, WorkStatus
from pipeline.models import (
    Batch,
    Chunk,
    Encounter,
    Entity,
    ExtractionFlight,
    Job,
    Page,
    ProviderCall,
    Reuse,
    ReviewItem,
    ShellFile,
)
from pipeline.operations import operator_actions
from pipeline.stages.intake import Received
from tests.support import records
from tests.support.databases import as_owner
from tests.support.record_runs import ended
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-reuse"),
    pytest.mark.timeout(900),
    pytest.mark.slow(reason="twenty whole records, and workers that are killed: 60 s"),
]

UPLOADS = 20


@pytest.fixture(scope="module")
def pool(start_pool: Callable[..., WorkerCommand]) -> WorkerCommand:
    """Provide three provider workers and two workers of pages, with the local engine."""
    return start_pool(WORKER_CONCURRENCY=3, PAGES_CONCURRENCY=2)


def entities(record_id: object) -> list[tuple[Any, ...]]:
    rows = Entity.objects.filter(shell_file_id=record_id).order_by(
        "healthcare_encounter__encounter_index", "entity_index"
    )
    return list(rows.values_list("category", "name", "quote", "page_number", "char_start", "value"))


def callers() -> set[object]:
    return set(ProviderCall.objects.values_list("processing_session__shell_file_id", flat=True))


def test_twenty_uploads_at_once_extract_once(pool: WorkerCommand, tmp_path: Path) -> None:
    path = short_record(tmp_path / "record.pdf", 3)
    together = threading.Barrier(UPLOADS)
    received: list[Received] = []

    def send() -> None:
        try:
            together.wait(120)
            received.append(records.submit(path, owner="user:5"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(UPLOADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    jobs = ended(*received)

    assert [job.status for job in jobs] == [JobStatus.COMPLETED] * UPLOADS
    assert len(callers()) == 1
    ids = [each.shell_file_id for each in received]
    assert len({str(entities(each)) for each in ids}) == 1
    assert entities(ids[0])
    assert ReviewItem.objects.filter(shell_file_id__in=ids).count() == UPLOADS
    assert Reuse.objects.filter(shell_file_id__in=ids, step="pass1").count() == UPLOADS - 1
    assert not ExtractionFlight.objects.exists()
    assert {job.retry_count for job in jobs} == {0}


@contextmanager
def held(*statements: str) -> Iterator[None]:
    """Run statements on a connection of their own, and keep their locks."""
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with as_owner(), transaction.atomic(), connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                ready.set()
                done.wait(300)
        finally:
            connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    assert ready.wait(60)
    try:
        yield
    finally:
        done.set()
        holder.join(60)


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Let every statement that can insert into a table wait, even without a row to insert."""
    with held(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"):
        yield


@contextmanager
def guarded(table: str) -> Iterator[None]:
    """Let every inserted row of a table wait."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER waits BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION waits()"
        )
    try:
        with held("SELECT pg_advisory_xact_lock(4711)"):
            yield
    finally:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION waits CASCADE")


def blocked_backends() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()"
        )
        return [pid for (pid,) in cursor.fetchall()]


def kill_the_horse(pool: WorkerCommand) -> None:
    """Kill the horse that waits in a transaction, and let the server notice the death at once."""
    until(blocked_backends, 90)
    for horse in pool.horses():
        os.kill(horse, signal.SIGKILL)
    with as_owner(), connection.cursor() as cursor:
        for pid in blocked_backends():
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def state(record_id: object) -> dict[str, int]:
    """Return the rows of a record that a reuse writes."""
    return {
        "pages": Page.objects.filter(shell_file_id=record_id).count(),
        "reuses": Reuse.objects.filter(shell_file_id=record_id).count(),
        "chunks": Chunk.objects.filter(
            discovery_session__shell_file_id=record_id, status=WorkStatus.SUCCEEDED
        ).count(),
        "encounters": Encounter.objects.filter(shell_file_id=record_id).count(),
        "batches": Batch.objects.filter(
            pass1_encounter_result__shell_file_id=record_id, status=WorkStatus.SUCCEEDED
        ).count(),
        "entities": Entity.objects.filter(shell_file_id=record_id).count(),
    }


PLACES: dict[str, tuple[Callable[[str], AbstractContextManager[None]], str, set[str]]] = {
    "the copy of the pages": (guarded, "shell_file_pages", set()),
    "the publication of the encounters": (guarded, "healthcare_encounters", {"pages", "chunks"}),
    "the replies of the batches": (
        locked,
        "pass1_entity_detections",
        {"pages", "chunks", "encounters"},
    ),
    "the publication of the entities": (
        guarded,
        "pass1_entity_detections",
        {"pages", "chunks", "encounters", "batches"},
    ),
}
"""Where the worker dies → what blocks it there, and what earlier transactions have committed."""


@pytest.mark.parametrize("place", PLACES)
def test_a_kill_during_a_reuse_leaves_everything_or_nothing(
    pool: WorkerCommand, tmp_path: Path, place: str
) -> None:
    block, table, before = PLACES[place]
    path = short_record(tmp_path / "record.pdf", 4)
    first = records.submit(path, owner="cli")
    ended(first)
    whole = state(first.shell_file_id)
    calls = ProviderCall.objects.count()

    with block(table):
        second = records.submit(path, owner="cli")
        kill_the_horse(pool)
        until(lambda: not blocked_backends(), 90)
        left = state(second.shell_file_id)
    for name in ("pages", "chunks", "encounters", "batches", "entities"):
        assert left[name] == (whole[name] if name in before else 0), name

    # The worker expires the lease of its dead horse; the reconciler takes the job then.
    def recovered() -> bool:
        operator_actions.jobs_reconcile()
        return bool(Job.objects.filter(id=second.job_id, status=JobStatus.COMPLETED).exists())

    until(recovered, 90)
    assert ProviderCall.objects.count() == calls
    assert entities(second.shell_file_id) == entities(first.shell_file_id)
    assert {**state(second.shell_file_id), "reuses": 0} == whole
    assert ShellFile.objects.filter(id=second.shell_file_id, reuses__source=first.shell_file_id)
