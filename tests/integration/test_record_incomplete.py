"""Every view of a record's entities states that the record is incomplete (requirement 9)."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from pipeline.management.result_table import FileResult, doing, results
from pipeline.models import Entity, ShellFile, selectors
from tests.support import records
from tests.support.short_records import short_record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]

SENTENCE = "Record incomplete: 1 of 2 encounters is not published."
BROKEN = {"fault": "bad-json", "kind": "entities", "page": 2}


def _views(record: ShellFile) -> dict[str, str]:
    """Return each view, list and command that shows entities of a record, by name."""
    client = Client()
    client.force_login(User.objects.create_superuser("viewer"))
    entity = Entity.objects.filter(shell_file=record).latest("entity_index")
    encounter = f"?node={entity.healthcare_encounter_id}"
    urls = {
        "record": reverse("admin:record", args=[record.id]),
        "encounter": reverse("admin:record", args=[record.id]) + encounter,
        "page": reverse("admin:record_page", args=[record.id, 1]),
        "summary": reverse("admin:record_results", args=[record.id]),
        "entities": reverse("admin:pipeline_entity_changelist") + f"?q={record.id}",
        "entity": reverse("admin:pipeline_entity_change", args=[entity.id]),
        "results": reverse("admin:pipeline_encounterresult_changelist") + f"?q={record.id}",
        "summaries": reverse("admin:pipeline_summary_changelist") + f"?q={record.id}",
    }
    shown = {name: client.get(url).content.decode() for name, url in urls.items()}
    for name, asked in (("explain", record.id), ("explain entity", entity.id)):
        for option in ("--all", "--json"):
            out = io.StringIO()
            call_command("explain", str(asked), option, stdout=out)
            shown[f"{name} {option}"] = out.getvalue()
    out = io.StringIO()
    call_command("summary", str(record.id), stdout=out)
    shown["summary command"] = out.getvalue()
    progress = selectors.progress([record.id])[record.id]
    result = FileResult(name="record.pdf", shell_file_id=record.id, progress=progress)
    shown["process table"] = "\n".join(map(str, results([result])))
    shown["process line"] = doing(progress)
    shown["process JSON"] = json.dumps(result.as_json())
    return shown


def test_each_view_of_the_entities_states_that_the_record_is_incomplete(tmp_path: Path) -> None:
    record = records.failed_record(short_record(tmp_path / "record.pdf", 2), [BROKEN])

    shown = _views(record)

    for name in ("record", "encounter", "page", "summary", "summary command", "process table"):
        assert SENTENCE in shown[name], name
    for name in ("entities", "entity", "results", "summaries", "process line"):
        assert "record incomplete" in shown[name], name
    assert all(SENTENCE in text for name, text in shown.items() if name.startswith("explain"))
    assert json.loads(shown["explain --json"])["incomplete_note"] == SENTENCE
    assert json.loads(shown["process JSON"])["incomplete"] is True


def test_no_view_of_a_complete_record_says_so(tmp_path: Path) -> None:
    record = records.completed_record(short_record(tmp_path / "record.pdf", 2))

    shown = _views(record)

    assert [name for name, text in shown.items() if "ecord incomplete" in text] == []
    assert json.loads(shown["process JSON"])["incomplete"] is False
