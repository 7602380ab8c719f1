"""A file uploaded through the console is stored once, refused in clear words, and never named."""

from __future__ import annotations

import os
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from observability.permissions import ROLES, Right, Role
from observability.uploads.batches import KIND
from observability.uploads.cleanup import OLD_S, sweep
from pipeline.documents import storage
from pipeline.models import Job, Patient, RecordBatch, ShellFile
from tests.integration.test_storage_full import no_room, stored
from tests.support.audit_rows import audit_events
from tests.support.databases import as_owner
from tests.support.records import LAB, VISITS

pytestmark = pytest.mark.django_db


class Remote(Storage):
    """A file storage without paths, like the storage of another host."""

    def exists(self, name: str) -> bool:
        """Claim to have a file of every name."""
        return True

    def _open(self, name: str, mode: str = "rb") -> ContentFile[bytes]:
        return ContentFile(b"%PDF-1.4")


def a_client(name: str) -> Client:
    """Return a client with a role."""
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set(Group.objects.filter(name=name))
    client = Client()
    client.force_login(user)
    return client


def a_file(path: Path = LAB, name: str = "Jane-Doe.pdf") -> SimpleUploadedFile:
    """Return a file as a browser sends it."""
    return SimpleUploadedFile(name, path.read_bytes())


def send(client: Client, *files: SimpleUploadedFile, by_script: bool = False, **fields: Any) -> Any:
    """Send the form."""
    fields = {"token": str(uuid4()), "patient": "", "priority": "0", **fields, "files": files}
    headers = {"Accept": "application/json"} if by_script else {}
    return client.post(reverse("admin:upload_files"), fields, headers=headers)


