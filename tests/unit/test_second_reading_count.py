"""How often the local engine reads a batch again: once where a model found entities, else never."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from pipeline.core.errors import ErrorCode
from pipeline.core.states import Step, WorkStatus
from pipeline.core.types import PageText
from pipeline.execution.splits import Split
from pipeline.models import Batch, EncounterResult
from pipeline.providers.local.local_reading import SecondReading
from pipeline.providers.schemas import EntityReply, FoundEntity
from pipeline.stages.pass1 import second_reader, store
from pipeline.stages.pass1.run import BatchWork
from pipeline.transitions import Flush, Lease

ANY = UUID(int=1)
TEXTS = ("The patient denies chest pain.", "Follow-up in two weeks.")
"""The pages of two batches. A model finds an entity on the first page alone."""
PAIN = FoundEntity(category="symptom", page=1, quote="chest pain", name="chest pain", negated=False)


@pytest.fixture(autouse=True)
def a_model_replies(settings: Settings) -> None:
    settings.MEDPROC_PROVIDER = "gemini"


def batch_work() -> tuple[BatchWork, Sequence[Batch]]:
    """Return the work of one encounter with a batch for each page, and the batches."""
    result = EncounterResult(
        id=uuid4(), healthcare_encounter_id=ANY, patient_id=ANY, status=WorkStatus.PENDING
    )
    batches = [
        Batch(
            id=uuid4(),
            pass1_encounter_result_id=result.id,
            batch_index=index,
            page_range_start=index + 1,
            page_range_end=index + 1,
            spans=[[index + 1, 0, len(text)]],
            status=WorkStatus.PENDING,
        )
        for index, text in enumerate(TEXTS)
    ]
    lease = Lease(
        job_id=ANY, shell_file_id=ANY, session_id=ANY, step=Step.PASS1, gen=1, worker_id="test"
    )
    pages = {n: PageText(number=n, text=text) for n, text in enumerate(TEXTS, start=1)}
    plan = store.RecordPlan(results=[result], batches={result.id: batches})
    return BatchWork(lease, pages, plan), batches


def answer(work: BatchWork, batch: Batch, *entities: FoundEntity) -> None:
    """End a batch with the entities of a model's reply, as the executor does."""
    reply = EntityReply(item_token=batch.id.hex, entities=list(entities))
    accepted = work.accept(Split(row=batch, pages=(batch.page_range_start,)), reply)
    batch.ai_model_used = "gemini-x"
    batch.status = WorkStatus.SUCCEEDED
    batch.output = accepted.output


def test_a_batch_is_read_again_once_and_only_if_a_model_found_an_entity_there() -> None:
    work, (first, second) = batch_work()
    flush = Flush(work=Batch)

    with patch.object(second_reader, "SecondReading", wraps=SecondReading) as reading:
        answer(work, first, PAIN)
        answer(work, second)
        assert reading.call_count == 1
        work.settle(work.group_of(first), flush)

    assert reading.call_count == 1
    (row,) = flush.results
    assert row["second_reading"] == {"negated": True}


def test_a_batch_of_an_earlier_run_is_read_at_publication_only_if_it_has_entities() -> None:
    work, (first, second) = batch_work()
    for batch, entities in ((first, [PAIN]), (second, [])):
        reply = EntityReply(item_token=batch.id.hex, entities=entities)
        batch.ai_model_used, batch.status = "gemini-x", WorkStatus.SUCCEEDED
        batch.output = reply.model_dump(mode="json", exclude_defaults=True)

    with patch.object(second_reader, "SecondReading", wraps=SecondReading) as reading:
        work.settle(work.group_of(first), Flush(work=Batch))

    assert reading.call_count == 1


def test_a_failed_encounter_keeps_no_reading() -> None:
    work, (first, second) = batch_work()
    second.status = WorkStatus.FAILED
    second.error_code = ErrorCode.API_5XX

    with patch.object(second_reader, "SecondReading", wraps=SecondReading) as reading:
        answer(work, first, PAIN)
        work.settle(work.group_of(first), Flush(work=Batch))
        answer(work, first, PAIN)

    assert reading.call_count == 2
