"""Closed reviews become labelled data that the evaluation reads."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from observability.models import AuditEvent
from pipeline.models import Entity, ReviewItem
from pipeline.operations.review import closing
from pipeline.operations.review.decisions import accept_all_unflagged
from tests.support import records
from tests.support.exported import opened
from tests.support.review_rows import ANNA, a_reviewed_record, claimed, entities_of, says


@pytest.mark.usefixtures("redis_db")
def test_the_evaluation_reads_what_a_review_exports(
    cloned_db: str, tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S = 2400.0
    record = records.completed_record(records.LAB)
    item = claimed(ReviewItem.objects.get(shell_file_id=record.id))
    ReviewItem.objects.update(is_double=False)
    of = Entity.objects.filter(shell_file_id=record.id).order_by("entity_index")
    for entity in of.filter(accepted=False) | of.exclude(review_flags=[]):
        says(item, entity, "reject")
    changed = of.filter(category="lab", verdict=None, value__isnull=False)[0]
    says(item, changed, "correct", value="999")
    accept_all_unflagged(item.id, ANNA, token=uuid4())
    closing.close(item.id, ANNA)
    folder = tmp_path / "labels"

    said, judged = StringIO(), StringIO()
    call_command("export_labels", str(folder), "--json", stdout=said)
    call_command("evaluate", str(folder), "--json", stdout=judged)

    exported = json.loads(said.getvalue())
    results = of.exclude(verdict="rejected").count()
    assert (exported["records"], exported["entities"]) == (1, results - exported["left_out"])
    (path,) = folder.iterdir()
    assert (path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    lines = json.loads(judged.getvalue())["attributes"]
    values = {(line["category"], line["attribute"]): line for line in lines}
    # The engine still reads the value that the reviewer corrected.
    wrong = {key: line for key, line in values.items() if line.get("wrong")}
    assert wrong.keys() == {("lab", "value"), ("all", "")}
    assert wrong["lab", "value"]["wrong"] == 1
    event = AuditEvent.objects.get(action="export_labels")
    assert event.facts["records"] == 1


@pytest.mark.django_db
def test_labels_are_never_written_into_a_folder_with_files(tmp_path: Path) -> None:
    (tmp_path / "other").touch()

    with pytest.raises(CommandError, match="VALUE_INVALID"):
        call_command("export_labels", str(tmp_path))

    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_an_export_leaves_out_what_rests_on_an_entity_that_a_reviewer_rejected(
    cloned_db: str,
) -> None:
    item = claimed(a_reviewed_record(entities=2))
    kept, rejected = entities_of(item)

    says(item, kept, "accept")
    says(item, rejected, "reject")
    with opened(item.shell_file_id) as source:
        cited = [entity for row in source.sentences() for entity in row.entity_ids]
        listed = [entity for row in source.list_items() for entity in row.entity_ids]

    assert cited == [kept.id]
    assert listed == [kept.id]
