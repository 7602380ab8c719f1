"""Swapped replies are detected by their tokens alone, thrown away, and reported."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from pipeline.models import Batch, Entity, Job, ProviderCall
from pipeline.providers.prompts import Question
from pipeline.workers import run_step
from tests.support import records
from tests.support.lying_model import lying_model
from tests.support.short_records import DRUG, PATIENT, short_record

pytestmark = pytest.mark.django_db

TOGETHER_S = 180.0


def test_swapped_replies_raise_an_alarm_and_never_reach_the_entities(
    tmp_path: Path, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.LEASE_S, settings.CALL_DEADLINE_S = 2400, 2400.0
    received = records.submit(short_record(tmp_path / "record.pdf", 2))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    tokens: list[str] = []
    both = Barrier(2, timeout=TOGETHER_S)

    def say(question: Question) -> dict[str, Any]:
        (page,) = (s.page for s in question.slices)
        # The reply fits this page exactly: only its token shows that the reply belongs elsewhere.
        found = {"category": "medication", "page": page, "quote": DRUG}
        if question.item_token in tokens:
            return {"entities": [{**found, "name": "honest"}]}
        tokens.append(question.item_token)
        both.wait()
        (other,) = set(tokens) - {question.item_token}
        return {"item_token": other, "entities": [{**found, "name": "swapped"}]}

    with lying_model(say), caplog.at_level(logging.ERROR):
        run_step.run_step("pass1")

    batches = Batch.objects.filter(pass1_encounter_result__shell_file_id=received.shell_file_id)
    assert Job.objects.get(id=received.job_id).status == "completed"
    for batch in batches:
        calls = ProviderCall.objects.filter(work_item_id=batch.id).order_by("attempt")
        assert list(calls.values_list("outcome", "accepted")) == [
            ("REPLY_MISMATCH", False),
            ("OK", True),
        ]
        assert batch.had_transient_failure
    names = Entity.objects.filter(shell_file_id=received.shell_file_id).values_list("name")
    assert sorted(names) == [("honest",)] * 2
    alarms = [r for r in caplog.records if getattr(r, "action", "") == "reply_mismatch"]
    assert [r.levelname for r in alarms] == ["ERROR"] * 2
    assert {str(batch.id) in r.getMessage() for batch in batches for r in alarms} == {True, False}
    assert not [word for word in (DRUG, PATIENT, "swapped") if word in caplog.text]
