"""`manage.py export`: what it writes, what it refuses, and what the audit keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from medproc.env import PROJECT_ROOT
from pipeline.core.states import JobStatus
from pipeline.models import Encounter, Job
from tests.support.audit_rows import audit_events
from tests.support.clinical_rows import clinical_rows
from tests.support.rows import a_job, an_encounter

FORMATS = ("pair", "fhir", "html", "csv")


@pytest.fixture
def job(cloned_db: str) -> Job:
    """Insert a completed record of one encounter with results of all passes."""
    made = a_job(status=JobStatus.COMPLETED)
    an_encounter(made)
    encounter = Encounter.objects.get(shell_file_id=made.shell_file_id)
    clinical_rows(encounter)
    Encounter.objects.update(entities_published_at=encounter.created_at)
    return made


def run(job: Job, form: str, folder: Path, *more: Any) -> dict[str, Any]:
    out = StringIO()
    call_command(
        "export", str(job.shell_file_id), "--format", form, "--output", str(folder), "--json",
        *more, stdout=out,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_writes_a_private_file_named_by_the_record(
    job: Job, form: str, tmp_path: Path
) -> None:
    said = run(job, form, tmp_path)

    path = Path(said["path"])
    assert path.parent == tmp_path
    assert path.name.startswith(f"{job.shell_file_id}.")
    assert path.stat().st_mode & 0o777 == 0o600
    assert said["generation"] in path.read_text("utf-8")
    assert not list(tmp_path.glob(".*"))


def test_the_audit_has_the_export_before_its_file_is_visible(job: Job, tmp_path: Path) -> None:
    said = run(job, "fhir", tmp_path)

    (event,) = audit_events().filter(action="export")
    assert (event.target_kind, event.target_id) == ("record", str(job.shell_file_id))
    assert event.facts == {
        "format": "fhir",
        "generation": said["generation"],
        "record_incomplete": False,
        "reviewed": False,
        "size_bytes": said["size_bytes"],
    }


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (JobStatus.PENDING, "the job is waiting in Pass 1"),
        (JobStatus.PROCESSING, "the job is running in Pass 1"),
        (JobStatus.FAILED, "the job ended as failed in Pass 1"),
        (JobStatus.DEAD, "the job ended as dead in Pass 1"),
        (JobStatus.CANCELLED, "the job ended as cancelled in Pass 1"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_an_incomplete_record_is_refused_unless_allowed_and_then_each_format_says_so(
    job: Job, form: str, status: JobStatus, words: str, tmp_path: Path
) -> None:
    lease = timezone.now() if status == JobStatus.PROCESSING else None
    Job.objects.update(
        status=status, current_step="pass1", lease_expires_at=lease, heartbeat_at=lease,
        worker_id=lease and "w1", lease_gen=1,
    )  # fmt: skip

    with pytest.raises(CommandError) as refused:
        run(job, form, tmp_path)

    assert words in str(refused.value)
    assert str(refused.value).endswith("(RECORD_INCOMPLETE)")
    assert not list(tmp_path.iterdir())
    said = run(job, form, tmp_path, "--allow-incomplete")
    assert said["record_incomplete"]
    assert f"Record incomplete: {words}" in Path(said["path"]).read_text("utf-8")


def test_an_unpublished_encounter_makes_the_record_incomplete(job: Job, tmp_path: Path) -> None:
    an_encounter(job, index=2)
    Encounter.objects.filter(encounter_index=2).update(entities_published_at=None)

    with pytest.raises(CommandError, match="1 of 2 encounters is not published"):
        run(job, "csv", tmp_path)


@pytest.mark.parametrize("form", FORMATS)
def test_the_number_of_statements_does_not_grow_with_the_entities(
    job: Job, form: str, tmp_path: Path
) -> None:
    encounter = Encounter.objects.get(shell_file_id=job.shell_file_id)
    with CaptureQueriesContext(connection) as few:
        run(job, form, tmp_path)
    for number in range(12):
        clinical_rows(encounter, name=f"drug {number}")

    with CaptureQueriesContext(connection) as many:
        run(job, form, tmp_path)

    assert len(many) == len(few)


@pytest.mark.parametrize("form", FORMATS)
def test_an_output_that_cannot_be_used_is_refused_in_one_line(
    job: Job, form: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    inside = Path(settings.MEDPROC_DATA_DIR) / "exports"
    inside.mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to(inside)

    for output in (tmp_path / "missing" / "x", tmp_path / "file" / "x", inside, tmp_path / "link"):
        with pytest.raises(CommandError, match=r"\(OUTPUT_INVALID\)$") as refused:
            run(job, form, output)
        assert str(output) not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]
    assert not list(inside.iterdir())


def test_a_missing_folder_with_a_slash_at_its_end_is_no_file_name(job: Job, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="names a folder that does not exist"):
        call_command(
            "export", str(job.shell_file_id), "--format", "csv", "--output", f"{tmp_path}/none/"
        )

    assert not list(tmp_path.iterdir())


def test_a_database_that_is_away_is_one_line_and_leaves_no_draft(job: Job, tmp_path: Path) -> None:
    connection.close()
    environment = os.environ | {"DATABASE_URL": "postgresql://x@127.0.0.1:1/none"}

    done = subprocess.run(
        [sys.executable, "manage.py", "export", str(job.shell_file_id), "--format", "csv",
         "--output", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=PROJECT_ROOT, env=environment,
    )  # fmt: skip

    assert done.returncode == 1
    assert "POSTGRES_AWAY" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_unknown_id_and_an_unknown_format_are_refused(job: Job, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No object has the id"):
        call_command("export", str(uuid4()), "--format", "csv", "--output", str(tmp_path))
    with pytest.raises(CommandError, match="invalid choice"):
        call_command("export", str(job.shell_file_id), "--format", "xml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["", " "])
def test_an_empty_output_is_refused_and_nothing_is_written_to_the_present_folder(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError, match="is empty; name a folder or a file"):
        call_command("export", "0b02ca07", "--format", "csv", "--output", place)

    assert list(tmp_path.iterdir()) == []
