"""The lease of a step is renewed while a reader takes long, and a lost lease stops the work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection

from medproc.timing import scaled
from pipeline.core.errors import CallError, LeaseLostError
from pipeline.core.server_faults import ServerFault, line_of
from pipeline.core.states import JobStatus, Step
from pipeline.execution.fanout import CancelEvent
from pipeline.execution.heartbeat import POLL_S, Heartbeat, call_with_lease, with_lease
from pipeline.models import Job
from pipeline.transitions import Lease, claim
from tests.support.databases import as_owner
from tests.support.rows import a_deadline, a_job


def a_lease() -> Lease:
    a_job(step=Step.PAGES)
    lease = claim(Step.PAGES, "w")
    assert lease is not None
    return lease


@pytest.mark.usefixtures("cloned_db")
def test_the_lease_is_renewed_while_one_result_takes_long() -> None:
    lease = a_lease()
    claimed_at = Job.objects.get(id=lease.job_id).heartbeat_at

    def until_renewed() -> Iterator[bool]:
        try:
            while not Job.objects.filter(id=lease.job_id, heartbeat_at__gt=claimed_at).exists():
                connection.close()
            yield True
        finally:
            connection.close()

    assert list(with_lease(lease, a_deadline(), until_renewed)) == [True]


@pytest.mark.django_db
def test_an_exception_of_the_source_is_raised_in_the_caller() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(with_lease(a_lease(), a_deadline(), broken))


@pytest.mark.django_db
def test_closing_early_closes_the_source() -> None:
    closed = Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    stream = with_lease(a_lease(), a_deadline(), endless)
    next(stream)

    stream.close()

    assert closed.wait(timeout=60)


@pytest.mark.django_db
def test_a_lost_lease_ends_the_wait() -> None:
    lease = a_lease()
    Job.objects.filter(id=lease.job_id).update(status=JobStatus.PENDING, worker_id=None)
    given_up = Event()

    def slow() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            given_up.set()

    with pytest.raises(LeaseLostError):
        for _ in with_lease(lease, a_deadline(), slow):
            pass

    assert given_up.wait(timeout=60)


@pytest.mark.django_db
def test_a_call_gives_what_its_work_gives() -> None:
    assert call_with_lease(a_lease(), a_deadline(), lambda: 42) == 42


@pytest.mark.usefixtures("cloned_db")
def test_a_refused_heartbeat_is_logged_once_under_its_own_name_and_its_success_too(
    caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.HEARTBEAT_S = 1.0
    lease = a_lease()
    heartbeat = Heartbeat(lease, a_deadline())
    # PostgreSQL refuses the heartbeats of this job, and nothing else.
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;"
            " CREATE TRIGGER refuse BEFORE UPDATE OF heartbeat_at ON job_queue"
            " FOR EACH ROW EXECUTE FUNCTION refuse()"
        )

    until = time.monotonic() + 20 * scaled(settings.HEARTBEAT_S)
    while time.monotonic() < until:
        heartbeat.renew_when_due()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER refuse ON job_queue")
    heartbeat.renew()
    heartbeat.renew()

    full = line_of(ServerFault.POSTGRES_DISK_FULL)
    assert [record.getMessage() for record in caplog.records] == [
        f"PostgreSQL refused the heartbeat; results wait in memory: {full}",
        "PostgreSQL accepts the heartbeat again",
    ]


@pytest.mark.django_db
def test_a_call_is_not_sent_once_the_lease_has_run_out_and_the_step_ends(settings: Any) -> None:
    settings.LEASE_S = -1
    heartbeat, unwanted = Heartbeat(a_lease(), a_deadline()), CancelEvent()
    unwanted.set()

    with pytest.raises(CallError, match="the step ended before the call was sent"):
        heartbeat.await_lease(unwanted)


@pytest.mark.django_db
def test_a_call_is_sent_after_an_overdue_lease_was_renewed(settings: Any) -> None:
    settings.LEASE_S = -1
    heartbeat, sent = Heartbeat(a_lease(), a_deadline()), Event()

    def send() -> None:
        heartbeat.await_lease(CancelEvent())
        sent.set()

    thread = Thread(target=send)
    thread.start()
    assert not sent.wait(3 * POLL_S)
    settings.LEASE_S = 60
    thread.join(60)

    assert sent.is_set()
