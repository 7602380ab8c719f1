"""A submission and the erasure of its patient's last record meet: one of them waits."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, connections

from pipeline.core.states import JobStatus
from pipeline.models import Job, Patient, ShellFile
from pipeline.operations.retention.erase import Erased, erase_record
from pipeline.stages.intake import Received
from tests.support import records
from tests.support.databases import as_owner
from tests.support.short_records import short_record
from tests.support.workers import until

pytestmark = pytest.mark.usefixtures("cloned_db", "redis_db")
REFERENCE = "ref-7"


def waiting_for_a_lock() -> bool:
    # The role of the service sees no activity of other sessions.
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        return bool(cursor.fetchone()[0])


def test_a_submission_for_a_patient_who_is_being_erased_makes_the_patient_again(
    tmp_path: Path,
) -> None:
    first = records.submit(short_record(tmp_path / "a.pdf", 1), patient_reference=REFERENCE)
    Job.objects.update(status=JobStatus.CANCELLED)
    patient = Patient.objects.get().id
    about_to_commit, may_commit = threading.Event(), threading.Event()

    def audit(erased: Erased) -> None:
        assert erased.patients == 1
        about_to_commit.set()
        assert may_commit.wait(60)

    def erase() -> None:
        try:
            with as_owner():
                erase_record(first.shell_file_id, audit=audit)
        finally:
            connections.close_all()

    def submit() -> Received:
        try:
            path = short_record(tmp_path / "b.pdf", 2)
            return records.submit(path, patient_reference=REFERENCE)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        erasing = threads.submit(erase)
        assert about_to_commit.wait(60)
        submitting: Future[Received] = threads.submit(submit)
        until(lambda: submitting.done() or waiting_for_a_lock())
        assert not submitting.done(), submitting.exception()
        may_commit.set()
        erasing.result()
        second = submitting.result()

    again = ShellFile.objects.get()
    assert again.id == second.shell_file_id
    assert again.patient.reference == REFERENCE
    assert again.patient_id != patient
