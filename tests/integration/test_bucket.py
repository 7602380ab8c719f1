"""Records go through a bucket as through the folder, and a bucket that refuses loses nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from http import HTTPStatus
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from observability.permissions import Role
from pipeline.core.errors import ErrorCode
from pipeline.core.server_faults import FAULTS, FileStoreError, ServerFault
from pipeline.core.states import JobStatus, Step
from pipeline.documents import storage
from pipeline.models import Entity, Job, Page, ShellFile
from pipeline.operations import stored_files
from pipeline.stages.intake import Received
from pipeline.workers.run_step import run_step
from tests.support import records
from tests.support.api_clients import a_program
from tests.support.buckets import NAME, Bucket, bucket_server
from tests.support.databases import as_owner
from tests.support.short_records import short_pdf, short_record

SECRET = "hunter2"


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    """Start one S3 server for the tests of this module."""
    with bucket_server() as found:
        yield found


@pytest.fixture
def bucket(server: Bucket) -> Iterator[Bucket]:
    """Use an empty bucket in this process."""
    server.empty()
    with server.used():
        yield server


def a_client(role: Role) -> Client:
    user = User.objects.create_user(f"{role}-{uuid4()}", is_staff=True)
    user.groups.set(Group.objects.filter(name=role))
    client = Client()
    client.force_login(user)
    return client


def copies() -> list[Path]:
    """Return the temporary files of this process's data folder."""
    return list(Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir())


def erase(record_id: object) -> None:
    with as_owner():
        call_command(
            "erase", str(record_id), "--reason", "test_data", stdout=StringIO(), stderr=StringIO()
        )


def uploaded(client: Client, content: bytes) -> Any:
    fields = {
        "token": str(uuid4()), "patient": "", "priority": "0",
        "files": [SimpleUploadedFile("Jane-Doe.pdf", content)],
    }  # fmt: skip
    accepts = {"Accept": "application/json"}
    return client.post(reverse("admin:upload_files"), fields, headers=accepts)


def impatient(settings: Any) -> None:
    """Shorten the waits of a step to 0.1 s together, and keep its lease and its deadline long."""
    settings.TIME_SCALE = 0.002
    settings.LEASE_S = settings.STEP_DEADLINE_MIN_S = records.PATIENCE_S * 20


def run(record_id: UUID) -> ShellFile:
    """Run the steps of a record that was submitted over HTTP."""
    job = Job.objects.get(shell_file_id=record_id)
    received = Received(shell_file_id=record_id, job_id=job.id, dispatch_no=0)
    return records.run_record(received)


def test_a_record_goes_through_the_bucket_from_the_upload_to_the_erasure(
    bucket: Bucket, cloned_db: str, redis_db: redis.Redis
) -> None:
    bucket.keep_versions()
    reviewer, program = a_client(Role.REVIEWER), a_program()
    first, second = short_pdf(1), short_pdf(2)
    ids = [
        UUID(uploaded(a_client(Role.OPERATOR), first).json()["record"]),
        UUID(program.submit(second).json()["id"]),
    ]

    ran = [run(record_id) for record_id in ids]
    page = reviewer.get(reverse("admin:record_page", args=[ids[0], 1]))
    image = reviewer.get(page.context["image"])
    url = reverse("admin:record_export", args=[ids[0]])
    export: Any = reviewer.get(url, {"format": "csv"})
    exported = b"".join(export.streaming_content)

    assert [bucket.content(record.storage_key) for record in ran] == [first, second]
    assert [Page.objects.filter(shell_file_id=each).count() for each in ids] == [1, 2]
    assert all(Entity.objects.filter(shell_file_id=each).exists() for each in ids)
    assert image.content.startswith(b"\x89PNG")
    assert exported
    assert not (Path(settings.MEDPROC_DATA_DIR) / "files" / ran[0].storage_key).exists()
    assert copies() == []
    # An earlier deletion has left a version and a mark, as another program can do.
    bucket.client.delete_object(Bucket=NAME, Key=ran[0].storage_key)
    for record_id in ids:
        erase(record_id)
    assert bucket.objects() == []
    assert not ShellFile.objects.exists()


