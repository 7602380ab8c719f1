"""Each budget of a call (attempts, limited calls, time) ends with its own error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.models import Batch, Job, ProviderCall
from pipeline.operations import operator_actions
from pipeline.stages.intake import Received
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("acceptance-budgets")]


def discovered(folder: Path, visits: int = 2) -> Received:
    """Run a record through Pass 0.5 with the local engine."""
    received = records.submit(short_record(folder / "record.pdf", visits))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    return received


def detect(received: Received, fault: Mapping[str, Any], *, runs: int = 1) -> list[Any]:
    """Run Pass 1 against a service with one fault, and return the batches."""
    with records.through_emulator([fault]):
        for _ in range(runs):
            if Job.objects.get(id=received.job_id).status == "pending":
                run_step.run_step("pass1")
    batches = Batch.objects.filter(pass1_encounter_result__shell_file_id=received.shell_file_id)
    return list(batches.order_by("page_range_start"))


def test_a_hint_beyond_the_steps_deadline_fails_at_once_and_says_both_numbers(
    tmp_path: Path,
) -> None:
    received = discovered(tmp_path)

    # The other call must be in flight by then, because the hint stops every new start.
    fault = {"fault": "429", "page": 1, "retry_after_s": 3600, "delay_s": 1.5}
    limited, other = detect(received, fault)

    assert (limited.status, limited.error_code) == ("failed", "DEADLINE_EXCEEDED")
    assert limited.error_context["final_underlying_error"] == "RATE_LIMIT"
    assert "3600." in limited.error_message
    assert "s left" in limited.error_message
    assert (limited.attempt_count, limited.rate_limit_waits) == (0, 1)
    assert other.status == "succeeded"


def test_limited_calls_have_a_budget_of_their_own(tmp_path: Path, settings: Any) -> None:
    settings.RATE_LIMIT_BUDGET = 4
    received = discovered(tmp_path)

    limited, other = detect(received, {"fault": "429", "page": 1, "retry_after_s": 0})

    assert (limited.status, limited.error_code) == ("failed", "MAX_RETRIES_EXCEEDED")
    assert limited.error_context["final_underlying_error"] == "RATE_LIMIT"
    assert (limited.attempt_count, limited.rate_limit_waits) == (0, 4)
    assert other.status == "succeeded"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("404", "API_4XX"),
        ("blocked", "CONTENT_BLOCKED"),
    ],
)
def test_a_permanent_error_causes_one_call_only(tmp_path: Path, fault: str, code: str) -> None:
    received = discovered(tmp_path)

    failed, other = detect(received, {"fault": fault, "page": 1})

    assert (failed.status, failed.error_code, failed.attempt_count) == ("failed", code, 1)
    assert failed.error_context["final_underlying_error"] == code
    assert ProviderCall.objects.filter(work_item_id=failed.id).count() == 1
    assert other.status == "succeeded"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429-day", "quota"),
        ("429-spend", "quota"),
        ("400-key", "credentials"),
        ("403", "credentials"),
        ("402", "billing"),
        ("302", "proxy"),
        ("407", "proxy"),
        ("html", "proxy"),
    ],
)
def test_an_error_that_affects_every_call_parks_the_job_and_spends_nothing(
    tmp_path: Path, fault: str, kind: str
) -> None:
    received = discovered(tmp_path)

    batches = detect(received, {"fault": fault, "kind": "entities"})

    job = Job.objects.select_related("incident").get(id=received.job_id)
    assert (job.status, job.retry_count, job.error_code) == ("parked", 0, None)
    assert job.incident is not None
    assert job.incident.kind == kind
    assert (job.parked_until is not None) == (kind == "quota")
    assert {(b.status, b.attempt_count, b.rate_limit_waits) for b in batches} == {("pending", 0, 0)}


@pytest.mark.parametrize(
    ("fault", "code"), [("truncated", "OUTPUT_TRUNCATED"), ("400-tokens", "CONTEXT_TOO_LARGE")]
)
def test_a_single_page_cannot_be_halved_and_fails_without_spending_an_attempt(
    tmp_path: Path, fault: str, code: str
) -> None:
    received = discovered(tmp_path)

    failed, other = detect(received, {"fault": fault, "page": 1})

    assert (failed.status, failed.error_code) == ("failed", code)
    assert failed.error_context["final_underlying_error"] == code
    assert (failed.attempt_count, failed.rate_limit_waits) == (0, 0)
    assert ProviderCall.objects.filter(work_item_id=failed.id).count() == 1
    assert other.status == "succeeded"


def test_a_service_that_only_hangs_ends_as_used_up_attempts_though_the_step_gives_itself_back(
    tmp_path: Path, settings: Any
) -> None:
    settings.CALL_DEADLINE_S = 5
    settings.PASS1_CONCURRENCY_LIMIT = 2
    received = discovered(tmp_path, visits=5)

    batches = detect(received, {"fault": "hang", "kind": "entities"}, runs=20)

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == ("failed", "MAX_RETRIES_EXCEEDED")
    assert job.lease_gen > 3
    for batch in batches:
        assert (batch.status, batch.attempt_count) == ("failed", 3)
        outcomes = ProviderCall.objects.filter(work_item_id=batch.id).values_list(
            "outcome", flat=True
        )
        assert list(outcomes) == ["API_TIMEOUT"] * 3
        assert [entry["attempt"] for entry in batch.transient_error_history] == [1, 2, 3]


def test_a_failed_job_that_is_retried_asks_for_what_failed_with_new_attempts(
    tmp_path: Path,
) -> None:
    received = discovered(tmp_path)
    failed, _ = detect(received, {"fault": "500", "page": 1})
    assert (failed.status, failed.attempt_count) == ("failed", 3)
    operator_actions.record_retry(received.shell_file_id, reason="a test")

    cured, other = detect(received, {"fault": "500", "page": 1, "attempt": "1-2"})

    assert Job.objects.get(id=received.job_id).status == "completed"
    assert (cured.status, cured.attempt_count, cured.max_attempts) == ("succeeded", 6, 6)
    assert [entry["attempt"] for entry in cured.transient_error_history] == [1, 2, 3, 4, 5]
    assert (other.attempt_count, other.max_attempts) == (1, 3)
