"""Heads are recorded in two places, a cut tail is noticed, and a break raises an alarm."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from observability.audit import heads, watch
from observability.audit.actor import command_line
from observability.audit.chain import head
from observability.audit.checks import check_rights
from observability.audit.log import record
from observability.models import AuditCheck, AuditEvent
from pipeline.operations.health import examine
from pipeline.operations.service_hooks import serving
from tests.support import records
from tests.support.databases import as_owner, rewriting


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> list[Path]:
    """Give the test a data folder and a second place."""
    settings.MEDPROC_DATA_DIR, settings.AUDIT_HEADS_DIR = tmp_path / "var", tmp_path / "second"
    for folder in (settings.MEDPROC_DATA_DIR, settings.AUDIT_HEADS_DIR):
        folder.mkdir(mode=0o700)
    return [settings.MEDPROC_DATA_DIR / heads.FILE, settings.AUDIT_HEADS_DIR / heads.FILE]


def events(number: int = 3) -> None:
    """Write events, whose links appear at once."""
    for n in range(number):
        record("ada", "cancel", target_kind="job", facts={"n": n})
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


def cut_tail(number: int = 1) -> None:
    """Remove the newest links with their events, as a superuser can."""
    with rewriting(), connection.cursor() as cursor:
        cursor.execute(
            "WITH cut AS (DELETE FROM audit_chain WHERE seq IN"
            " (SELECT seq FROM audit_chain ORDER BY seq DESC LIMIT %s) RETURNING event_id)"
            " DELETE FROM audit_events WHERE id IN (SELECT event_id FROM cut)",
            [number],
        )


@pytest.mark.usefixtures("cloned_db")
def test_a_service_records_the_head_at_its_start_and_at_its_end(folders: list[Path]) -> None:
    events()
    first = head()

    with serving("a test"):
        events(1)
    last = head()

    assert heads.recorded() == [first, last] * 2
    assert [path.stat().st_mode & 0o777 for path in folders] == [0o600] * 2
    assert [len(path.read_text().splitlines()) for path in folders] == [2, 2]


@pytest.mark.django_db
def test_a_cut_tail_is_noticed_without_a_head_on_the_command_line(folders: list[Path]) -> None:
    events()
    heads.record_newest()
    cut_tail()

    with pytest.raises(CommandError, match="link 3, which was logged as a head, is missing"):
        call_command("verify_audit")
    # A person who cuts the data folder's file too does not reach the second place.
    folders[0].unlink()
    with pytest.raises(CommandError, match="link 3, which was logged as a head, is missing"):
        call_command("verify_audit")


@pytest.mark.django_db
def test_an_emptied_audit_is_noticed() -> None:
    events()
    heads.record_newest()
    cut_tail(3)

    with pytest.raises(CommandError, match="link 3, which was logged as a head, is missing"):
        call_command("verify_audit")


@pytest.mark.usefixtures("cloned_db")
def test_a_second_place_that_cannot_be_written_fails_after_the_first_is_written(
    settings: Any, folders: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    events()
    settings.AUDIT_HEADS_DIR = folders[1] / "missing"

    with pytest.raises(OSError, match="missing"):
        heads.record_newest()
    with caplog.at_level(logging.WARNING), serving("a test"):
        pass

    assert len(folders[0].read_text().splitlines()) == 1
    assert "start of a test: observability.audit.heads.record_newest failed" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("way", ["change", "cut", "loose"])
def test_a_break_raises_an_alarm_that_only_the_command_ends(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LINKS", 2)
    events(5)
    for _ in range(4):
        assert watch.examine() == ""
    check = AuditCheck.objects.get()
    assert (check.fresh_seq, check.full_seq, check.problem) == (5, 5, "")
    assert check.full_finished_at is not None
    break_audit(way)
    AuditCheck.objects.update(full_started_at=None)

    for _ in range(4):
        watch.examine()

    (alarm,) = watch.alarms()
    assert alarm.startswith("the audit was tampered with: ")
    assert alarm in examine().problems
    page = admin().get(reverse("admin:overview")).content.decode()
    assert "The audit was tampered with" in page
    with pytest.raises(CommandError, match="tampered"):
        call_command("verify_audit")
    assert watch.alarms()


@pytest.mark.django_db
def test_a_start_time_ahead_of_the_clock_does_not_stop_the_daily_verification() -> None:
    events()
    watch.examine()
    ahead = timezone.now() + timedelta(days=365)
    AuditCheck.objects.update(full_started_at=ahead, full_finished_at=ahead)
    break_audit("change")

    watch.examine()

    assert watch.alarms()


def break_audit(way: str) -> None:
    """Change an old event, cut the newest links, or insert an event without a link."""
    if way == "cut":
        heads.record_newest()
        cut_tail(2)
        events(3)
        return
    with rewriting(), connection.cursor() as cursor:
        if way == "change":
            cursor.execute(
                "UPDATE audit_events SET actor = 'eve' WHERE id ="
                " (SELECT event_id FROM audit_chain WHERE seq = 1)"
            )
        else:
            cursor.execute(
                "INSERT INTO audit_events (actor, action, target_kind, created_at)"
                " VALUES ('eve', 'cancel', 'job', clock_timestamp())"
            )


@pytest.mark.django_db
def test_the_end_of_an_alarm_is_audited() -> None:
    events()
    AuditCheck.objects.create(problem="link 1 is missing from audit_chain")

    call_command("verify_audit")

    assert not watch.alarms()
    row = AuditEvent.objects.get(action="end_alarm")
    assert (row.actor, row.facts) == (
        command_line(),
        {"alarm": "link 1 is missing from audit_chain"},
    )


@pytest.mark.usefixtures("redis_db")
def test_a_submission_by_command_is_audited(cloned_db: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pdf"
    wrong.write_bytes(b"\x7fELF\0")
    found = subprocess.run(
        [sys.executable, "manage.py", "process", records.LAB, wrong, "--no-wait", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MEDPROC_DATA_DIR": str(tmp_path / "data")},
    )
    submitted = json.loads(found.stdout.splitlines()[0])["shell_file_id"]

    rows = AuditEvent.objects.order_by("created_at")
    assert [(row.action, row.result) for row in rows] == [
        ("open_batch", "done"),
        ("submit", "done"),
        ("submit", "refused"),
        ("close_batch", "done"),
    ]
    assert {row.actor for row in rows} == {command_line()}
    assert rows[1].target_id == submitted
    assert rows[2].facts["code"] == "INPUT_INVALID"
    assert "wrong" not in str(list(rows.values()))


@pytest.mark.django_db
def test_a_role_with_too_many_rights_is_a_warning_of_the_deploy_check() -> None:
    assert check_rights(None, databases=["default"]) == []
    with as_owner():
        assert [each.id for each in check_rights(None, databases=["default"])] == ["medproc.W202"]
    out = StringIO()
    call_command("check", deploy=True, databases=["default"], stderr=out, stdout=out)
    assert "medproc.W201" in out.getvalue()
    assert "medproc.W202" not in out.getvalue()


def admin() -> Client:
    """Return a client of a superuser of the console."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client
