"""Programs submit records over HTTP, once, and see the states of their own records only."""

from __future__ import annotations

import tracemalloc
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from api.scopes import TokenScope
from pipeline.core.states import JobStatus
from pipeline.models import Job, Patient, ShellFile
from tests.support.api_clients import RECORDS, a_program
from tests.support.audit_rows import audit_events
from tests.support.records import LAB, VISITS
from tests.support.rows import a_job

pytestmark = pytest.mark.django_db
PROBLEM = "application/problem+json"
PDF = LAB.read_bytes()


def keyset_page_rows(owner: str) -> Any:
    """Return the statement of a page of the list."""
    own = ShellFile.objects.filter(owner=owner)
    return own.order_by("-created_at", "-id")[:50]


def code_of(answer: Any) -> tuple[int, str]:
    """Return status and code of an error answer."""
    assert answer["Content-Type"] == PROBLEM, answer.content
    found = answer.json()
    assert found["status"] == answer.status_code
    return answer.status_code, found["code"]


def test_a_submitted_file_is_a_record_of_the_client_with_a_status(settings: Any) -> None:
    program = a_program()

    answer = program.submit(
        PDF,
        Patient_Reference="1001",
        Content_Disposition='attachment; filename="Jane-Doe.pdf"',
    )
    state = program.get(answer["Location"])

    assert (answer.status_code, answer.json()["status"]) == (HTTPStatus.CREATED, "pending")
    record = ShellFile.objects.get(id=answer.json()["id"])
    assert record.owner == program.owner
    assert record.original_filename == "Jane-Doe.pdf"
    assert record.patient.reference == "mercy/1001"
    assert state.status_code == HTTPStatus.OK
    found = state.json()
    assert (found["id"], found["status"], found["step"]) == (str(record.id), "pending", "pages")
    assert found["passes"][0] == {"name": "pages", "status": "pending", "done": 0, "total": 0}
    assert b"Jane" not in state.content + answer.content
    assert list(Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir()) == []
    (event,) = audit_events().filter(action="upload")
    assert (event.actor, event.target_id) == ("api.mercy", str(record.id))


def test_a_form_submits_the_same_as_a_body(settings: Any) -> None:
    program = a_program()
    file = SimpleUploadedFile("Jane-Doe.pdf", PDF)

    answer = program.post(f"{RECORDS}?priority=7", {"file": file, "patient": "1001"})

    assert answer.status_code == HTTPStatus.CREATED, answer.content
    job = Job.objects.select_related("shell_file__patient").get()
    assert (job.priority, job.shell_file.patient.reference) == (7, "mercy/1001")
    assert job.shell_file.size_bytes == len(PDF)
    assert list(Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir()) == []


