"""Single flight: one record of a file extracts, the others wait, and none waits without end."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
import redis
from django.db import connections
from django.test import override_settings

from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, Step
from pipeline.execution.reuse.conditions import conditions_of
from pipeline.models import ExtractionFlight, Job, Pause, ProviderCall, ShellFile
from pipeline.models.fields import ClockTimestamp
from pipeline.operations import operator_actions
from pipeline.operations.job_actions import job_cancel
from pipeline.queueing.queues import queue_depths
from pipeline.stages.intake import Received
from pipeline.transitions import (
    Failure,
    Lease,
    Parking,
    board,
    claim,
    confirm_wait,
    fail_step,
    fenced,
    park,
    requeue_interrupted,
)
from pipeline.transitions.flights import OVERTAKEN_S
from pipeline.transitions.rollup import Leaving, settle
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

pytestmark = pytest.mark.usefixtures("cloned_db", "redis_db")
RACERS = 8


def submitted(folder: Path, count: int, **options: object) -> list[Received]:
    path = folder / "record.pdf"
    if not path.exists():
        # A second PDF would carry another time of creation, so it would have other bytes.
        short_record(path, 2)
    return [records.submit(path, owner="cli", **options) for _ in range(count)]


def claimed(name: str) -> Lease:
    lease = claim(Step.PAGES, name)
    assert lease is not None
    return lease


def boarded(lease: Lease) -> Parking | None:
    with fenced(lease):
        return board(lease, conditions_of(lease.step).as_columns())


def parked(lease: Lease, parking: Parking) -> None:
    with fenced(lease):
        park(lease, parking)


def ended(lease: Lease) -> None:
    with fenced(lease):
        fail_step(lease, Failure(code=ErrorCode.INTERNAL_ERROR, message="a test"))
        settle([Leaving.by(lease, "failed", has_ended=True)])


def status_of(lease: Lease) -> str:
    return str(Job.objects.values_list("status", flat=True).get(id=lease.job_id))


def test_the_second_record_waits_and_takes_over_when_the_first_fails(tmp_path: Path) -> None:
    submitted(tmp_path, 2)
    first, second = claimed("a"), claimed("b")

    assert boarded(first) is None
    waiting = boarded(second)
    assert waiting is not None
    assert waiting.behind == first.job_id
    assert boarded(first) is None, "the leader never waits"
    parked(second, waiting)
    ended(first)

    assert status_of(second) == JobStatus.PENDING
    assert not ExtractionFlight.objects.exists()
    again = claimed("b")
    assert again.job_id == second.job_id
    assert boarded(again) is None


def test_a_cancelled_leader_wakes_the_record_that_waits_behind_it(
    tmp_path: Path, redis_db: redis.Redis
) -> None:
    submitted(tmp_path, 2)
    first, second = claimed("a"), claimed("b")
    boarded(first)
    waiting = boarded(second)
    assert waiting is not None
    parked(second, waiting)
    with fenced(first):
        requeue_interrupted(first)
    redis_db.flushdb()

    job_cancel(first.job_id, reason="a test")

    assert status_of(second) == JobStatus.PENDING
    assert queue_depths()["pages"] == 1


def test_a_leader_that_ends_before_the_other_has_parked_strands_no_record(tmp_path: Path) -> None:
    submitted(tmp_path, 2)
    first, second = claimed("a"), claimed("b")
    boarded(first)
    waiting = boarded(second)
    assert waiting is not None
    assert waiting.behind is not None
    ended(first)

    with fenced(second):
        park(second, waiting)
        due = confirm_wait(second, waiting.behind)

    assert [each.job_id for each in due] == [second.job_id]
    assert status_of(second) == JobStatus.PENDING


def test_a_cancelled_leader_releases_the_others(tmp_path: Path) -> None:
    first, second = submitted(tmp_path, 2)
    boarded(claimed("a"))
    lease = claimed("b")
    waiting = boarded(lease)
    assert waiting is not None
    parked(lease, waiting)
    Job.objects.filter(id=first.job_id).update(lease_expires_at=ClockTimestamp())

    operator_actions.job_cancel(first.job_id)

    assert Job.objects.get(id=second.job_id).status == JobStatus.PENDING


def test_a_leader_that_waits_for_long_is_overtaken_and_then_waits_itself(tmp_path: Path) -> None:
    submitted(tmp_path, 2)
    first, second = claimed("a"), claimed("b")
    boarded(first)
    parked(first, Parking(reason="queue pass05 is paused", until=None, pause_id=_paused()))
    assert boarded(second) is not None

    ExtractionFlight.objects.update(
        renewed_at=ClockTimestamp() - timedelta(seconds=OVERTAKEN_S + 1)
    )
    assert boarded(second) is None

    operator_actions.job_release([first.job_id])
    again = claimed("a")
    waiting = boarded(again)
    assert waiting is not None
    assert waiting.behind == second.job_id


def test_a_leader_that_runs_for_long_is_not_overtaken(tmp_path: Path) -> None:
    submitted(tmp_path, 2)
    first, second = claimed("a"), claimed("b")
    boarded(first)
    ExtractionFlight.objects.update(
        renewed_at=ClockTimestamp() - timedelta(seconds=OVERTAKEN_S + 1)
    )

    assert boarded(second) is not None


def test_forced_records_never_wait(tmp_path: Path) -> None:
    submitted(tmp_path, 1)
    submitted(tmp_path, 2, is_forced=True)

    assert [boarded(claimed(name)) for name in "abc"] == [None] * 3
    assert ExtractionFlight.objects.count() == 1


def test_records_of_other_owners_and_without_an_owner_never_wait(tmp_path: Path) -> None:
    path = short_record(tmp_path / "record.pdf", 2)
    for owner in ("cli", "user:1", "user:2", "", ""):
        records.submit(path, owner=owner)

    assert [boarded(claimed(str(name))) for name in range(5)] == [None] * 5


def test_of_records_that_board_at_once_exactly_one_leads(tmp_path: Path) -> None:
    submitted(tmp_path, RACERS)
    leases = [claimed(str(number)) for number in range(RACERS)]
    together = threading.Barrier(RACERS)
    outcomes: list[Parking | None] = []

    def race(lease: Lease) -> None:
        try:
            together.wait(120)
            outcomes.append(boarded(lease))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)

    assert len(outcomes) == RACERS
    assert outcomes.count(None) == 1
    leader = ExtractionFlight.objects.get().job_id
    assert {parking.behind for parking in outcomes if parking} == {leader}


def test_records_whose_source_lacks_a_reply_ask_once(tmp_path: Path) -> None:
    jane, john = tmp_path / "jane.pdf", tmp_path / "john.pdf"
    short_record(jane, 2, patient="Wrenfield, Odalys M.")
    short_record(john, 2, patient="Quarrington, Thaddeus B.")
    records.completed_record(john, owner="cli", patient_reference="ref-john")
    # The pages name another patient and are held, so Pass 1 completes without a reply.
    records.completed_record(jane, owner="cli", patient_reference="ref-john")
    before = ProviderCall.objects.count()
    first, second = (records.submit(jane, owner="cli") for _ in range(2))
    for step in ("pages", "pages", "pass05", "pass05"):
        run_step.run_step(step)
    leader = claim(Step.PASS1, "a")
    assert leader is not None
    with fenced(leader):
        conditions = conditions_of(Step.PASS1).as_columns()
        assert board(leader, conditions) is None, "the pass of the source is complete"
        assert board(leader, conditions, lacks_replies=True) is None
    run_step.run_step("pass1")
    waiting = Job.objects.exclude(id=leader.job_id).get(status=JobStatus.PARKED)

    assert ProviderCall.objects.count() == before
    assert "is extracted first" in str(waiting.park_reason)
    with override_settings(LEASE_S=records.PATIENCE_S):
        Job.objects.filter(id=leader.job_id).update(lease_expires_at=ClockTimestamp())
        operator_actions.jobs_reconcile()
    for _ in range(4):
        for received in (first, second):
            records.run_record(received)

    ids = {first.job_id, second.job_id}
    assert set(Job.objects.filter(id__in=ids).values_list("status", flat=True)) == {"completed"}
    callers = ProviderCall.objects.filter(
        processing_session__shell_file__in=(first.shell_file_id, second.shell_file_id)
    )
    assert set(callers.values_list("processing_session__shell_file_id", flat=True)) == {
        leader.shell_file_id
    }


def test_a_waiting_record_costs_no_attempt_and_then_reuses(tmp_path: Path) -> None:
    first, second = submitted(tmp_path, 2)
    leader = claimed("a")
    run_step.run_step("pages")

    job = Job.objects.get(id=second.job_id)
    assert boarded(leader) is None or leader.job_id == second.job_id
    with override_settings(LEASE_S=records.PATIENCE_S):
        Job.objects.filter(id=leader.job_id).update(lease_expires_at=ClockTimestamp())
        operator_actions.jobs_reconcile()
    for _ in range(8):
        for received in (first, second):
            records.run_record(received)

    for received in (first, second):
        assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    job.refresh_from_db()
    assert job.retry_count == 0
    callers = ProviderCall.objects.values_list("processing_session__shell_file_id", flat=True)
    assert len(set(callers)) == 1
    assert ShellFile.objects.filter(reuses__isnull=False).distinct().count() == 1


def _paused() -> UUID:
    operator_actions.queue_pause(Step.PASS05, reason="a test")
    pause: UUID = Pause.objects.get().id
    return pause
