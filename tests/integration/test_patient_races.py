"""All records of one patient agree on the patient, in whatever order the records run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from pipeline.core.states import Step
from pipeline.models import (
    Entity,
    PageAssignment,
    Patient,
    PendingEncounter,
    ReconciliationEntry,
    Session,
    ShellFile,
    Summary,
)
from pipeline.providers.prompts import Question
from pipeline.stages.intake import Received
from pipeline.stages.pass05 import run as pass05
from pipeline.transitions import claim
from pipeline.workers import run_step
from tests.support import records
from tests.support.lying_model import Say, lying_model
from tests.support.rows import a_deadline
from tests.support.short_records import short_record

JANE, JOHN = "Wrenfield, Odalys M.", "Quarrington, Thaddeus B."


def submitted(tmp_path: Path, name: str, patient: str, visits: int = 2) -> Received:
    return records.submit(
        short_record(tmp_path / name, visits, patient=patient), patient_reference="ref-7"
    )


def held(record: ShellFile) -> bool:
    """Return whether the whole record is held and nothing is published."""
    return (
        PendingEncounter.objects.filter(
            discovery_session__shell_file=record, status="held"
        ).exists()
        and not record.encounters.exists()
        and not PageAssignment.objects.filter(
            discovery_session__shell_file=record, healthcare_encounter__isnull=False
        ).exists()
        and not Entity.objects.filter(shell_file=record).exists()
    )


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_another_person_under_the_same_reference_is_held(tmp_path: Path) -> None:
    first = records.run_record(submitted(tmp_path, "a.pdf", JANE))
    second = records.run_record(submitted(tmp_path, "b.pdf", JOHN))

    assert first.encounters.count() == 2
    assert held(second)
    codes = {warning["code"] for warning in second.warnings}
    assert codes == {"PATIENT_MISMATCH"}


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_two_first_records_of_a_patient_cannot_both_say_who_that_is(tmp_path: Path) -> None:
    first = submitted(tmp_path, "a.pdf", JANE)
    run_step.run_step("pages")
    lease = claim(Step.PASS05, "slow")
    assert lease is not None
    found = pass05.run(lease, a_deadline())
    second = records.run_record(submitted(tmp_path, "b.pdf", JOHN))

    run_step._end(lease, a_deadline(), found)

    assert second.encounters.count() == 2
    assert held(ShellFile.objects.get(id=first.shell_file_id))


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_the_known_facts_of_a_patient_grow_with_each_agreeing_record(tmp_path: Path) -> None:
    records.run_record(submitted(tmp_path, "a.pdf", JANE))
    patient = Patient.objects.get(reference="ref-7")
    full = patient.identity_digests
    assert set(full) == {"name", "dob", "mrn", "key"}
    Patient.objects.update(identity_digests={"name": full["name"], "key": full["key"]})

    records.run_record(submitted(tmp_path, "b.pdf", JANE, visits=3))

    patient.refresh_from_db()
    assert patient.identity_digests == full


def discovered(received: Received, say: Say) -> ShellFile:
    """Run a record to the end of Pass 0.5 with a model that finds these encounters."""
    run_step.run_step("pages")
    with lying_model(say):
        run_step.run_step("pass05")
    return ShellFile.objects.get(id=received.shell_file_id)


def visits(*patients: str | None, **fields: Any) -> Say:
    """Find one encounter on each page, with the patient at the same index of the list."""
    found = [
        {
            "encounter_type": "office_visit",
            "spans": [{"page": page}],
            "date_start": f"2021-01-{page:02d}",
            "patient_name": name,
            **fields,
        }
        for page, name in enumerate(patients, 1)
    ]
    return lambda question: {"encounters": found}


def said(record: ShellFile, code: str) -> list[tuple[str, list[int]]]:
    """Return the texts of the record's warnings of a code, without their common part."""
    warnings = [w for w in record.warnings if w["code"] == code]
    return [(w["message"].split(". ")[0].rstrip("."), w["pages"]) for w in warnings]


def for_review(record: ShellFile) -> bool:
    asked = Session.objects.filter(shell_file=record, requires_human_review=True)
    return asked.exists() and Summary.objects.get(shell_file=record).manual_review_required is True


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_pages_without_a_name_in_another_persons_record_are_held_and_reported(
    tmp_path: Path,
) -> None:
    records.run_record(submitted(tmp_path, "a.pdf", JANE))
    received = submitted(tmp_path, "b.pdf", JOHN, visits=5)

    record = discovered(received, visits(JOHN, JOHN, JOHN, None, JANE))

    published = record.encounters.all()
    assert [e.page_start for e in published] == [5]
    assert said(record, "PATIENT_MISMATCH") == [
        ("These pages name another patient", [1, 2, 3]),
        ("These pages may belong to a different patient who is named in this record", [4]),
    ]
    assert for_review(record)
    entries = ReconciliationEntry.objects.filter(discovery_session__shell_file=record)
    assert [e.rule for e in entries.order_by("decision_index") if e.outcome == "held"] == [
        *["patient_mismatch"] * 3,
        "patient_of_record",
    ]


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_an_encounter_whose_beginning_is_nowhere_is_shown_to_a_reviewer(tmp_path: Path) -> None:
    received = submitted(tmp_path, "a.pdf", JANE, visits=2)

    def say(question: Question) -> dict[str, Any]:
        page = next(s.page for s in question.slices if not s.context)
        visit = {
            "encounter_type": "office_visit",
            "spans": [{"page": page}],
            "date_start": f"2021-01-{page:02d}",
            "patient_name": JANE,
            "open_at_start": page == 2,
        }
        return {"encounters": [visit]}

    with override_settings(PASS05_CHUNK_PAGES=1):
        record = discovered(received, say)

    assert [e.page_start for e in record.encounters.all()] == [1, 2]
    assert [pages for _, pages in said(record, "INPUT_INVALID")] == [[2]]
    assert for_review(record)


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_digests_of_another_key_are_not_known_and_are_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records.run_record(submitted(tmp_path, "a.pdf", JANE))
    patient = Patient.objects.get(reference="ref-7")
    before = patient.identity_digests

    with override_settings(SECRET_KEY="another key of at least fifty characters, drawn by a test"):
        second = records.run_record(submitted(tmp_path, "b.pdf", JANE, visits=3))
        third = records.run_record(submitted(tmp_path, "c.pdf", JOHN, visits=4))

    patient.refresh_from_db()
    after = patient.identity_digests
    assert second.encounters.count() == 3
    assert held(third)
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())
    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert [line for line in said if line.startswith("patient")] == [
        f"patient {patient.id}: the known digests belong to another SECRET_KEY and are replaced"
    ]


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_digests_that_do_not_say_their_key_are_compared(tmp_path: Path) -> None:
    records.run_record(submitted(tmp_path, "a.pdf", JANE))
    patient = Patient.objects.get(reference="ref-7")
    full = patient.identity_digests
    Patient.objects.update(identity_digests={k: full[k] for k in ("name", "dob")})

    other = records.run_record(submitted(tmp_path, "b.pdf", JOHN))
    same = records.run_record(submitted(tmp_path, "c.pdf", JANE, visits=3))

    patient.refresh_from_db()
    assert held(other)
    assert same.encounters.count() == 3
    assert patient.identity_digests == full
