"""A reviewer adds an attribute that Pass 2 did not read, by the form; every export shows it."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

import pytest

from observability.permissions import Role
from pipeline.exports.formats import Format
from pipeline.models import EnrichedEntity, LockedField, ReviewDecision
from tests.support import exported, fhir_rows
from tests.support.audit_rows import audit_events
from tests.support.review_forms import a_plain_record, form_on, held, url_of
from tests.support.review_rows import entities_of
from tests.support.users import client_of

STRENGTH = "attributes.strength.0"


@pytest.mark.usefixtures("cloned_db")
def test_a_reviewer_adds_an_attribute_that_was_not_read_and_exports_show_it(
    tmp_path: Path,
) -> None:
    reviewer = client_of(Role.REVIEWER, "anna")
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    form = form_on(reviewer, item, "correct", entity)
    enriched = EnrichedEntity.objects.get(entity=entity)
    assert "strength" not in enriched.attributes

    # No rule reads these words, so the reviewer gives number and unit too.
    answer = reviewer.post(
        url_of(item, "correct"),
        {**form, "strength": "a 25er", f"{STRENGTH}.number": "25", f"{STRENGTH}.unit": "mg"},
    )

    assert answer.status_code == HTTPStatus.FOUND
    added = [{"printed": "a 25er", "number": "25", "unit": "mg"}]
    enriched.refresh_from_db()
    assert enriched.attributes["strength"] == added
    decision = ReviewDecision.objects.get(field="attributes.strength")
    assert (decision.old_value, decision.new_value) == (None, added)
    assert LockedField.objects.filter(field="attributes.strength").count() == 1
    written = next(row for row in audit_events() if row.action == "review correct")
    assert "attributes.strength" in written.facts["fields"]
    options = {"allow_incomplete": True}
    manifest = json.loads(
        exported.exported(item.shell_file_id, Format.PAIR, tmp_path, **options).read_text("utf-8")
    )
    (row,) = json.loads((tmp_path / manifest["json"]).read_text("utf-8"))["entities"]
    assert row["attributes"]["strength"] == added
    bundle = exported.bundle_of(item.shell_file_id, **options)
    (of_fhir,) = fhir_rows.entities(bundle).values()
    assert of_fhir["attributes"]["strength"] == added
