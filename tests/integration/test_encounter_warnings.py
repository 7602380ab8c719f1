"""A warning about encounters names only the pages that the warning is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.models import ShellFile
from pipeline.providers.prompts import Question
from pipeline.workers import run_step
from tests.support import records
from tests.support.lying_model import lying_model
from tests.support.short_records import DRUG, short_record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]


def test_only_encounters_without_entities_are_said_to_have_none(tmp_path: Path) -> None:
    received = records.submit(short_record(tmp_path / "record.pdf", 3))
    run_step.run_step("pages")
    run_step.run_step("pass05")

    def say(question: Question) -> dict[str, Any]:
        (page,) = (s.page for s in question.slices)
        entity = {"category": "medication", "page": page, "quote": DRUG, "name": DRUG}
        return {
            "entities": [] if page == 2 else [entity],
            "unsupported_pages": [page] if page == 1 else [],
        }

    with lying_model(say):
        run_step.run_step("pass1")

    warnings = ShellFile.objects.get(id=received.shell_file_id).warnings
    about_pages = {each["code"]: each["pages"] for each in warnings if each["pages"]}
    assert about_pages == {"LANGUAGE_UNSUPPORTED": [1], "NO_ENTITIES_FOUND": [2]}


def test_a_date_of_service_in_an_open_order_is_left_out_and_named(tmp_path: Path) -> None:
    more = ("Referred 14/07/2020, seen 07/14/2020.",)
    received = records.submit(short_record(tmp_path / "record.pdf", 1, more=more))
    run_step.run_step("pages")
    run_step.run_step("pass05")

    record = ShellFile.objects.get(id=received.shell_file_id)
    (encounter,) = record.encounters.all()
    assert encounter.encounter_date_start is None
    assert [(each["code"], each["pages"]) for each in record.warnings] == [("DATE_UNCLEAR", [1])]
