"""A flush is one fenced statement that writes nothing twice and shows no half encounter."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from pipeline.core.errors import LeaseLostError
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import Batch, Chunk, Encounter, EncounterResult, Entity, Job, ProviderCall
from pipeline.stages.pass1 import store
from pipeline.transitions import Flush, Lease, claim, row_of, write
from tests.support.flush_rows import a_call, a_payload, an_entity, succeed
from tests.support.rows import a_job, an_encounter


def claimed() -> tuple[Job, Lease, EncounterResult, list[Batch]]:
    job = a_job()
    result, batches = an_encounter(job, batches=2)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    return job, lease, result, batches


@pytest.mark.django_db
def test_a_flush_is_two_statements_whatever_it_holds() -> None:
    _, lease, result, batches = claimed()
    for batch in batches:
        succeed(batch)
    store.add_up(result, batches)
    store.mark_succeeded(result, [], [], [], {})
    calls = [a_call(lease, batch) for batch in batches]
    flush = Flush(
        work=Batch,
        items=[row_of(batch) for batch in batches],
        calls=calls,
        payloads=[a_payload(call) for call in calls],
        parents=[store.result_row(result)],
        results=[an_entity(lease, result)],
    )

    with CaptureQueriesContext(
        connection,
    ) as queries:
        write(lease, flush)

    said = [q["sql"] for q in queries if not q["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert len(said) == 2
    assert Entity.objects.count() == 1
    encounter = Encounter.objects.get(id=result.healthcare_encounter_id)
    assert encounter.entities_published_at is not None


@pytest.mark.django_db
def test_a_flush_of_unknown_outcome_can_be_written_again() -> None:
    _, lease, _, batches = claimed()
    succeed(batches[0])
    call = a_call(lease, batches[0])
    flush = Flush(work=Batch, items=[row_of(batches[0])], calls=[call], payloads=[a_payload(call)])

    write(lease, flush)
    write(lease, flush)

    assert ProviderCall.objects.count() == 1
    assert Batch.objects.get(id=batches[0].id).status == WorkStatus.SUCCEEDED


@pytest.mark.django_db
def test_a_second_accepted_reply_of_a_batch_is_refused() -> None:
    _, lease, _, batches = claimed()
    write(lease, Flush(work=Batch, calls=[a_call(lease, batches[0])]))

    with pytest.raises(IntegrityError), transaction.atomic():
        write(lease, Flush(work=Batch, calls=[a_call(lease, batches[0])]))


@pytest.mark.django_db
def test_a_succeeded_batch_is_never_taken_back() -> None:
    _, lease, _, batches = claimed()
    succeed(batches[0])
    write(lease, Flush(work=Batch, items=[row_of(batches[0])]))

    batches[0].status = WorkStatus.PENDING
    write(lease, Flush(work=Batch, items=[row_of(batches[0])]))

    assert Batch.objects.get(id=batches[0].id).status == WorkStatus.SUCCEEDED


@pytest.mark.usefixtures("cloned_db")
def test_an_encounter_cannot_succeed_with_a_batch_missing() -> None:
    _, lease, result, batches = claimed()
    succeed(batches[0])
    succeed(batches[1])
    store.add_up(result, batches)
    store.mark_succeeded(result, [], [], [], {})
    flush = Flush(
        work=Batch,
        items=[row_of(batches[0])],
        parents=[store.result_row(result)],
        results=[an_entity(lease, result)],
    )

    with pytest.raises(IntegrityError):
        write(lease, flush)

    assert Entity.objects.count() == 0
    assert EncounterResult.objects.get(id=result.id).status == WorkStatus.PENDING


@pytest.mark.django_db
def test_nothing_of_a_flush_is_written_once_the_lease_is_gone() -> None:
    job, lease, _, batches = claimed()
    Job.objects.filter(id=job.id).update(status=JobStatus.PENDING, worker_id=None)
    succeed(batches[0])

    with pytest.raises(LeaseLostError):
        write(
            lease,
            Flush(work=Batch, items=[row_of(batches[0])], calls=[a_call(lease, batches[0])]),
        )

    assert Batch.objects.get(id=batches[0].id).status == WorkStatus.PENDING
    assert not ProviderCall.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("rows", [{"parents": [{"id": "1"}]}, {"results": [{"id": "1"}]}])
def test_a_flush_refuses_rows_that_its_table_has_no_place_for(
    rows: dict[str, list[dict[str, object]]],
) -> None:
    _, lease, _, _ = claimed()

    with pytest.raises(ValueError, match="pass05_chunk_results has no"):
        write(lease, Flush(work=Chunk, **rows))
