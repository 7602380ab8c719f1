"""A toy pass, known only to the registry, runs, fails, is retried, and is shown everywhere."""

from __future__ import annotations

import inspect
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from gemini_emulator.recorded_rows import prove_log
from observability.diagnostics.failures import groups
from observability.drilldown.explain import drill_down
from observability.listing.time_window import Period, Window
from observability.metrics.forecast import outstanding
from observability.metrics.throughput import rates
from observability.permissions import Role
from observability.phi.calls import Prompt
from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, ShellFileStatus, Step, WorkStatus
from pipeline.models import Job, ProviderCall, ShellFile, ZoneResult, selectors
from pipeline.operations import operator_actions
from pipeline.operations.preview import Selection
from pipeline.operations.preview.bulk_selection import BulkSelection, bulk_preview
from pipeline.stages.intake import Received
from pipeline.transitions import claim, requeue_interrupted
from pipeline.transitions.leases import fenced
from pipeline.workers import run_step
from tests.support import records, toy_pass
from tests.support.short_records import short_record
from tests.support.users import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("new_pass")]

MOST_LINES = 15
BROKEN = [{"fault": "bad-json", "kind": "entities", "page": page} for page in (1, 2)]
"""The zones of the first two pages fail for good."""


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_db: object) -> Received:
    """Return a record of three visits with two zones that failed in the toy pass."""
    toy_pass.register(monkeypatch)
    monkeypatch.setattr(settings, "SKIPPED_PASSES", (Step.PASS1_5.value, Step.PASS3.value))
    submitted = records.submit(short_record(tmp_path / "record.pdf", 3))
    for step in (Step.PAGES, Step.PASS05, Step.PASS1):
        run_step.run_step(step.value)
    with records.through_emulator(BROKEN) as emulator, records.no_breaker(), records.patient():
        run_step.run_step(Step.PASS2.value)
        proof = prove_log(emulator.log())
    # The local engine answered the earlier passes, so the log has no calls for their items.
    assert proof.counts["items"] == len(zones()) + 4
    assert not [line for line in proof.findings for zone in zones() if zone.id.hex in line]
    return submitted


def zones() -> list[ZoneResult]:
    return list(ZoneResult.objects.order_by("page_range_start"))


def test_a_new_pass_needs_few_lines_outside_its_stage() -> None:
    lines, _ = inspect.getsourcelines(toy_pass.register)
    code = [line for line in lines if line.strip() and not line.strip().startswith('"""')]

    assert len(code) <= MOST_LINES


def test_a_new_pass_is_claimed_and_its_results_are_flushed(received: Received) -> None:
    failed, other, succeeded = zones()
    job = Job.objects.get(id=received.job_id)
    calls = ProviderCall.objects.filter(step=Step.PASS2)

    assert (job.status, job.current_step) == (JobStatus.FAILED, Step.PASS2)
    assert (failed.status, failed.error_code) == (WorkStatus.FAILED, job.error_code)
    assert (other.status, succeeded.status) == (WorkStatus.FAILED, WorkStatus.SUCCEEDED)
    assert all((succeeded.entities_enriched, succeeded.input_tokens, succeeded.output))
    assert {call.work_item_id for call in calls} == {zone.id for zone in zones()}
    assert {call.work_item_id for call in calls if call.accepted} == {succeeded.id}


def test_a_failed_item_of_a_new_pass_is_previewed_and_retried_alone(received: Received) -> None:
    failed, other, _ = zones()
    ZoneResult.objects.filter(id=other.id).update(error_context=None)

    by_id = operator_actions.retry_preview(Selection(item=failed.id))
    by_encounter = operator_actions.retry_preview(Selection(encounter=failed.encounter_id))
    by_code = operator_actions.retry_preview(Selection(error_code=ErrorCode.PARSE_JSON))
    operator_actions.item_retry(failed.id, reason="the first one alone")
    waiting = [zone.status for zone in zones()]
    run_step.run_step(Step.PASS2.value)
    operator_actions.record_retry(received.shell_file_id, reason="and the rest")
    run_step.run_step(Step.PASS2.value)

    assert (by_id.calls, by_id.pages) == (1, 1)
    assert (by_encounter.calls, by_encounter.encounters) == (1, 1)
    assert by_id.input_tokens > 100
    assert [each.scope.items for each in by_code.eligible] == [(failed.id,)]
    assert waiting == [WorkStatus.PENDING, WorkStatus.FAILED, WorkStatus.SUCCEEDED]
    assert {zone.status for zone in zones()} == {WorkStatus.SUCCEEDED}
    assert zones()[0].failure_history
    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    record = ShellFile.objects.get(id=received.shell_file_id)
    assert record.status == ShellFileStatus.PASS2_COMPLETE


