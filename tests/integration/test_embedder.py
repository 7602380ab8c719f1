"""The optional embedder orders shortlists by counted, recorded calls, and never fails a pass.

The stage runs with the real google-genai client against the emulator.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from gemini_emulator import Emulator
from observability.drilldown.queries import rows_of
from observability.drilldown.tree import tree
from pipeline.codes.search import meaning
from pipeline.core.errors import ErrorCode, LeaseLostError
from pipeline.core.states import JobStatus, Step
from pipeline.core.types import ProviderModel
from pipeline.execution import embedding_calls
from pipeline.execution.reuse.conditions import conditions_of
from pipeline.execution.step_result import CANCELLED, SIGTERM, StepCompleted, StepInterrupted
from pipeline.models import (
    CodeCandidate,
    CodeVector,
    Entity,
    Incident,
    Job,
    ProviderCall,
    ShellFile,
)
from pipeline.models.selectors import call_totals
from pipeline.operations.preview import Selection, preview
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import warm
from pipeline.ratelimit import RateLimiter
from pipeline.stages.pass1_5 import run as stage
from pipeline.transitions import Lease, claim, pause_provider
from tests.integration.test_code_shortlists import entities
from tests.support import incident_rows
from tests.support.code_rows import load_icd_part
from tests.support.rows import a_deadline, a_job, an_encounter

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("embedder")]

MODEL = "gemini-embedding-001"
NAMES = ("HTN", "L knee OA", "T2DM", "chronic heart failure systolic", "abdominal pain lower")
Fault = Mapping[str, Any]


@pytest.fixture
def lease(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Lease:
    """Return the lease of a record with two encounters, with a part of ICD-10-CM loaded."""
    # The tests scale all seconds to a twentieth.
    settings.LEASE_S, settings.CALL_DEADLINE_S = 2400, 600.0
    monkeypatch.setattr(embedding_calls, "CALL_S", 400.0)
    monkeypatch.setattr(embedding_calls, "PATIENCE_S", 1200.0)
    load_icd_part()
    return a_lease()


def a_lease(names: Sequence[str] = NAMES) -> Lease:
    job = a_job(step=Step.PASS1_5)
    for index in (1, 2):
        result, _ = an_encounter(job, index=index)
        entities(job, result.healthcare_encounter_id, tuple(names))
    claimed = claim(Step.PASS1_5, "w1")
    assert claimed is not None
    return claimed


@contextmanager
def embedding(settings: Any, faults: Sequence[Fault] = (), **more: Any) -> Iterator[Emulator]:
    rules = [{"kind": "embedding", **rule} for rule in faults]
    with Emulator(answers="minimal", faults=rules, **more) as emulator:
        settings.MEDPROC_PROVIDER, settings.CODE_EMBEDDER = "gemini", "gemini"
        settings.GEMINI_BASE_URL, settings.GEMINI_API_KEY = emulator.url, "test-key"
        # The import of the client alone outlasts a call of the tests.
        warm(ProviderConfig.of_settings())
        yield emulator


def shortlists_of(lease: Lease) -> dict[str, list[tuple[str, float]]]:
    rows = CodeCandidate.objects.filter(shell_file=lease.shell_file_id).order_by("rank")
    found: dict[str, list[tuple[str, float]]] = {}
    for row in rows.select_related("entity", "healthcare_encounter"):
        of = row.healthcare_encounter.encounter_index
        found.setdefault(f"{of} {row.entity.name}", []).append((row.code, row.score))
    return found


def codes_of(lease: Lease) -> dict[str, list[str]]:
    return {name: [code for code, _ in each] for name, each in shortlists_of(lease).items()}


def warnings_of(lease: Lease) -> list[dict[str, Any]]:
    return list(ShellFile.objects.get(id=lease.shell_file_id).warnings)


def completes(lease: Lease) -> None:
    result = stage.run(lease, a_deadline())

    assert isinstance(result, StepCompleted)
    result.publish()


def calls() -> list[tuple[str, bool]]:
    rows = ProviderCall.objects.order_by("attempt").values_list("outcome", "accepted")
    return list(rows)


def by_words(lease: Lease, settings: Any) -> dict[str, list[tuple[str, float]]]:
    """Return the shortlists that the search without an embedder makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "CODE_EMBEDDER", "ngrams")
        assert isinstance(stage.run(lease, a_deadline()), StepCompleted)
        return shortlists_of(lease)


