"""The admin's filters reveal no hidden column, and each list reads a bounded number of rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from medproc import reading
from observability.admin.base import OF_THE_SENDER
from observability.permissions import Role
from pipeline.models import Page, Patient, ShellFile, Summary
from tests.integration.test_role_matrix import OUR_TABLES, TABLES
from tests.support import records
from tests.support.databases import as_owner
from tests.support.rows import a_job
from tests.support.users import client_of

pytestmark = pytest.mark.django_db
KINDS = (
    "", "__exact", "__iexact", "__contains", "__icontains", "__startswith", "__istartswith",
    "__endswith", "__regex", "__iregex", "__gt", "__gte", "__lt", "__lte", "__in", "__isnull",
    "__range", "__length", "__year", "__date__gte", "__a_key", "__0__a_key__startswith", "__len",
    "__md5", "__has_key",
)  # fmt: skip


def list_of(model: type[models.Model]) -> str:
    """Return the URL of a table's list."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def columns(model: type[models.Model]) -> Iterator[str]:
    """Return each column of a table, and of the tables related to the table in either direction."""
    for field in model._meta.get_fields():
        yield field.name
        if isinstance(field, models.Field):
            yield field.attname
        if isinstance(beside := field.related_model, type):
            yield from (f"{field.name}__{each.name}" for each in beside._meta.get_fields())


@pytest.mark.parametrize("model", OUR_TABLES, ids=lambda model: str(model._meta.db_table))
def test_a_list_is_filtered_by_nothing_but_its_own_filters(model: type[models.Model]) -> None:
    of: Any = admin.site.get_model_admin(model)
    its_own = {f"{name}__{kind}" for name in of.list_filter for kind in ("exact", "isnull")}
    asked = {f"{name}{kind}" for name in {*columns(model), "pk"} for kind in KINDS} - its_own

    assert len(asked) > 20 * len(model._meta.fields)
    assert [lookup for lookup in asked if of.lookup_allowed(lookup, "a", None)] == []
    assert [lookup for lookup in its_own if of.lookup_allowed(lookup, "a", None)] == []


def test_a_viewer_learns_nothing_of_a_column_from_the_answers_of_a_list() -> None:
    record, client = records.completed_record(patient_reference="R-77"), client_of(Role.VIEWER)
    known = record.original_filename[0]
    asked = [
        (Patient, "reference__startswith", "R-77"),
        (Patient, "reference", "R-77"),
        (Page, "text__icontains", "e"),
        (Page, "text__regex", "(e+)+$"),
        (Page, "words__0__isnull", "True"),
        (Page, "shell_file__original_filename__startswith", known),
        (ShellFile, "original_filename__startswith", known),
        (ShellFile, "patient__reference", "R-77"),
        (Summary, "ip_address", "127.0.0.1"),
        (ShellFile, "status__gte", "a"),
    ]

    answers = [client.get(list_of(model), {lookup: value}) for model, lookup, value in asked]

    assert {each.status_code for each in answers} == {HTTPStatus.BAD_REQUEST}
    assert len({each.content for each in answers}) <= 2, "they differ by the second at most"


def test_a_list_can_be_ordered_only_by_columns_that_it_shows() -> None:
    for model in OUR_TABLES:
        of: Any = admin.site.get_model_admin(model)
        assert not {*of.list_display, *(of.sortable_by or ())} & {*of.phi, *OF_THE_SENDER}, model
        assert of.search_fields == ("pk",), model


def test_each_filter_that_a_list_offers_is_taken() -> None:
    records.completed_record()
    client = client_of(Role.ADMINISTRATOR)

    for model in OUR_TABLES:
        listed = client.get(list_of(model))
        for spec in listed.context["cl"].filter_specs:
            for choice in spec.choices(listed.context["cl"]):
                found = client.get(list_of(model) + choice["query_string"])
                assert found.status_code == HTTPStatus.OK, (model, choice)


def test_a_user_who_grants_roles_learns_nothing_of_a_password() -> None:
    client = client_of(Role.ADMINISTRATOR)
    kinds = ("__startswith", "__regex", "__gte", "")
    paths = ("password", "user__password", "groups__user__password")

    for model in set(TABLES) - set(OUR_TABLES):
        plain = client.get(list_of(model)).context["cl"].result_count
        for lookup in (f"{path}{kind}" for path in paths for kind in kinds):
            found = client.get(list_of(model), {lookup: "pbkdf2"})
            refused = found.status_code in {HTTPStatus.BAD_REQUEST, HTTPStatus.FOUND}
            assert refused or found.context["cl"].result_count == plain, (model, lookup)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
def test_the_source_of_a_record_is_shown_to_readers_of_phi_only(role: Role) -> None:
    record = records.completed_record(
        idempotency_key="night-of-R-77", user_agent="an-agent/1.0", ip_address="192.0.2.7"
    )
    client = client_of(role)

    pages = [
        client.get(reverse(f"admin:pipeline_{name}_change", args=[row.pk])).content.decode()
        for name, row in (("shellfile", record), ("summary", Summary.objects.get()))
    ]

    told = [
        word in "".join(pages)
        for word in ("night-of-R-77", record.storage_key, "an-agent/1.0", "192.0.2.7")
    ]
    assert told == [role is Role.REVIEWER] * 4


def test_each_page_of_a_table_is_read_only_and_has_a_time_limit() -> None:
    record, client = records.completed_record(), client_of(Role.VIEWER)
    at = [record.pk]
    urls = [
        list_of(ShellFile),
        reverse("admin:pipeline_shellfile_change", args=at),
        reverse("admin:pipeline_shellfile_history", args=at),
    ]

    for url in urls:
        with CaptureQueriesContext(connection) as asked:
            assert client.get(url).status_code == HTTPStatus.OK
        said = [query["sql"] for query in asked]
        (begun,) = [n for n, sql in enumerate(said) if "transaction_read_only" in sql]
        (ended,) = [n for n, sql in enumerate(said) if sql.startswith("RELEASE SAVEPOINT")]
        read = [n for n, sql in enumerate(said) if '"shell_files"' in sql]
        assert all(begun < n < ended for n in read), url


def test_a_page_that_takes_too_long_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(Role.VIEWER)
    # A join with an empty table can end before the slow table is read.
    a_job()
    monkeypatch.setattr(reading, "PAGE_DEADLINE_MS", 100)
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE shell_files RENAME TO kept")
        # Without OFFSET 0 the planner may begin with the empty table, and then nothing sleeps.
        cursor.execute(
            "CREATE VIEW shell_files AS"
            " SELECT kept.* FROM pg_sleep(60) LEFT JOIN kept ON true OFFSET 0"
        )
        cursor.execute("GRANT SELECT ON shell_files TO PUBLIC")

    with caplog.at_level(logging.INFO):
        answers = [
            client.get(list_of(ShellFile), {"_popup": "CANARY"}),
            client.get(reverse("admin:records")),
        ]

    for answer in answers:
        assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert "took too long" in answer.content.decode()
    assert "took more than" in caplog.text
    assert "CANARY" not in caplog.text
    assert "shell_files" not in caplog.text
