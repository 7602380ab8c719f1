"""Files through the console: taken in once, refused in clear words, written down without names."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from observability.rights import ROLES, Right, Role
from pipeline.models import Job, Patient, RecordBatch, ShellFile
from tests.deeds import deeds
from tests.records import LAB, VISITS

pytestmark = pytest.mark.django_db


def a_client(name: str) -> Client:
    """Give a client of somebody of a role."""
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set(Group.objects.filter(name=name))
    client = Client()
    client.force_login(user)
    return client


def a_file(path: Path = LAB, name: str = "Jane-Doe.pdf") -> SimpleUploadedFile:
    """Give a file as a browser sends it."""
    return SimpleUploadedFile(name, path.read_bytes())


def send(client: Client, *files: SimpleUploadedFile, by_script: bool = False, **fields: Any) -> Any:
    """Send the form."""
    fields = {"token": str(uuid4()), "patient": "", "priority": "0", **fields, "files": files}
    headers = {"Accept": "application/json"} if by_script else {}
    return client.post(reverse("admin:upload_files"), fields, headers=headers)


@pytest.mark.parametrize("who", ["nobody", *Role])
def test_only_whoever_may_upload_sees_the_form_and_is_taken_a_file_from(
    who: str, settings: Any
) -> None:
    may = who != "nobody" and Right.UPLOAD in ROLES[Role(who)]
    client = a_client(who)

    looked = client.get(reverse("admin:upload")).status_code
    sent = send(client, a_file()).status_code
    got = client.get(reverse("admin:upload_files")).status_code
    opened = client.post(reverse("admin:upload_batch")).status_code

    assert {looked, sent, opened} == {HTTPStatus.OK if may else HTTPStatus.FORBIDDEN}
    assert got == HTTPStatus.METHOD_NOT_ALLOWED
    assert ShellFile.objects.count() == deeds().filter(result="done").count() == may
    # What came from the others was not even kept while it arrived.
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
    events = deeds()
    assert [(each.verb, each.target_id, each.facts["repeated"]) for each in events] == [
        ("upload", first["record"], False),
        ("upload", first["record"], True),
        ("upload", corrected["record"], False),
    ]


def test_good_and_bad_files_of_one_form_each_get_their_word(settings: Any) -> None:
    settings.MAX_UPLOAD_MB = 1
    large = SimpleUploadedFile("large.pdf", LAB.read_bytes() + b"\0" * (1 << 20))
    text = SimpleUploadedFile("notes.pdf", b"Jane Doe was seen.")
    empty = SimpleUploadedFile("empty.pdf", b"")

    page = send(a_client(Role.OPERATOR), a_file(), large, text, empty, a_file(VISITS, "visits.pdf"))

    outcomes = {each.name: each for each in page.context["outcomes"]}
    refused = {name: each.code for name, each in outcomes.items() if each.code}
    assert refused == {
        "large.pdf": "INPUT_TOO_LARGE",
        "notes.pdf": "INPUT_INVALID",
        "empty.pdf": "INPUT_INVALID",
    }
    assert "not a PDF, TIFF, PNG or JPEG" in page.content.decode()
    batch = RecordBatch.objects.get()
    assert batch.submitted_at is not None
    assert batch.records_total == 2
    assert Job.objects.filter(record_batch_id=batch.id).count() == 2
    told = deeds().values_list("result", "facts")
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
    assert RecordBatch.objects.get(id=batch).records_total == 2
    found = Job.objects.filter(record_batch_id=batch).values_list("shell_file_id", flat=True)
    assert {str(each) for each in found} == set(sent)
    assert "closed" in late["message"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"priority": "101"}, "a priority is a whole number from -100 to 100"),
        ({"patient": "x" * 201}, "a patient reference has at most 200 characters"),
        ({"token": "none"}, "open the upload page anew; its form is not whole"),
    ],
)
def test_a_field_that_does_not_fit_is_said_and_nothing_is_taken_in(
    fields: dict[str, Any], problem: str
) -> None:
    page = send(a_client(Role.OPERATOR), a_file(), **fields)

    assert page.context["problem"] == problem
    assert not Patient.objects.exists()


def test_a_form_without_a_file_says_so() -> None:
    page = send(a_client(Role.OPERATOR))

    assert page.context["problem"] == "choose a file first"
