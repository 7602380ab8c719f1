"""The number of rows that the engine did not understand, from the flush to the console."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import reverse

from observability.drilldown.explain import drill_down
from pipeline.models import EncounterResult, Entity, EntityMetrics, selectors
from tests.support import records
from tests.support.short_records import short_record
from tests.support.users import client_of

ROWS = ("LABORATORY RESULTS", "Chloride 99 qwx mmol/L 98-107", "Sodium 139 mmol/L 135-145")


@pytest.fixture
def record(db: None, redis_db: object, tmp_path: Path) -> str:
    path = short_record(tmp_path / "visit.pdf", 2, more=ROWS)
    return str(records.completed_record(path).id)


def test_rows_that_were_not_understood_are_counted_once_and_shown(
    record: str,
) -> None:
    rows = Entity.objects.filter(
        shell_file_id=record, review_flags__contains=["row_not_understood"]
    )
    assert [(row.name, row.value, row.accepted) for row in rows] == [("Chloride", None, False)] * 2

    results = EncounterResult.objects.filter(shell_file_id=record)
    assert [r.total_rows_not_understood for r in results] == [1, 1]
    assert EntityMetrics.objects.get(shell_file_id=record).rows_not_understood == 2
    (progress,) = selectors.progress([results[0].shell_file_id]).values()
    assert progress.rows_not_understood == 2

    found = drill_down(record)
    assert found.root.counts["not_understood"] == 2
    assert "Look at: 2 rows not understood, published without a value" in found.answer

    page = client_of("operator").get(reverse("admin:record", args=[record])).content.decode()
    assert "<b>2 rows</b> not understood" in page