def test_without_the_setting_no_call_is_made(lease: Lease, settings: Any) -> None:
    with embedding(settings) as emulator:
        settings.CODE_EMBEDDER = "ngrams"
        completes(lease)

        assert emulator.log() == []
    assert not ProviderCall.objects.exists()
    assert not CodeVector.objects.exists()


def test_codes_are_ordered_by_meaning_and_none_is_added_or_lost(
    lease: Lease, settings: Any
) -> None:
    before = by_words(lease, settings)

    with embedding(settings):
        completes(lease)

    after = shortlists_of(lease)
    assert {key: {code for code, _ in each} for key, each in after.items()} == {
        key: {code for code, _ in each} for key, each in before.items()
    }
    assert after != before
    changed = [key for key in after if codes_of_one(after[key]) != codes_of_one(before[key])]
    assert changed
    for each in after.values():
        scores = [score for _, score in each]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
    assert warnings_of(lease) == []
    assert CodeCandidate.objects.filter(reason__contains="; meaning ").exists()


def codes_of_one(found: Sequence[tuple[str, float]]) -> list[str]:
    return [code for code, _ in found]


def test_each_call_is_a_row_with_tokens_and_cost_that_totals_and_tree_count(
    lease: Lease, settings: Any
) -> None:
    with embedding(settings) as emulator:
        completes(lease)
        log = emulator.log()

    (line,) = log
    (call,) = ProviderCall.objects.all()
    assert (line.route, line.outcome) == ("batchEmbedContents", "ok")
    assert (call.processing_session_id, call.step) == (lease.session_id, "pass1_5")
    assert (call.provider, call.model, call.outcome) == ("gemini", MODEL, "OK")
    assert (call.work_item_id, call.attempt, call.accepted) == (None, 1, True)
    assert call.input_tokens == line.input_tokens > 0
    assert float(call.cost_usd) == pytest.approx(call.input_tokens * 0.15 / 1e6, abs=1e-6)
    assert call.lease_gen == lease.gen
    totals = call_totals(lease.session_id)
    assert (totals["calls"], totals["input_tokens"]) == (1, call.input_tokens)
    root = tree(rows_of(lease.shell_file_id))
    node = next(each for each in root.children if each.id == "pass1_5")
    assert [child.id for child in node.children] == [str(call.id)]


def test_the_cluster_wide_limiter_counts_each_call_under_the_embedding_model(
    lease: Lease, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_calls, "BATCH_TEXTS", 4)
    with embedding(settings):
        completes(lease)

    state = RateLimiter.for_("gemini", MODEL).state()
    count = ProviderCall.objects.count()
    assert count > 3
    assert (state.day_used, state.in_flight) == (count, 0)
    assert RateLimiter.for_("gemini", settings.GEMINI_MODEL).state().day_used == 0


def test_the_same_words_are_asked_for_once(lease: Lease, settings: Any) -> None:
    with embedding(settings) as emulator:
        completes(lease)
        first = codes_of(lease)
        other = a_lease()
        completes(other)

        assert len(emulator.log()) == 1
    assert codes_of(other) == first
    digests = set(CodeVector.objects.values_list("digest", flat=True))
    assert meaning.digest_of("abdominal pain lower") in digests
    assert set(CodeVector.objects.values_list("model", flat=True)) == {MODEL}


