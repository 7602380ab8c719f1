"""Programs read the results of their own records, each reading is audited, and races make one.

The tests commit: an export reads a snapshot of its own, and requests at once need connections.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.db import connection, connections
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from api.models import ApiClient, IdempotencyKey
from api.scopes import TokenScope
from pipeline.models import Entity, ReviewItem, ShellFile
from pipeline.stages.intake import owner_of_user
from tests.integration.test_api_records import PDF, code_of
from tests.support import records
from tests.support.api_clients import RECORDS, ApiProgram, a_program
from tests.support.audit_rows import audit_events
from tests.support.databases import no_connections

pytestmark = pytest.mark.xdist_group("api-results")


@pytest.fixture(scope="module")
def mercy(module_db: str) -> ApiProgram:
    """Provide a client with one record that has left every pass."""
    program = a_program()
    with override_settings(SKIPPED_PASSES=()):
        records.completed_record(records.LAB, owner=program.owner, patient_reference="mercy/1001")
    return program


@pytest.fixture
def record(mercy: ApiProgram) -> ShellFile:
    """Return the record."""
    return ShellFile.objects.get(owner=mercy.owner, status="completed")


@pytest.fixture(autouse=True)
def _new_events(mercy: ApiProgram) -> Iterator[None]:
    before = audit_events().count()
    yield
    assert audit_events().count() >= before


def test_all_pages_of_entities_are_all_entities_in_order(
    mercy: ApiProgram, record: ShellFile
) -> None:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    pages = 0
    while cursor is not None:
        query = f"?limit=20{f'&cursor={cursor}' if cursor else ''}"
        page = mercy.get(f"{RECORDS}/{record.id}/entities{query}").json()
        found += page["items"]
        cursor = page["next_cursor"]
        pages += 1

    stored = Entity.objects.filter(shell_file=record).order_by(
        "healthcare_encounter__encounter_index", "entity_index"
    )
    assert [each["entity_id"] for each in found] == [str(each.id) for each in stored]
    assert pages == -(-len(found) // 20) > 2
    assert page["notices"] == ["Written by a machine. Not reviewed by a person."]
    readings = audit_events().filter(action="read_phi", target_id=str(record.id))
    assert {each.actor for each in readings} == {"api.mercy"}
    assert sum(each.facts.get("count", 0) for each in readings) == len(found)


def test_a_page_of_one_entity_needs_as_many_statements_as_a_page_of_many(
    mercy: ApiProgram, record: ShellFile
) -> None:
    counts = []
    for limit in (1, 50):
        with CaptureQueriesContext(connection) as statements:
            answer = mercy.get(f"{RECORDS}/{record.id}/entities?limit={limit}")
        assert len(answer.json()["items"]) == limit
        counts.append(len(statements))

    assert counts[0] == counts[1] <= 20


def test_results_and_exports_are_those_of_the_commands(
    mercy: ApiProgram, record: ShellFile
) -> None:
    url = f"{RECORDS}/{record.id}"

    results = mercy.get(f"{url}/results").json()
    exported: dict[str, Any] = {
        form: mercy.get(f"{url}/exports/{form}") for form in ("fhir", "csv", "pair")
    }
    body = {form: b"".join(each.streaming_content) for form, each in exported.items()}
    drill_down = mercy.get(f"{url}/drill-down").json()

    assert len(results["encounters"]) == 8
    assert results["shell_file_id"] == str(record.id)
    assert json.loads(body["fhir"])["resourceType"] == "Bundle"
    assert body["csv"].count(b"\n") > 70
    with ZipFile(BytesIO(body["pair"])) as archive:
        names = {name.rpartition(".")[2] for name in archive.namelist()}
    assert names == {"parquet", "json"}
    assert {each["Cache-Control"] for each in exported.values()} == {"no-store"}
    assert drill_down["tree"]["status"] == "done"
    assert len(drill_down["tree"]["children"]) >= 5
    exports = audit_events().filter(action="export", target_id=str(record.id))
    assert {each.facts["format"] for each in exports} == {"fhir", "csv", "pair"}


def test_another_client_and_a_token_without_the_scope_read_no_results(
    mercy: ApiProgram, record: ShellFile
) -> None:
    stranger = a_program("general")
    narrow = a_program("narrow", scopes=[TokenScope.READ, TokenScope.SUBMIT, TokenScope.ACT])
    before = audit_events().filter(action="read_phi").count()
    addresses = [f"{RECORDS}/{record.id}/{what}" for what in ("entities", "results", "exports/csv")]

    assert {code_of(stranger.get(each)) for each in addresses} == {(404, "NOT_FOUND")}
    assert {code_of(narrow.get(each)) for each in addresses} == {(403, "SCOPE_MISSING")}
    assert code_of(narrow.get("/api/v1/reviews")) == (403, "SCOPE_MISSING")
    assert stranger.get("/api/v1/reviews").json()["items"] == []
    assert audit_events().filter(action="read_phi").count() == before


def test_a_review_is_shown_without_its_people(mercy: ApiProgram, record: ShellFile) -> None:
    ReviewItem.objects.filter(shell_file=record).update(claimed_by="user:4711")

    found = mercy.get("/api/v1/reviews?status=open")
    closed = mercy.get("/api/v1/reviews?status=closed").json()

    assert [each["record_id"] for each in found.json()["items"]] == [str(record.id)]
    assert closed == {"items": [], "next_cursor": None}
    assert b"4711" not in found.content


def test_an_incomplete_record_is_exported_only_if_asked(mercy: ApiProgram) -> None:
    id_ = mercy.submit(PDF).json()["id"]

    refused = mercy.get(f"{RECORDS}/{id_}/exports/csv")
    given = mercy.get(f"{RECORDS}/{id_}/exports/csv?incomplete=true")
    unknown = mercy.get(f"{RECORDS}/{id_}/exports/docx")

    assert code_of(refused) == (409, "RECORD_INCOMPLETE")
    assert "?incomplete=true" in refused.json()["detail"]
    assert given.status_code == HTTPStatus.OK
    given.close()
    assert code_of(unknown) == (422, "VALUE_INVALID")
    (event,) = audit_events().filter(action="export", target_id=id_, result="refused")
    assert event.facts == {"code": "RECORD_INCOMPLETE"}


def test_requests_with_one_key_at_the_same_time_make_one_record(mercy: ApiProgram) -> None:
    before = ShellFile.objects.count()

    def submit(_: int) -> tuple[int, str, bool]:
        try:
            program = ApiProgram(mercy.api_client, mercy.token)
            answer = program.submit(PDF, Idempotency_Key="at-once")
            return answer.status_code, answer.json()["id"], "Idempotent-Replayed" in answer
        finally:
            connections.close_all()

    with override_settings(API_UPLOADS_PER_CLIENT=6), ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(submit, range(6)))

    assert {status for status, _, _ in answers} == {HTTPStatus.CREATED}
    assert len({id_ for _, id_, _ in answers}) == 1
    assert sorted(replayed for _, _, replayed in answers) == [False] + [True] * 5
    assert ShellFile.objects.count() == before + 1
    assert IdempotencyKey.objects.filter(client=mercy.api_client).count() == 1


def test_two_clients_own_and_reuse_apart(mercy: ApiProgram, record: ShellFile) -> None:
    other = a_program("other")

    id_ = other.submit(PDF, Patient_Reference="1001").json()["id"]

    mine = ShellFile.objects.select_related("patient").get(id=id_)
    assert mine.owner == owner_of_user(ApiClient.objects.get(name="other").user_id)
    assert mine.owner != record.owner
    assert mine.patient_id != record.patient_id
    assert mine.sha256 == record.sha256


def test_a_database_that_is_away_is_named(mercy: ApiProgram) -> None:
    with no_connections():
        answer = mercy.get(RECORDS)

    status, code = code_of(answer)
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert code.startswith("POSTGRES_")
    assert answer["Retry-After"] == "30"
