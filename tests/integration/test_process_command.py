"""`manage.py process` submits files, follows them, and reports how each file ends."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from medproc.printable import in_one_line
from medproc.timing import scaled
from pipeline.core.labels import SHAPES, WORDS, StatusWord
from pipeline.core.states import JobStatus, Step
from pipeline.management import progress
from pipeline.management.progress import OUTAGE_PATIENCE_S, follow, is_settled
from pipeline.management.result_table import FileResult, results
from pipeline.models import Entity, Incident, Job, Patient, RecordBatch, ShellFile, selectors
from pipeline.models.selectors import Progress
from pipeline.stages import registry
from pipeline.workers import run_step
from tests.support import records
from tests.support.incident_rows import an_incident

KEYS = {
    "shell_file_id", "status", "encounters", "entities", "rows_not_understood",
    "incomplete", "entities_to_review", "warnings", "error_code", "batch_id", "reused_from",
}  # fmt: skip


@dataclass(frozen=True)
class CommandResult:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class RecordingView:
    """A view that records its updates."""

    lines: list[str] = field(default_factory=list)
    updates: int = 0

    def update(self, found: Mapping[UUID, Progress]) -> None:
        self.updates += 1

    def say(self, line: str) -> None:
        self.lines.append(line)


def _process(*arguments: object) -> CommandResult:
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("process", *map(str, arguments), stdout=out, stderr=err)
    return CommandResult(int(ended.value.code or 0), out.getvalue(), err.getvalue())


@contextmanager
def _working() -> Iterator[None]:
    """Run due steps in a thread of this process, as a worker does."""
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.wait(0.02):
                for step in registry.PASSES:
                    run_step.run_step(step.value)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def test_a_record_is_followed_to_its_end(cloned_db: str, redis_db: redis.Redis) -> None:
    with _working():
        ran = _process(records.LAB)

    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert any("lab_5p_8enc.pdf  ✓ done  8 encounters, " in line for line in lines)
    assert lines[-1].startswith("    !") or lines[-1].endswith("✓ done")
    assert any(line.startswith("file ") for line in lines)


def test_json_is_one_object_a_line_in_the_order_of_the_files(
    cloned_db: str, redis_db: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "empty.pdf").touch()
    (tmp_path / "notes.hl7").write_text("MSH|^~\\&|Doe, Jane")

    with _working():
        ran = _process(
            records.LAB, tmp_path / "nothing.pdf", tmp_path, tmp_path / "empty.pdf",
            tmp_path / "notes.hl7", "--json",
        )  # fmt: skip

    assert ran.code == 1
    assert [set(found) for found in ran.objects] == [KEYS] * 5
    first, *refused = ran.objects
    assert (first["status"], first["encounters"], first["error_code"]) == ("completed", 8, None)
    assert first["entities"] > 0
    assert ShellFile.objects.filter(id=first["shell_file_id"]).exists()
    assert {(r["status"], r["error_code"]) for r in refused} == {("failed", "INPUT_INVALID")}
    assert {r["shell_file_id"] for r in refused} == {None}
    refusals = [line for line in ran.err.splitlines() if "worker" not in line]
    assert [line.split(":")[0] for line in refusals] == [
        "nothing.pdf", tmp_path.name, "empty.pdf", "notes.hl7",
    ]  # fmt: skip


def test_several_files_are_one_batch_with_a_line_of_totals(
    cloned_db: str, redis_db: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "empty.pdf").touch()

    with _working():
        ran = _process(records.LAB, records.VISITS, tmp_path / "empty.pdf")

    batch = RecordBatch.objects.get()
    assert ran.code == 1
    assert set(Job.objects.values_list("record_batch_id", flat=True)) == {batch.id}
    assert (batch.status, batch.records_total, batch.records_completed) == ("completed", 2, 2)
    assert (batch.pages_total, batch.encounters_total) == (25, 12)
    assert batch.entities_total == Entity.objects.filter(accepted=True).count() > 0
    assert batch.completed_at is not None
    last = ran.out.splitlines()[-1]
    assert last.startswith(f"batch {batch.id}  2 records: 2 done; 25 pages, 12 encounters, ")


def test_a_batch_of_which_nothing_could_be_submitted_is_none(
    db: None, redis_db: redis.Redis, tmp_path: Path
) -> None:
    ran = _process(tmp_path / "nothing.pdf", tmp_path / "neither.pdf", "--json")

    assert ran.code == 1
    assert [found["batch_id"] for found in ran.objects] == [None, None]
    assert not RecordBatch.objects.exists()


def test_a_file_that_cannot_be_submitted_is_reported_in_one_line(
    db: None, redis_db: redis.Redis, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "empty.pdf").touch()

    ran = _process(
        tmp_path / "nothing.pdf", tmp_path, tmp_path / "empty.pdf", tmp_path / "pipe.pdf"
    )

    assert ran.code == 1
    assert ran.err.splitlines() == [
        "nothing.pdf: No such file or directory",
        f"{tmp_path.name}: This is a folder; name the files in it",
        "empty.pdf: The file is empty; send it again. (INPUT_INVALID)",
        "pipe.pdf: This is not a regular file",
    ]
    assert ShellFile.objects.count() == 0


def test_a_record_that_fails_ends_the_command_with_its_code_and_advice(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    with records.through_emulator(records.OUTAGE), records.no_breaker(), _working():
        ran = _process(records.LAB)

    assert ran.code == 1
    assert "✕ failed MAX_RETRIES_EXCEEDED" in ran.out
    assert "→ The provider failed. Retry when the provider has recovered." in ran.out
    assert f"→ manage.py explain {ShellFile.objects.get().id}" in ran.out


def test_without_waiting_it_submits_and_leaves(
    django_capture_on_commit_callbacks: Any, db: None, redis_db: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "patient").write_text("ref-1\n")

    with django_capture_on_commit_callbacks(execute=True):
        ran = _process(
            records.LAB, records.VISITS, "--no-wait", "--json", "--priority", "7",
            "--patient-file", tmp_path / "patient",
        )  # fmt: skip

    assert ran.code == 0
    assert [found["status"] for found in ran.objects] == ["running", "running"]
    assert list(Job.objects.values_list("status", "priority")) == [("pending", 7)] * 2
    assert Patient.objects.get().reference == "ref-1"
    assert redis_db.llen("rq:queue:pages") == 2


def test_without_a_patient_each_record_has_a_pseudonym_of_its_own(
    db: None, redis_db: redis.Redis
) -> None:
    _process(records.LAB, records.LAB, "--no-wait")

    patients = Patient.objects.all()
    assert len({patient.pseudonym for patient in patients}) == 2
    assert {patient.reference for patient in patients} == {None}


@pytest.mark.parametrize("priority", ["101", "-101", "high"])
def test_a_priority_out_of_range_is_refused(priority: str) -> None:
    with pytest.raises(Exception, match="priority"):
        call_command("process", str(records.LAB), f"--priority={priority}")


def test_following_says_once_that_no_worker_runs_and_ends_after_its_patience(
    db: None, redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 20.0)
    ran = _process(records.LAB)

    assert ran.code == 1
    said = [line for line in ran.out.splitlines() if "No worker is running" in line]
    assert said == ["No worker is running: start `manage.py rqworker-pool`. Waiting for one."]
    assert "◌ waiting" in ran.out.splitlines()[-2]


def test_ctrl_c_says_that_the_records_go_on(
    db: None, redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.management.progress.time.sleep", interrupted)

    ran = _process(records.LAB)

    assert ran.code == 130
    assert ran.err.splitlines() == [
        "Stopped waiting; the records are processed in the background.",
        f"  manage.py explain {ShellFile.objects.get().id}",
    ]


def test_a_tick_costs_as_many_statements_for_many_records_as_for_one(
    db: None, redis_db: redis.Redis
) -> None:
    one = records.completed_record()
    many = [one.id, *(records.submit(records.LAB).shell_file_id for _ in range(20))]
    counts = []

    for ids in ([one.id], many):
        with CaptureQueriesContext(connection) as asked:
            found = selectors.progress(ids)
        counts.append(len(asked))
        assert set(found) == set(ids)

    assert counts == [4, 4]


def test_an_outage_is_waited_out_for_ten_minutes(db: None, redis_db: redis.Redis) -> None:
    received = records.submit(records.LAB)
    incident = an_incident()
    Job.objects.filter(id=received.job_id).update(
        status=JobStatus.PARKED, park_reason="the provider is down", incident=incident
    )
    ids = [received.shell_file_id]
    patience = timedelta(seconds=scaled(OUTAGE_PATIENCE_S))

    assert not is_settled(selectors.progress(ids)[received.shell_file_id])
    Incident.objects.filter(id=incident.id).update(opened_at=timezone.now() - patience)

    assert is_settled(selectors.progress(ids)[received.shell_file_id])


def test_a_record_that_is_parked_for_long_is_not_waited_for(
    db: None, redis_db: redis.Redis
) -> None:
    received = records.submit(records.LAB)
    reason = "the quota of the day is used up"
    Job.objects.filter(id=received.job_id).update(
        status=JobStatus.PARKED,
        park_reason=reason,
        parked_until=timezone.now() + timedelta(hours=3),
    )

    seen = RecordingView()
    found = follow([received.shell_file_id], seen)[received.shell_file_id]

    assert is_settled(found)
    assert seen.updates == 1
    result = FileResult(name="lab.pdf", shell_file_id=received.shell_file_id, progress=found)
    assert result.as_json()["status"] == "parked"
    shown = "\n".join(line.plain for line in results([result]))
    assert "‖ parked" in shown
    assert reason in shown


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (JobStatus.PENDING, "running"),
        (JobStatus.PROCESSING, "running"),
        (JobStatus.PARKED, "parked"),
        (JobStatus.COMPLETED, "completed"),
        (JobStatus.FAILED, "failed"),
        (JobStatus.DEAD, "failed"),
        (JobStatus.CANCELLED, "cancelled"),
    ],
)
def test_json_has_one_of_five_words_for_each_status(status: JobStatus, word: str) -> None:
    result = FileResult(
        name="lab.pdf", shell_file_id=UUID(int=1), progress=_progress(status=status)
    )

    assert result.as_json()["status"] == word
    assert result.word in SHAPES


def test_a_reuse_is_named_with_its_source() -> None:
    result = FileResult(
        name="lab.pdf",
        shell_file_id=UUID(int=1),
        progress=_progress(status=JobStatus.COMPLETED),
        reused_from=UUID(int=2),
    )

    assert result.as_json()["reused_from"] == str(UUID(int=2))
    shown = "\n".join(line.plain for line in results([result]))
    assert f"Reused from record {UUID(int=2)}" in shown


def test_a_warning_that_counts_shows_its_number() -> None:
    warnings = (
        {"code": "ITEM_REJECTED", "message": "Left out.", "pages": [2], "count": 1_200},
        {"code": "NO_ENTITIES_FOUND", "message": "Nothing there.", "pages": []},
    )
    result = FileResult(
        name="lab.pdf",
        shell_file_id=UUID(int=1),
        progress=_progress(status=JobStatus.COMPLETED, warnings=warnings),
    )

    shown = [line.plain.strip() for line in results([result])]
    assert "! page 2: Left out (ITEM_REJECTED ×1,200)" in shown
    assert "! Nothing there." in shown
    assert [each["code"] for each in result.as_json()["warnings"]] == [
        "ITEM_REJECTED",
        "NO_ENTITIES_FOUND",
    ]


def test_rows_that_were_not_understood_have_a_column_and_a_remark() -> None:
    progress = _progress(status=JobStatus.COMPLETED, rows_not_understood=3)
    result = FileResult(name="lab.pdf", shell_file_id=UUID(int=1), progress=progress, to_review=5)

    head, row, remark = (line.plain for line in results([result]))
    assert row[head.index("not understood") :].split()[0] == "3"
    assert remark.strip() == "! 5 entities to review, of which 3 rows not understood."
    assert result.as_json()["rows_not_understood"] == 3
    assert result.as_json()["entities_to_review"] == 5


def test_every_status_has_a_word_and_every_word_a_shape() -> None:
    assert {status.value for status in JobStatus} <= set(WORDS)
    assert set(SHAPES) == set(StatusWord)


def test_a_name_that_steers_a_terminal_is_shown_without_its_power() -> None:
    assert in_one_line("a\x1b[2Jb\n.pdf") == r"a\x1b[2Jb\n.pdf"


def test_a_name_that_is_not_utf_8_is_taken_in(
    db: None, redis_db: redis.Redis, tmp_path: Path
) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.pdf")
    path.write_bytes(records.LAB.read_bytes())

    ran = _process(path, "--no-wait")

    assert ran.code == 0
    assert ShellFile.objects.get().original_filename == "caf�.pdf"


def test_no_file_name_reaches_the_log(
    db: None, redis_db: redis.Redis, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "doe-jane-1961.pdf"
    path.write_bytes(records.LAB.read_bytes())

    _process(path, tmp_path / "roe-richard.pdf", "--no-wait")

    assert "doe-jane" not in caplog.text
    assert "roe-richard" not in caplog.text


def _progress(**changes: Any) -> Progress:
    known: dict[str, Any] = {
        "shell_file_id": UUID(int=1),
        "job_id": UUID(int=2),
        "status": JobStatus.PENDING,
        "step": Step.PAGES,
        "pages_read": 0,
        "page_count": None,
        "work": {},
        "encounters": 0,
        "entities": 0,
        "error_code": None,
        "underlying_error": None,
        "last_error": None,
        "parked_until": None,
        "park_reason": None,
        "outage_since": None,
        "warnings": (),
        "started_at": None,
        "completed_at": None,
        "is_held": False,
    }
    return Progress(**{**known, **changes})
