"""Each page of the console reads a bounded, indexed number of rows from millions.

`bench/console.py` measures the durations. These tests check the causes of these durations.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse

from observability.admin.base import COUNTED, CappedPaginator
from tests.integration.test_role_matrix import OUR_TABLES, url_of
from tests.support import records
from tests.support.url_matrix import PAGES, CheckedUrl, more, targets

pytestmark = pytest.mark.django_db

LIST_STATEMENTS = 7
"""The user (two), the transaction with its limit (three), the count, and the rows."""
ROW_STATEMENTS = 13
"""The user, the transaction, the row, and the name of each row that the row refers to."""
FEW_ROWS = {
    "incidents", "incident_jobs", "pauses", "periodic_task_runs", "record_batches",
    "rate_limit_counts", "metric_counts", "file_sweeps", "audit_checks", "extraction_flights",
    "sla_snapshots", "api_clients", "api_tokens", "api_webhook_endpoints", "federated_identities",
}  # fmt: skip
"""Tables that grow with incidents, operators, submissions and running jobs instead of records."""
READ_IN_LISTS = {"review_flags", "labels"}
"""JSON columns that a list shows."""


def shown(model: type[models.Model]) -> Any:
    """Return the admin of a table."""
    return admin.site.get_model_admin(model)


def named(model: type[models.Model]) -> str:
    """Return the name of a table's test."""
    return model._meta.db_table


def url(model: type[models.Model], what: str, *args: Any) -> str:
    """Return a URL of a table."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{what}", args=args)


def indexes() -> dict[str, list[str]]:
    """Return the definitions of all indexes, by table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename, array_agg(indexdef) FROM pg_indexes GROUP BY 1")
        return dict(cursor.fetchall())


def is_indexed(definitions: list[str], column: str) -> bool:
    """Return whether a column comes first in an index, or makes a partial one."""
    first = re.compile(rf"USING btree \(\"?{column}\b|WHERE .*\b{column}\b")
    return any(first.search(definition) for definition in definitions)


@pytest.fixture
def client(db: None) -> Client:
    """Return a client with every right."""
    client = Client()
    client.force_login(User.objects.create_superuser("everyone"))
    return client


@pytest.mark.parametrize("model", OUR_TABLES, ids=named)
def test_a_list_counts_to_a_cap_and_has_neither_facets_nor_a_hierarchy_of_dates(
    model: type[models.Model],
) -> None:
    of = shown(model)
    filters: list[Any] = [model._meta.get_field(name) for name in of.list_filter]

    assert COUNTED == 10_001
    assert issubclass(of.paginator, CappedPaginator)
    assert of.show_facets is admin.ShowFacets.NEVER
    assert of.show_full_result_count is False
    assert of.date_hierarchy is None
    assert of.list_per_page <= 100
    assert of.actions is None
    assert [
        f.name for f in filters if not f.choices and f.get_internal_type() != "BooleanField"
    ] == []


@pytest.mark.parametrize("model", OUR_TABLES, ids=named)
def test_a_list_reads_no_payload(model: type[models.Model]) -> None:
    request = RequestFactory().get(url(model, "changelist"))
    request.resolver_match = resolve(request.path)
    of = shown(model)
    heavy = {
        field.name
        for field in model._meta.fields
        if field.get_internal_type() in {"JSONField", "BinaryField"}
    }

    _, is_deferred = of.get_queryset(request).query.deferred_loading
    deferred = of.get_queryset(request).query.deferred_loading[0]

    assert is_deferred
    assert heavy - deferred <= READ_IN_LISTS
    assert not deferred & set(of.list_display)


def test_every_column_that_orders_filters_or_searches_a_list_is_indexed() -> None:
    known, missing = indexes(), []
    for model in OUR_TABLES:
        table, of = model._meta.db_table, shown(model)
        if table in FEW_ROWS:
            continue
        columns = {of.ordering[0].lstrip("-"), *of.list_filter, *of.id_fields}
        columns = {model._meta.pk.attname if name == "pk" else name for name in columns}
        missing += [
            f"{table}.{name}" for name in sorted(columns) if not is_indexed(known[table], name)
        ]

    assert missing == []


def test_a_search_for_an_id_does_not_look_at_every_row(client: Client) -> None:
    for model in OUR_TABLES:
        with CaptureQueriesContext(connection) as asked:
            found = client.get(url(model, "changelist"), {"q": "lisinopril"})

        assert found.context["cl"].result_count == 0, model
        assert not [q for q in asked if "LIKE" in q["sql"].upper()], model


def number_of(client: Client, where: str, answer: HTTPStatus = HTTPStatus.OK) -> int:
    """Count the statements of a page in a process that has just started."""
    ContentType.objects.clear_cache()
    with CaptureQueriesContext(connection) as asked:
        response = client.get(where)
        number = len(asked)
    assert response.status_code == answer, where
    return number


def test_every_list_and_row_asks_the_same_number_of_few_rows_and_of_many(client: Client) -> None:
    records.completed_record()
    rows = {model: row for model in OUR_TABLES if (row := model._default_manager.first())}
    asked = [url(model, "changelist") for model in OUR_TABLES]
    asked += [url(model, "change", row.pk) for model, row in rows.items()]
    few = {where: number_of(client, where) for where in asked}
    records.completed_record()
    targets()
    more()

    many = {where: number_of(client, where) for where in asked}

    assert many == few
    assert max(many[url(model, "changelist")] for model in OUR_TABLES) <= LIST_STATEMENTS
    assert max(many.values()) <= ROW_STATEMENTS
    assert len(rows) > 15


def test_every_page_asks_the_same_number_of_few_rows_and_of_many(client: Client) -> None:
    known = targets()
    few = {
        checked_url.title: number_of(client, url_of(checked_url, known), checked_url.answer)
        for checked_url in PAGES
    }
    more()

    many = {
        checked_url.title: number_of(client, url_of(checked_url, known), checked_url.answer)
        for checked_url in PAGES
    }

    assert many == few
    assert [
        title(checked_url, many)
        for checked_url in PAGES
        if many[checked_url.title] > checked_url.statements
    ] == []


def title(checked_url: CheckedUrl, numbers: dict[str, int]) -> str:
    """Name the number of statements that a page has, and may have."""
    return f"{checked_url.title}: {numbers[checked_url.title]}, not {checked_url.statements}"
