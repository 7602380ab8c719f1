"""PHI appears only where PHI may be, whatever goes wrong.

The record's text, the replies and the file's name contain canary words. The tests search every
column except the PHI columns, all of Redis, and the output of all workers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from gemini_emulator import Emulator
from pipeline.models import Batch, EncounterResult, Job, ProviderCall, ShellFile
from pipeline.stages.intake import Received
from tests.support import records
from tests.support.databases import as_owner
from tests.support.record_runs import ended
from tests.support.redis_contents import everything
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, until

pytestmark = pytest.mark.xdist_group("acceptance-phi")

PATIENT = "Zylphira Quandt-Obermaier"
DRUG = "atorvastatin"
CANARIES = ("zylphira", "quandt", "obermaier", DRUG, "quillhaven", "qhv-55120", "hypertension")
"""Name, drug, facility, number and condition. The file name contains the patient's name too."""
SLOW_PAGE = 11
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "discovery", "page": 1, "attempt": 1, "fault": "bad-json"},
    {"kind": "entities", "page": 5, "fault": "bad-json"},
    {"kind": "entities", "page": 6, "attempt": 1, "fault": "429", "retry_after_s": 0.1},
    {"kind": "entities", "page": 7, "attempt": 1, "fault": "hang"},
    {"kind": "entities", "page": 8, "fault": "wrong-shape"},
    {"kind": "entities", "page": 9, "fault": "truncated"},
    {"kind": "entities", "page": 10, "attempt": 1, "fault": "200-error"},
    {"kind": "entities", "page": SLOW_PAGE, "fault": "slow", "delay_s": 30},
)
HOLDS_PHI = {
    "healthcare_encounters": {"facility_name", "clinician_name"},
    "pass05_chunk_results": {"output"},
    "pass05_pending_encounters": {
        "facility_name",
        "clinician_name",
        "patient_name",
        "patient_birth_date",
        "patient_identifier",
    },
    "pass1_batch_results": {"output"},
    "pass1_entity_detections": {"name", "quote"},
    "shell_file_pages": {"text", "words"},
    "shell_files": {"original_filename"},
}


class Lived:
    """Records with every kind of end, and the pool that ran the records."""

    def __init__(self, pool: WorkerCommand) -> None:
        self.pool = pool
        self.received: dict[str, Received] = {}

    def submit(self, name: str, folder: Path, visits: int) -> Received:
        path = folder / f"{PATIENT} {name}.pdf"
        received = records.submit(short_record(path, visits, patient=PATIENT, drug=DRUG))
        self.received[name] = received
        return received

    def job(self, name: str) -> Any:
        return Job.objects.get(id=self.received[name].job_id)


@pytest.fixture(scope="module")
def lived(
    start_pool: Callable[..., WorkerCommand], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lived]:
    """Run records that succeed, fail, time out, meet a refusing database, and are killed."""
    folder = tmp_path_factory.mktemp("phi")
    with Emulator(faults=FAULTS) as emulator:
        lived = Lived(
            start_pool(
                MEDPROC_PROVIDER="gemini",
                GEMINI_BASE_URL=emulator.url,
                CALL_DEADLINE_S=60,
                DEBUG=True,
            )
        )
        ended(
            lived.submit("succeeded", folder, 4),
            lived.submit("failed", folder, SLOW_PAGE - 1),
        )
        killed = lived.submit("killed", folder, SLOW_PAGE)
        running = {"healthcare_encounter__shell_file_id": killed.shell_file_id}
        until(lambda: Batch.objects.filter(**running, page_range_start=4, status="succeeded"))
        for horse in lived.pool.horses():
            os.kill(horse, signal.SIGKILL)
        with refusing("pass1_entity_detections", "quote"):
            ended(lived.submit("refused", folder, 1))
        with refusing("healthcare_encounters", "facility_name"):
            ended(lived.submit("refused early", folder, 1))
        yield lived


