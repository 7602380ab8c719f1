"""`prune` deletes what is past its time, in small transactions, and nothing that is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session as ConsoleSession
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from medproc.env import PROJECT_ROOT
from observability.actions import retention
from observability.audit.chain import verify
from observability.models import AuditEvent, BulkOperation
from observability.phi.calls import read_call
from pipeline.core.states import JobStatus
from pipeline.models import Job, KeptReply, ProviderCall, ProviderPayload, ReviewItem, ShellFile
from pipeline.operations.retention import prune as pruning
from pipeline.operations.retention.rules import RECORDS, REPLIES
from pipeline.operations.review import closing
from tests.support import records
from tests.support.databases import as_owner, rewriting
from tests.support.incident_rows import calls
from tests.support.review_rows import ANNA, a_reviewed_record, claimed, entities_of, says
from tests.support.rows import a_job
from tests.support.short_records import short_record
from tests.support.workers import until

OLD = timedelta(days=31)


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("prune", *arguments, stdout=out)
    return out.getvalue()


def made_old(model: Any, age: timedelta = OLD, **of: Any) -> None:
    with rewriting():
        model.objects.filter(**of).update(created_at=timezone.now() - age)


def replies(job: Job, count: int, age: timedelta = OLD) -> list[ProviderPayload]:
    """Insert calls of a job with their raw replies."""
    calls(job, "OK", count)
    rows = [
        ProviderPayload(
            call=call, page_range_start=1, page_range_end=1, prompt_sha256="0" * 64, reply=b"x"
        )
        for call in ProviderCall.objects.filter(processing_session__shell_file=job.shell_file)
    ]
    ProviderPayload.objects.bulk_create(rows)
    made_old(ProviderPayload, age, call__in=[row.call_id for row in rows])
    return rows


def ended() -> Job:
    return a_job(status=JobStatus.COMPLETED)


def unfinished(status: str) -> Job:
    now = timezone.now()
    columns: dict[str, dict[str, Any]] = {
        "processing": {"lease_expires_at": now, "worker_id": "a worker"},
        "parked": {"park_reason": "a reason", "parked_until": now},
    }
    return a_job(status=JobStatus(status), **columns.get(status, {}))


@pytest.mark.django_db
def test_a_reply_goes_after_its_time_and_its_call_stays_and_says_so(tmp_path: Path) -> None:
    record = records.completed_record(short_record(tmp_path / "a.pdf", 1), owner="cli")
    young = records.completed_record(short_record(tmp_path / "b.pdf", 2), owner="cli")
    made_old(ProviderPayload, call__processing_session__shell_file=record)
    made_old(KeptReply, shell_file=record)
    made = ProviderCall.objects.count()
    gone = ProviderPayload.objects.filter(call__processing_session__shell_file=record).count()
    kept_gone = KeptReply.objects.filter(shell_file=record).count()

    shown = json.loads(said("--dry-run", "--json"))
    before = ProviderPayload.objects.count(), AuditEvent.objects.count()
    text = said("--reason", "the daily run")

    of = {each["table"]: each for each in shown["tables"]}
    assert gone > 0
    assert kept_gone > 0
    assert (of["provider_payloads"]["removed"], of["kept_replies"]["removed"]) == (gone, kept_gone)
    assert before[0] - ProviderPayload.objects.count() == gone
    assert f"provider_payloads: {gone} rows deleted (raw replies, older than 30 days)" in text
    assert ProviderCall.objects.count() == made
    assert not ProviderPayload.objects.filter(call__processing_session__shell_file=record).exists()
    assert ProviderPayload.objects.filter(call__processing_session__shell_file=young).exists()
    call = ProviderCall.objects.filter(processing_session__shell_file=record, accepted=True)[0]
    assert "after its retention time" in read_call(call).missing
    begun, finished = AuditEvent.objects.order_by("created_at").filter(action="prune")
    assert AuditEvent.objects.count() == before[1] + 2
    assert begun.facts["older_than_days"]["provider_payloads"] == 30
    assert finished.facts["removed"] == {"provider_payloads": gone, "kept_replies": kept_gone}
    assert finished.facts["finished"] is True
    assert finished.reason == "the daily run"


@pytest.mark.django_db
def test_a_pruned_reply_is_asked_for_again_by_the_next_record_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    path = short_record(tmp_path / "a.pdf", 1)
    first = records.completed_record(path, owner="cli")
    made_old(KeptReply)
    said()

    second = records.completed_record(path, owner="cli")

    assert second.status == first.status
    calls_of = [
        ProviderCall.objects.filter(processing_session__shell_file=each, accepted=True).count()
        for each in (first, second)
    ]
    assert calls_of[0] == calls_of[1] > 0


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["pending", "processing", "parked"])
def test_the_replies_of_an_unfinished_job_stay(status: str) -> None:
    waiting = unfinished(status)
    replies(waiting, 2)
    replies(ended(), 3)

    text = said("--table", "provider_payloads")

    assert "3 rows deleted" in text
    assert "2 kept: the record's job has not ended" in text
    left = ProviderPayload.objects.values_list("call__processing_session__shell_file_id", flat=True)
    assert list(left) == [waiting.shell_file_id] * 2


@pytest.mark.django_db
def test_a_dry_run_writes_nothing() -> None:
    replies(ended(), 2)

    with CaptureQueriesContext(connection) as captured:
        text = said("--dry-run")

    assert "2 rows would be deleted" in text
    statements = [each["sql"].split()[0] for each in captured]
    assert not {"INSERT", "DELETE", "UPDATE"} & set(statements)
    assert ProviderPayload.objects.count() == 2


@pytest.mark.django_db
def test_one_transaction_reads_and_deletes_a_bounded_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pruning, "PORTION", 3)
    waiting = unfinished("parked")
    replies(waiting, 4, timedelta(days=90))
    replies(ended(), 7)

    with CaptureQueriesContext(connection) as captured:
        found = pruning.prune(REPLIES, 30)

    assert (found.removed, found.kept, found.finished) == (7, 4, True)
    sql = [each["sql"] for each in captured]
    assert sum(each.startswith("SELECT r.call_id") for each in sql) == 4
    assert all("LIMIT 3" in each for each in sql if each.startswith("SELECT r.call_id"))
    # The first portion holds rows that stay alone.
    assert sum(each.startswith("DELETE") for each in sql) == 3


@pytest.mark.django_db
def test_the_scan_of_a_portion_uses_the_index_of_the_age() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN SELECT r.call_id, r.created_at FROM provider_payloads r"
            " WHERE r.created_at < now() ORDER BY r.created_at, r.call_id LIMIT 500"
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "idx_provider_payloads_age" in plan


@pytest.mark.django_db
def test_expired_sessions_and_ended_bulk_operations_go() -> None:
    now = timezone.now()
    for key, expires in (("a" * 32, now - timedelta(hours=1)), ("b" * 32, now + OLD)):
        ConsoleSession.objects.create(session_key=key, session_data="", expire_date=expires)
    common = {"action": "retry", "selection": {}, "reason": "r", "requested_by": "ada"}
    for number, finished in enumerate((None, now)):
        BulkOperation.objects.create(
            token=f"00000000-0000-0000-0000-00000000000{number}", finished_at=finished, **common
        )
    made_old(BulkOperation)

    said()
    by_themselves = BulkOperation.objects.count()
    said("--table", "bulk_operations", "--older-than", "30")

    assert list(ConsoleSession.objects.values_list("session_key", flat=True)) == ["b" * 32]
    assert by_themselves == 2
    assert BulkOperation.objects.get().finished_at is None


@pytest.mark.django_db
def test_a_record_that_is_not_reviewed_or_is_locked_stays() -> None:
    def closed(*, entities: int) -> ReviewItem:
        item = claimed(a_reviewed_record(entities=entities))
        for entity in entities_of(item):
            says(item, entity, "accept")
        closing.close(item.id, ANNA)
        return item

    unreviewed = a_reviewed_record(entities=0)
    locked, empty = closed(entities=1), closed(entities=0)
    running = unfinished("parked")
    young = closed(entities=0)
    made_old(ShellFile, id__in=[
        unreviewed.shell_file_id, locked.shell_file_id, empty.shell_file_id, running.shell_file_id,
    ])  # fmt: skip

    shown = said("--table", "shell_files", "--older-than", "30", "--dry-run")
    with as_owner():
        text = said("--table", "shell_files", "--older-than", "30")

    assert "1 row would be deleted" in shown
    assert "1 row deleted" in text
    assert "3 kept: not reviewed, locked by a reviewer" in text
    left = set(ShellFile.objects.values_list("id", flat=True))
    assert left == {each.shell_file_id for each in (unreviewed, locked, running, young)}
    tombstone = AuditEvent.objects.get(action="erase")
    assert (tombstone.target_id, tombstone.reason) == (
        str(empty.shell_file_id),
        "retention_ended",
    )


@pytest.mark.django_db
def test_the_application_role_cannot_prune_records_and_is_told_so() -> None:
    closing.close(claimed(a_reviewed_record(entities=0)).id, ANNA)
    made_old(ShellFile)

    with pytest.raises(CommandError, match="set DATABASE_OWNER_URL"):
        said("--table", "shell_files", "--older-than", "30")

    assert ShellFile.objects.count() == 1


@pytest.mark.django_db
def test_a_review_that_is_opened_again_in_the_last_moment_keeps_its_record() -> None:
    item = claimed(a_reviewed_record(entities=0))
    closing.close(item.id, ANNA)
    made_old(ShellFile)

    def reopen(*_: Any) -> None:
        with rewriting():
            ReviewItem.objects.update(status="open")

    with as_owner():
        pruning.prune(
            RECORDS,
            30,
            announce=reopen,
            erase=retention._Run("a test", {}, "", False, None)._erase,
        )

    assert ShellFile.objects.count() == 1


@pytest.mark.django_db
def test_the_scheduler_prunes_once_a_day_and_continues_while_rows_are_left(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PORTION", 2)
    monkeypatch.setattr(retention, "BUDGET_S", 0.0)
    job = ended()
    replies(job, 5)

    first = retention.prune_daily()
    unfinished = AuditEvent.objects.filter(facts__finished=False).count()
    monkeypatch.setattr(retention, "BUDGET_S", 60.0)
    second = retention.prune_daily()
    replies(ended(), 1)
    third = retention.prune_daily()

    assert (first, second, third) == (
        "provider_payloads: 2 deleted",
        "provider_payloads: 3 deleted",
        "",
    )
    assert unfinished == 1
    assert ProviderPayload.objects.count() == 1
    assert "prune" in settings.PERIODIC_TASKS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--older-than", "3"], "--older-than needs --table"),
        (["--table", "shell_files"], "has no age of its own"),
        (["--table", "audit_events"], "invalid choice"),
        (["--table", "kept_replies", "--older-than", "0"], "not a number of days"),
        (["--table", "kept_replies", "--older-than", "²"], "not a number of days"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words) as refused:
        call_command("prune", *arguments)

    assert "\n" not in str(refused.value)


HELD_PRUNE = """
import sys, django
django.setup()
from pipeline.operations.retention import prune as pruning
from observability.actions import retention
pruning.PORTION = 2
# Each portion waits for a line of the test, and for nothing once the input has ended.
retention._Run._is_over = lambda self: sys.stdin.readline() == "never"
retention.prune_audited("a test", {"provider_payloads": 30})
"""


def test_killed_and_parallel_runs_leave_whole_portions_and_finish_the_work(cloned_db: str) -> None:
    replies(ended(), 40)
    replies(unfinished("parked"), 2)

    def run() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", HELD_PRUNE],
            stdin=subprocess.PIPE,
            cwd=PROJECT_ROOT,
            env=os.environ | {"DJANGO_SETTINGS_MODULE": "medproc.settings"},
        )

    killed = run()
    until(lambda: ProviderPayload.objects.count() <= 40)
    killed.kill()
    killed.communicate()
    left = ProviderPayload.objects.count()
    both = [run(), run()]
    # Each of the two has deleted its first portion, so both run at the same time from here.
    until(lambda: ProviderPayload.objects.count() <= left - 4)
    for each in both:
        assert each.stdin is not None
        each.stdin.close()
    codes = [each.wait() for each in both]

    assert 2 < left < 42
    assert left % 2 == 0
    assert codes == [0, 0]
    assert ProviderPayload.objects.count() == 2
    runs = AuditEvent.objects.filter(action="prune")
    removed = [run.facts["removed"] for run in runs if "removed" in run.facts]
    assert sum(each.get("provider_payloads", 0) for each in removed) == left - 2
    assert runs.filter(facts__has_key="older_than_days").count() >= 2
    verify()
