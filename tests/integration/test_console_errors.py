"""Browser input that no column can hold gets one clear line on an error page of the console."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.views.defaults import server_error

from tests.integration.test_role_matrix import OUR_TABLES, url_of
from tests.support.url_matrix import PAGES, targets

pytestmark = pytest.mark.django_db
MOMENT = "2026-01-01T00:00:00"
BAD = (
    f"{MOMENT}+23:59~{uuid4()}",
    f"0001-01-01T00:00:00+23:59~{uuid4()}",
    "9999-12-31T23:59:59-23:59",
    "9" * 30,
    "-" + "9" * 5000,
    "\N{SUPERSCRIPT TWO}\ufffe",
)
NAMES = (
    "after", "from", "to", "until", "since", "hours", "window", "page", "p", "q", "o", "is", "all",
    "size", "shown", "older", "node", "source", "target", "step", "code", "model", "status",
    "group", "left", "right", "action", "actor", "e", "_popup", "_to_field", "priority", "call",
)  # fmt: skip
ERRORS = ("400.html", "403.html", "404.html", "500.html", "503.html", "403_csrf.html")


@pytest.fixture
def client(db: None) -> Client:
    """Return a client with every right that receives the server's error pages."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("everyone"))
    return client


def test_no_content_of_a_query_breaks_a_page(client: Client) -> None:
    known = targets()
    pages = {url_of(checked_url, known).partition("?")[0] for checked_url in PAGES}
    # All fields at once, and then each field alone, because one refusal would hide another.
    together: tuple[tuple[str, ...], ...] = (("after",), NAMES)
    asked = [(url, names, value) for url in pages for names in together for value in BAD]
    tables = [
        reverse(f"admin:{each._meta.app_label}_{each._meta.model_name}_changelist")
        for each in OUR_TABLES
    ]
    asked += [(url, ("p", "o", "q", "e"), "9" * 30) for url in tables]

    broken = []
    for url, names, value in asked:
        status = client.get(url, dict.fromkeys(names, value)).status_code
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            broken.append((url, len(names), value[:40]))

    assert broken == []


@pytest.mark.parametrize("digits", [10, 19, 30, 5000])
def test_no_number_or_key_in_a_path_breaks_a_page(client: Client, digits: int) -> None:
    known, number = targets(), "9" * digits
    record = f"/admin/records/{known['record']}/pages/{number}/"
    tables = [f"/admin/pipeline/{each._meta.model_name}/{number}/" for each in OUR_TABLES]
    urls = [record, f"{record}image/", f"/admin/r/{number}/{number}/"]
    urls += [f"{table}{what}/" for table in tables for what in ("change", "history", "delete")]

    statuses = {url: client.get(url).status_code for url in urls}

    assert {u: s for u, s in statuses.items() if s >= HTTPStatus.INTERNAL_SERVER_ERROR} == {}


def test_a_byte_that_no_column_holds_is_refused_in_every_field(client: Client) -> None:
    session = client.cookies["sessionid"].value
    asked = [
        client.get("/admin/pipeline/page/%00/change/"),
        client.get("/admin/search/?q=%00"),
        client.get("/admin/records/?%00=1"),
        client.get("/admin/pipeline/page/?q=a%00b"),
        client.post("/admin/login/", {"username": "a\0b", "password": "a"}),
    ]
    client.cookies["sessionid"] = f"{session}\0"
    asked.append(client.get("/admin/"))

    assert [each.status_code for each in asked] == [HTTPStatus.BAD_REQUEST] * 6
    assert "Invalid request" in asked[0].content.decode()


@pytest.mark.parametrize("template", ERRORS)
def test_an_error_page_has_the_consoles_frame_and_reads_no_database(template: str) -> None:
    with CaptureQueriesContext(connection) as asked:
        page = render_to_string(template)

    assert len(asked) == 0
    assert "console/console.css" in page
    assert len(re.findall("c-verdict", page)) == 1
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", page)


def test_each_refusal_has_its_own_page(client: Client) -> None:
    known: dict[str, Any] = {
        "Not found": client.get("/admin/records/Jane-Doe/"),
        "Invalid request": client.get("/admin/pipeline/page/?text__icontains=e"),
        "Something went wrong": server_error(RequestFactory().get("/")),
    }
    strict = Client(enforce_csrf_checks=True)
    known["Form not accepted"] = strict.post("/admin/login/", {"username": "a"})
    User.objects.create_user("no-role", is_staff=True)
    client.force_login(User.objects.get(username="no-role"))
    known["Not allowed"] = client.get(reverse("admin:overview"))

    for name, answer in known.items():
        page = answer.content.decode()
        assert f"<h1>{name}</h1>" in page
        assert "Jane" not in page
    assert 'aria-label="Console"' in known["Not found"].content.decode()


def test_a_log_in_without_a_target_leads_to_the_console() -> None:
    User.objects.create_user("someone", is_staff=True, password="for-tests-only-0000")

    answer = Client().post(
        "/admin/login/", {"username": "someone", "password": "for-tests-only-0000"}
    )

    assert answer.headers["Location"] == "/admin/"