def test_a_key_makes_one_record_and_refuses_another_request() -> None:
    program, key = a_program(), str(uuid4())

    first = program.submit(PDF, Idempotency_Key=key)
    again = program.submit(PDF, Idempotency_Key=key)
    other = program.submit(VISITS.read_bytes(), Idempotency_Key=key)
    other_patient = program.submit(PDF, Idempotency_Key=key, Patient_Reference="1001")
    stranger = a_program("general").submit(PDF, Idempotency_Key=key)

    assert first.json() == again.json()
    assert (first.status_code, again.status_code) == (HTTPStatus.CREATED, HTTPStatus.CREATED)
    assert "Idempotent-Replayed" not in first
    assert again["Idempotent-Replayed"] == "true"
    refused = (HTTPStatus.UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED")
    assert code_of(other) == code_of(other_patient) == refused
    assert stranger.status_code == HTTPStatus.CREATED
    assert ShellFile.objects.count() == 2


def test_a_refused_file_is_named_and_leaves_its_key_free(settings: Any) -> None:
    settings.MAX_UPLOAD_MB = 1
    program, key = a_program(), str(uuid4())

    answers = [
        code_of(program.submit(b"", Idempotency_Key=key)),
        code_of(program.submit(b"\x00\x01 no record", "application/octet-stream")),
        code_of(program.submit(PDF + b" " * (1 << 20))),
        code_of(program.submit(b"{}", "application/json")),
        code_of(program.submit(b"a=b", "application/x-www-form-urlencoded")),
        code_of(program.post(RECORDS, {"file": SimpleUploadedFile("a.pdf", b" " * (1 << 21))})),
        code_of(program.post(RECORDS, {"patient": "1001"})),
        code_of(program.post(RECORDS, {"file": SimpleUploadedFile("a.pdf", PDF), "pateint": "1"})),
        code_of(program.post(f"{RECORDS}?patient=1001", PDF, content_type="application/pdf")),
        code_of(program.post(f"{RECORDS}?priority=101", PDF, content_type="application/pdf")),
        code_of(program.submit(PDF, Idempotency_Key="")),
        code_of(program.submit(PDF, Patient_Reference="a\tb")),
        code_of(
            program.post(
                RECORDS,
                {"file": SimpleUploadedFile("a.pdf", PDF), "patient": "1001"},
                headers={"Patient-Reference": "1002"},
            )
        ),
        code_of(program.submit(PDF, CONTENT_LENGTH="9999999")),
    ]

    assert answers == [
        (422, "INPUT_INVALID"),
        (422, "INPUT_INVALID"),
        (413, "INPUT_TOO_LARGE"),
        (415, "MEDIA_TYPE_UNSUPPORTED"),
        (415, "MEDIA_TYPE_UNSUPPORTED"),
        (413, "INPUT_TOO_LARGE"),
        (422, "VALUE_INVALID"),
        (422, "VALUE_INVALID"),
        (422, "VALUE_INVALID"),
        (422, "VALUE_INVALID"),
        (422, "VALUE_INVALID"),
        (422, "VALUE_INVALID"),
        (422, "VALUE_INVALID"),
        (413, "INPUT_TOO_LARGE"),
    ]
    assert ShellFile.objects.count() == Patient.objects.count() == 0
    assert list(Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir()) == []
    refusals = audit_events().filter(action="upload", result="refused")
    assert refusals.first().facts["code"] == "INPUT_INVALID"  # type: ignore[union-attr]
    assert program.submit(PDF, Idempotency_Key=key).status_code == HTTPStatus.CREATED


@pytest.mark.parametrize("kind", ["application/pdf", "multipart/form-data; boundary=b"])
def test_half_a_body_is_no_record(kind: str) -> None:
    program = a_program()
    body = PDF
    if kind.startswith("multipart"):
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
        body = head + PDF

    cut: dict[str, Any] = {
        "wsgi.input": BytesIO(body),
        "CONTENT_LENGTH": str(len(body) + 1000),
        "CONTENT_TYPE": kind,
    }

    answer = program.generic("POST", RECORDS, b"", content_type=kind, **cut)

    assert code_of(answer) == (400, "REQUEST_MALFORMED")
    assert ShellFile.objects.count() == 0


class MadeBody:
    """A body that is made while it is read, so that the test itself does not hold it."""

    def __init__(self, head: bytes, size: int, tail: bytes) -> None:
        self._parts = [head, *[b" " * 4096] * (size // 4096), tail]
        self.length = len(head) + size + len(tail)

    def read(self, size: int = -1) -> bytes:
        """Return the next part."""
        return self._parts.pop(0) if self._parts else b""

    readline = read


@pytest.mark.parametrize("kind", ["application/pdf", "multipart/form-data; boundary=b"])
def test_a_large_file_is_not_held_in_memory(kind: str) -> None:
    program, head, tail = a_program(), b"%PDF-1.4\n", b""
    if kind.startswith("multipart"):
        head = (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n' + head
        )
        tail = b"\r\n--b--\r\n"
    body = MadeBody(head, 48 << 20, tail)
    stream: dict[str, Any] = {
        "wsgi.input": body,
        "CONTENT_LENGTH": str(body.length),
        "CONTENT_TYPE": kind,
    }
    program.get(RECORDS)

    tracemalloc.start()
    answer = program.generic("POST", RECORDS, b"", content_type=kind, **stream)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert answer.status_code == HTTPStatus.CREATED
    assert ShellFile.objects.get().size_bytes == (48 << 20) + len(b"%PDF-1.4\n")
    assert peak < 12 << 20


def test_the_list_of_a_client_reads_the_index_of_its_owner() -> None:
    program = a_program()
    rows = keyset_page_rows(program.owner)

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        plan = rows.explain()

    assert "idx_shell_files_owner" in plan


def test_a_record_of_another_client_is_not_there() -> None:
    mercy, general = a_program(), a_program("general")
    url = mercy.submit(PDF)["Location"]
    unknown = f"{RECORDS}/{uuid4()}"

    answers = [
        general.get(url),
        general.get(f"{url}/drill-down"),
        general.post(f"{url}/retry", {"reason": "as agreed"}, content_type="application/json"),
        general.post(f"{url}/cancel", {"reason": "as agreed"}, content_type="application/json"),
        general.get(unknown),
    ]

    assert {code_of(each) for each in answers} == {(404, "NOT_FOUND")}
    assert len({each.content for each in answers}) == 1
    assert general.get(RECORDS).json()["items"] == []
    assert len(mercy.get(RECORDS).json()["items"]) == 1
    assert Job.objects.get().status == JobStatus.PENDING


def test_a_list_continues_where_the_page_before_ended_and_filters_by_status() -> None:
    program = a_program()
    jobs = [a_job() for _ in range(7)]
    ShellFile.objects.update(owner=program.owner)
    Job.objects.filter(id=jobs[3].id).update(status=JobStatus.FAILED, error_code="API_5XX")
    a_job()

    pages: list[list[str]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = program.get(f"{RECORDS}?limit=3{f'&cursor={cursor}' if cursor else ''}").json()
        pages.append([each["id"] for each in page["items"]])
        cursor = page["next_cursor"]
    failed = program.get(f"{RECORDS}?status=failed").json()["items"]

    assert [len(each) for each in pages] == [3, 3, 1]
    assert [id_ for each in pages for id_ in each] == [
        str(each.shell_file_id) for each in reversed(jobs)
    ]
    assert [each["id"] for each in failed] == [str(jobs[3].shell_file_id)]
    assert failed[0]["failure"]["code"] == "API_5XX"
    wrong = [f"{RECORDS}?cursor=x", f"{RECORDS}?limit=201", f"{RECORDS}?status=lost"]
    assert {code_of(program.get(url)) for url in wrong} == {(422, "VALUE_INVALID")}


def test_a_list_of_many_records_needs_as_many_statements_as_a_list_of_one() -> None:
    program = a_program()
    program.get(RECORDS)

    def statements(url: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            assert program.get(url).status_code == HTTPStatus.OK
        return len(found)

    urls = [RECORDS, f"{RECORDS}?status=pending"]
    counts = []
    for number in (1, 20):
        for _ in range(number):
            a_job()
        ShellFile.objects.update(owner=program.owner)
        counts.append([statements(url) for url in urls])

    assert counts[0] == counts[1]
    assert max(counts[0]) <= 12


def test_an_owner_retries_and_cancels_and_a_second_request_with_the_key_does_nothing() -> None:
    program = a_program()
    url = program.submit(PDF)["Location"]

    def post(act: str, **headers: str) -> Any:
        return program.post(
            f"{url}/{act}", {"reason": "as agreed"}, content_type="application/json",
            headers=headers,
        )  # fmt: skip

    nothing = post("retry")
    cancelled = post("cancel", **{"Idempotency-Key": "c-1"})
    replayed = post("cancel", **{"Idempotency-Key": "c-1"})
    again = post("cancel")
    retried = post("retry")

    assert code_of(nothing) == (409, "STATE_CONFLICT")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert (replayed.json(), replayed["Idempotent-Replayed"]) == (cancelled.json(), "true")
    assert code_of(again) == (409, "STATE_CONFLICT")
    assert (retried.status_code, Job.objects.get().status) == (200, JobStatus.PENDING)
    results = audit_events().filter(action__in=["retry", "cancel"]).order_by("created_at")
    assert [(each.action, each.result, each.actor) for each in results] == [
        ("retry", "refused", "api.mercy"),
        ("cancel", "done", "api.mercy"),
        ("cancel", "refused", "api.mercy"),
        ("retry", "done", "api.mercy"),
    ]
    bad = program.post(f"{url}/retry", {"reason": ""}, content_type="application/json")
    assert code_of(bad) == (422, "REASON_INVALID")
    lacking = program.post(f"{url}/retry", {}, content_type="application/json")
    assert [each["place"] for each in lacking.json()["errors"]] == ["body.reason"]
    no_json = program.post(f"{url}/retry", b"{", content_type="application/json")
    assert code_of(no_json) == (400, "REQUEST_MALFORMED")


@pytest.mark.parametrize("scope", TokenScope)
def test_a_token_does_what_its_scopes_say(scope: TokenScope) -> None:
    job = a_job()
    program = a_program(scopes=[scope])
    ShellFile.objects.update(owner=program.owner)
    url = f"{RECORDS}/{job.shell_file_id}"
    allowed = {
        TokenScope.SUBMIT: [program.submit(PDF).status_code],
        TokenScope.READ: [program.get(each).status_code for each in (RECORDS, url)],
        TokenScope.ACT: [
            program.post(f"{url}/cancel", {"reason": "x"}, content_type="application/json")
            .status_code
        ],
    }  # fmt: skip

    answered = {name for name, found in allowed.items() if set(found) != {HTTPStatus.FORBIDDEN}}
    assert answered == {scope} & set(allowed)
