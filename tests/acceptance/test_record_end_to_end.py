"""Records run through real workers and the local engine, and the results equal their truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline.models import (
    Batch,
    Chunk,
    Encounter,
    EncounterResult,
    Entity,
    Job,
    Page,
    PageAssignment,
    PendingEncounter,
    ProviderCall,
    Session,
    ShellFile,
    Summary,
)
from samples import truth
from tests.support import records
from tests.support.record_runs import astray, encounter_pages, ended
from tests.support.redis_contents import everything
from tests.support.workers import WorkerCommand, until

pytestmark = pytest.mark.xdist_group("acceptance-records")

SAMPLES = (records.LAB, records.VISITS, records.TRAPS, records.LONG)
every_sample = pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def pool(start_pool: Callable[..., WorkerCommand]) -> WorkerCommand:
    """Return the one pool of this module, with workers of both kinds."""
    return start_pool()


@pytest.fixture(scope="module")
def ran(pool: WorkerCommand, module_redis: Any) -> dict[Path, ShellFile]:
    """Return each sample after its run through the pool. All samples are submitted at once."""
    received = {path: records.submit(path) for path in SAMPLES}
    assert [job.last_error for job in ended(*received.values())] == [None] * len(SAMPLES)
    return {path: ShellFile.objects.get(id=r.shell_file_id) for path, r in received.items()}


@every_sample
def test_encounters_and_their_pages_equal_the_truth(ran: dict[Path, ShellFile], path: Path) -> None:
    expected = truth.load(path.stem)

    found = encounter_pages(ran[path])

    assert found == [(e.type, e.pages) for e in expected.encounters if not e.patient_mismatch]


@every_sample
def test_dates_of_encounters_equal_the_truth(ran: dict[Path, ShellFile], path: Path) -> None:
    expected = truth.load(path.stem)

    found = Encounter.objects.filter(shell_file=ran[path]).order_by("encounter_index")

    assert [(e.encounter_date_start, e.encounter_date_end) for e in found] == [
        (e.date_start, e.date_end) for e in expected.encounters if not e.patient_mismatch
    ]


@every_sample
def test_every_accepted_quote_is_verbatim_at_its_span_and_within_its_encounter(
    ran: dict[Path, ShellFile], path: Path
) -> None:
    assert Entity.objects.filter(shell_file=ran[path], accepted=True).exists()
    assert not astray(ran[path])


@every_sample
def test_every_status_of_a_completed_record_is_at_its_end(
    ran: dict[Path, ShellFile], path: Path
) -> None:
    record = ran[path]
    job = Job.objects.get(shell_file=record)
    session = Session.objects.get(shell_file=record)
    summary = Summary.objects.get(shell_file=record)

    assert record.status == "pass1_complete"
    assert (job.status, job.current_step, job.worker_id) == ("completed", "pass1", None)
    assert job.lease_expires_at is None
    assert session.session_status == "completed"
    passes = ("pass05", "pass1", "pass1_5", "pass2", "pass3")
    assert [getattr(session, f"{name}_status") for name in passes] == [
        "completed",
        "completed",
        "skipped",
        "skipped",
        "skipped",
    ]
    assert (summary.processing_status, summary.overall_success) == ("pass1_only", True)
    work = Batch.objects.filter(pass1_encounter_result__shell_file=record)
    chunks = Chunk.objects.filter(discovery_session__shell_file=record)
    results = EncounterResult.objects.filter(shell_file=record)
    for rows in (work, chunks, results):
        assert set(rows.values_list("status", flat=True)) == {"succeeded"}
    assert record.discovery_session.status == "completed"
    assert all(row.output is None for row in (*work, *chunks))
    assert not Encounter.objects.filter(shell_file=record, entities_published_at=None).exists()


@every_sample
def test_every_character_of_a_record_is_assigned_once_or_marked(
    ran: dict[Path, ShellFile], path: Path
) -> None:
    texts = Page.objects.filter(shell_file=ran[path]).values_list("page_number", "text")
    rows = PageAssignment.objects.filter(discovery_session__shell_file=ran[path])

    for page, text in texts:
        runs = list(
            rows.filter(page_number=page)
            .order_by("start_offset")
            .values_list("start_offset", "end_offset")
        )
        covered = [0, *(end for _, end in runs)]
        assert [start for start, _ in runs] == covered[:-1]
        assert covered[-1] == len(text)
    assert not rows.filter(healthcare_encounter=None, reason=None).exists()


@every_sample
def test_each_batch_and_chunk_was_built_from_exactly_one_accepted_call(
    ran: dict[Path, ShellFile], path: Path
) -> None:
    calls = ProviderCall.objects.filter(processing_session__shell_file=ran[path])
    accepted = Counter(calls.filter(accepted=True).values_list("work_item_id", flat=True))

    batches = Batch.objects.filter(pass1_encounter_result__shell_file=ran[path])
    chunks = Chunk.objects.filter(discovery_session__shell_file=ran[path])

    items = [*batches.values_list("id", flat=True), *chunks.values_list("id", flat=True)]
    assert accepted == dict.fromkeys(items, 1)


@every_sample
def test_totals_of_a_record_add_up_from_its_calls_and_rows(
    ran: dict[Path, ShellFile], path: Path
) -> None:
    record = ran[path]
    summary = Summary.objects.get(shell_file=record)
    results = EncounterResult.objects.filter(shell_file=record)
    entities = Entity.objects.filter(shell_file=record)

    per_encounter = {r.healthcare_encounter_id: r.total_entities_detected for r in results}

    assert sum(per_encounter.values()) == entities.filter(accepted=True).count()
    assert summary.entities_extracted_total == sum(per_encounter.values())
    for encounter_id, count in per_encounter.items():
        own = entities.filter(healthcare_encounter_id=encounter_id)
        assert own.filter(accepted=True).count() == count
        assert [e.entity_index for e in own.order_by("entity_index")] == list(range(own.count()))


@every_sample
def test_blank_pages_are_known_as_blank(ran: dict[Path, ShellFile], path: Path) -> None:
    blank = Page.objects.filter(shell_file=ran[path], is_blank=True).order_by("page_number")

    assert [p.page_number for p in blank] == truth.load(path.stem).blank_pages


def test_another_patients_page_is_held_and_nothing_of_it_is_published(
    ran: dict[Path, ShellFile],
) -> None:
    record = ran[records.TRAPS]
    (held,) = [e for e in truth.load(records.TRAPS.stem).encounters if e.patient_mismatch]

    on_its_pages = PageAssignment.objects.filter(
        discovery_session__shell_file=record, page_number__in=held.pages
    )

    assert not on_its_pages.exclude(healthcare_encounter=None).exists()
    assert on_its_pages.filter(reason="patient_mismatch").exists()
    assert not Entity.objects.filter(shell_file=record, page_number__in=held.pages).exists()
    for page in held.pages:
        encounters = Encounter.objects.filter(shell_file=record)
        assert not encounters.filter(page_start=page, page_end=page).exists()
    sightings = PendingEncounter.objects.filter(discovery_session__shell_file=record, status="held")
    assert [s.error_code for s in sightings] == ["PATIENT_MISMATCH"]
    assert [w["pages"] for w in record.warnings if w["code"] == "PATIENT_MISMATCH"] == [held.pages]
    assert Summary.objects.get(shell_file=record).manual_review_required


def test_no_call_of_pass_1_shows_a_page_that_is_held(ran: dict[Path, ShellFile]) -> None:
    record = ran[records.TRAPS]
    (held,) = [e for e in truth.load(records.TRAPS.stem).encounters if e.patient_mismatch]

    batches = Batch.objects.filter(pass1_encounter_result__shell_file=record)

    assert not {page for b in batches for page, _, _ in b.spans} & set(held.pages)


def test_a_page_in_another_language_is_reported_and_not_skipped(
    ran: dict[Path, ShellFile],
) -> None:
    record = ran[records.TRAPS]
    spanish = truth.load(records.TRAPS.stem).unsupported_language_pages

    said = [w["pages"] for w in record.warnings if w["code"] == "LANGUAGE_UNSUPPORTED"]

    assert said == [spanish]
    assert not Entity.objects.filter(shell_file=record, page_number__in=spanish).exists()


def test_redis_keeps_nothing_of_records_that_have_ended(
    ran: dict[Path, ShellFile], module_redis: Any
) -> None:
    ids = {str(job.id) for job in Job.objects.all()}

    def left() -> list[str]:
        held = everything(module_redis).splitlines()
        found = [line for line in held if any(each in line for each in ids)]
        # RQ's clean-up notes when it saw an entry in transit. The note expires by itself.
        return [line for line in found if module_redis.ttl(line) < 0]

    with suppress(AssertionError):
        until(lambda: not left())

    assert left() == []
