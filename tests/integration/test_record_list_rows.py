"""The lists of a record as rows: every entry with its encounters, none of another patient."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from pipeline.codes.exclusions import excludes1_notes
from pipeline.models import Encounter, Entity, RecordListItem, ShellFile
from samples import truth
from tests.support import records
from tests.support.code_rows import load_icd_part


@pytest.fixture(scope="module")
def traps(module_db: Any) -> ShellFile:
    """Return the record with the page of another patient, after Pass 2."""
    with override_settings(SKIPPED_PASSES=("pass1_5", "pass3")):
        return records.completed_record(records.TRAPS)


def stored(record: ShellFile) -> list[RecordListItem]:
    """Return the entries of the lists in order."""
    return list(RecordListItem.objects.filter(shell_file=record).order_by("kind", "item_index"))


def test_the_entries_name_the_encounters_of_the_truth(traps: ShellFile) -> None:
    rows = stored(traps)

    lists = truth.load("traps_10p").lists
    assert lists is not None
    order = Encounter.objects.filter(shell_file=traps).order_by("encounter_index")
    # Encounter 4 of the truth is of another patient, so it is held.
    places = dict(zip(order.values_list("id", flat=True), (0, 1, 2, 3, 5), strict=True))
    found = {
        (row.kind, row.name.casefold()): sorted(places[id_] for id_ in row.encounter_ids)
        for row in rows
    }
    for kind, expected in (
        ("problem", lists.problems),
        ("medication", lists.medications),
        ("lab_series", lists.lab_series),
    ):
        for each in expected:
            assert set(each.encounters) <= set(found[kind, each.name]), each.name


def test_every_row_names_accepted_entities_of_the_patient_only(traps: ShellFile) -> None:
    rows = stored(traps)

    entities = {each.id: each for each in Entity.objects.filter(shell_file=traps)}
    assert len(rows) > 10
    assert {row.patient_id for row in rows} == {traps.patient_id}
    named = [entities[id_] for row in rows for id_ in row.entity_ids]
    assert all(each.accepted and each.experiencer != "family" for each in named)
    numbers = [row.item_index for row in rows if row.kind == "medication"]
    assert numbers == list(range(len(numbers)))


def test_the_steps_of_a_taper_do_not_contradict_each_other(traps: ShellFile) -> None:
    (prednisone,) = [row for row in stored(traps) if row.name.casefold() == "prednisone"]

    assert prednisone.contradictions == []
    assert [each["step"] for each in prednisone.summary["regimens"]] == [1, 2]


@pytest.mark.django_db
def test_a_code_has_the_notes_of_its_parents() -> None:
    load_icd_part()

    notes = excludes1_notes(["E11.9", "I10", "X99.9"])

    assert "E10" in notes["E11.9"]
    assert "X99.9" not in notes
