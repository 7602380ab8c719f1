"""A COPY that PostgreSQL refuses raises the errors of Django, so an outage is seen as an outage."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import IntegrityError, InterfaceError, OperationalError, connection

from medproc.env import PROJECT_ROOT
from pipeline.core.copy_rows import copy_rows
from pipeline.core.db_errors import is_away
from pipeline.models import MetricCount

TABLE = MetricCount._meta.db_table
COLUMNS = ("name", "value")
PACKAGES = ("pipeline", "observability", "medproc", "api")


@pytest.mark.django_db
def test_a_row_that_breaks_a_rule_raises_the_error_of_django() -> None:
    with pytest.raises(IntegrityError):
        copy_rows(TABLE, COLUMNS, [(None,) * len(COLUMNS)])


@pytest.mark.usefixtures("cloned_db")
def test_a_connection_that_ends_during_a_copy_is_a_database_that_is_away() -> None:
    def rows() -> Iterator[tuple[Any, ...]]:
        other = connection.copy()
        with closing(other), other.cursor() as cursor:
            cursor.execute("RESET ROLE")
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])
        while True:
            yield ("calls", 1)

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()

    with pytest.raises((OperationalError, InterfaceError)) as caught:
        copy_rows(TABLE, COLUMNS, rows())

    connection.close()
    assert is_away(caught.value)


def test_only_one_module_calls_the_copy_of_a_cursor() -> None:
    calling = {
        str(path.relative_to(PROJECT_ROOT))
        for package in PACKAGES
        for path in (PROJECT_ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        # The `copy` of a dict or set has no argument.
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "copy"
        and node.args
        and ast.unparse(node.func.value) not in {"copy", "shutil"}
    }

    assert calling == {"pipeline/core/copy_rows.py"}
