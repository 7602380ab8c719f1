"""What one upload costs: reads of its body, copies of its bytes, and statements."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pytest
from django.core.files.storage import FileSystemStorage
from django.db import connection
from django.test.utils import CaptureQueriesContext

from api.models import IdempotencyKey
from medproc.files import FinishedFile, OwnedStorage
from pipeline.models import Patient, ShellFile
from tests.support.api_clients import RECORDS, a_program
from tests.support.records import LAB
from tests.support.web_server import WebServer, read_all, serving
from tests.support.workers import children

STATEMENTS = 15
"""Token, slot and its end, earlier answer, BEGIN and COMMIT, key, lock of the stored bytes,
patient, record, session, summary, job, audit, answer."""
PADDING = 4_000_000
FORM = "multipart/form-data; boundary=b"


@pytest.fixture
def server(cloned_db: str, tmp_path: Path) -> Iterator[WebServer]:
    with serving(cloned_db, tmp_path / "server.log", WEB_WORKERS="1") as running:
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """Provide a folder of a user who is not root, and become this user."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        try:
            if user == 0:
                os.seteuid(65534)
            yield Path(name)
        finally:
            os.seteuid(user)


class SweptAndFull(FileSystemStorage):
    """A folder whose sweep deletes the file of a submission, and whose disk is full afterwards."""

    saves: list[str] = []  # the list of the current test

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        self.saves.append(str(name))
        if len(self.saves) > 1:
            raise OSError(errno.ENOSPC, "full")
        return super().save(name, content, max_length)

    def exists(self, name: str) -> bool:
        return False


def a_form(content: bytes) -> bytes:
    head = 'Content-Disposition: form-data; name="file"; filename="a.pdf"'
    return f"--b\r\n{head}\r\n\r\n".encode() + content + b"\r\n--b--\r\n"


def written_and_read(server: WebServer) -> tuple[int, int]:
    """Return the bytes that the web process wrote to, and read from, files and pipes."""
    (process,) = children(server.process.pid)
    lines = Path(f"/proc/{process}/io").read_text("utf-8").splitlines()
    counted = dict(line.split(": ") for line in lines)
    return int(counted["wchar"]), int(counted["rchar"])


def test_the_bytes_of_an_upload_are_written_once_and_not_read_again(server: WebServer) -> None:
    program, content = a_program(), LAB.read_bytes() + b"\n" * PADDING
    statuses, costs = [], []
    for kind, body in (("application/pdf", LAB.read_bytes()), *both(content)):
        head = (
            f"POST {RECORDS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer {program.token}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        before = written_and_read(server)
        with server.connect() as client:
            client.sendall(head.encode() + body)
            statuses.append(read_all(client).split()[1])
        after = written_and_read(server)
        costs.append((after[0] - before[0], after[1] - before[1]))

    # The first upload makes the folder of the records.
    _, whole, as_form = costs
    assert statuses == [b"201"] * 3
    assert ShellFile.objects.filter(size_bytes=len(content)).count() == 2
    for written, read in (whole, as_form):
        assert len(content) <= written < 1.2 * len(content)
        assert read < 0.2 * len(content)


def both(content: bytes) -> list[tuple[str, bytes]]:
    return [("application/pdf", content), (FORM, a_form(content))]


class CountedBody(BytesIO):
    """A body that counts how often it is read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


@pytest.mark.usefixtures("cloned_db", "redis_db")
@pytest.mark.parametrize("kind", ["application/pdf", FORM])
def test_a_body_is_read_in_large_pieces(kind: str) -> None:
    body = dict(both(LAB.read_bytes() + b"\n" * PADDING))[kind]
    stream = CountedBody(body)
    passed: dict[str, Any] = {
        "wsgi.input": stream,
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": kind,
    }

    answer = a_program().generic("POST", RECORDS, b"", content_type=kind, **passed)

    assert answer.status_code == HTTPStatus.CREATED
    assert stream.reads <= 2 + PADDING // (1 << 20) + 2


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_an_upload_needs_15_statements_for_a_new_patient_and_for_a_known_one() -> None:
    program = a_program()
    program.submit(LAB.read_bytes(), Idempotency_Key="k-0")
    counts = []
    for number in (1, 2):
        with CaptureQueriesContext(connection) as statements:
            answer = program.submit(
                LAB.read_bytes(), Patient_Reference="p-1", Idempotency_Key=f"k-{number}"
            )
        assert answer.status_code == HTTPStatus.CREATED
        counts.append(len(statements))

    assert counts == [STATEMENTS, STATEMENTS]
    assert Patient.objects.get(reference="mercy/p-1").shell_files.count() == 2


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_submission_that_fails_within_the_transaction_leaves_no_row_and_no_key(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, kept = a_program(), settings.STORAGES
    monkeypatch.setattr(SweptAndFull, "saves", [])
    full = {**kept["default"], "BACKEND": f"{__name__}.SweptAndFull"}
    settings.STORAGES = {**kept, "default": full}

    refused = program.submit(LAB.read_bytes(), Patient_Reference="p-1", Idempotency_Key="k")
    rows = [each.objects.count() for each in (ShellFile, Patient, IdempotencyKey)]
    settings.STORAGES = kept
    again = program.submit(LAB.read_bytes(), Patient_Reference="p-1", Idempotency_Key="k")

    assert (refused.status_code, refused.json()["code"]) == (503, "STORAGE_FULL")
    assert rows == [0, 0, 0]
    assert again.status_code == HTTPStatus.CREATED
    assert ShellFile.objects.count() == IdempotencyKey.objects.count() == 1


def test_a_finished_file_is_kept_itself_and_copied_where_that_is_impossible(folder: Path) -> None:
    files = OwnedStorage(location=folder / "files", file_permissions_mode=0o600)
    received = folder / "received"
    received.write_bytes(b"of a patient")
    kept = []
    for name in ("records/copied", "records/linked"):
        with received.open("rb") as source:
            kept.append(Path(files.path(files.save(name, FinishedFile(source, "digest")))))
    copied, linked = kept

    assert not copied.samefile(received)  # The folder was missing.
    assert linked.samefile(received)
    received.unlink()
    assert {path.read_bytes() for path in kept} == {b"of a patient"}
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
