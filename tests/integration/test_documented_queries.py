"""Every SQL statement of the documents runs against the current tables."""

from __future__ import annotations

import re

import pytest
from django.db import connection

from medproc.env import PROJECT_ROOT

BLOCK = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
STATEMENTS = [
    pytest.param(statement, id=f"{document.stem}-{number}")
    for document in sorted((PROJECT_ROOT / "docs").glob("*.md"))
    for number, statement in enumerate(
        statement
        for block in BLOCK.findall(document.read_text(encoding="utf-8"))
        for statement in block.split(";")
        if statement.strip()
    )
]


@pytest.mark.django_db
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_documented_statement_runs(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)

        assert cursor.description
