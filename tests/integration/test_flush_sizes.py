"""Encounters that end together are published in writes of a limited size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from pipeline.core.states import JobStatus
from pipeline.execution import step_writer
from pipeline.models import Entity, Job
from tests.support import records

LIMIT = 4


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_encounters_that_end_together_are_published_in_writes_of_a_limited_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One write of a long record would hold the results of all encounters in memory at once."""
    monkeypatch.setattr(step_writer, "HELD_RESULTS", LIMIT)
    # No write is due by time, so only the limit causes a write before the end of the step.
    monkeypatch.setattr(step_writer, "FLUSH_S", 3_600.0)
    written: list[int] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if isinstance(params, dict) and "results" in params:
            written.append(len(json.loads(params["results"])))
        return execute(sql, params, many, context)

    received = records.submit(records.LAB)
    with connection.execute_wrapper(note):
        record = records.run_record(received)

    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    of_encounters = [
        Entity.objects.filter(healthcare_encounter=each).count() for each in record.encounters.all()
    ]
    assert sum(written) == sum(of_encounters) > 2 * LIMIT
    assert max(written) <= max(LIMIT, *of_encounters)