def no_audit() -> None:
    """Let the database refuse every row of the audit from now on."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'refused'; END $$;"
            "CREATE TRIGGER refuse BEFORE INSERT ON audit_events"
            " FOR EACH ROW EXECUTE FUNCTION refuse()"
        )


@pytest.mark.parametrize("who", ["no-role", *Role])
def test_only_users_with_the_upload_right_see_the_form_and_upload_files(
    who: str, settings: Any
) -> None:
    may = who != "no-role" and Right.UPLOAD in ROLES[Role(who)]
    client = a_client(who)

    looked = client.get(reverse("admin:upload")).status_code
    sent = send(client, a_file()).status_code
    got = client.get(reverse("admin:upload_files")).status_code
    opened = client.post(reverse("admin:upload_batch")).status_code

    assert {looked, sent, opened} == {HTTPStatus.OK if may else HTTPStatus.FORBIDDEN}
    assert got == HTTPStatus.METHOD_NOT_ALLOWED
    assert (
        ShellFile.objects.count()
        == audit_events().filter(action="upload", result="done").count()
        == may
    )
    # The files of refused requests were not stored even while they arrived.
    assert list(Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir()) == []


def test_a_form_that_is_sent_twice_makes_one_record() -> None:
    client, token = a_client(Role.OPERATOR), str(uuid4())

    first = send(client, a_file(), by_script=True, token=token, patient="R-1", priority="7").json()
    second = send(client, a_file(), by_script=True, token=token, patient="R-1", priority="7").json()
    corrected = send(client, a_file(), by_script=True, token=token, patient="R-2").json()

    assert first["record"] == second["record"] != corrected["record"]
    assert (first["repeated"], second["repeated"]) == (False, True)
    record = ShellFile.objects.get(id=first["record"])
    assert (record.patient.reference, record.original_filename) == ("R-1", "Jane-Doe.pdf")
    assert Job.objects.get(shell_file=record).priority == 7
    events = audit_events()
    assert [(each.action, each.target_id, each.facts["repeated"]) for each in events] == [
        ("upload", first["record"], False),
        ("upload", first["record"], True),
        ("upload", corrected["record"], False),
    ]


def test_good_and_bad_files_of_one_form_each_get_their_word(settings: Any) -> None:
    settings.MAX_UPLOAD_MB = 1
    large = SimpleUploadedFile("large.pdf", LAB.read_bytes() + b"\0" * (1 << 20))
    text = SimpleUploadedFile("notes.pdf", b"\x7fELF\0 Jane Doe")
    empty = SimpleUploadedFile("empty.pdf", b"")

    page = send(a_client(Role.OPERATOR), a_file(), large, text, empty, a_file(VISITS, "visits.pdf"))

    outcomes = {each.name: each for each in page.context["outcomes"]}
    refused = {name: each.code for name, each in outcomes.items() if each.code}
    assert refused == {
        "large.pdf": "INPUT_TOO_LARGE",
        "notes.pdf": "INPUT_INVALID",
        "empty.pdf": "INPUT_INVALID",
    }
    assert "unknown type by its content" in page.content.decode()
    batch = RecordBatch.objects.get()
    assert batch.submitted_at is not None
    assert batch.records_total == 2
    assert Job.objects.filter(record_batch_id=batch.id).count() == 2
    told = audit_events().filter(action="upload").values_list("result", "facts")
    assert sorted(result for result, _ in told) == ["done", "done", *["refused"] * 3]
    assert not any("notes" in str(facts) or "Jane" in str(facts) for _, facts in told)


def test_files_that_a_script_sends_one_by_one_are_one_batch() -> None:
    client = a_client(Role.OPERATOR)
    batch = client.post(reverse("admin:upload_batch")).json()["batch"]
    close = reverse("admin:upload_close", args=[batch])

    sent = [
        send(client, a_file(path), by_script=True, batch=batch).json()["record"]
        for path in (LAB, VISITS)
    ]
    closed = [client.post(close).status_code for _ in range(2)]
    late = send(client, a_file(), by_script=True, batch=batch).json()

    assert closed == [HTTPStatus.OK, HTTPStatus.OK]
    made = RecordBatch.objects.get()
    assert made.records_total == 2
    found = Job.objects.filter(record_batch_id=made.id).values_list("shell_file_id", flat=True)
    assert {str(each) for each in found} == set(sent)
    assert "closed" in late["message"]
    written = audit_events().filter(target_kind=KIND, target_id=made.id)
    assert [each.action for each in written] == ["open_batch", "close_batch"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"priority": "101"}, "a priority is a whole number from -100 to 100"),
        ({"patient": "x" * 201}, "a patient reference has at most 200 characters"),
        ({"token": "none"}, "open the upload page again; its form is incomplete"),
    ],
)
def test_a_field_that_does_not_fit_is_reported_and_nothing_is_stored(
    fields: dict[str, Any], problem: str
) -> None:
    page = send(a_client(Role.OPERATOR), a_file(), **fields)

    assert page.context["problem"] == problem
    assert not Patient.objects.exists()


def test_a_file_belongs_to_its_user_and_is_extracted_again_only_if_the_user_says_so() -> None:
    client = a_client(Role.OPERATOR)
    token = str(uuid4())
    for force in ("", "1", ""):
        send(client, a_file(), token=token, force=force)

    records = ShellFile.objects.order_by("created_at", "forced").values_list("owner", "forced")
    owner = f"user:{User.objects.get().pk}"
    # The same form is one record; the same form with the other choice is another record.
    assert sorted(records) == [(owner, False), (owner, True)]
    assert [each.facts["force"] for each in audit_events()] == [False, True, False]


def test_a_form_without_a_file_says_so() -> None:
    page = send(a_client(Role.OPERATOR))

    assert page.context["problem"] == "choose a file first"


def test_a_batch_is_neither_filled_nor_closed_by_another_user() -> None:
    opener, other = a_client(Role.OPERATOR), a_client(Role.ADMINISTRATOR)
    batch = opener.post(reverse("admin:upload_batch")).json()["batch"]
    made = RecordBatch.objects.get()

    sent = [send(other, a_file(), by_script=True, batch=each).json() for each in (batch, made.id)]
    close = [
        other.post(reverse("admin:upload_close", args=[each])).status_code
        for each in (batch, made.id, f"{made.id}:forged")
    ]

    assert ["no batch of yours" in each["message"] for each in sent] == [True, True]
    assert close == [HTTPStatus.BAD_REQUEST] * 3
    refusals = audit_events().filter(result="refused", target_kind=KIND)
    assert [each.target_id for each in refusals] == [str(made.id)] * 3
    assert RecordBatch.objects.get().submitted_at is None
    assert not Job.objects.exists()


def test_several_files_of_one_sending_by_script_are_refused_before_any_is_taken_in() -> None:
    answer = send(a_client(Role.OPERATOR), a_file(), a_file(VISITS), by_script=True)

    assert answer.json()["message"] == "send one file at a time; none of these was taken in"
    assert not ShellFile.objects.exists()


@pytest.mark.parametrize("size", [600, 1 << 16], ids=["on its end", "while it arrives"])
def test_a_file_for_which_the_disk_has_no_room_is_refused_and_leaves_nothing(
    size: int, settings: Any
) -> None:
    client = a_client(Role.OPERATOR)
    small = SimpleUploadedFile("small.pdf", b"%PDF-1.4 small")
    large = SimpleUploadedFile("large.pdf", b"%PDF-1.4" + b"0" * size)

    with no_room():
        page = send(client, small, large)

    outcomes = {each.name: each for each in page.context["outcomes"]}
    assert outcomes["large.pdf"].code == "STORAGE_FULL"
    assert "Free some space" in outcomes["large.pdf"].message
    assert outcomes["small.pdf"].record_id is not None
    assert list(Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir()) == []


def test_bytes_of_a_record_that_could_not_be_written_down_are_not_kept() -> None:
    client, before = a_client(Role.OPERATOR), stored()
    no_audit()

    with pytest.raises(DatabaseError), transaction.atomic():
        send(client, a_file(), by_script=True)

    assert not ShellFile.objects.exists()
    assert {each for each in stored() if each.is_file()} == {
        each for each in before if each.is_file()
    }


def test_a_record_that_is_sent_again_keeps_its_bytes_whatever_fails() -> None:
    client, token = a_client(Role.OPERATOR), str(uuid4())
    record = send(client, a_file(), by_script=True, token=token).json()["record"]
    no_audit()

    with pytest.raises(DatabaseError), transaction.atomic():
        send(client, a_file(), by_script=True, token=token)

    assert default_storage.exists(ShellFile.objects.get(id=record).storage_key)


def test_the_scheduler_deletes_what_a_killed_process_has_left(
    settings: Any, tmp_path: Path
) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": f"{__name__}.Remote"},
    }
    left, fresh = tmp_path / "tmpleft.upload", tmp_path / "tmpfresh.upload"
    for path in (left, fresh):
        path.write_bytes(b"%PDF-1.4")

    with storage.local_path("records/a") as read:
        for path in (left, read):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - OLD_S - 1))
        said = sweep()
        kept = set(tmp_path.iterdir())

    assert kept == {fresh, read}
    assert said.startswith("deleted 1 ")
    assert sweep() == ""
    assert "sweep_uploads" in settings.PERIODIC_TASKS
