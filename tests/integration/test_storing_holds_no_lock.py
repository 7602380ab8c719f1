"""A submission stores its file before its transaction begins, so a slow store holds no lock."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import IO, Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import FileSystemStorage, default_storage
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.core.management import call_command
from django.db import connection

from api.models import IdempotencyKey
from observability.uploads.submit import Form, take_in
from pipeline.documents import storage
from pipeline.models import ShellFile
from tests.support.api_clients import a_program
from tests.support.records import LAB

pytestmark = pytest.mark.usefixtures("cloned_db", "redis_db")


class WatchedFileSystem(FileSystemStorage):
    """The usual store; it notes whether a transaction is open when a file is written."""

    in_transaction: list[bool] = []  # the list of the current test, set by a fixture

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        self.in_transaction.append(connection.in_atomic_block)
        return super().save(name, content, max_length)


@pytest.fixture
def writes(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Watch the store; return whether a transaction was open at each write."""
    noted: list[bool] = []
    monkeypatch.setattr(WatchedFileSystem, "in_transaction", noted)
    watched = {**settings.STORAGES["default"], "BACKEND": f"{__name__}.WatchedFileSystem"}
    settings.STORAGES = {**settings.STORAGES, "default": watched}
    return noted


def stored_keys() -> set[str]:
    if not default_storage.exists(storage.FOLDER):
        return set()
    return {f"{storage.FOLDER}/{name}" for name in default_storage.listdir(storage.FOLDER)[1]}


def by_api() -> None:
    answer = a_program().submit(LAB.read_bytes(), Idempotency_Key="k-1")
    assert answer.status_code == HTTPStatus.CREATED


def by_console() -> None:
    user = User.objects.create_user("ada")
    form = Form(token=uuid4(), patient="", priority=0, batch_id=None)
    with TemporaryUploadedFile("a.pdf", "application/pdf", 0, None) as file:
        file.write(LAB.read_bytes())
        file.flush()
        assert take_in(file, form, actor=user).record_id


def by_command() -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("process", str(LAB), "--no-wait")
    assert ended.value.code == 0


@pytest.mark.parametrize("submit", [by_api, by_console, by_command])
def test_no_transaction_is_open_while_the_file_is_written(
    writes: list[bool], submit: Callable[[], None]
) -> None:
    submit()

    assert writes == [False]
    assert ShellFile.objects.count() == 1


def test_a_repeated_request_with_a_key_writes_no_file(writes: list[bool]) -> None:
    program = a_program()
    first = program.submit(LAB.read_bytes(), Idempotency_Key="k-1")

    again = program.submit(LAB.read_bytes(), Idempotency_Key="k-1")
    other = program.submit(LAB.read_bytes() + b"\n", Idempotency_Key="k-1")

    assert again.json() == first.json()
    assert again["Idempotent-Replayed"] == "true"
    assert other.json()["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert writes == [False]
    assert ShellFile.objects.count() == IdempotencyKey.objects.count() == 1


def test_a_request_that_loses_the_race_for_its_key_keeps_no_file(
    writes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, before = a_program(), stored_keys()
    real = storage.store

    def store(source: Any) -> storage.Stored:
        # While the file of this request is stored, the same request arrives and ends.
        monkeypatch.setattr(storage, "store", real)
        assert program.submit(LAB.read_bytes(), Idempotency_Key="k-1").status_code == 201
        return real(source)

    monkeypatch.setattr(storage, "store", store)
    answer = program.submit(LAB.read_bytes(), Idempotency_Key="k-1")

    assert answer["Idempotent-Replayed"] == "true"
    assert len(writes) == 2
    assert stored_keys() - before == set(ShellFile.objects.values_list("storage_key", flat=True))
