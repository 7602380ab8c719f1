"""A worker continues after another died between two writes, and repeats nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.test import override_settings

from pipeline.core.errors import CallError, ErrorCode
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.execution.shutdown import STOP
from pipeline.models import (
    Batch,
    Chunk,
    CodeCandidate,
    Encounter,
    EncounterResult,
    EnrichedEntity,
    Entity,
    Job,
    NarrativeSentence,
    ProviderCall,
    RecordListItem,
    Session,
    Summary,
)
from pipeline.operations import operator_actions
from pipeline.providers.base import Reply, Request
from pipeline.stages import registry
from pipeline.stages.intake import Received
from pipeline.stages.pass1 import run as pass1
from pipeline.transitions import claim
from pipeline.workers import run_step
from tests.support import records
from tests.support.rows import a_deadline


def die_before_the_end(step: Step) -> None:
    """Run a step of the waiting job, and die before the write of its end."""
    lease = claim(step, "dies")
    assert lease is not None
    registry.PASSES[step](lease, a_deadline())
    # The reconciler does the same after the expiry of the lease.
    Job.objects.filter(id=lease.job_id).update(status=JobStatus.PENDING)


def what_is_there(received: Received) -> dict[str, Any]:
    record = received.shell_file_id
    return {
        "encounters": Encounter.objects.filter(shell_file=record).count(),
        "entities": Entity.objects.filter(shell_file=record).count(),
        "batches": Batch.objects.filter(pass1_encounter_result__shell_file=record).count(),
        "chunks": Chunk.objects.filter(discovery_session__shell_file=record).count(),
        "candidates": CodeCandidate.objects.filter(shell_file=record).count(),
        "enriched": EnrichedEntity.objects.filter(shell_file=record).count(),
        "listed": RecordListItem.objects.filter(shell_file=record).count(),
        "sentences": NarrativeSentence.objects.filter(shell_file=record).count(),
        "calls": ProviderCall.objects.filter(processing_session__shell_file=record).count(),
        "tokens": Summary.objects.get(shell_file=record).total_tokens_used,
    }


@pytest.mark.usefixtures("cloned_db", "redis_db")
@pytest.mark.parametrize(
    "dies_in", [*((step,) for step in registry.PASSES), tuple(registry.PASSES)]
)
def test_a_step_that_was_done_but_not_ended_is_ended_without_a_call(
    dies_in: tuple[Step, ...], settings: Any
) -> None:
    settings.SKIPPED_PASSES = ()
    straight = records.submit(records.LAB)
    records.run_record(straight)
    received = records.submit(records.LAB)

    for step in registry.PASSES:
        if step in dies_in:
            die_before_the_end(step)
        run_step.run_step(step.value)

    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    assert what_is_there(received) == what_is_there(straight)
    session = Session.objects.get(shell_file=received.shell_file_id)
    assert (
        session.completed_steps
        == Session.objects.get(shell_file=straight.shell_file_id).completed_steps
    )
    assert not ProviderCall.objects.exclude(accepted=True).exists()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_record_that_runs_again_does_not_seem_to_have_ended() -> None:
    received = records.submit(records.LAB)
    with records.through_emulator(records.OUTAGE), records.no_breaker():
        records.run_record(received)
    failed = Job.objects.get(id=received.job_id)
    assert failed.error_code is not None
    assert failed.completed_at is not None
    operator_actions.record_retry(received.shell_file_id, reason="a test")

    claim(Step.PASS1, "w")

    job = Job.objects.get(id=received.job_id)
    session = Session.objects.get(shell_file=received.shell_file_id)
    summary = Summary.objects.get(shell_file=received.shell_file_id)
    assert (job.error_code, job.completed_at) == (None, None)
    assert job.last_error == failed.last_error
    assert (session.processing_completed_at, summary.processing_completed_at) == (None, None)


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_success_beside_a_failure_is_not_requested_again() -> None:
    received = records.submit(records.LONG)
    with records.through_emulator([{"fault": "bad-json", "kind": "entities", "page": 13}]):
        records.run_record(received)
    before = set(ProviderCall.objects.values_list("id", flat=True))
    failed = set(Batch.objects.filter(status=WorkStatus.FAILED).values_list("id", flat=True))
    assert len(failed) == 1
    operator_actions.record_retry(received.shell_file_id, reason="a test")

    records.run_record(received)

    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    again = ProviderCall.objects.exclude(id__in=before)
    assert set(again.values_list("work_item_id", flat=True)) == failed
    assert not EncounterResult.objects.exclude(status=WorkStatus.SUCCEEDED).exists()
    batch = Batch.objects.get(id__in=failed)
    assert batch.attempt_count == len(batch.transient_error_history or []) + 1
    assert (batch.error_code, batch.error_context) == (None, None)


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_discovery_that_failed_and_was_retried_shows_no_failure() -> None:
    received = records.submit(records.LAB)
    with records.through_emulator([{"fault": "bad-json", "kind": "discovery"}]):
        record = records.run_record(received)
    assert record.discovery_session.error_code == "MAX_RETRIES_EXCEEDED"
    assert record.discovery_metrics.error_summary is not None
    operator_actions.record_retry(received.shell_file_id, reason="a test")

    record = records.run_record(received)

    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    session, metrics = record.discovery_session, record.discovery_metrics
    assert (session.status, session.error_code, session.error_message) == ("completed", None, None)
    assert (metrics.error_code, metrics.error_summary) == (None, None)
    assert session.chunks_failed == 0
    chunk = Chunk.objects.get(discovery_session=session)
    assert (chunk.error_code, chunk.error_details, chunk.had_transient_failure) == (
        None,
        None,
        True,
    )


class StuckProvider:
    """A provider that requests the stop of its process, and never answers in time."""

    name, model, max_calls = "local", "stuck", 2

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def generate(self, request: Request) -> Reply:
        STOP.request()
        self.let_go.wait(180)
        raise CallError("too late", code=ErrorCode.API_5XX)

    def close(self) -> None:
        self.let_go.set()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_call_that_is_given_up_with_its_step_is_on_record_and_spends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    received = records.submit(records.VISITS)
    run_step.run_step("pages")
    run_step.run_step("pass05")
    stuck = StuckProvider()
    monkeypatch.setattr(pass1, "provider_for", lambda _: stuck)

    try:
        with override_settings(STOP_GRACE_S=0.1):
            run_step.run_step("pass1")
    finally:
        STOP.reset()
        stuck.close()

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.current_step) == (JobStatus.PENDING, Step.PASS1)
    given_up = ProviderCall.objects.filter(step="pass1")
    assert set(given_up.values_list("outcome", flat=True)) == {"CANCELLED"}
    assert 1 <= given_up.count() <= stuck.max_calls
    assert set(Batch.objects.values_list("status", "attempt_count")) == {("pending", 0)}
    monkeypatch.undo()
    assert records.run_record(received).status == "pass1_complete"
