"""After `erase` nothing of a record is left, and nothing of another record is touched."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from pytest_django import Settings

from medproc.embedded import Places
from medproc.embedded.places import APPLICATION, OWNER
from medproc.env import PROJECT_ROOT
from observability.audit.chain import verify
from observability.models import AuditEvent
from pipeline.codes.search.meaning import digest_of, text_of
from pipeline.core.states import JobStatus
from pipeline.documents import storage
from pipeline.models import (
    CodeVector,
    Encounter,
    Entity,
    Job,
    KeptReply,
    Patient,
    Reuse,
    ReviewItem,
    ShellFile,
)
from pipeline.models.code_index import EMBEDDING_DIMENSIONS
from pipeline.queueing.queues import push
from tests.support import canaries, records
from tests.support.databases import as_owner
from tests.support.review_rows import claimed, entities_of, says
from tests.support.rows import a_job
from tests.support.short_records import short_pdf, short_record
from tests.support.workers import until

REASON = ("--reason", "patient_request")


def erase(*arguments: object, reason: tuple[str, ...] = REASON) -> str:
    out = StringIO()
    with as_owner():
        call_command("erase", *map(str, arguments), *reason, stdout=out, stderr=out)
    return out.getvalue()


def refused(*arguments: object, reason: tuple[str, ...] = REASON) -> str:
    with pytest.raises(CommandError) as error:
        erase(*arguments, reason=reason)
    assert "\n" not in str(error.value)
    return str(error.value)


@contextmanager
def all_passes() -> Iterator[None]:
    with override_settings(SKIPPED_PASSES=()):
        yield


def a_record(more: str = "") -> ShellFile:
    """Insert a record whose job has ended, with a stored file."""
    key = storage.store(io.BytesIO(f"%PDF {more}".encode())).key
    job = a_job(status=JobStatus.COMPLETED, storage_key=key)
    return ShellFile.objects.get(id=job.shell_file_id)


def everywhere(places: canaries.Places, client: redis.Redis, *folders: Path) -> set[str]:
    """Return the places whose word is found anywhere."""
    words = places.values()
    found = canaries.found_in_database(words)
    found |= canaries.found_in_files(words, Path(settings.MEDPROC_DATA_DIR), *folders)
    found |= canaries.found_in_redis(words, client)
    return {place for place, word in places.items() if word in found}


def a_planted_record(
    folder: Path, exports: Path, client: redis.Redis
) -> tuple[ShellFile, canaries.Places]:
    """Run a record, review it, export it, and plant words in all places."""
    places = {
        place: canaries.word()
        for place in ("the bytes", "the file name", "the reference", "the page", "the correction")
    }
    path = folder / f"{places['the file name']}.pdf"
    path.write_bytes(
        short_pdf(1, more=(f"Note {places['the page']}",)) + f"%{places['the bytes']}".encode()
    )
    with all_passes():
        record = records.completed_record(
            path, owner="cli", patient_reference=places["the reference"]
        )
    path.unlink()
    item = claimed(ReviewItem.objects.get(shell_file=record))
    says(item, entities_of(item)[0], "correct", name=places["the correction"])
    for form in ("pair", "fhir", "html", "csv"):
        call_command("export", record.id, "--format", form, "--output", exports, stdout=StringIO())
    places |= canaries.plant(record.id)
    vector = CodeVector.objects.create(
        model="m",
        digest=digest_of(text_of(places["the name of an entity"])),
        vector=[0.0] * EMBEDDING_DIMENSIONS,
    )
    job = Job.objects.get(shell_file=record)
    # A wake-up that no worker has taken.
    push("pass1", f"{job.id}-pass1-7")
    # Its place in the line of the rate limiter.
    client.zadd("medproc:gate:{gemini:m}:served", {str(job.id): 1.0})
    client.hset("medproc:gate:{gemini:m}:line-until", str(job.id), 1.0)
    return record, {
        **places,
        "the id of the job": str(job.id),
        "the vector of a name": vector.digest,
    }


def test_after_an_erasure_no_word_of_the_record_is_found_anywhere(
    cloned_db: str, redis_db: redis.Redis, tmp_path: Path
) -> None:
    exports = tmp_path / "exports"
    exports.mkdir()
    with all_passes():
        other = records.completed_record(short_record(tmp_path / "other.pdf", 1), owner="api")
    call_command("export", other.id, "--format", "csv", "--output", exports, stdout=StringIO())
    record, places = a_planted_record(tmp_path, exports, redis_db)
    ids = {str(other.id), *map(str, Encounter.objects.filter(shell_file=other).values_list("id"))}
    before = canaries.rows_of_all_tables()
    planted = everywhere(places, redis_db, exports)

    shown = erase(record.id, "--dry-run", reason=())
    unchanged = canaries.rows_of_all_tables()
    said = json.loads(erase(record.id, "--exports", exports, "--json"))

    assert len(places) >= 20
    assert planted == set(places)
    assert "would be erased" in shown
    assert unchanged == before
    assert everywhere(places, redis_db, exports) == set()
    assert canaries.found_in_database([str(record.id)]) == {str(record.id)}  # the audit
    assert (said["status"], said["files"], said["patients"]) == ("erased", 1, 1)
    assert (said["exports_deleted"], said["exports_made"]) == (6, 4)
    assert [path.name for path in exports.iterdir()] == [f"{other.id}.csv"]
    after = canaries.rows_of_all_tables()
    audit = {"audit_events", "audit_chain"}
    for table in before.keys() - audit:
        assert after[table] <= before[table], table
        assert not [row for row in before[table] - after[table] if any(i in row for i in ids)]
    assert default_storage.exists(other.storage_key)
    tombstone = AuditEvent.objects.get(action="erase")
    assert (tombstone.target_id, tombstone.reason) == (str(record.id), "patient_request")
    assert tombstone.facts["entities"] == said["entities"] > 0
    assert tombstone.facts["decisions"] == said["decisions"] > 0
    verify()


@pytest.mark.usefixtures("cloned_db")
def test_a_second_erasure_of_the_same_record_says_so_and_changes_nothing(tmp_path: Path) -> None:
    record = a_record()
    erase(record.id)
    (tmp_path / f"{record.id}.csv").write_text("left behind")
    events = AuditEvent.objects.count()

    said = erase(record.id, "--exports", tmp_path)

    assert "erased before" in said
    assert AuditEvent.objects.count() == events
    assert not (tmp_path / f"{record.id}.csv").exists()


@pytest.mark.usefixtures("cloned_db")
def test_the_exports_that_the_audit_knows_are_told_apart_from_the_files_of_exports(
    tmp_path: Path,
) -> None:
    record = a_record()
    for form in ("pair", "csv"):
        call_command(
            "export", record.id, "--format", form, "--output", tmp_path, "--allow-incomplete",
            stdout=StringIO(),
        )  # fmt: skip

    said = erase(record.id, "--exports", tmp_path)

    assert "files of exports 4" in said
    assert "the audit knows 2 exports of this record" in said


KILLED = """
import signal, sys, django
django.setup()
from pathlib import Path
from django.core.management import call_command
from pipeline.operations.retention import erase
delete, (record, marker, moment) = erase._delete_bytes, sys.argv[1:]
def stop(key):
    if moment == "after the file":
        delete(key)
    Path(marker).touch()
    signal.pause()
