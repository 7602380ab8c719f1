"""Intake handles two submissions at once and odd names, and leaves nothing behind."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db import DatabaseError, DataError, OperationalError, connections

from observability.uploads.submit import Form, UploadResult, take_in
from pipeline.documents import storage
from pipeline.models import Job, Patient, ShellFile
from pipeline.operations.operator_actions import record_submit
from pipeline.queueing.queues import queue_depths
from pipeline.stages import intake
from pipeline.stages.intake import Received, Submission
from tests.support import records
from tests.support.audit_rows import audit_events


def stored_files() -> set[str]:
    try:
        return set(default_storage.listdir("records")[1])
    except FileNotFoundError:
        return set()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_two_submissions_with_one_key_at_once_are_one_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = stored_files()
    both_stored = threading.Barrier(2)
    real = storage.store
    received: list[Received] = []

    def store(source: object) -> storage.Stored:
        stored = real(source)  # type: ignore[arg-type]
        both_stored.wait(120)
        return stored

    def send() -> None:
        try:
            received.append(
                record_submit(Submission(path=records.LAB, idempotency_key="k", filename="a.pdf"))
            )
        finally:
            connections.close_all()

    monkeypatch.setattr(storage, "store", store)
    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)

    assert len({each.shell_file_id for each in received}) == 1
    assert len(received) == 2
    assert ShellFile.objects.count() == Job.objects.count() == 1
    assert len(stored_files() - before) == 1


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_of_20_racing_posts_of_one_form_one_is_audited_as_the_first() -> None:
    user = User.objects.create_user("ada")
    form = Form(token=uuid4(), patient="", priority=0, batch_id=None)
    start = threading.Barrier(20)
    done: list[UploadResult] = []

    def post() -> None:
        try:
            with TemporaryUploadedFile("a.pdf", "application/pdf", 0, None) as file:
                file.write(records.LAB.read_bytes())
                file.flush()
                start.wait(120)
                done.append(take_in(file, form, actor=user, ip_address=None))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=post) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)

    audited = [event.facts["repeated"] for event in audit_events().filter(action="upload")]
    assert sorted(audited) == [False] + [True] * 19
    assert sorted(each.is_repeated for each in done) == [False] + [True] * 19
    assert ShellFile.objects.count() == 1


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_repeated_submission_sends_no_wake_up_for_a_running_or_ended_job() -> None:
    first = records.submit(records.LAB, idempotency_key="k")
    Job.objects.update(status="completed")
    depths = queue_depths()

    second = records.submit(records.LAB, idempotency_key="k")

    assert second.shell_file_id == first.shell_file_id
    assert queue_depths() == depths


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_two_first_records_of_one_reference_at_once_are_one_patient() -> None:
    start = threading.Barrier(2)

    def send() -> None:
        start.wait(120)
        try:
            records.submit(records.LAB, patient_reference="ref-1")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)

    assert ShellFile.objects.count() == 2
    assert Patient.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(("error", "kept"), [(DataError, 0), (OperationalError, 1)])
def test_bytes_are_kept_only_where_a_row_may_name_them(
    monkeypatch: pytest.MonkeyPatch, error: type[DatabaseError], kept: int
) -> None:
    before = stored_files()

    def refused(reference: str | None) -> Patient:
        raise error("refused")

    monkeypatch.setattr(intake, "_patient", refused)
    with pytest.raises(error):
        record_submit(Submission(path=records.LAB))

    assert len(stored_files() - before) == kept


@pytest.mark.django_db
def test_names_that_the_database_would_refuse_are_taken_for_what_can_be_read() -> None:
    received = record_submit(
        Submission(
            path=records.LAB,
            filename="scan\udcff\x00.pdf",
            patient_reference=" ref\x00-2 ",
            user_agent="x\x00y",
        )
    )

    record = ShellFile.objects.get(id=received.shell_file_id)
    assert record.original_filename == "scan?.pdf"
    assert record.patient.reference == "ref-2"


@pytest.mark.django_db
@pytest.mark.parametrize("reference", ["", "  "])
def test_an_empty_reference_joins_no_patients(reference: str) -> None:
    for _ in range(2):
        record_submit(Submission(path=records.LAB, patient_reference=reference))

    assert Patient.objects.count() == 2


@pytest.mark.django_db
def test_the_same_bytes_twice_are_two_records_with_one_digest() -> None:
    for _ in range(2):
        record_submit(Submission(path=records.LAB))

    assert ShellFile.objects.count() == 2
    assert len(set(ShellFile.objects.values_list("sha256", flat=True))) == 1
    assert len(set(ShellFile.objects.values_list("storage_key", flat=True))) == 2
