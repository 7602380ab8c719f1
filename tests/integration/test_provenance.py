"""A record states what its workers used, and for how long they worked."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db.models import F
from django.utils import timezone

from pipeline.models import Job, ProviderCall, Session, ShellFile, Summary
from pipeline.providers.local import LocalProvider
from pipeline.transitions import release_due
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]


def _differing(record_id: Any) -> list[str]:
    warnings = ShellFile.objects.get(id=record_id).warnings
    return [each["message"] for each in warnings if each["code"] == "SETTINGS_DIFFER"]


def test_a_record_names_the_model_and_limits_of_its_workers(tmp_path: Path, settings: Any) -> None:
    received = records.submit(short_record(tmp_path / "record.pdf", 2))
    run_step.run_step("pages")
    # The submitting process keeps the local engine; the workers of the rehearsal call Gemini.
    settings.JOB_MAX_RETRIES, settings.RETRY_DELAY_S = 2, 77
    settings.PASS1_CONCURRENCY_LIMIT, settings.PASS1_MAX_RETRIES = 7, 5
    with records.through_emulator():
        run_step.run_step("pass05")
        run_step.run_step("pass1")

    session = Session.objects.get(shell_file_id=received.shell_file_id)
    job = Job.objects.get(id=received.job_id)
    called = set(ProviderCall.objects.values_list("provider", "model"))
    assert called == {("gemini", django_settings.GEMINI_MODEL)}
    assert (session.ai_model_name, session.max_retries) == (django_settings.GEMINI_MODEL, 2)
    assert (job.max_retries, job.retry_delay) == (2, timedelta(seconds=77))
    stated = session.model_config
    assert (stated["provider"], stated["concurrency_limit"], stated["max_retries"]) == (
        "gemini",
        7,
        5,
    )
    assert stated["submitted"]["model"] == LocalProvider.model
    assert set(stated["steps"]) == {"pass05", "pass1"}
    (message,) = _differing(received.shell_file_id)
    assert message == (
        f"The workers used {django_settings.GEMINI_MODEL} (gemini, text). The process that"
        f" submitted the record is set to {LocalProvider.model} (local, text)."
    )


def test_two_hosts_with_different_models_leave_a_warning(tmp_path: Path) -> None:
    received = records.submit(short_record(tmp_path / "record.pdf", 2))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    assert _differing(received.shell_file_id) == []
    with records.through_emulator():
        run_step.run_step("pass1")

    found = _differing(received.shell_file_id)
    assert any("Pass 1 used" in each and "local-rules" in each for each in found), found


def test_hosts_with_the_same_settings_leave_no_warning(tmp_path: Path) -> None:
    with records.through_emulator():
        record = records.completed_record(short_record(tmp_path / "record.pdf", 2))

    assert record.warnings == []
    assert Session.objects.get(shell_file=record).ai_model_name == django_settings.GEMINI_MODEL


def test_only_running_steps_count_as_processing_time(tmp_path: Path, settings: Any) -> None:
    settings.JOB_MAX_RETRIES = 1
    received = records.submit(short_record(tmp_path / "record.pdf", 2))
    broken = {"fault": "bad-json", "kind": "entities", "page": 2}
    with records.through_emulator([broken]), records.no_breaker():
        records.run_record(received)
    # The record was submitted and parked ten minutes ago.
    back = timedelta(minutes=10)
    Session.objects.update(processing_started_at=F("processing_started_at") - back)
    Summary.objects.update(processing_started_at=F("processing_started_at") - back)
    Job.objects.update(parked_until=timezone.now(), started_at=F("started_at") - back)
    release_due()
    with records.through_emulator():
        run_step.run_step("pass1")

    job = Job.objects.get(id=received.job_id)
    summary = Summary.objects.get(shell_file_id=received.shell_file_id)
    assert job.status == "completed"
    assert set(job.step_run_ms) == {"pages", "pass05", "pass1"}
    assert 0 < summary.total_processing_time_ms == sum(job.step_run_ms.values()) < 600_000
    assert summary.pass05_metrics is not None
    assert summary.pass1_metrics is not None
    assert summary.pass05_metrics.processing_time_ms == job.step_run_ms["pass05"]
    assert summary.pass1_metrics.processing_time_ms == job.step_run_ms["pass1"]
