"""Records go through a bucket as through the folder, and a bucket that refuses loses nothing."""

from __future__ import annotations

import io
import json
import os
import resource
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from io import StringIO
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from observability.audit import chain
from observability.permissions import Role
from pipeline.core.errors import ErrorCode
from pipeline.core.server_faults import FAULTS, FileStoreError, ServerFault
from pipeline.core.states import JobStatus, Step
from pipeline.documents import scratch, storage
from pipeline.documents.bucket import BucketStorage
from pipeline.models import Entity, Job, Page, ShellFile
from pipeline.operations import server_check, stored_files
from pipeline.operations.backup import restoring
from pipeline.operations.backup.making import make_backup
from pipeline.operations.backup.manifest import listed_files
from pipeline.operations.backup.rehearsal import rehearse_restore
from pipeline.queueing.queues import StepEntry, entry_id, push
from pipeline.stages.intake import Received
from pipeline.workers.run_step import run_step
from tests.support import records
from tests.support.api_clients import a_program
from tests.support.buckets import NAME, Bucket, bucket_server
from tests.support.databases import as_owner
from tests.support.short_records import short_pdf, short_record
from tests.support.workers import WorkerCommand, until

# Moto's server is a thread of this process, which one test forks.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
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


def test_a_disk_without_room_for_a_copy_of_a_file_is_named(
    bucket: Bucket, cloned_db: str, tmp_path: Path
) -> None:
    content = short_pdf(1) + os.urandom(3 << 20)
    path = tmp_path / "record.pdf"
    path.write_bytes(content)
    received = records.submit(path)
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, room[1]))
    try:
        run_step(Step.PAGES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)

    assert Job.objects.get(id=received.job_id).error_code == ErrorCode.STORAGE_FULL
    assert copies() == []


def test_a_role_that_answers_late_is_used_without_a_restart(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with bucket.used(STORAGE_KEY_ID=None, STORAGE_SECRET_KEY=None):
        storage.warm()
        with pytest.raises(FileStoreError) as refused:
            storage.store(io.BytesIO(b"of a patient"))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.environment["STORAGE_KEY_ID"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.environment["STORAGE_SECRET_KEY"])
        stored = storage.store(io.BytesIO(b"of a patient"))

    assert refused.value.fault == ServerFault.STORAGE_LOGIN
    assert bucket.objects() == [stored.key]


def test_a_bucket_that_hangs_holds_one_thread_of_all_that_ask_for_faults(
    bucket: Bucket, cloned_db: str, redis_db: redis.Redis
) -> None:
    cache.clear()
    assert server_check.recent_server_faults() == ()
    cache.delete("server-faults")
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as pool:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with bucket.used(STORAGE_ENDPOINT_URL=url):
            asking = pool.submit(server_check.recent_server_faults)
            silent.settimeout(60)
            client, _ = silent.accept()
            found, is_asking = server_check.recent_server_faults(), not asking.done()
            client.close()
            late = asking.result()

    assert (found, is_asking) == ((), True)
    assert late == (ServerFault.STORAGE_AWAY,) == server_check.recent_server_faults()


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
    settings.TIME_SCALE = 1.0
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


def test_a_killed_step_leaves_no_copy_of_a_file_and_no_copy_in_use_is_deleted(
    bucket: Bucket,
    cloned_db: str,
    redis_db: redis.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start_worker: Callable[..., WorkerCommand],
) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")
    record = short_record(tmp_path / "record.pdf", 1)
    received = records.submit(record)
    push("pages", entry_id(received.job_id, "pages", 0))

    with scratch.new_copy() as used, scratch.new_copy() as empty:
        used.write(b"of another patient")
        used.flush()
        worker = start_worker("die_with_a_copy", "rqworker", "pages", settings=bucket.settings())
        (copied,) = worker.wait_for("copied")
        until(lambda: not Path(copied["path"]).exists())
        assert {path.name for path in copies()} == {Path(used.name).name, Path(empty.name).name}

    assert copied["size"] == record.stat().st_size
    assert copies() == []
    # After a crash of the host, the next start deletes the copy.
    Path(settings.FILE_UPLOAD_TEMP_DIR, "medproc-left").write_bytes(b"of a patient")
    assert scratch.delete_abandoned_copies() == 1


def test_process_names_the_refusal_once_and_tries_no_further_file(
    bucket: Bucket, cloned_db: str, tmp_path: Path
) -> None:
    files = [short_record(tmp_path / f"{name}.pdf", 1) for name in ("a", "b")]
    out, err = StringIO(), StringIO()

    with bucket.used(STORAGE_KEY_ID="unknown"), pytest.raises(SystemExit) as ended:
        call_command("process", *map(str, files), no_wait=True, json=True, stdout=out, stderr=err)

    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert ended.value.code == 1
    assert [each["error_code"] for each in found] == ["STORAGE_REFUSED", "STORAGE_LOGIN"]
    assert err.getvalue().count("(STORAGE_LOGIN)") == 1
    assert (ShellFile.objects.count(), bucket.objects()) == (0, [])


def test_the_stated_encryption_goes_with_each_part_and_a_fork_makes_its_own_connection(
    bucket: Bucket,
) -> None:
    stated = {"STORAGE_ENCRYPTION": "aws:kms", "STORAGE_KMS_KEY_ID": "alias/records"}
    with bucket.used(**stated):
        keys = [storage.store(io.BytesIO(bytes(size))).key for size in (1, 20 << 20)]
        read, write = os.pipe()
        mine = cast(BucketStorage, default_storage).connection
        if (child := os.fork()) == 0:
            other = cast(BucketStorage, default_storage).connection
            os.write(write, b"shared" if other is mine else b"own")
            os._exit(0)
        os.waitpid(child, 0)

    assert os.read(read, 10) == b"own"
    found = [bucket.client.head_object(Bucket=NAME, Key=key) for key in keys]
    assert {each["ServerSideEncryption"] for each in found} == {"aws:kms"}
    assert {each["SSEKMSKeyId"] for each in found} == {"alias/records"}


@pytest.mark.xdist_group("bucket-backup")
@pytest.mark.slow(reason="a rehearsal starts servers and six commands: 15 s")
def test_a_backup_copies_from_the_bucket_and_its_rehearsal_leaves_the_bucket_alone(
    bucket: Bucket,
    cloned_db: str,
    redis_db: redis.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = short_record(tmp_path / "record.pdf", 1)
    key = ShellFile.objects.get(id=records.submit(record).shell_file_id).storage_key
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "backups").mkdir()

    with as_owner():
        made, _ = make_backup(tmp_path / "backups", chain.head)
    bucket.client.delete_object(Bucket=NAME, Key=key)
    rehearse_restore(made)

    copy = made / "files" / key.split("/")[1]
    assert copy.read_bytes() == record.read_bytes()
    assert bucket.objects() == []
    # A restore that was killed has left a part of the file.
    bucket.client.put_object(Bucket=NAME, Key=key, Body=b"%PDF")
    (stored,) = listed_files(made)
    restoring._put(made, stored)
    assert bucket.content(key) == record.read_bytes()
