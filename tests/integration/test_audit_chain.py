"""The audit chain follows the order of commits, and its check finds every manipulation."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from observability.audit.chain import ChainHead, head
from observability.audit.log import record
from observability.models import AuditEvent, AuditLink
from pipeline.operations.scheduler import periodic_tasks, run_task
from tests.support.databases import as_owner
from tests.support.workers import until

INSERT = (
    "INSERT INTO audit_events (id, actor, action, target_kind)"
    " VALUES (gen_random_uuid(), %s, 'cancel', 'job')"
)


def events(number: int = 3) -> list[AuditEvent]:
    """Write some events with their links, which are created at commit."""
    written = [
        record("ada", "cancel", target_kind="job", reason="é\u202f½", facts={"n": [n, 1.50]})
        for n in range(number)
    ]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
    return written


@contextmanager
def behind_its_back(table: str = "audit_events") -> Iterator[Callable[..., None]]:
    """Switch the triggers off, as the owner of the table can."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield cursor.execute
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the output of the command."""
    call_command("verify_audit", *arguments)
    return capsys.readouterr().out.strip()


@pytest.mark.django_db
def test_an_unchanged_audit_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys) == "The audit is empty."
    events()
    first = head()
    events()

    found = said(capsys, "--head", str(first))

    assert found == f"The audit is intact: 6 events, head {head()}."
    assert re.fullmatch(r"6:[0-9a-f]{64}", str(head()))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "column",
    [
        "reason = ''",
        "actor = 'another'",
        "facts = '{}'",
        "created_at = created_at - '1h'::interval",
    ],
)
def test_an_event_that_was_changed_is_named(column: str) -> None:
    _, changed, _ = events()
    with behind_its_back() as sql:
        sql(f"UPDATE audit_events SET {column} WHERE id = %s", [changed.id])  # noqa: S608 - of the table above

    with pytest.raises(CommandError, match=f"{changed.id} .link 2. was changed"):
        call_command("verify_audit")


@pytest.mark.django_db
def test_an_event_that_was_taken_out_is_named() -> None:
    gone = events()[0]
    with behind_its_back() as sql:
        sql("DELETE FROM audit_events WHERE id = %s", [gone.id])

    with pytest.raises(CommandError, match=f"{gone.id} .link 1. is missing from audit_events"):
        call_command("verify_audit")


@pytest.mark.django_db
def test_an_event_inserted_without_its_link_is_named() -> None:
    events()
    with behind_its_back():
        loose = record("ada", "cancel", target_kind="job", facts={"at": str(timezone.now())})

    with pytest.raises(CommandError, match=f"event {loose.id} is not in the chain"):
        call_command("verify_audit")


@pytest.mark.django_db
def test_an_event_that_was_taken_out_with_its_link_leaves_a_gap_and_at_the_end_an_old_head() -> (
    None
):
    _, middle, last = events()
    logged = head()

    def take_out(event: AuditEvent) -> None:
        with behind_its_back() as sql, behind_its_back("audit_chain"):
            sql("DELETE FROM audit_events WHERE id = %s", [event.id])
            sql("DELETE FROM audit_chain WHERE event_id = %s", [event.id])

    take_out(last)
    call_command("verify_audit")
    with pytest.raises(CommandError, match="link 3, which was logged as a head, is missing"):
        call_command("verify_audit", head=logged)
    events(1)
    with pytest.raises(CommandError, match="link 3 differs from the head that was logged"):
        call_command("verify_audit", head=logged)
    take_out(middle)
    with pytest.raises(CommandError, match="link 2 is missing from audit_chain"):
        call_command("verify_audit")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit_chain SET hash = ''", "DELETE FROM audit_chain", "TRUNCATE audit_chain"],
)
def test_a_link_is_neither_changed_nor_deleted_nor_truncated_even_by_a_superuser(
    statement: str,
) -> None:
    events()

    with (
        as_owner(),
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert AuditLink.objects.count() == 3


def test_transactions_at_once_are_chained_in_the_order_of_their_commits(cloned_db: str) -> None:
    first, second = psycopg.connect(cloned_db), psycopg.connect(cloned_db)
    with first, second, psycopg.connect(cloned_db, autocommit=True) as looker:
        first.execute(INSERT, ["first"])
        second.execute(INSERT, ["second"])
        # The first link is not committed yet: the second must wait instead of forking the chain.
        second.execute("SET CONSTRAINTS ALL IMMEDIATE")
        commits = Thread(target=first.commit)
        commits.start()
        until(lambda: _waits(looker))
        second.commit()
        commits.join()

    events = dict(AuditEvent.objects.values_list("id", "actor"))
    chained = AuditLink.objects.order_by("seq").values_list("seq", "event_id")
    assert [(seq, events[event]) for seq, event in chained] == [(1, "second"), (2, "first")]
    call_command("verify_audit")


def test_the_scheduler_logs_the_head_every_hour(
    cloned_db: str, caplog: pytest.LogCaptureFixture
) -> None:
    (task,) = [each for each in periodic_tasks() if each.name == "audit_head"]
    record("ada", "cancel", target_kind="job")

    with caplog.at_level(logging.INFO):
        run_task(task)

    assert f"head of the audit {head()}" in caplog.text
    assert head() == ChainHead(1, AuditLink.objects.get().hash)


def _waits(looker: psycopg.Connection[tuple[object, ...]]) -> bool:
    found = looker.execute("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    return found.fetchone() is not None
