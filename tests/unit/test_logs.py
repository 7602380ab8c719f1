"""The logs of a request hold path shapes and error types, and nothing that a person typed."""

from __future__ import annotations

import logging
from http import HTTPStatus

import pytest
from django.core import exceptions
from django.db import DatabaseError, connection
from django.test import Client

from medproc.logs import REFUSALS, PathsOnly


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        ("GET /admin/pipeline/batch/?q=Jane+Doe HTTP/1.1", "GET /admin/pipeline/batch/ HTTP/1.1"),
        ("GET /admin/records/Jane%20Doe/ HTTP/1.1", "GET (unknown page) HTTP/1.1"),
        (
            "GET /admin/pipeline/page/Jane/change/ HTTP/1.1",
            "GET /admin/pipeline/page/<path:object_id>/change/ HTTP/1.1",
        ),
        ("GET /admin/records/Jane Doe/ HTTP/1.1", "GET (unknown page) HTTP/1.1"),
        ("GET /Jane HTTP/1.1", "GET (unknown page) HTTP/1.1"),
        ("GET /static/console/console.css HTTP/1.1", "GET /static/console/console.css HTTP/1.1"),
        ("/Jane/Doe", "(unknown page)"),
    ],
)
def test_no_query_string_and_no_unknown_path_is_logged(said: str, logged: str | None) -> None:
    record = logging.LogRecord(
        "django.server", logging.INFO, "x.py", 1, '"%s" %s %s', (said, "200", "56"), None
    )

    assert PathsOnly().filter(record)

    assert "Jane" not in record.getMessage()
    if not said.startswith("/"):
        assert record.getMessage() == f'"{logged}" 200 56'


def test_a_record_without_a_url_stays_as_it_is() -> None:
    record = logging.LogRecord("django.server", logging.INFO, "x.py", 1, "%d served", (3,), None)

    assert PathsOnly().filter(record)

    assert record.getMessage() == "3 served"


@pytest.mark.django_db
def test_a_database_error_is_logged_by_type_and_place_without_its_words() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'Jane CANARY'::jsonb")
    except DatabaseError as error:
        told = (type(error), error, error.__traceback__)
    record = logging.LogRecord(
        "django.request", logging.ERROR, "x.py", 1, "%s: %s",
        ("Internal Server Error", "/admin/overview/"), told,
    )  # fmt: skip

    assert PathsOnly().filter(record)

    written = logging.Formatter().format(record)
    assert "CANARY" not in written
    assert "Internal Server Error: /admin/overview/: DataError" in written
    assert "test_logs." in written


@pytest.mark.django_db
def test_neither_a_path_nor_a_parameter_that_was_typed_comes_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from django.contrib.auth.models import User

    client = Client()
    client.force_login(User.objects.create_superuser("everyone"))

    asked = [
        client.get("/admin/records/Jane CANARYPATH/"),
        client.get("/admin/pipeline/page/?CANARYNAME=1"),
        client.get("/admin/pipeline/page/?_to_field=CANARYFIELD"),
        client.get("/admin/", headers={"host": "CANARYHOST.example"}),
    ]

    statuses = [each.status_code for each in asked]
    assert statuses == [HTTPStatus.NOT_FOUND, *[HTTPStatus.BAD_REQUEST] * 3]
    assert "CANARY" not in caplog.text
    assert "Jane" not in caplog.text
    assert "Not Found" in caplog.text


def test_each_refusal_of_django_is_known_by_its_logger() -> None:
    known = {
        each.__name__
        for each in vars(exceptions).values()
        if isinstance(each, type) and issubclass(each, exceptions.SuspiciousOperation)
    }

    assert known <= set(REFUSALS)
