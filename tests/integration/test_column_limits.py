"""Figures and texts that do not fit a column are stored as closely as possible."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import Sum
from django.utils import timezone

from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import (
    Batch,
    EncounterResult,
    EntityMetrics,
    Job,
    ProviderCall,
    Summary,
)
from pipeline.models.fields import INTEGER_MAX
from pipeline.operations import operator_actions
from pipeline.providers.base import Provider, Reply, Request
from pipeline.providers.factory import provider_for
from pipeline.stages.pass1 import run as pass1
from pipeline.transitions import Flush, claim, row_of, write
from pipeline.workers import run_step
from tests.support import records
from tests.support.rows import a_job, an_encounter

ODD = CallDetails(
    http_status=200,
    model_version="m\x00\ud800",
    response_id="r\x00\udfff",
    finish_reason="STOP",
    quota_id="\x00",
    retry_after_s=float("inf"),
    input_tokens=10**20,
    output_tokens=True,
    thinking_tokens=INTEGER_MAX,
    cached_tokens=-5,
    raw_reply="\x00\ud800",
)


class OddProvider:
    """A local engine that fails each first call, and then answers with too long facts."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self._met: set[str] = set()
        self.name, self.model, self.max_calls = "gemini", inner.model, inner.max_calls

    def generate(self, request: Request) -> Reply:
        if request.item_token not in self._met:
            self._met.add(request.item_token)
            raise CallError("odd", code=ErrorCode.API_5XX, details=replace(ODD, retry_after_s=None))
        return replace(self._inner.generate(request), details=ODD)

    def close(self) -> None:
        self._inner.close()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_no_fact_of_a_call_keeps_its_reply_from_being_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pass1, "provider_for", lambda s: OddProvider(provider_for(s)))

    record = records.completed_record()

    assert Job.objects.get(shell_file=record).status == JobStatus.COMPLETED
    call = ProviderCall.objects.filter(step=Step.PASS1, accepted=True).first()
    assert call is not None
    assert (call.input_tokens, call.cached_tokens, call.model_version) == (INTEGER_MAX, 0, "m?")
    assert EntityMetrics.objects.get(shell_file=record).total_tokens == INTEGER_MAX


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text", ["a\x00b", "a\\u0000b", "a\\\\u0000b", "\x00", "\\\x00", "\ud83d", "é\\"]
)
def test_a_flush_drops_what_postgresql_refuses_and_nothing_else(text: str) -> None:
    _, (batch,) = an_encounter(a_job())
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    batch.output = {"t": text}

    write(lease, Flush(work=Batch, items=[row_of(batch)]))

    batch.refresh_from_db()
    assert batch.output["t"] == text.replace("\x00", "").encode("utf-8", "replace").decode()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_record_that_is_retried_after_a_month_can_still_end() -> None:
    received = records.submit(records.LAB)
    long_ago = timezone.now() - timedelta(days=40)
    with records.through_emulator(records.OUTAGE), records.no_breaker():
        records.run_record(received)
    Summary.objects.update(processing_started_at=long_ago)
    EncounterResult.objects.update(started_at=long_ago)
    # Waiting never counts, so only the steps themselves can have run for a month.
    Job.objects.update(step_run_ms={"pass05": 40 * 24 * 3_600_000})
    operator_actions.record_retry(received.shell_file_id, reason="a test")

    run_step.run_step("pass1")

    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    summary = Summary.objects.get(shell_file_id=received.shell_file_id)
    assert summary.total_processing_time_ms == INTEGER_MAX
    retried = Batch.objects.filter(had_transient_failure=True, attempt_count__gt=2)
    assert retried.exists()
    for batch in retried.select_related("pass1_encounter_result"):
        result = batch.pass1_encounter_result
        assert (result.status, result.error_code) == (WorkStatus.SUCCEEDED, None)
        assert result.total_duration_ms is not None
        assert result.total_duration_ms < 3_600_000


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_tokens_add_up_from_call_to_report_card() -> None:
    received = records.submit(records.LAB)
    with records.through_emulator([{"fault": "500", "kind": "entities", "page": 1, "attempt": 1}]):
        record = records.run_record(received)

    calls = ProviderCall.objects.filter(processing_session__shell_file=record)
    total = calls.aggregate(n=Sum("input_tokens") + Sum("output_tokens") + Sum("thinking_tokens"))
    passes = record.discovery_metrics.total_tokens + record.entity_metrics.total_tokens
    assert record.summary.total_tokens_used == passes == total["n"]
    by_encounter = record.encounter_results.aggregate(n=Sum("total_input_tokens"))["n"]
    assert by_encounter == record.entity_metrics.input_tokens
