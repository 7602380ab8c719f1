"""A log-in ends after a time without a request, and after a time since its beginning."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from observability.entry.sessions import BEGAN, SEEN
from observability.permissions import Role
from tests.support.users import client_of

pytestmark = pytest.mark.django_db
PAGE = "/admin/tables/"


@pytest.fixture(autouse=True)
def _default(settings: Any) -> None:
    settings.SESSION_IDLE_S = 1_800.0


def aged(client: Client, key: str, seconds: float) -> None:
    session = client.session
    session[key] = time.time() - seconds
    session.save()


@pytest.mark.parametrize(
    ("key", "age_s", "words"),
    [
        (SEEN, 1801, "Your session ended after 30 min without a request. Log in again."),
        (BEGAN, 43_201, "Your session ended 12 h after the log-in."),
    ],
)
def test_a_session_ends_and_the_log_in_page_says_why(key: str, age_s: float, words: str) -> None:
    client = client_of(Role.VIEWER)
    aged(client, key, age_s)

    ended = client.get(PAGE)

    assert ended.status_code == 302
    assert words in client.get(ended["Location"]).content.decode()
    assert client.get(PAGE).status_code == 302


@pytest.mark.parametrize(("key", "age_s"), [(SEEN, 1790), (BEGAN, 43_190)])
def test_a_session_in_use_stays(key: str, age_s: float) -> None:
    client = client_of(Role.VIEWER)
    aged(client, key, age_s)

    assert client.get(PAGE).status_code == 200


def test_requests_keep_a_session_alive_to_its_longest_time() -> None:
    client = client_of(Role.VIEWER)
    for age_s in range(0, 43_200, 1_700):
        aged(client, BEGAN, age_s)
        aged(client, SEEN, 1_700)
        assert client.get(PAGE).status_code == 200

    aged(client, BEGAN, 43_300)
    assert client.get(PAGE).status_code == 302


def test_a_log_out_deletes_the_session_and_what_the_browser_has_kept() -> None:
    client = client_of(Role.VIEWER)
    key = client.session.session_key

    ended = client.post("/admin/logout/")

    assert ended["Clear-Site-Data"] == '"cache", "storage"'
    client.cookies["sessionid"] = str(key)
    assert client.get(PAGE).status_code == 302


def test_a_session_without_a_beginning_has_ended() -> None:
    client = client_of(Role.VIEWER)
    session = client.session
    del session[BEGAN]
    session.save()

    assert client.get(PAGE).status_code == 302


def test_a_session_is_written_once_a_minute() -> None:
    client = client_of(Role.VIEWER)
    client.get(PAGE)

    assert writes_of(client) == 0
    aged(client, SEEN, 61)
    assert writes_of(client) == 1


def writes_of(client: Client) -> int:
    """Return how often a request writes its session."""
    with CaptureQueriesContext(connection) as captured:
        client.get(PAGE)
    return sum('UPDATE "django_session"' in query["sql"] for query in captured.captured_queries)
