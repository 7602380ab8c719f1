"""The admin finds a code by its exact text, and a term by the number of its code."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from pipeline.codes.loaders import ensure_loaded, load
from pipeline.models import Code, CodeTerm
from pipeline.models.codes import SystemKey
from tests.support import code_files
from tests.support.databases import as_owner

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer() -> Client:
    """Return the client of a superuser."""
    client = Client()
    client.force_login(User.objects.create_superuser("viewer", password="for-tests-only"))
    return client


def found(viewer: Client, table: str, text: str) -> list[int | str]:
    """Return the keys of the rows that a search finds."""
    response = viewer.get(reverse(f"admin:pipeline_{table}_changelist"), {"q": text})
    return [row.pk for row in response.context["cl"].result_list]


def test_a_search_finds_an_exact_code_in_every_system(viewer: Client, tmp_path: Path) -> None:
    # A search also finds a term by its own key, so no key of a term may equal a key of a code.
    with as_owner(), connection.cursor() as cursor:
        table = CodeTerm._meta.db_table
        cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), 1000000)", [table])
    ensure_loaded([SystemKey.LOINC])
    vaccines = tmp_path / "cvx.txt"
    vaccines.write_text(code_files.CVX)
    load("CVX", vaccines)
    glucose = Code.objects.get(code="2345-7")

    assert found(viewer, "code", " 2345-7 ") == [glucose.pk]
    assert found(viewer, "code", "2345") == []
    assert found(viewer, "codesystem", "loinc") == ["LOINC"]
    assert found(viewer, "codesystem", "%") == []
    assert found(viewer, "codeterm", str(glucose.pk)) == [glucose.terms.get().pk]
    for text in ("glucose", "9" * 30, "-1", "²"):
        assert found(viewer, "codeterm", text) == []
    page = viewer.get(reverse("admin:pipeline_code_change", args=[glucose.pk]))
    assert b"0.05551" in page.content