def test_a_large_file_is_stored_and_read_in_parts_and_a_killed_upload_leaves_nothing(
    bucket: Bucket, cloned_db: str
) -> None:
    content = os.urandom(40 << 20)
    stored = storage.store(io.BytesIO(content))
    with storage.local_path(stored.key) as path:
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o777 == 0o600
    assert copies() == []
    killed = bucket.client.create_multipart_upload(Bucket=NAME, Key=f"{storage.FOLDER}/{uuid4()}")
    foreign = bucket.client.create_multipart_upload(Bucket=NAME, Key="other/file")
    storage.discard(stored.key)

    stored_files.sweep(0.0)

    left = bucket.objects()
    assert (killed["Key"] in left, foreign["Key"] in left) == (False, True)
    assert [name.split("/")[0] for name in left] == ["sweep-markers", "other"]


WRONG = (
    ({"STORAGE_ENDPOINT_URL": "http://127.0.0.1:9"}, ServerFault.STORAGE_AWAY),
    ({"STORAGE_KEY_ID": SECRET}, ServerFault.STORAGE_LOGIN),
    ({"STORAGE_SECRET_KEY": SECRET}, ServerFault.STORAGE_LOGIN),
    ({"STORAGE_BUCKET": f"{NAME}-2"}, ServerFault.STORAGE_NO_BUCKET),
)


def test_a_bucket_that_refuses_is_named_everywhere_and_nothing_is_lost(
    bucket: Bucket,
    cloned_db: str,
    redis_db: redis.Redis,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    settings: Any,
) -> None:
    done = records.completed_record(short_record(tmp_path / "done.pdf", 1))
    received = records.submit(short_record(tmp_path / "record.pdf", 1))
    page = reverse("admin:page_image", args=[done.id, 1])
    operator, reviewer, program = a_client(Role.OPERATOR), a_client(Role.REVIEWER), a_program()
    before = bucket.objects()
    impatient(settings)

    for changed, fault in WRONG:
        line = f"{FAULTS[fault].message} ({fault}). {FAULTS[fault].advice}"
        with bucket.used(**changed):
            refused = uploaded(operator, short_pdf(1)).json()
            problem = program.submit(short_pdf(1))
            image = reviewer.get(page)
            run_step(Step.PAGES)
            with pytest.raises(FileStoreError):
                erase(done.id)
            with pytest.raises(FileStoreError):
                stored_files.sweep(0.0)
            with pytest.raises(SystemExit):
                call_command("health", stdout=(health := StringIO()))

        assert (refused["code"], refused["message"]) == ("STORAGE_REFUSED", line)
        assert (problem.status_code, problem.json()["code"]) == (503, "STORAGE_REFUSED")
        assert (problem.json()["detail"], problem["Retry-After"]) == (line, "30")
        assert image.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert "The file store refuses requests" in image.content.decode()
        assert f"({fault}). {FAULTS[fault].advice}" in health.getvalue()
        said = [caplog.text, health.getvalue(), str(refused), problem.content.decode()]
        assert SECRET not in "".join(said)
        assert (bucket.objects(), copies()) == (before, [])
        job = Job.objects.get(id=received.job_id)
        assert (job.status, job.current_step) == (JobStatus.PENDING, Step.PAGES)
        assert (job.retry_count, job.crash_count) == (0, 0)
    # A process says the same fault once a minute.
    assert [fault for _, fault in WRONG if f"({fault})" not in caplog.text] == []
    records.run_record(received)
    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    erase(done.id)
    assert bucket.objects() == [ShellFile.objects.get().storage_key]


def test_a_key_without_a_right_is_found_by_health_and_fails_one_file_by_name(
    bucket: Bucket, cloned_db: str, tmp_path: Path, settings: Any
) -> None:
    received = records.submit(short_record(tmp_path / "record.pdf", 1))
    impatient(settings)

    with bucket.without("s3:GetObject"):
        found, reads = storage.fault(writes=True), storage.fault()
        run_step(Step.PAGES)

    job = Job.objects.get(id=received.job_id)
    assert (found, reads) == (ServerFault.STORAGE_LOGIN, None)
    assert (job.status, job.error_code) == (JobStatus.FAILED, ErrorCode.STORAGE_REFUSED)
    assert [name.split("/")[0] for name in bucket.objects()] == ["records"]


def test_a_bucket_that_vanishes_is_not_taken_for_a_missing_file(bucket: Bucket) -> None:
    with bucket.used(STORAGE_BUCKET=f"{NAME}-2"):
        for ask in ("exists", "size", "open", "delete", "get_modified_time", "listdir"):
            with pytest.raises(FileStoreError) as refused:
                getattr(default_storage, ask)("records/x")
            assert refused.value.fault is ServerFault.STORAGE_NO_BUCKET
            assert refused.value.__suppress_context__
    assert not default_storage.exists("records/x")
    with pytest.raises(FileNotFoundError):
        default_storage.open("records/x")