def test_no_text_of_a_document_is_kept_or_logged(
    lease: Lease, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    Entity.objects.filter(name="HTN").update(name="zebracanary hypertension")
    with embedding(settings, [{"fault": "500", "times": 1}]):
        completes(lease)

    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(c)::text FROM code_search_vectors c")
        kept = " ".join(row for (row,) in cursor)
        cursor.execute("SELECT to_jsonb(c)::text FROM provider_calls c")
        kept += " ".join(row for (row,) in cursor)
    assert "zebracanary" not in kept + caplog.text + json.dumps(warnings_of(lease))


PASSING = ["429", "500", "503", "few-vectors", "nan-vector", "empty-object"]


@pytest.mark.parametrize("fault", PASSING)
def test_a_call_that_fails_once_is_made_again(lease: Lease, settings: Any, fault: str) -> None:
    with embedding(settings, [{"fault": fault, "times": 1, **hint(fault)}]):
        completes(lease)

    assert [outcome for outcome, _ in calls()][1:] == ["OK"]
    assert calls()[0][1] is False
    assert warnings_of(lease) == []
    assert CodeVector.objects.exists()


def hint(fault: str) -> dict[str, float]:
    return {"retry_after_s": 0.1} if fault == "429" else {}


LASTING = {
    "429": ErrorCode.RATE_LIMIT,
    "429-day": ErrorCode.QUOTA_EXHAUSTED,
    "400-key": ErrorCode.API_AUTH,
    "400-bare": ErrorCode.API_4XX,
    "500": ErrorCode.API_5XX,
    "hang": ErrorCode.API_TIMEOUT,
    "few-vectors": ErrorCode.PARSE_SCHEMA,
    "short-vector": ErrorCode.PARSE_SCHEMA,
    "nan-vector": ErrorCode.PARSE_SCHEMA,
    "zero-vector": ErrorCode.PARSE_SCHEMA,
    "empty-object": ErrorCode.EMPTY_RESPONSE,
    "empty-body": ErrorCode.EMPTY_RESPONSE,
}


@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_lasts_leaves_the_order_of_the_words_and_a_warning(
    lease: Lease, settings: Any, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(embedding_calls, "PATIENCE_S", 30.0)
    if fault == "hang":
        monkeypatch.setattr(embedding_calls, "CALL_S", 30.0)
    before = by_words(lease, settings)
    with embedding(settings, [{"fault": fault, **hint(fault)}]):
        completes(lease)

    assert shortlists_of(lease) == before
    (warning,) = warnings_of(lease)
    assert warning["code"] == ErrorCode.EMBEDDER_AWAY
    assert {outcome for outcome, _ in calls()} == {LASTING[fault].value}
    assert not any(accepted for _, accepted in calls())
    assert not CodeVector.objects.exists()
    job = Job.objects.get(id=lease.job_id)
    assert (job.status, job.incident_id, job.parked_until) == (JobStatus.PROCESSING, None, None)
    incidents = {"429-day": 1, "400-key": 1}
    opened = Incident.objects.filter(provider="gemini", model=MODEL).count()
    assert opened == incidents.get(fault, 0)


def test_after_a_lasting_fault_the_step_makes_no_more_calls(
    lease: Lease, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "GROUP_SIZE", 1)
    Entity.objects.filter(healthcare_encounter__encounter_index=2).update(name="stage 3b CKD")
    with embedding(settings, [{"fault": "400-bare"}]) as emulator:
        completes(lease)

        assert len(emulator.log()) == 1
    assert len(warnings_of(lease)) == 1


def test_a_pause_of_the_operator_makes_no_call_and_leaves_a_warning(
    lease: Lease, settings: Any
) -> None:
    with embedding(settings) as emulator:
        pause_provider("gemini", MODEL, reason="a test")
        completes(lease)

        assert emulator.log() == []
    (warning,) = warnings_of(lease)
    assert "the end of a pause" in warning["message"]
    assert Job.objects.get(id=lease.job_id).status == JobStatus.PROCESSING


def test_a_limit_that_outlasts_the_patience_leaves_a_warning(
    lease: Lease, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_calls, "PATIENCE_S", 30.0)
    settings.GEMINI_RPM, settings.GATE_WINDOW_S = 1, 60.0
    # Another record has just used the quota.
    model = ProviderModel(provider="gemini", model=MODEL)
    incident_rows.calls(a_job(status=JobStatus.COMPLETED), "OK", of=model)
    with embedding(settings) as emulator:
        completes(lease)

        assert emulator.log() == []
    (warning,) = warnings_of(lease)
    assert "GEMINI_RPM" in warning["message"]


def test_a_worker_without_its_lease_writes_neither_call_nor_vector(
    lease: Lease, settings: Any
) -> None:
    Job.objects.update(lease_gen=99)
    with embedding(settings), pytest.raises(LeaseLostError):
        stage.run(lease, a_deadline())

    assert not ProviderCall.objects.exists()
    assert not CodeVector.objects.exists()
    assert not CodeCandidate.objects.exists()


def test_a_stop_or_a_cancellation_interrupts_the_calls_without_a_warning(
    lease: Lease, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STOP_GRACE_S, settings.HEARTBEAT_S = 4.0, 0.1
    with embedding(settings, [{"fault": "hang"}]):
        monkeypatch.setattr(embedding_calls, "on_stop", stopping_soon)
        stopped = stage.run(lease, a_deadline())
        monkeypatch.undo()
        Job.objects.update(cancel_requested_at="2026-01-01T00:00:00Z")
        # A heartbeat is due before the first call, however fast the machine is.
        settings.HEARTBEAT_S = 0.001
        cancelled = stage.run(lease, a_deadline())

    assert stopped == StepInterrupted(reason=SIGTERM)
    assert cancelled == StepInterrupted(reason=CANCELLED)
    # The cancellation was known before the second run began a call.
    assert calls() == [(ErrorCode.CANCELLED.value, False)]
    assert not CodeCandidate.objects.exists()
    assert warnings_of(lease) == []


def stopping_soon(stop: Any) -> Any:
    """Stop while the first call hangs."""
    timer = threading.Timer(2.0, stop)
    timer.start()
    return timer.cancel


def test_another_embedder_or_index_is_another_code_table(
    lease: Lease, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (Step.PASS1_5, Step.PASS2, Step.PASS3)

    def keys() -> list[str]:
        return [conditions_of(step).code_table_version for step in steps]

    def is_coded_again() -> bool:
        before = set(CodeCandidate.objects.values_list("id", flat=True))
        completes(lease)
        return before.isdisjoint(CodeCandidate.objects.values_list("id", flat=True))

    with embedding(settings):
        settings.CODE_EMBEDDER = "ngrams"
        completes(lease)
        assert not is_coded_again()
        seen = [keys()]
        settings.CODE_EMBEDDER = "gemini"
        assert is_coded_again()
        assert not is_coded_again()
        seen.append(keys())
        settings.CODE_EMBEDDING_MODEL = "gemini-embedding-2"
        assert is_coded_again()
        seen.append(keys())
        monkeypatch.setattr("pipeline.codes.version.REVISION", 999)
        assert is_coded_again()
        seen.append(keys())

    assert len({tuple(each) for each in seen}) == len(seen)
    assert conditions_of(Step.PASS1).code_table_version == ""
    models = set(CodeVector.objects.values_list("model", flat=True))
    assert models == {MODEL, "gemini-embedding-2"}


def test_a_preview_counts_the_embedding_calls_that_still_follow(
    lease: Lease, settings: Any
) -> None:
    settings.SKIPPED_PASSES = ("pass2", "pass3")
    ShellFile.objects.update(page_count=20)
    Job.objects.update(status=JobStatus.FAILED)

    def later() -> tuple[int, int]:
        found = preview(Selection(jobs=(lease.job_id,)))
        return found.later_calls, found.later_tokens

    assert later() == (0, 0)
    settings.MEDPROC_PROVIDER, settings.CODE_EMBEDDER = "gemini", "gemini"
    assert later() == (10, 8_000)
    settings.SKIPPED_PASSES = ("pass1_5", "pass2", "pass3")
    assert later() == (0, 0)
