"""Records of one patient: who that is holds for all of them, in whatever order they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import jobs
from pipeline.models import Entity, PageAssignment, Patient, PendingEncounter, ShellFile
from pipeline.stages.intake import Received
from pipeline.stages.pass05 import stage as pass05
from pipeline.states import Step
from pipeline.transitions import claim
from tests import records
from tests.short_records import short_record

JANE, JOHN = "Wrenfield, Odalys M.", "Quarrington, Thaddeus B."


def submitted(tmp_path: Path, name: str, patient: str, visits: int = 2) -> Received:
    return records.submit(
        short_record(tmp_path / name, visits, patient=patient), patient_reference="ref-7"
    )


def held(record: ShellFile) -> bool:
    """Whether all of it is held and nothing published."""
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
    jobs.run_step("pages")
    lease = claim(Step.PASS05, "slow")
    assert lease is not None
    found = pass05.run(lease)
    second = records.run_record(submitted(tmp_path, "b.pdf", JOHN))

    jobs._end(lease, found)

    assert second.encounters.count() == 2
    assert held(ShellFile.objects.get(id=first.shell_file_id))


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_what_is_known_of_a_patient_grows_with_each_record_that_agrees(tmp_path: Path) -> None:
    records.run_record(submitted(tmp_path, "a.pdf", JANE))
    patient = Patient.objects.get(reference="ref-7")
    full = patient.identity_digests
    assert set(full) == {"name", "dob", "mrn"}
    Patient.objects.update(identity_digests={"name": full["name"]})

    records.run_record(submitted(tmp_path, "b.pdf", JANE, visits=3))

    patient.refresh_from_db()
    assert patient.identity_digests == full
