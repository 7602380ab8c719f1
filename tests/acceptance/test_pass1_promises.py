"""Pass 1 keeps its promises about plans, zones and batch edges, with real steps in this process."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pipeline.execution.shutdown import STOP, request_stop
from pipeline.models import (
    Batch,
    EncounterResult,
    Entity,
    Job,
    ProviderPayload,
    ShellFile,
    selectors,
)
from pipeline.providers.prompts import render_entities
from pipeline.stages.pass1.entity_rows import EncounterText
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.xdist_group("acceptance-promises"),
    pytest.mark.slow(reason="one long record in one-page batches: 25 s"),
]

SMALL = {
    "PASS1_BATCH_MIN_PAGES": 1,
    "PASS1_BATCH_MAX_PAGES": 1,
    "PASS1_BATCH_HARD_CEILING": 1,
}
LARGE = {
    "PASS1_BATCH_MIN_PAGES": 50,
    "PASS1_BATCH_MAX_PAGES": 50,
    "PASS1_BATCH_HARD_CEILING": 50,
    "PASS1_BATCH_MAX_TOKENS": 1_000_000,
}


@pytest.fixture
def _stop_is_forgotten() -> Iterator[None]:
    yield
    STOP.reset()


def put(settings: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(settings, name, value)


def plan_of(record_id: Any) -> list[Any]:
    rows = Batch.objects.filter(pass1_encounter_result__shell_file_id=record_id)
    return list(rows.order_by("id").values_list("id", "batch_index", "spans"))


@pytest.mark.usefixtures("_stop_is_forgotten")
def test_a_plan_is_stored_before_the_first_call_and_kept_though_settings_change(
    tmp_path: Path, settings: Any
) -> None:
    received = records.submit(short_record(tmp_path / "record.pdf", 4, pages=4))
    put(settings, SMALL | {"PASS1_CONCURRENCY_LIMIT": 1})
    run_step.run_step("pages")
    run_step.run_step("pass05")
    request_stop()
    with records.through_emulator(latency="0.2/call") as emulator:
        run_step.run_step("pass1")
        asked = emulator.log()
    planned = plan_of(received.shell_file_id)
    made_at = [row.created_at.timestamp() for row in Batch.objects.all()]
    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.current_step) == ("pending", "pass1")
    assert len(planned) == 16
    assert all(max(made_at) <= line.time for line in asked)

    STOP.reset()
    put(settings, LARGE)
    run_step.run_step("pass1")

    assert Job.objects.get(id=received.job_id).status == "completed"
    assert plan_of(received.shell_file_id) == planned


@pytest.mark.parametrize("disabled", [True, False])
def test_zones_are_asked_for_and_kept_unless_they_are_disabled(
    settings: Any, disabled: bool
) -> None:
    settings.PASS1_DISABLE_ZONES = disabled
    with records.through_emulator():
        record = records.completed_record(records.VISITS)

    pages = selectors.page_texts(record.id)
    for result in EncounterResult.objects.filter(shell_file=record):
        batches = list(result.batches.order_by("batch_index"))
        text = EncounterText.of(batches, pages)
        for batch in batches:
            slices = text.slices(batch.batch_index)
            prompt = render_entities(batch.id.hex, slices, include_zones=not disabled)
            payload = ProviderPayload.objects.get(call__work_item_id=batch.id)
            assert payload.prompt_sha256 == sha256(prompt.encode()).hexdigest()
        assert bool(result.zones) is not disabled
        assert bool(result.total_zones_detected) is not disabled


def published(record: ShellFile) -> set[tuple[str, int, int | None]]:
    """Return the published entities of a record, by category and place."""
    rows = Entity.objects.filter(shell_file=record, accepted=True)
    return set(rows.values_list("category", "page_number", "char_start"))


def structured(found: set[tuple[str, int, int | None]]) -> set[tuple[str, int, int | None]]:
    """Return the entities without drugs, because an earlier heading decides about a loose word."""
    return {each for each in found if each[0] != "medication"}


def test_an_entity_at_the_edge_of_batches_is_neither_doubled_nor_lost(settings: Any) -> None:
    cut = records.completed_record(records.LONG)
    put(settings, LARGE)
    whole = records.completed_record(records.LONG)
    put(settings, SMALL)
    shredded = records.completed_record(records.LONG)

    batches = [
        Batch.objects.filter(pass1_encounter_result__shell_file=record).count()
        for record in (whole, cut, shredded)
    ]
    assert batches[0] == 12 < batches[1] < batches[2] == 72
    assert published(cut) == published(whole)
    assert structured(published(shredded)) == structured(published(whole))
    for record in (cut, shredded):
        rows = Entity.objects.filter(shell_file=record, accepted=True)
        places = list(rows.values_list("category", "name", "page_number", "char_start"))
        assert len(places) == len(set(places))
