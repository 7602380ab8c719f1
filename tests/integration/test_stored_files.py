"""The sweep deletes bytes that no record names, and never the bytes of a submission."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage
from django.core.management import call_command
from django.db import connection, connections, transaction
from pytest_django import Settings

from medproc.env import PROJECT_ROOT
from observability.models import AuditEvent
from observability.uploads import cleanup
from observability.uploads import stored_files as audited_sweep
from pipeline.documents import scratch
from pipeline.models import FileSweep, ShellFile
from pipeline.operations import stored_files
from pipeline.operations.health import examine
from pipeline.operations.operator_actions import record_submit
from pipeline.stages.intake import Submission
from tests.support import records
from tests.support.workers import until

AT_ONCE = 0.0
"""A safe age of no time at all: only the locks protect a submission then."""
LARGE_MB = 100
SUBMIT = """
import sys, django
django.setup()
from pathlib import Path
from pipeline.operations.operator_actions import record_submit
from pipeline.stages.intake import Submission
record_submit(Submission(path=Path(sys.argv[1])))
"""


@pytest.fixture
def files(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a store of its own, for this process and for its children."""
    data_dir = tmp_path / "var"
    (data_dir / "files" / "records").mkdir(parents=True)
    (data_dir / "uploads").mkdir()
    settings.MEDPROC_DATA_DIR = data_dir
    settings.FILE_UPLOAD_TEMP_DIR = str(data_dir / "uploads")
    default = settings.STORAGES["default"]
    options = default["OPTIONS"] | {"location": str(data_dir / "files")}
    settings.STORAGES = settings.STORAGES | {"default": default | {"OPTIONS": options}}
    monkeypatch.setenv("MEDPROC_DATA_DIR", str(data_dir))
    return data_dir / "files" / "records"


def stored(folder: Path) -> set[str]:
    return {f"records/{path.name}" for path in folder.iterdir()}


def an_orphan() -> str:
    return default_storage.save(f"records/{uuid4()}", ContentFile(b"%PDF-1.7 of a patient"))


def named_keys() -> set[str]:
    return set(ShellFile.objects.values_list("storage_key", flat=True))


def submitting(path: Path) -> subprocess.Popen[bytes]:
    """Start a real submission in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", SUBMIT, str(path)],
        cwd=PROJECT_ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "medproc.settings"},
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Provide a record whose bytes take a while to store."""
    path = tmp_path / "large.pdf"
    with path.open("wb") as file:
        file.write(records.LAB.read_bytes())
        file.truncate(LARGE_MB << 20)
    return path


@pytest.mark.django_db
def test_an_old_orphan_is_deleted_after_an_audit_row_and_a_young_one_stays(files: Path) -> None:
    record = record_submit(Submission(path=records.LAB))
    orphan = an_orphan()
    (files / "notes of a person.txt").touch()

    said_young = audited_sweep.sweep()
    young = FileSweep.objects.get()
    _, swept = audited_sweep.sweep_audited("a test", AT_ONCE)

    assert said_young == ""
    assert (young.files, young.young_files, young.orphaned_files) == (2, 1, 0)
    assert young.young_bytes > 0
    assert (swept.orphaned_files, swept.deleted_files, swept.missing_files) == (1, 1, 0)
    assert swept.deleted_bytes == young.young_bytes
    assert stored(files) == {
        ShellFile.objects.get(id=record.shell_file_id).storage_key,
        "records/notes of a person.txt",
    }
    assert orphan not in stored(files)
    event = AuditEvent.objects.get(action="sweep_files")
    assert (event.actor, event.result) == ("a test", "done")
    assert event.facts["files"] == 1
    assert event.facts["bytes"] == swept.deleted_bytes


