"""Pass 1.5 writes ranked candidates of every entity, continues after a stop, and can run again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline.codes.search import search
from pipeline.core.errors import ErrorCode, LeaseLostError
from pipeline.core.states import Step
from pipeline.execution.step_result import SIGTERM, StepCompleted, StepInterrupted
from pipeline.models import CodeCandidate, CodeSystem, Encounter, Entity, Job, Session, ShellFile
from pipeline.stages.pass1_5 import run as stage
from pipeline.transitions import Lease, claim
from tests.support.code_rows import load_icd_part
from tests.support.rows import a_deadline, a_job, an_encounter

pytestmark = pytest.mark.django_db

NAMES = ("HTN", "L knee OA", "T2DM", "R ankle sprain", "GERD")


@pytest.fixture
def lease() -> Lease:
    """Return the lease of a record with two encounters of five conditions each."""
    job = a_job(step=Step.PASS1_5)
    for index in (1, 2):
        result, _ = an_encounter(job, index=index)
        entities(job, result.healthcare_encounter_id, NAMES)
    claimed = claim(Step.PASS1_5, "w1")
    assert claimed is not None
    return claimed


def entities(
    job: Job, encounter_id: UUID, names: tuple[str, ...], category: str = "condition"
) -> None:
    shell_file = ShellFile.objects.get(id=job.shell_file_id)
    session = Session.objects.get(shell_file=shell_file)
    first = Entity.objects.filter(healthcare_encounter_id=encounter_id).count()
    Entity.objects.bulk_create(
        Entity(
            shell_file=shell_file,
            healthcare_encounter_id=encounter_id,
            processing_session=session,
            patient_id=shell_file.patient_id,
            entity_index=first + number,
            category=category,
            name=name,
            page_number=1,
            char_start=0,
            char_end=1,
            quote="not read",
            alignment="exact",
            accepted=True,
            engine="test",
            engine_confidence=1,
            confidence=1,
        )
        for number, name in enumerate(names)
    )


def best() -> list[tuple[str, str]]:
    """Return the name and the best code of each entity, in the order of the text."""
    rows = CodeCandidate.objects.filter(rank=1).order_by(
        "healthcare_encounter__encounter_index", "entity__entity_index"
    )
    return list(rows.values_list("entity__name", "code"))


def test_every_entity_gets_ranked_candidates_with_their_version(lease: Lease) -> None:
    system = load_icd_part()

    result = stage.run(lease, a_deadline())

    assert isinstance(result, StepCompleted)
    codes = ("I10", "M17.12", "E11.9", "S93.401A", "K21.9")
    assert best() == list(zip(NAMES, codes, strict=True)) * 2
    for entity in Entity.objects.all():
        rows = list(entity.candidates.order_by("rank"))
        assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) <= stage.SHORTLIST_SIZE
        assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
        assert {(row.system, row.system_version) for row in rows} == {("ICD10CM", system.version)}


def test_a_candidate_has_the_term_that_fits_better_than_its_display(lease: Lease) -> None:
    load_icd_part()

    stage.run(lease, a_deadline())

    terms = dict(CodeCandidate.objects.filter(rank=1).values_list("entity__name", "term"))
    assert terms["HTN"].startswith("hypertension (arterial)")
    assert terms["T2DM"] == ""


def test_a_second_run_changes_nothing(lease: Lease) -> None:
    load_icd_part()
    stage.run(lease, a_deadline())
    before = list(CodeCandidate.objects.order_by("id").values_list())

    stage.run(lease, a_deadline())

    assert list(CodeCandidate.objects.order_by("id").values_list()) == before


def test_candidates_of_an_older_version_are_replaced(lease: Lease) -> None:
    load_icd_part()
    stage.run(lease, a_deadline())
    CodeSystem.objects.update(version="next")

    stage.run(lease, a_deadline())

    assert set(CodeCandidate.objects.values_list("system_version", flat=True)) == {"next"}


def test_a_load_between_two_statements_gives_the_record_candidates_of_the_new_codes(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_icd_part()
    monkeypatch.setattr(stage, "GROUP_SIZE", 1)
    searched = []

    def loaded_meanwhile(ids: Iterable[int]) -> Any:
        searched.append(ids)
        if len(searched) == 2:
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM code_systems")
            load_icd_part()
            CodeSystem.objects.update(version="next", digest="1" * 64)
        return named(ids)

    named = search._codes
    monkeypatch.setattr(search, "_codes", loaded_meanwhile)

    assert isinstance(stage.run(lease, a_deadline()), StepCompleted)

    # The group whose search met the load, and the group before, are searched again.
    assert len(searched) == 4
    assert set(CodeCandidate.objects.values_list("system_version", flat=True)) == {"next"}
    assert len(best()) == 2 * len(NAMES)


def test_a_first_load_during_the_search_breaks_nothing(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_icd_part()
    entities(Job.objects.get(), Encounter.objects.earliest("encounter_index").id, ("T",), "lab")

    def loaded_first(ids: Iterable[int]) -> Any:
        CodeSystem.objects.get_or_create(key="CVX", defaults={"version": "1", "digest": "2" * 64})
        return named(ids)

    named = search._codes
    monkeypatch.setattr(search, "_codes", loaded_first)

    assert isinstance(stage.run(lease, a_deadline()), StepCompleted)
    assert len(best()) == 2 * len(NAMES)


def test_a_stopped_step_continues_with_the_next_encounter(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_icd_part()
    monkeypatch.setattr(stage, "GROUP_SIZE", 1)
    stops = iter([False, True])
    monkeypatch.setattr(stage, "stop_requested", lambda: next(stops))

    stopped = stage.run(lease, a_deadline())

    assert stopped == StepInterrupted(reason=SIGTERM)
    assert len(best()) == len(NAMES)
    monkeypatch.setattr(stage, "stop_requested", lambda: False)
    written = set(CodeCandidate.objects.values_list("id", flat=True))
    assert isinstance(stage.run(lease, a_deadline()), StepCompleted)
    assert written <= set(CodeCandidate.objects.values_list("id", flat=True))
    assert len(best()) == 2 * len(NAMES)


def test_a_worker_that_lost_its_lease_writes_nothing(lease: Lease) -> None:
    load_icd_part()
    Job.objects.update(lease_gen=99)

    with pytest.raises(LeaseLostError):
        stage.run(lease, a_deadline())

    assert not CodeCandidate.objects.exists()


def test_a_record_without_a_code_system_completes_with_a_warning(lease: Lease) -> None:
    result = stage.run(lease, a_deadline())

    assert isinstance(result, StepCompleted)
    result.publish()
    (warning,) = ShellFile.objects.get(id=lease.shell_file_id).warnings
    assert warning["code"] == ErrorCode.CODES_NOT_LOADED
    assert "load_codes ICD10CM" in warning["message"]


def test_the_number_of_statements_does_not_grow_with_the_entities(lease: Lease) -> None:
    load_icd_part()
    with CaptureQueriesContext(connection) as few:
        stage.run(lease, a_deadline())
    CodeCandidate.objects.all().delete()
    job = Job.objects.get(id=lease.job_id)
    encounter_id = Entity.objects.values_list("healthcare_encounter_id", flat=True)[0]
    entities(job, encounter_id, tuple(f"acute gout of joint {n}" for n in range(200)))

    with CaptureQueriesContext(connection) as many:
        stage.run(lease, a_deadline())

    assert len(many) <= len(few) + 1, [query["sql"][:80] for query in many]
