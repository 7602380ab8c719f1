"""A step waits for a small quota as long as it takes: no record fails, and no worker is held."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from medproc.timing import scaled
from pipeline.core.deadline import SOFT_SHARE, StepDeadline
from pipeline.core.states import Step
from pipeline.execution import executor
from pipeline.models import Batch, Job, ProviderCall
from pipeline.stages import registry
from pipeline.stages.intake import Received
from pipeline.transitions import claim
from pipeline.workers import run_step
from tests.support import records
from tests.support.rows import a_job
from tests.support.short_records import short_record

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("quota-waits")]


def discovered(path: Path) -> Received:
    """Run a record through Pass 0.5 with the local engine."""
    received = records.submit(path)
    run_step.run_step("pages")
    run_step.run_step("pass05")
    return received


def time_given_s() -> float:
    """Run the waiting step of Pass 1; return the seconds that the executor gave the step."""
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    deadline = StepDeadline(1.0)
    run_step._end(lease, deadline, registry.PASSES[Step.PASS1](lease, deadline))
    assert Job.objects.get(id=lease.job_id).status == "completed"
    return deadline.soft_s / SOFT_SHARE


def detect(latency: str = "0") -> None:
    with records.through_emulator(latency=latency, answers="minimal"):
        run_step.run_step("pass1")


@pytest.mark.parametrize("quota", [{"GEMINI_RPM": 1}, {"GEMINI_TPM": 1}])
def test_waits_for_requests_and_tokens_do_not_count_towards_the_deadline(
    quota: dict[str, int], tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    received = discovered(short_record(tmp_path / "record.pdf", 5))
    # One call starts a second, and the step has time for three of them.
    settings.GATE_WINDOW_S = 1.0
    for name, value in quota.items():
        setattr(settings, name, value)
    monkeypatch.setattr(executor, "step_time_s", lambda *_, **__: 3.0)

    detect()

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == ("completed", None)
    assert not (job.error_details or {}).get("history")
    assert ProviderCall.objects.filter(step="pass1", outcome="OK").count() == 5


def test_the_time_of_a_step_grows_with_the_jobs_that_share_its_quota(
    tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S, settings.CALL_DEADLINE_S, settings.STEP_DEADLINE_MIN_S = 2400.0, 60.0, 1.0
    settings.PASS1_MAX_RETRIES = 1
    chain_s = scaled(settings.CALL_DEADLINE_S)
    # Half of ten requests a second: one call needs 0.2 s of the quota of a job that is alone.
    settings.GEMINI_RPM, settings.GATE_WINDOW_S = 10, 1.0
    discovered(short_record(tmp_path / "local-alone.pdf", 1))
    local_alone_s = time_given_s()
    discovered(short_record(tmp_path / "alone.pdf", 1))
    with records.through_emulator(answers="minimal"):
        alone_s = time_given_s()
    # The jobs of other workers; a job that reads pages uses no quota.
    for step in (Step.PASS05, Step.PASS1, Step.PAGES):
        a_job(step=step)
        assert claim(step, "another") is not None

    discovered(short_record(tmp_path / "shared.pdf", 1))
    with records.through_emulator(answers="minimal"):
        shared_s = time_given_s()
    discovered(short_record(tmp_path / "local-shared.pdf", 1))
    local_shared_s = time_given_s()

    assert alone_s == pytest.approx(chain_s + 0.2)
    assert shared_s == pytest.approx(chain_s + 3 * 0.2)
    assert local_shared_s == local_alone_s


def test_a_step_out_of_time_says_that_it_waited_for_requests_per_minute(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    received = discovered(short_record(tmp_path / "record.pdf", 2))
    # One call starts a second, and both calls hang for longer than the step has time.
    settings.GEMINI_RPM, settings.GATE_WINDOW_S = 1, 1.0
    monkeypatch.setattr(executor, "step_time_s", lambda *_, **__: 1.0)

    detect("60/call")

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == ("failed", "DEADLINE_EXCEEDED")
    said = job.last_error or ""
    assert said.startswith("pass1 used up its 1 s with 0 of 2 batches ended;")
    assert re.search(r"; waited [\d.]+ s for requests per minute \(GEMINI_RPM\)", said), said


def test_a_used_up_day_frees_the_worker_as_soon_as_the_calls_in_flight_have_ended(
    tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    received = discovered(short_record(tmp_path / "record.pdf", 2))
    settings.GEMINI_RPD = 1
    settings.GATE_WINDOW_S = 1.0

    # The second call asks while the first call is in flight, and is told to ask again at midnight.
    detect("1.5/call")

    job = Job.objects.get(id=received.job_id)
    assert job.status == "parked"
    assert "the calls of a day of gemini" in (job.park_reason or "")
    batches = Batch.objects.filter(pass1_encounter_result__shell_file_id=received.shell_file_id)
    assert sorted(batches.values_list("status", flat=True)) == ["pending", "succeeded"]


@pytest.mark.slow(reason="72 pages at 8,000 tokens a minute, a minute being 3 s")
def test_a_long_record_completes_with_a_small_quota_of_tokens(settings: Any) -> None:
    settings.LEASE_S = 2400.0
    received = discovered(records.LONG)
    # All times are a twentieth of the defaults, and so is the minute of the quota.
    settings.TIME_SCALE, settings.GATE_WINDOW_S = 0.05, 3.0
    settings.CALL_DEADLINE_S, settings.STEP_DEADLINE_MIN_S = 120.0, 300.0
    settings.GEMINI_TPM = 8_000

    detect()

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == ("completed", None)
    assert not (job.error_details or {}).get("history")
