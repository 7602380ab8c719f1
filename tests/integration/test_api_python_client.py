"""The client in Python, against the real web server: submit, follow, read, export, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from socket import create_server

import pytest
from django.test import override_settings

from clients.python.medproc_client import MedprocClient, NoAnswerError, RequestRefusedError
from pipeline.models import Entity, ShellFile
from tests.support import records
from tests.support.api_clients import ApiProgram, a_program
from tests.support.web_server import WebServer, serving

pytestmark = pytest.mark.xdist_group("api-python-client")


@pytest.fixture(scope="module")
def program(module_db: str) -> ApiProgram:
    """Provide an API client with a completed record."""
    made = a_program()
    with override_settings(SKIPPED_PASSES=()):
        records.completed_record(records.LAB, owner=made.owner)
    return made


@pytest.fixture(scope="module")
def server(
    program: ApiProgram, module_db: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    """Provide the web server."""
    with serving(module_db, tmp_path_factory.mktemp("log") / "serve.log") as found:
        yield found


@pytest.fixture
def client(server: WebServer, program: ApiProgram) -> Iterator[MedprocClient]:
    """Provide the client."""
    with MedprocClient(f"http://127.0.0.1:{server.port}", program.token) as found:
        yield found


def test_a_file_is_submitted_once_with_its_key_and_can_be_cancelled(
    client: MedprocClient, server: WebServer, tmp_path: Path
) -> None:
    path = tmp_path / "Jäne-Doe.pdf"
    path.write_bytes(records.LAB.read_bytes())

    first = client.submit(path, patient="Nr. 1001 ä", priority=5, key="one")
    again = client.submit(path, patient="Nr. 1001 ä", priority=5, key="one")
    state = client.wait(first, timeout_s=0.0)
    cancelled = client.cancel(first, "as agreed")

    assert first == again
    record = ShellFile.objects.select_related("patient").get(id=first)
    assert (record.original_filename, record.patient.reference) == (
        "Jäne-Doe.pdf",
        "mercy/Nr. 1001 ä",
    )
    assert (state.status, state.is_ended, state.failure_code) == ("pending", False, None)
    assert cancelled == "cancelled"
    assert client.record(first).is_ended
    assert {each.id for each in client.records(status="cancelled")} == {first}
    assert "Doe" not in server.log()
    assert first in server.log()


def test_results_are_read_and_exported_whole(
    client: MedprocClient, program: ApiProgram, tmp_path: Path
) -> None:
    record = ShellFile.objects.get(owner=program.owner, status="completed")
    file = tmp_path / "record.json"

    entities = list(client.entities(str(record.id)))
    client.export(str(record.id), "fhir", file)

    assert len(entities) == Entity.objects.filter(shell_file=record).count() > 50
    assert len(client.results(str(record.id))["encounters"]) == 8
    assert client.drill_down(str(record.id))["tree"]["status"] == "done"
    assert str(record.id) in {each["record_id"] for each in client.reviews(status="open")}
    assert json.loads(file.read_bytes())["resourceType"] == "Bundle"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["record.json"]


def test_a_refusal_has_its_code_and_no_word_of_the_request(
    client: MedprocClient, program: ApiProgram, tmp_path: Path
) -> None:
    path = tmp_path / "Jane-Doe.pdf"
    path.write_bytes(b"no record \x00")

    with pytest.raises(RequestRefusedError) as refused:
        client.submit(path, patient="1001")
    with pytest.raises(RequestRefusedError) as unknown:
        client.export("0" * 8 + "-0000-0000-0000-" + "0" * 12, "csv", tmp_path / "none.csv")

    assert (refused.value.status, refused.value.code) == (422, "INPUT_INVALID")
    assert "Doe" not in str(refused.value)
    assert (unknown.value.status, unknown.value.code) == (404, "NOT_FOUND")
    assert [each.name for each in tmp_path.iterdir()] == ["Jane-Doe.pdf"]


def test_an_api_that_is_away_is_asked_again_and_then_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("clients.python.medproc_client.time.sleep", waited.append)
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    with MedprocClient(f"http://127.0.0.1:{port}", "token") as client, pytest.raises(NoAnswerError):
        client.record("1")

    assert waited == [1.0, 2.0, 4.0, 8.0]
