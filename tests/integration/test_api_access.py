"""Only a valid token in its header opens the API; every refusal is a problem with a code."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from http import HTTPStatus
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from api.models import ApiClient, ApiToken
from api.scopes import TokenScope
from medproc.logs import allowed
from medproc.web import limits
from tests.integration.test_api_records import code_of
from tests.support.api_clients import RECORDS, ApiProgram, a_program
from tests.support.audit_rows import audit_events
from tests.support.users import client_of

pytestmark = pytest.mark.django_db


def command(*arguments: str) -> str:
    """Run `api_client` and return its output."""
    out = StringIO()
    call_command("api_client", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_a_token_is_shown_once_and_stored_as_a_digest() -> None:
    token = command("create", "mercy", "--scopes", "records:read")

    row = ApiToken.objects.get()

    assert token.startswith(f"medproc_{row.prefix}_")
    assert token not in json.dumps([row.digest, row.prefix, row.scopes])
    assert row.scopes == [TokenScope.READ]
    assert not row.client.user.has_usable_password()
    assert not row.client.user.is_staff
    assert ApiProgram(row.client, token).get(RECORDS).status_code == HTTPStatus.OK
    row.refresh_from_db()
    assert row.last_used_at is not None
    told = [json.dumps(each.facts) for each in audit_events()]
    assert not any(token.rpartition("_")[2] in each for each in told)
    assert {each.action for each in audit_events()} >= {"create_api_client", "create_api_token"}


def test_tokens_change_without_a_gap_and_a_revoked_token_ends() -> None:
    first = command("create", "mercy")
    second = command("token", "mercy", "--expires", "1d")
    client = ApiClient.objects.get()
    old, new = ApiProgram(client, first), ApiProgram(client, second)

    both = [each.get(RECORDS).status_code for each in (old, new)]
    command("revoke", "mercy", "--token", first.split("_")[1])
    after = [each.get(RECORDS).status_code for each in (old, new)]
    ApiToken.objects.filter(revoked_at=None).update(expires_at=timezone.now() - timedelta(days=1))
    expired = new.get(RECORDS)

    assert both == [200, 200]
    assert after == [401, 200]
    assert code_of(expired) == (401, "TOKEN_INVALID")
    listed = command("list")
    assert "revoked" in listed
    assert "expired" in listed
    with pytest.raises(CommandError, match="there is a client mercy already"):
        command("create", "mercy")
    with pytest.raises(CommandError, match="1 to 40 characters"):
        command("create", "Jane Doe")
    with pytest.raises(CommandError, match="no such token"):
        command("revoke", "mercy", "--token", "000000000000")


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "TOKEN_MISSING"),
        ("Basic bWVkcHJvYzp4", "TOKEN_INVALID"),
        ("Bearer", "TOKEN_INVALID"),
        ("Bearer medproc_0123456789ab_" + "x" * 43, "TOKEN_INVALID"),
        ("Bearer " + "x" * 20_000, "TOKEN_INVALID"),
        ("Bearer \x00", "TOKEN_INVALID"),
    ],
)
def test_a_request_without_a_valid_token_is_refused(header: str, code: str) -> None:
    headers = {"Authorization": header} if header else {}

    answers = [
        Client(headers=headers).get(RECORDS),
        Client(headers=headers).get("/api/v1/nothing"),
        Client(headers=headers).post(RECORDS, b"x" * 100_000, content_type="application/pdf"),
        Client(headers=headers).options(RECORDS),
    ]

    assert {code_of(each) for each in answers} == {(401, code)}
    assert all(each["WWW-Authenticate"].startswith("Bearer") for each in answers)
    assert not any("Access-Control-Allow-Origin" in each for each in answers)


def test_a_disabled_client_and_a_logged_in_person_get_nothing() -> None:
    program = a_program()
    program.api_client.user.is_active = False
    program.api_client.user.save()
    person = client_of("administrator")

    assert code_of(program.get(RECORDS)) == (401, "TOKEN_INVALID")
    assert code_of(person.get(RECORDS)) == (401, "TOKEN_MISSING")
    assert code_of(person.get(f"{RECORDS}?token={program.token}")) == (401, "TOKEN_MISSING")


def test_a_missing_scope_is_named_and_a_refused_action_is_audited() -> None:
    program = a_program(scopes=[TokenScope.READ])

    answer = program.submit(b"%PDF-1.4")

    assert code_of(answer) == (403, "SCOPE_MISSING")
    assert 'error="insufficient_scope", scope="records:write"' in answer["WWW-Authenticate"]
    (event,) = audit_events().filter(result="refused")
    assert (event.actor, event.facts["scope"]) == ("api.mercy", "records:write")


def test_every_wrong_address_or_method_is_a_problem_and_never_a_page() -> None:
    program = a_program()

    answers = {
        "unknown": program.get("/api/v1/nothing"),
        "slash": program.get(f"{RECORDS}/"),
        "root": program.get("/api/"),
        "id": program.get(f"{RECORDS}/jane-doe"),
        "method": program.delete(RECORDS),
        "nul": program.get(f"{RECORDS}?status=%00"),
        "host": program.get(RECORDS, HTTP_HOST="elsewhere.example"),
    }

    found = {name: code_of(answer) for name, answer in answers.items()}
    assert found == {
        "unknown": (404, "NOT_FOUND"),
        "slash": (404, "NOT_FOUND"),
        "root": (404, "NOT_FOUND"),
        "id": (404, "NOT_FOUND"),
        "method": (405, "METHOD_NOT_ALLOWED"),
        "nul": (400, "REQUEST_MALFORMED"),
        "host": (400, "REQUEST_MALFORMED"),
    }
    assert set(answers["method"]["Allow"].split(", ")) == {"GET", "POST"}
    assert all(each["Cache-Control"] == "no-store" for each in answers.values())


def test_a_client_with_too_many_requests_waits_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch, redis_db: Any
) -> None:
    monkeypatch.setattr("api.throttle.CLIENT_REQUESTS", 2)
    busy, quiet = a_program(), a_program("general")

    found = [busy.get(RECORDS) for _ in range(5)]

    # A minute can end between two of the requests.
    refused = [each for each in found if each.status_code != HTTPStatus.OK]
    assert refused
    assert {code_of(each) for each in refused} == {(429, "TOO_MANY_REQUESTS")}
    assert 0 < int(refused[0]["Retry-After"]) <= 60
    assert quiet.get(RECORDS).status_code == HTTPStatus.OK
    assert limits.CLIENT_REQUESTS == 1_200


def test_no_token_and_no_word_of_an_address_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    program = a_program()
    caplog.set_level("INFO")

    program.get("/api/v1/jane-doe?name=jane")
    program.get(f"{RECORDS}/jane-doe")
    program.delete(RECORDS)

    assert program.token not in caplog.text
    for path in ("/api/v1/jane-doe", f"{RECORDS}/jane-doe", "/api/jane"):
        assert "jane" not in str(allowed(f"GET {path} HTTP/1.1"))
    assert allowed(f"GET {RECORDS} HTTP/1.1") == f"GET {RECORDS} HTTP/1.1"
    assert logging.getLogger("api").level == logging.INFO
