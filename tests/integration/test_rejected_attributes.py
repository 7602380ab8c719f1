"""A warning about rejected attributes outlives the run of the step that rejected them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.models import EnrichedEntity, Session, ShellFile, Summary, ZoneResult
from pipeline.operations import operator_actions
from pipeline.providers.local import answer_to
from pipeline.providers.prompts import Question
from pipeline.workers import run_step
from tests.support import records
from tests.support.lying_model import lying_model
from tests.support.short_records import short_record


@pytest.mark.django_db
def test_a_retry_keeps_the_warning_about_an_encounter_that_was_published_before(
    tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    settings.SKIPPED_PASSES = ("pass1_5", "pass3")
    received = records.submit(short_record(tmp_path / "record.pdf", 2))
    for step in ("pages", "pass05", "pass1"):
        run_step.run_step(step)
    broken = True

    def say(question: Question) -> dict[str, Any]:
        if question.slices[0].page == 2 and broken:
            return {"entities": "none"}
        entities = answer_to(question).model_dump(mode="json")["entities"]
        if question.slices[0].page == 1:
            # Two different answers about one entity.
            entities.append({"id": "e1", "severity": "an answer that contradicts the first"})
        return {"entities": entities}

    with lying_model(say), records.no_breaker():
        run_step.run_step("pass2")
        assert {zone.status for zone in ZoneResult.objects.all()} == {"succeeded", "failed"}
        operator_actions.record_retry(received.shell_file_id, reason="a test")
        broken = False
        run_step.run_step("pass2")

    record = ShellFile.objects.get(id=received.shell_file_id)
    assert record.status == "pass2_complete"
    (warning,) = [each for each in record.warnings if each["code"] == "ITEM_REJECTED"]
    assert (warning["pages"], warning["count"]) == ([1], 1)


@pytest.mark.django_db
def test_a_flag_of_pass_2_asks_for_a_review(tmp_path: Path, settings: Any) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    settings.SKIPPED_PASSES = ("pass1_5", "pass3")
    received = records.submit(short_record(tmp_path / "record.pdf", 1))
    for step in ("pages", "pass05", "pass1"):
        run_step.run_step(step)
    asked = Session.objects.filter(shell_file_id=received.shell_file_id)
    before = [each.requires_human_review for each in asked]

    def say(question: Question) -> dict[str, Any]:
        entities = answer_to(question).model_dump(mode="json")["entities"]
        # Nothing on the page says so.
        return {"entities": [each | {"severity": "life-threatening"} for each in entities]}

    with lying_model(say):
        run_step.run_step("pass2")

    assert EnrichedEntity.objects.exclude(flags=[]).exists()
    assert before == [False]
    assert [each.requires_human_review for each in asked.all()] == [True]
    assert Summary.objects.get(shell_file_id=received.shell_file_id).manual_review_required