@pytest.mark.django_db
def test_a_dry_run_changes_nothing_and_lists_both_kinds(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = record_submit(Submission(path=records.LAB))
    default_storage.delete(ShellFile.objects.get().storage_key)
    orphan = an_orphan()

    with pytest.raises(SystemExit, match="1"):
        call_command("sweep_files", "--dry-run", "--older-than", "0s", "--json")
    found = json.loads(capsys.readouterr().out)
    with pytest.raises(SystemExit, match="1"):
        call_command("sweep_files", "--dry-run", "--older-than", "0s")
    text = capsys.readouterr().out

    assert [file["key"] for file in found["orphans"]] == [orphan]
    assert found["missing"] == [str(record.shell_file_id)]
    assert found["deleted"] is None
    assert orphan in text
    assert f"manage.py explain {record.shell_file_id}" in text
    assert stored(files) == {orphan}
    assert not FileSweep.objects.exists()
    assert not AuditEvent.objects.filter(action="sweep_files").exists()
    assert not (files.parent / "sweep-markers").exists()


@pytest.mark.django_db
def test_health_counts_files_without_a_record_and_names_records_without_a_file(
    files: Path, redis_db: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    record_submit(Submission(path=records.LAB))
    default_storage.delete(ShellFile.objects.get().storage_key)
    an_orphan()
    stored_files.sweep()

    problems = examine().problems
    with pytest.raises(SystemExit):
        call_command("health")
    text = capsys.readouterr().out

    assert any(line.startswith("stored files: 1 record has no file") for line in problems)
    assert "stored files at the last sweep: 1, of which 1 without a record" in text
    assert "1 record without a file" in text


def test_scratch_files_of_killed_processes_go_from_each_folder(files: Path) -> None:
    data_dir = files.parent.parent
    left = [
        data_dir / "uploads" / "tmpx.upload", data_dir / "uploads" / "reader-1" / "page.pdf",
        data_dir / ".secret-key.123.456",
    ]  # fmt: skip
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"of a patient")
        os.utime(path, (0, 0))

    said = cleanup.sweep()

    assert [path for path in left if path.exists()] == []
    assert said.startswith(f"deleted {len(left)} ")


def test_a_scratch_file_of_another_user_stops_no_start(settings: Any) -> None:
    """A command of root has left a file, and the service starts as another user."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        settings.FILE_UPLOAD_TEMP_DIR = folder
        foreign, ours = Path(folder, "medproc-0"), Path(folder, "medproc-1")
        for path, mode in ((foreign, 0o000), (ours, 0o644)):
            path.write_bytes(b"of a patient")
            path.chmod(mode)
        try:
            if user == 0:
                os.seteuid(65534)
            gone = scratch.delete_abandoned_copies()
        finally:
            os.seteuid(user)

        assert (gone, foreign.exists(), ours.exists()) == (1, True, False)


def test_a_link_among_the_scratch_files_neither_stops_the_sweep_nor_is_followed(
    files: Path,
) -> None:
    outside = files.parent.parent.parent / "outside"
    outside.write_bytes(b"not of medproc")
    link = files.parent.parent / "uploads" / "link"
    link.symlink_to(outside)
    for path in (outside, link):
        os.utime(path, (0, 0), follow_symlinks=False)

    assert cleanup.sweep() == ""
    assert outside.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_gives_no_file_away_that_a_link_has_replaced(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of the service owns the folder, and so can replace a new file at any moment."""
    of_root = files.parent.parent.parent / "of-root"
    of_root.write_text("secret", "utf-8")
    for folder in (files, files.parent, files.parent.parent):
        os.chown(folder, 65534, 65534)
    save = FileSystemStorage.save

    def save_and_replace(self: FileSystemStorage, *arguments: Any, **options: Any) -> str:
        saved = save(self, *arguments, **options)
        Path(self.path(saved)).unlink()
        os.link(of_root, self.path(saved))
        return saved

    monkeypatch.setattr(FileSystemStorage, "save", save_and_replace)
    with pytest.raises(PermissionError, match="was replaced"):
        default_storage.save(f"records/{uuid4()}", ContentFile(b"x"))

    assert of_root.stat().st_uid == 0


class TestAfterARestore:
    """A database that is older than the files deletes none of them."""

    pytestmark = pytest.mark.django_db

    def test_a_database_that_does_not_know_the_last_sweep_holds_the_next(self, files: Path) -> None:
        stored_files.sweep()
        FileSweep.objects.all().delete()
        orphan = an_orphan()

        _, held = stored_files.sweep(AT_ONCE)
        _, again = stored_files.sweep(AT_ONCE)
        kept = stored(files)
        _, released = stored_files.sweep(AT_ONCE, after_restore=True)
        another = an_orphan()
        _, later = stored_files.sweep(AT_ONCE)

        assert "does not know the last sweep" in (held.held or "")
        assert again.held
        assert kept == {orphan}
        assert (released.held, released.deleted_files) == (None, 1)
        assert (later.held, later.deleted_files) == (None, 1)
        assert another not in stored(files)

    def test_another_cluster_with_the_same_rows_holds_the_sweep(self, files: Path) -> None:
        _, row = stored_files.sweep()
        marker = files.parent / "sweep-markers" / str(row.id)
        marker.write_text(marker.read_text().replace("/", "0/", 1))
        orphan = an_orphan()

        _, held = stored_files.sweep(AT_ONCE)

        assert "restored, copied or promoted" in (held.held or "")
        assert stored(files) == {orphan}

    def test_more_orphans_than_records_hold_the_sweep(self, files: Path) -> None:
        orphans = {an_orphan() for _ in range(stored_files.MANY + 1)}

        _, held = stored_files.sweep(AT_ONCE)

        assert "Is this the right database?" in (held.held or "")
        assert stored(files) == orphans


@pytest.mark.usefixtures("cloned_db", "redis_db")
class TestKilledSubmissions:
    """kill -9 of a real submission leaves nothing behind, and never a row without a file."""

    def test_while_its_bytes_are_written(self, files: Path, large: Path) -> None:
        process = submitting(large)
        until(lambda: any(files.iterdir()))
        kill(process)

        _, swept = stored_files.sweep(AT_ONCE)

        assert swept.deleted_files == 1
        assert (stored(files), ShellFile.objects.count()) == (set(), 0)

    def test_before_its_commit(self, files: Path) -> None:
        with locked_table():
            process = submitting(records.LAB)
            until(waits_for_the_table)
            _, during = stored_files.sweep(AT_ONCE)
            kept = stored(files)
            kill(process)

        until(lambda: not waits_for_the_table())
        _, after = stored_files.sweep(AT_ONCE)

        assert (during.deleted_files, len(kept)) == (0, 1)
        assert (after.deleted_files, stored(files)) == (1, set())
        assert ShellFile.objects.count() == 0

    def test_after_its_commit(self, files: Path) -> None:
        process = submitting(records.LAB)
        until(ShellFile.objects.exists)
        kill_if_alive(process)

        _, swept = stored_files.sweep(AT_ONCE)

        assert (swept.deleted_files, swept.missing_files) == (0, 0)
        assert stored(files) == named_keys()


@pytest.mark.usefixtures("cloned_db", "redis_db")
class TestRaces:
    """The sweep and submissions at once, with a safe age of zero."""

    def test_a_submission_that_slept_through_a_sweep_stores_its_bytes_again(
        self, files: Path, large: Path
    ) -> None:
        process = submitting(large)
        until(lambda: any(files.iterdir()))
        process.send_signal(signal.SIGSTOP)
        first = stored(files)

        stored_files.sweep(AT_ONCE)
        swept = stored(files)
        process.send_signal(signal.SIGCONT)

        assert process.wait() == 0
        assert (len(first), swept) == (1, set())
        assert stored(files) == named_keys()
        assert named_keys().isdisjoint(first)
        assert default_storage.size(named_keys().pop()) == LARGE_MB << 20

    def test_no_record_loses_its_file_while_sweeps_run_without_pause(self, files: Path) -> None:
        over = threading.Event()
        sweeps: list[FileSweep] = []

        def submit() -> None:
            for _ in range(15):
                record_submit(Submission(path=records.LAB))

        def sweep() -> None:
            while not over.is_set():
                sweeps.append(stored_files.sweep(AT_ONCE, after_restore=True)[1])

        sweeper = in_thread(sweep)
        submitters = [in_thread(submit) for _ in range(3)]
        for thread in submitters:
            thread.join()
        over.set()
        sweeper.join()

        assert ShellFile.objects.count() == 45
        assert stored(files) == named_keys()
        assert sweeps
        assert stored_files.survey(AT_ONCE).missing == ()


def in_thread(work: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def kill_if_alive(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


class locked_table:  # noqa: N801 - used like a function
    """Keep submissions from inserting their row, as a long statement of an administrator does."""

    def __enter__(self) -> None:
        self._done, self._ready = threading.Event(), threading.Event()
        self._thread = in_thread(self._hold)
        assert self._ready.wait(60)

    def __exit__(self, *exc: Any) -> None:
        self._done.set()
        self._thread.join()

    def _hold(self) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE shell_files IN SHARE MODE")
            self._ready.set()
            self._done.wait(60)


def waits_for_the_table() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        return bool(cursor.fetchone()[0])