erase._delete_bytes = stop
call_command("erase", record, "--reason", "test_data")
"""


@pytest.mark.parametrize("moment", ["before the file", "after the file"])
def test_a_killed_erasure_is_completed_by_the_same_command(
    cloned_db: str, redis_db: redis.Redis, servers: Places, tmp_path: Path, moment: str
) -> None:
    places = {"the bytes": canaries.word()}
    record = a_record(places["the bytes"])
    marker = tmp_path / "reached"
    owner = cloned_db.replace(APPLICATION, OWNER)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(record.id), str(marker), moment],
        cwd=PROJECT_ROOT,
        env=os.environ
        | {"DJANGO_SETTINGS_MODULE": "medproc.settings", "DATABASE_OWNER_URL": owner},
    )
    until(marker.exists)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = ShellFile.objects.filter(id=record.id).exists()
    has_file = default_storage.exists(record.storage_key)

    said = erase(record.id)

    assert (kept, has_file) == (True, moment == "before the file")
    assert ": erased: " in said
    assert everywhere(places, redis_db) == set()
    assert not ShellFile.objects.exists()
    assert AuditEvent.objects.filter(action="erase").count() == 1
    verify()


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["pending", "processing"])
def test_a_record_whose_job_has_not_ended_is_refused_and_audited(status: str) -> None:
    lease: dict[str, Any] = {"lease_expires_at": timezone.now(), "worker_id": "w"}
    job = a_job(status=JobStatus(status), **(lease if status == "processing" else {}))
    ended = a_job(status=JobStatus.COMPLETED)

    said = refused(ended.shell_file_id, job.shell_file_id)

    assert "STATE_CONFLICT" in said
    assert "add --cancel" in said
    assert ShellFile.objects.count() == 2
    events = AuditEvent.objects.filter(action="erase")
    assert set(events.values_list("result", flat=True)) == {"refused"}


@pytest.mark.django_db
def test_a_waiting_job_is_cancelled_first_if_the_operator_says_so() -> None:
    job = a_job(status=JobStatus.PENDING)

    said = erase(job.shell_file_id, "--cancel")

    assert ": erased" in said
    assert not ShellFile.objects.exists()


@pytest.mark.usefixtures("cloned_db")
def test_a_record_that_reused_the_erased_one_keeps_its_own_rows_and_its_file(
    tmp_path: Path,
) -> None:
    path = short_record(tmp_path / "a.pdf", 1)
    first = records.completed_record(path, owner="cli")
    second = records.completed_record(path, owner="cli")
    found = Entity.objects.filter(shell_file=second).count()
    sources = Reuse.objects.filter(shell_file=second, source=first).count()

    erase(first.id)
    third = records.completed_record(path, owner="cli")

    assert sources > 0
    assert set(Reuse.objects.filter(shell_file=second).values_list("source", flat=True)) == {None}
    assert Entity.objects.filter(shell_file=second).count() == found > 0
    assert default_storage.exists(second.storage_key)
    assert not KeptReply.objects.filter(shell_file_id=first.id).exists()
    assert Entity.objects.filter(shell_file=third).count() == found


@pytest.mark.usefixtures("cloned_db")
def test_bytes_that_two_records_name_go_with_the_last_of_them() -> None:
    first, second = a_record(), a_record()
    own = second.storage_key
    ShellFile.objects.filter(id=second.id).update(storage_key=first.storage_key)

    erase(first.id)
    between = default_storage.exists(first.storage_key)
    erase(second.id)

    assert between
    assert not default_storage.exists(first.storage_key)
    default_storage.delete(own)


def records_of_a_patient(reference: str, count: int) -> list[UUID]:
    patient = Patient.objects.create(reference=reference)
    found = []
    for _ in range(count):
        record: UUID = a_job(status=JobStatus.COMPLETED).shell_file_id
        ShellFile.objects.filter(id=record).update(patient=patient)
        found.append(record)
    return found


@pytest.mark.django_db
def test_all_records_of_a_patient_are_erased_and_no_record_of_another(tmp_path: Path) -> None:
    mine, other = records_of_a_patient("canary one", 3), records_of_a_patient("canary two", 1)
    file = tmp_path / "reference"
    file.write_text("canary one\n")

    shown = erase("--patient-of", mine[0], "--dry-run", reason=())
    wrong = refused("--patient-file", file, "--expect", 2)
    missing = refused("--patient-of", mine[0])
    erase("--patient-file", file, "--expect", 3)

    assert all(str(record) in shown for record in mine)
    assert "3 records" in shown
    assert "the patient has 3 records" in wrong
    assert "the patient has 3 records" in missing
    assert list(ShellFile.objects.values_list("id", flat=True)) == other
    assert not Patient.objects.filter(reference="canary one").exists()
    assert "canary" not in shown + wrong + missing


@pytest.mark.django_db
def test_a_patient_whose_pages_name_another_person_is_refused() -> None:
    first, second = records_of_a_patient("canary", 2)
    warning = {"code": "PATIENT_MISMATCH", "message": "m", "pages": [1]}
    ShellFile.objects.filter(id=second).update(warnings=[warning])

    said = refused("--patient-of", first, "--expect", 2)

    assert f"record {second} has pages that name another patient" in said
    assert ShellFile.objects.count() == 2


@pytest.mark.django_db
def test_a_record_of_another_patient_row_with_equal_digests_is_named_and_stays() -> None:
    (mine,), (alike,) = records_of_a_patient("one", 1), records_of_a_patient("two", 1)
    (unlike,) = records_of_a_patient("three", 1)
    same = {"name": "a" * 64, "dob": "b" * 64, "mrn": "c" * 64, "key": "k"}
    Patient.objects.filter(reference__in=["one", "two"]).update(identity_digests=same)
    Patient.objects.filter(reference="three").update(identity_digests={**same, "dob": "d" * 64})

    said = erase("--patient-of", mine, "--expect", 1)

    assert "1 other record may be of the same person" in said
    assert str(alike) in said
    assert str(unlike) not in said
    assert set(ShellFile.objects.values_list("id", flat=True)) == {alike, unlike}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{record}"], "give a reason"),
        (["{record}", "--reason", "because of Jane"], "invalid choice"),
        (["{prefix}", *REASON], "not the whole id"),
        ([str(uuid4()), *REASON], "there is no record"),
        (["{record}", str(uuid4()), *REASON], "there is no record"),
        ([*REASON], "name records, or one patient"),
        (["{record}", "--patient-of", "{record}", *REASON], "name records, or one patient"),
        (["--patient", "Jane Canary", *REASON], "every user of this machine can read"),
        (["{record}", "--exports", "/nowhere", *REASON], "there is no such folder"),
    ],
)
def test_a_wrong_argument_is_one_line_and_erases_nothing(arguments: list[str], words: str) -> None:
    record = a_job(status=JobStatus.COMPLETED).shell_file_id
    given = [each.format(record=record, prefix=str(record)[:13]) for each in arguments]

    said = refused(*given, reason=())

    assert words in said
    assert "Canary" not in said
    assert ShellFile.objects.count() == 1


@pytest.mark.django_db
def test_the_application_role_cannot_erase_and_the_refusal_names_the_variable() -> None:
    record = a_job(status=JobStatus.COMPLETED).shell_file_id

    with pytest.raises(CommandError, match="set DATABASE_OWNER_URL"):
        call_command("erase", str(record), *REASON)

    assert ShellFile.objects.filter(id=record).exists()


@pytest.mark.usefixtures("cloned_db")
def test_a_file_that_cannot_be_deleted_keeps_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    record = a_record()

    def fails(_: str) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(default_storage, "delete", fails)
        with pytest.raises(PermissionError):
            erase(record.id)
    kept = ShellFile.objects.filter(id=record.id).exists()
    erase(record.id)

    assert kept
    assert not default_storage.exists(record.storage_key)
    assert AuditEvent.objects.filter(action="erase", result="done").count() == 1


@pytest.mark.django_db
def test_every_table_that_names_a_record_goes_with_the_record() -> None:
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT c.table_name || '.' || c.column_name FROM information_schema.columns c
            WHERE c.table_schema = 'public' AND c.column_name IN ('shell_file_id', 'record_id')
              AND NOT EXISTS (
                SELECT FROM pg_constraint f JOIN pg_attribute a
                  ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]
                WHERE f.contype = 'f' AND f.conrelid = c.table_name::regclass
                  AND a.attname = c.column_name AND f.confdeltype = 'c')
        """)
        without = {name for (name,) in cursor.fetchall()}

    # A bulk operation keeps the ids of its jobs as its history.
    assert without == {"bulk_operation_items.shell_file_id"}


@pytest.mark.django_db
def test_a_record_whose_file_and_folder_are_gone_is_erased(
    settings: Settings, tmp_path: Path
) -> None:
    default = settings.STORAGES["default"]
    options = default["OPTIONS"] | {"location": str(tmp_path / "files")}
    settings.STORAGES = settings.STORAGES | {"default": default | {"OPTIONS": options}}
    record = a_job(status=JobStatus.COMPLETED).shell_file_id

    said = erase(record)

    assert ": erased: " in said
    assert not ShellFile.objects.exists()
