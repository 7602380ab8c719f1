"""A reply that names an encounter of another record is thrown away with ENCOUNTER_NOT_FOUND."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from pipeline.models import Batch, Encounter, Entity, Job, ProviderCall
from pipeline.providers.prompts import Question
from pipeline.workers import run_step
from tests.support import records
from tests.support.lying_model import lying_model
from tests.support.short_records import DRUG, short_record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]


@pytest.mark.parametrize("place", ["reply", "entity"])
def test_a_reply_about_another_records_encounter_fails_its_batch(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = records.completed_record(short_record(tmp_path / "other.pdf", 1, drug="lisinopril"))
    foreign = str(Encounter.objects.get(shell_file=other).id)
    received = records.submit(short_record(tmp_path / "record.pdf", 2))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    own = {e.page_start: str(e.id) for e in Encounter.objects.exclude(shell_file=other)}

    def say(question: Question) -> dict[str, Any]:
        (page,) = (s.page for s in question.slices)
        entity = {"category": "medication", "page": page, "quote": DRUG, "name": DRUG}
        named = foreign if page == 2 else own[page]
        if place == "entity":
            return {"entities": [{**entity, "encounter_id": named}]}
        return {"encounter_id": named, "entities": [entity]}

    with lying_model(say), caplog.at_level(logging.ERROR):
        run_step.run_step("pass1")

    job = Job.objects.get(id=received.job_id)
    good, bad = Batch.objects.filter(
        pass1_encounter_result__shell_file_id=received.shell_file_id
    ).order_by("page_range_start")
    assert (job.status, job.error_code) == ("failed", "ENCOUNTER_NOT_FOUND")
    assert (good.status, bad.status, bad.error_code) == (
        "succeeded",
        "failed",
        "ENCOUNTER_NOT_FOUND",
    )
    assert bad.attempt_count == 1
    assert [c.outcome for c in ProviderCall.objects.filter(work_item_id=bad.id)] == [
        "ENCOUNTER_NOT_FOUND"
    ]
    visible = Entity.objects.filter(shell_file_id=received.shell_file_id)
    assert set(visible.values_list("page_number", flat=True)) == {1}
    actions = [getattr(record, "action", "") for record in caplog.records]
    assert actions.count("encounter_not_found") == 1
