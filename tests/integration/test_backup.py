"""A backup holds one moment of the service whole, and a rehearsal restores the backup elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from observability.audit import chain, log
from observability.models import AuditEvent
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import Patient, ShellFile
from pipeline.operations.backup import manifest
from pipeline.operations.backup.making import make_backup
from pipeline.operations.backup.manifest import Manifest, check_contents, read_manifest
from pipeline.operations.backup.restoring import restore_backup
from tests.support import records
from tests.support.databases import as_owner
from tests.support.short_records import short_record

pytestmark = pytest.mark.usefixtures("redis_db")


@pytest.fixture
def record(cloned_db: str, tmp_path: Path) -> ShellFile:
    """Submit a record with one stored file."""
    received = records.submit(short_record(tmp_path / "record.pdf", visits=1))
    return ShellFile.objects.get(id=received.shell_file_id)


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """Return a folder for backups."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


def backup(parent: Path) -> tuple[Path, Manifest]:
    """Make a backup as the command does, as the owner of the tables."""
    with as_owner():
        return make_backup(parent, chain.head)


def said(*arguments: object) -> str:
    out = StringIO()
    call_command(*map(str, arguments), stdout=out)
    return out.getvalue()


def test_a_backup_of_one_moment_is_restored_whole_by_a_rehearsal(
    record: ShellFile, parent: Path, cloned_db: str
) -> None:
    before = Patient.objects.count()
    log.record("a test", log.READ_PHI, target_kind="record", target_id=record.id)

    def a_patient_more() -> object:
        other = connection.copy()
        with closing(other), other.cursor() as cursor:
            cursor.execute(
                "INSERT INTO user_profiles (id, pseudonym) VALUES (gen_random_uuid(), 'P-LATER')"
            )
        return chain.head()

    with as_owner():
        made, found = make_backup(parent, a_patient_more)
    rehearsed = json.loads(said("rehearse_restore", made, "--json"))

    # The patient was committed after the snapshot, and before the dump.
    assert Patient.objects.count() == before + 1
    assert found.tables["user_profiles"] == before
    assert (rehearsed["records"], rehearsed["files"]) == (1, 1)
    assert rehearsed["audit_events"] == AuditEvent.objects.count() + 1, "the restore is audited"
    assert found.audit_head == str(chain.head())
    stored = [path for path in made.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in stored} == {0o600}
    assert made.stat().st_mode & 0o777 == 0o700
    with default_storage.open(record.storage_key) as source:
        assert (made / "files" / record.storage_key.split("/")[1]).read_bytes() == source.read()


def test_a_command_makes_the_backup_and_audits_it(record: ShellFile, parent: Path) -> None:
    found = json.loads(said("backup", parent, "--json"))

    event = AuditEvent.objects.get(action="backup")
    assert (event.result, event.target_id) == ("done", Path(found["folder"]).name)
    assert event.facts == {"records": 1, "files": 1}
    assert read_manifest(Path(found["folder"])).files_bytes == record.size_bytes


def _lose(path: Path) -> None:
    path.unlink()


def _alter(path: Path) -> None:
    path.write_bytes(b"altered" + path.read_bytes()[7:])


@pytest.mark.parametrize("damage", [_lose, _alter])
def test_a_stored_file_that_is_lost_or_altered_leaves_no_backup(
    record: ShellFile, parent: Path, damage: Callable[[Path], None]
) -> None:
    damage(Path(default_storage.path(record.storage_key)))

    with pytest.raises(CommandError, match=record.storage_key) as caught:
        call_command("backup", parent)

    assert "BACKUP_FAILED" in str(caught.value)
    assert list(parent.iterdir()) == []
    assert AuditEvent.objects.get(action="backup").result == "refused"


def _not_made(parent: Path) -> Path:
    return parent / "missing"


def _in_the_data_folder(parent: Path) -> Path:
    folder = Path(settings.MEDPROC_DATA_DIR) / "files"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _a_file(parent: Path) -> Path:
    path = parent / "file"
    path.touch()
    return path


@pytest.mark.parametrize("place", [_not_made, _in_the_data_folder, _a_file])
def test_a_place_that_cannot_hold_a_backup_is_refused(
    cloned_db: str, parent: Path, place: Callable[[Path], Path]
) -> None:
    with pytest.raises(CommandError, match="OUTPUT_INVALID"):
        call_command("backup", place(parent))


def _without(name: str) -> Callable[[Path], None]:
    return lambda made: _lose(made / name)


def _altered(name: str) -> Callable[[Path], None]:
    return lambda made: _alter(made / name)


def _changed(**values: Any) -> Callable[[Path], None]:
    def change(made: Path) -> None:
        path = made / manifest.MANIFEST
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change


def _outside(made: Path) -> None:
    """Let the list name a file outside the store, with a digest in the manifest that fits."""
    listed = made / manifest.FILE_LIST
    line = json.loads(listed.read_text())
    listed.write_text(json.dumps({**line, "key": f"../{line['key']}"}) + "\n")
    _changed(file_list_sha256=manifest.digest_of(listed))(made)


def _altered_file(made: Path) -> None:
    (path,) = (made / manifest.FILES).iterdir()
    _alter(path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "no manifest, as after a kill": _without(manifest.MANIFEST),
    "no dump": _without(manifest.DUMP),
    "an altered dump": _altered(manifest.DUMP),
    "an altered list": _altered(manifest.FILE_LIST),
    "an altered file": _altered_file,
    "no files": lambda made: shutil.rmtree(made / manifest.FILES),
    "a file outside the store": _outside,
    "a later format": _changed(format=2),
    "an unknown key": _changed(more=1),
    "no JSON": _altered(manifest.MANIFEST),
    "a later version": _changed(migrations={"pipeline": ["9999_later"]}),
    "another secret key": _changed(secret_key="0" * 16),
}


def test_a_damaged_or_foreign_backup_is_refused_before_anything_changes(
    record: ShellFile, parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = backup(parent)
    check_contents(made, read_manifest(made))
    refused = {}

    for name, damage in DAMAGES.items():
        damaged = parent / name
        shutil.copytree(made, damaged)
        damage(damaged)
        try:
            # A restore compares the contents after it has seen an empty database.
            check_contents(damaged, read_manifest(damaged))
            restore_backup(damaged)
        except UserError as error:
            refused[name] = error.code

    assert refused == dict.fromkeys(DAMAGES, UserErrorCode.BACKUP_INVALID)


def test_a_database_with_tables_is_never_overwritten(record: ShellFile, parent: Path) -> None:
    made, _ = backup(parent)

    with pytest.raises(CommandError, match="STATE_CONFLICT"):
        call_command("restore", made)

    assert ShellFile.objects.filter(id=record.id).exists()


def test_the_password_of_the_database_is_not_on_the_command_line(
    settings: Settings, cloned_db: str
) -> None:
    from pipeline.operations.backup import client_programs

    before = connection.settings_dict["PASSWORD"]
    connection.settings_dict["PASSWORD"] = "canary of a password"
    try:
        assert "canary" not in client_programs._address()
    finally:
        connection.settings_dict["PASSWORD"] = before