def test_an_item_of_a_new_pass_that_no_worker_holds_waits_again(received: Received) -> None:
    failed, *_ = zones()
    operator_actions.record_retry(received.shell_file_id, reason="a worker that stops")
    lease = claim(Step.PASS2, "worker-1")
    assert lease is not None
    left = outstanding(None)

    _begin_long_ago(failed)
    with fenced(lease):
        requeue_interrupted(lease)
    interrupted = zones()[0].status
    _begin_long_ago(failed)
    preview = bulk_preview(BulkSelection(action="reset"))
    (reset,) = operator_actions.stale_batches_reset(600)

    assert interrupted == WorkStatus.PENDING
    assert [(each.job_id, each.calls) for each in preview.eligible] == [(received.job_id, 1)]
    assert (reset.kind, reset.id, reset.number, reset.step) == ("zone", failed.id, 0, Step.PASS2)
    assert zones()[0].status == WorkStatus.PENDING
    assert (left.jobs, left.pages) == (1, 3)


def test_the_console_shows_a_new_pass(received: Received) -> None:
    failed, *_ = zones()
    last = ProviderCall.objects.filter(work_item_id=failed.id).order_by("attempt").last()
    assert last is not None
    now = timezone.now() + timedelta(seconds=1)

    found = drill_down(str(failed.id))
    (group,) = groups(Period.last(Window.HOUR, now)).groups
    progress = selectors.progress([received.shell_file_id])[received.shell_file_id]

    assert [node.title for node in found.path()[1:]] == ["Pass 2", "encounter 1, zone 1 (page 1)"]
    assert "2 of 3 zones failed; the first is encounter 1, zone 1 (page 1)" in found.record_answer
    assert (group.step, group.works, group.failed, group.absorbed) == (Step.PASS2, 2, 2, 0)
    assert rates(now).failed == 2
    assert progress.work[Step.PASS2] == (3, 3)

    client = client_of(Role.ADMINISTRATOR)
    record, calls = [received.shell_file_id], [last.id]
    pages = {
        "record": reverse("admin:record", args=record) + f"?node={failed.id}",
        "compare": reverse("admin:compare", args=record) + f"?of={failed.id}",
        "members": reverse("admin:failure_members") + "?window=1h&state=failed",
        "call": reverse("admin:pipeline_providercall_change", args=calls),
        "zone": reverse("admin:pipeline_zoneresult_change", args=[failed.id]),
        "reading": reverse("admin:call_reading", args=calls),
        "retry": reverse("admin:retry") + f"?item={failed.id}",
    }
    shown = {name: client.get(url).content.decode() for name, url in pages.items()}

    assert "encounter 1, zone 1 (page 1)" in shown["record"]
    assert f"zone {str(failed.id)[:8]}" in shown["compare"]
    assert "encounter 1, zone 1" in shown["members"]
    assert pages["zone"] in shown["call"]
    assert "MAX_RETRIES_EXCEEDED" in shown["zone"]
    assert "of encounter 1, zone 1" in shown["reading"]
    assert Prompt.SAME in shown["reading"]
    assert "≈ <b>1</b>" in shown["retry"]


def _begin_long_ago(zone: ZoneResult) -> None:
    at = timezone.now() - timedelta(minutes=15)
    ZoneResult.objects.filter(id=zone.id).update(status=WorkStatus.PROCESSING, started_at=at)