class refusing:  # noqa: N801 - reads as a statement
    """Let PostgreSQL refuse rows of a table with a message that quotes the rows."""

    def __init__(self, table: str, column: str) -> None:
        self._table, self._column = table, column

    def __enter__(self) -> None:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                f" RAISE EXCEPTION 'refused: %%', NEW.{self._column}; END $$;"
                f"CREATE TRIGGER refuse BEFORE INSERT ON {self._table}"
                " FOR EACH ROW EXECUTE FUNCTION refuse()",
                [],
            )

    def __exit__(self, *exc: object) -> None:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")


def found_in(text: str) -> list[str]:
    """Return the canary words of a text."""
    return [canary for canary in CANARIES if canary in text.casefold()]


def columns() -> list[tuple[str, str]]:
    """Return every column of every table of the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' ORDER BY 1, 2"
        )
        return list(cursor.fetchall())


def content(table: str, column: str) -> str:
    """Return all values of a column as text."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{column}"::text FROM "{table}"')  # noqa: S608
        return "\n".join(value or "" for (value,) in cursor.fetchall())


def test_every_kind_of_end_was_met(lived: Lived) -> None:
    assert lived.job("succeeded").status == "completed"
    assert lived.job("failed").status == "failed"
    assert lived.job("killed").status == "processing"
    outcomes = set(ProviderCall.objects.values_list("outcome", flat=True))
    assert outcomes >= {
        "OK",
        "PARSE_JSON",
        "PARSE_SCHEMA",
        "RATE_LIMIT",
        "API_TIMEOUT",
        "OUTPUT_TRUNCATED",
    }


@pytest.mark.parametrize(("name", "step"), [("refused", "pass1"), ("refused early", "pass05")])
def test_a_publication_that_the_database_refuses_fails_the_job_and_keeps_the_replies(
    lived: Lived, name: str, step: str
) -> None:
    job = lived.job(name)

    assert (job.status, job.current_step, job.error_code) == ("failed", step, "DB_ERROR")
    record = ShellFile.objects.get(id=job.shell_file_id)
    chunks = record.discovery_session.chunks.all()
    work = Batch.objects.filter(pass1_encounter_result__shell_file=record)
    rows = list(work if step == "pass1" else chunks)
    assert rows
    assert [(row.status, bool(row.output)) for row in rows] == [("succeeded", True)] * len(rows)
    calls = ProviderCall.objects.filter(processing_session__shell_file=record, step=step)
    assert calls.filter(accepted=True).count() == len(rows)
    results = EncounterResult.objects.filter(shell_file=record)
    refused = [("failed", "DB_ERROR")] if step == "pass1" else []
    assert list(results.values_list("status", "error_code")) == refused


def test_the_canaries_are_where_phi_is_kept(lived: Lived) -> None:
    for table, names in (
        ("shell_file_pages", {"text"}),
        ("shell_files", {"original_filename"}),
        ("pass1_entity_detections", {"name", "quote"}),
        ("pass05_pending_encounters", {"patient_name", "patient_identifier"}),
    ):
        assert all(found_in(content(table, name)) for name in names)


def test_no_other_column_of_the_database_holds_a_word_of_a_document(lived: Lived) -> None:
    searched = [(t, c) for t, c in columns() if c not in HOLDS_PHI.get(t, ())]

    found = {f"{table}.{column}": found_in(content(table, column)) for table, column in searched}

    assert len(found) > 300
    assert not {name: words for name, words in found.items() if words}


def test_no_worker_prints_a_word_of_a_document(lived: Lived) -> None:
    printed = lived.pool.printed()

    assert "step_ended" in printed
    assert not found_in(printed)


def test_redis_holds_no_word_of_a_document(lived: Lived, module_redis: Any) -> None:
    assert not found_in(everything(module_redis))


def test_no_stored_file_is_named_after_a_document(lived: Lived) -> None:
    stored = [path.name for path in settings.MEDPROC_DATA_DIR.rglob("*")]

    assert len(stored) >= len(lived.received)
    assert not found_in("\n".join(stored))
