"""`insert_rows` stores what `bulk_create` stores, in one statement."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline.models import Chunk, ZoneResult
from pipeline.models.insertion import insert_rows
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

pytestmark = pytest.mark.django_db

OWN = {"id", "zone_index", "created_at"}
NAMES = "é \u2028 \" ' \\ 😀"


def stored(row: ZoneResult) -> dict[str, Any]:
    """Return the columns of a stored row that the two ways must agree on."""
    values: dict[str, object] = dict(ZoneResult.objects.filter(id=row.id).values().get())
    return {name: value for name, value in values.items() if name not in OWN}


@pytest.fixture
def zone(tmp_path: Path) -> dict[str, Any]:
    """Return the columns of a zone of a stored record."""
    records.submit(short_record(tmp_path / "one.pdf", 1))
    for step in ("pages", "pass05", "pass1", "pass2"):
        run_step.run_step(step)
    zone = ZoneResult.objects.get()
    values: dict[str, object] = dict(ZoneResult.objects.filter(id=zone.id).values().get())
    plain = ("healthcare_encounter_id", "processing_session_id", "zone_type", "entity_ids")
    return {name: values[name] for name in plain}


@pytest.fixture(autouse=True)
def passes(settings: Any) -> None:
    """Run the record up to Pass 2."""
    settings.SKIPPED_PASSES = ("pass1_5", "pass3")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"output": None, "error_message": "", "entity_ids": []},
        {"output": {NAMES: [1.5, None, True, NAMES]}, "error_message": NAMES},
        {"started_at": datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC), "attempt_count": 3},
    ],
    ids=["plan", "empty", "signs", "times"],
)
def test_a_row_is_stored_as_bulk_create_stores_it(zone: dict[str, Any], more: Any) -> None:
    common = {**zone, "page_range_start": 1, "page_range_end": 2, "spans": [[1, 0, 9]], **more}
    known = {f.name for f in ZoneResult._meta.concrete_fields} | {*zone}
    assert {*common} <= known
    one, other = (ZoneResult(zone_index=n, **common) for n in (1_001, 1_002))
    ZoneResult.objects.bulk_create([one])

    insert_rows([other])

    assert stored(other) == stored(one)
    assert ZoneResult.objects.get(id=other.id).created_at is not None


def test_many_rows_need_one_statement(zone: dict[str, Any]) -> None:
    rows = [
        ZoneResult(zone_index=n, page_range_start=1, page_range_end=1, spans=[], **zone)
        for n in range(1_001, 2_001)
    ]

    with CaptureQueriesContext(connection) as queries:
        insert_rows(rows)

    assert len(queries) == 1
    assert ZoneResult.objects.filter(zone_index__gt=1_000).count() == 1_000


def test_no_rows_need_no_statement() -> None:
    with CaptureQueriesContext(connection) as queries:
        insert_rows([])

    assert len(queries) == 0


def test_a_row_of_nothing_is_refused_as_the_database_refuses_the_row() -> None:
    from django.db import IntegrityError

    with pytest.raises(IntegrityError):
        insert_rows([Chunk(id=uuid4(), chunk_index=0)])
