"""PHI appears only where PHI may be, whatever goes wrong.

The record's text, the replies, the file's name and the requests contain canary words. The tests
search every sink: logs, columns, Redis, metrics, temporary files, process lists, names, answers.
Each search is shown to find a word that is put into its sink.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from gemini_emulator import Emulator
from medproc.embedded import Places
from medproc.env import PROJECT_ROOT
from observability.permissions import Role
from pipeline.models import Batch, EncounterResult, Job, ProviderCall, ShellFile
from pipeline.models.fields import ClockTimestamp
from pipeline.stages.intake import Received
from tests.support import phi_sinks, records
from tests.support.api_clients import a_program
from tests.support.databases import as_owner, no_connections, rewriting
from tests.support.phi_needles import Needles
from tests.support.phi_sinks import Asker, ProcessList, Sink
from tests.support.plain_user import plain_folder
from tests.support.record_runs import ended
from tests.support.short_records import short_pdf
from tests.support.telemetry_receiver import (
    ENVELOPE,
    TRACES,
    TelemetryReceiver,
    receiving_telemetry,
)
from tests.support.users import client_of
from tests.support.web_server import serving
from tests.support.workers import WorkerCommand, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-phi"),
    pytest.mark.slow(reason="records with every kind of end through workers and a web server"),
]

PATIENT = "Zylphira Quandt-Obermaier"
DRUG = "atorvastatin"
REFERENCE = "REF-QZ-55817"
FILE_WORD = "befundxq81"
MORE = (
    "Seen by Xanthippe Vorbr\u00fcck MD, 14 Glimmerspatz Lane, phone 555-0173-8842.",
    "Insurance VXZOR-417-99. Vitamin B12 137.4219 pg/mL. Wortwirrwarr of the left knee.",
)
NEEDLES = Needles(
    (
        "zylphira", "quandt", "obermaier", DRUG, "quillhaven", "qhv-55120", "hypertension",
        "02/11/1965", "1965-02-11", "19650211", "01/04/2021", "2021-01-04", "xanthippe",
        "vorbr\u00fcck", "glimmerspatz", "555-0173-8842", "vxzor-417", "137.4219", "wortwirrwarr",
        REFERENCE, FILE_WORD,
    )
)  # fmt: skip
"""Names, parts of names, drug, facility, numbers, condition, dates, value, reference, file name."""
TOKEN = "scraper-" + "t" * 32
BROKEN_PDF = b"%PDF-1.7\n" + f"{PATIENT} {DRUG} ".encode() * 99
SLOW_PAGE = 13
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "entities", "page": "2-20", "pages": "2-20", "attempt": "1-2", "fault": "slow"},
    {"kind": "discovery", "page": 1, "attempt": 1, "fault": "bad-json"},
    {"kind": "entities", "page": 5, "fault": "bad-json"},
    {"kind": "entities", "page": 6, "attempt": 1, "fault": "429", "retry_after_s": 0.1},
    {"kind": "entities", "page": 7, "attempt": 1, "fault": "hang"},
    {"kind": "entities", "page": 8, "fault": "wrong-shape"},
    {"kind": "entities", "page": 9, "fault": "truncated"},
    {"kind": "entities", "page": 10, "attempt": 1, "fault": "200-error"},
    {"kind": "entities", "page": 11, "fault": "blocked"},
    {"kind": "entities", "page": 12, "fault": "finish"},
    {"kind": "entities", "page": SLOW_PAGE, "attempt": "1-2", "fault": "slow", "delay_s": 30},
)


class Lived:
    """Records with every kind of end, the processes that ran them, and the sinks."""

    def __init__(self, pool: WorkerCommand, folder: Path) -> None:
        self.pool = pool
        self.folder = folder
        self.received: dict[str, Received] = {}
        self.sinks: dict[str, Sink] = {}
        self.redis: Sink
        self.receiver: TelemetryReceiver
        self.redis_before: dict[str, bytes] = {}
        self.asker: Asker

    def submit(self, name: str, content: bytes) -> Received:
        path = self.folder / f"{PATIENT} {FILE_WORD} {name}.pdf"
        # Without a number, the records would be the same bytes, and reuse results.
        path.write_bytes(content + f"%{len(self.received)}".encode())
        received = records.submit(path, patient_reference=f"{REFERENCE} {name}")
        self.received[name] = received
        return received

    def until_stored(self, received: Received, *, page: int) -> None:
        """Wait until the batch that begins at a page is stored; a slow batch is then in flight."""
        own = {"healthcare_encounter__shell_file_id": received.shell_file_id}
        until(lambda: Batch.objects.filter(**own, page_range_start=page, status="succeeded"))

    def note_redis(self, moment: str) -> None:
        """Keep what Redis holds at this moment: entries of failed steps are soon removed."""
        self.redis_before |= {f"{moment}, {k}": each for k, each in self.redis.read().items()}

    def job(self, name: str) -> Any:
        return Job.objects.get(id=self.received[name].job_id)


@pytest.fixture(scope="module")
def lived(
    servers: Places,
    start_pool: Callable[..., WorkerCommand],
    module_db: str,
    module_redis: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lived]:
    """Run records that succeed and that fail in every way, beside a scheduler and a web server."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("workers", "scheduler", "exports")}
    postgres = servers.postgres_data / "server.log"
    began_at = postgres.stat().st_size
    seen, log = ProcessList(), tmp_path_factory.mktemp("web") / "log.txt"
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving_telemetry())
        scratch = stack.enter_context(plain_folder())
        emulator = stack.enter_context(Emulator(faults=FAULTS))
        provider = {
            "MEDPROC_PROVIDER": "gemini",
            "GEMINI_BASE_URL": emulator.url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "SENTRY_DSN": receiver.dsn,
        }
        seen.start()
        stack.callback(seen.end)
        pool = start_pool(
            **provider,
            CALL_DEADLINE_S=60,
            DEBUG=True,
            environment={"TMPDIR": str(folders["workers"])},
        )
        scheduler = start_pool(
            command="rqcron", **provider, environment={"TMPDIR": str(folders["scheduler"])}
        )
        lived = Lived(pool, tmp_path_factory.mktemp("phi"))
        lived.receiver = receiver
        lived.redis = phi_sinks.of_redis(module_redis)
        typed = _process_command(lived)
        server = stack.enter_context(
            serving(module_db, log, METRICS_TOKEN=TOKEN, TMPDIR=str(scratch), **provider)
        )
        assert typed.wait() == 0

        _run_records(lived)
        lived.asker, log_in = Asker(server.port), _log_in()
        asker = lived.asker
        _ask(asker, log_in, lived)
        for form in ("csv", "html"):
            record = str(lived.received["succeeded"].shell_file_id)
            place = str(folders["exports"])
            call_command(
                "export", record, "--format", form, "--output", place, "--allow-incomplete"
            )
        data = Path(settings.MEDPROC_DATA_DIR)
        lived.sinks = {
            "logs": phi_sinks.of_logs(
                {
                    "workers": (pool.folder / "log.txt", 0),
                    "scheduler": (scheduler.folder / "log.txt", 0),
                    "web server": (log, 0),
                    "PostgreSQL": (postgres, began_at),
                }
            ),
            "database": phi_sinks.of_database(),
            "redis": phi_sinks.with_earlier(lived.redis, lived.redis_before),
            "metrics": asker.metrics(TOKEN),
            "answers about errors": asker.errors(log_in),
            "temporary files": phi_sinks.of_folders(
                {
                    "workers": folders["workers"],
                    "scheduler": folders["scheduler"],
                    "web server": scratch,
                    "uploads": data / "uploads",
                }
            ),
            "names of files": phi_sinks.of_folders(
                {"data": data, "exports": folders["exports"]}, names_only=True
            ),
            "process lists": seen.sink(),
            "traces": phi_sinks.of_traces(receiver),
            "error tracker": phi_sinks.of_error_tracker(receiver),
        }
        yield lived


PLANTED = {
    "logs": ("workers", "scheduler", "web server", "PostgreSQL"),
    "database": (
        "job_queue.last_error", "job_queue.error_details", "audit_events.facts",
        "pass1_batch_results.transient_error_history", "django_admin_log.object_repr",
        "django_admin_log.change_message",
    ),
    "redis": ("keys", "values", "dump of b'planted'"),
    "metrics": ("/metrics",),
    "answers about errors": ("/admin/search/",),
    "temporary files": ("workers: ", "scheduler: ", "web server: ", "uploads: "),
    "names of files": ("data: ", "exports: "),
    "process lists": ("processes",),
    "traces": (TRACES,),
    "error tracker": (ENVELOPE,),
}  # fmt: skip
"""The sinks, and the places in each into which a word is put."""
SINKS = tuple(PLANTED)


def _run_records(lived: Lived) -> None:
    """Run a record for each kind of end."""
    broken = lived.submit("broken", BROKEN_PDF)
    ended(lived.submit("succeeded", pdf(4)), lived.submit("failed", pdf(SLOW_PAGE - 1)), broken)
    crashed, killed = (
        lived.submit("crashed", pdf(1, pages=12)),
        lived.submit("killed", pdf(SLOW_PAGE)),
    )
    lived.until_stored(crashed, page=1)
    lived.until_stored(killed, page=4)
    for horse in lived.pool.horses():
        os.kill(horse, signal.SIGKILL)
    lived.note_redis("after kill -9")
    _corrupt_replies(crashed)
    _expire_leases(crashed, killed)
    ended(crashed, killed)
    away = lived.submit("away", pdf(SLOW_PAGE))
    lived.until_stored(away, page=4)
    with no_connections():
        until(lambda: "(POSTGRES_" in lived.pool.printed())
    with refusing("pass1_entity_detections", "quote"):
        ended(lived.submit("refused", pdf(1)))
    with refusing("healthcare_encounters", "facility_name"):
        ended(lived.submit("refused early", pdf(1)))
    ended(away)
    texts = "id::text || (SELECT string_agg(text, '') FROM shell_file_pages)"
    with refusing("job_queue", texts, "UPDATE", "NEW.status IN ('completed', 'failed')"):
        # The end of the job cannot be written, so the error leaves the step and reaches RQ.
        unended = lived.submit("not ended", pdf(1))
        until(lambda: any(b"StepFailedError" in each for each in lived.redis.read().values()))
        lived.note_redis("after a crash")
    _expire_leases(unended)
    ended(unended)


def pdf(visits: int, **options: int) -> bytes:
    """Return a record with every word in its text."""
    return short_pdf(visits, patient=PATIENT, drug=DRUG, more=MORE, **options)


def _corrupt_replies(received: Received) -> None:
    """Replace stored replies: the step that resumes fails with an error that quotes them."""
    with rewriting(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pass1_batch_results SET output = jsonb_build_object('entities', %s::text)"
            " WHERE status = 'succeeded' AND healthcare_encounter_id IN"
            " (SELECT id FROM healthcare_encounters WHERE shell_file_id = %s)",
            [f"{PATIENT} {DRUG}", received.shell_file_id],
        )
        assert cursor.rowcount > 0


def _expire_leases(*received: Received) -> None:
    """Let the scheduler take jobs from their killed workers."""
    Job.objects.filter(id__in=[each.job_id for each in received]).update(
        lease_expires_at=ClockTimestamp() - timedelta(seconds=1)
    )


def _process_command(lived: Lived) -> subprocess.Popen[bytes]:
    """Begin to submit a record as a person does, with the name off the command line."""
    path = lived.folder / f"{PATIENT} typed.pdf"
    path.write_bytes(pdf(1))
    process = subprocess.Popen(
        [sys.executable, "manage.py", "process", "--files-from", "-", "--no-wait"],
        cwd=PROJECT_ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "medproc.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(f"{path}\n".encode())
    process.stdin.close()
    return process


def _log_in() -> dict[str, str]:
    """Return the headers of an operator with a log-in."""
    session = client_of(Role.OPERATOR).cookies["sessionid"].value
    token = "c" * 32
    return {"Cookie": f"sessionid={session}; csrftoken={token}", "X-CSRFToken": token}


def _ask(asker: Asker, log_in: dict[str, str], lived: Lived) -> None:
    """Ask console and API for what they refuse, with words in every part of the request."""
    program = a_program()
    bearer = {"Authorization": f"Bearer {program.token}"}
    name = f"{FILE_WORD}-Zylphira-Quandt"
    record = lived.received["failed"].shell_file_id
    good, broken = pdf(1), BROKEN_PDF
    for path in (f"/{name}", f"/admin/{name}/", f"/admin/records/{name}/", f"/static/{name}.css",
                 f"/admin/records/?q={name}", f"/admin/search/?q={name}", f"/{quote(PATIENT)}",
                 f"/admin/pipeline/page/{name}/change/", f"/admin/holds/{name}/"):  # fmt: skip
        asker.ask("GET", path, log_in)
        asker.ask("POST", path, log_in | {"Content-Type": FORM}, f"name={name}".encode())
        asker.ask("GET", path)
    for content in (broken, f"{PATIENT}, {DRUG}".encode(), good):
        body, kind = form(name, content)
        asker.ask("POST", "/admin/upload/files/", log_in | kind, body)
    for path, content in (
        (f"/{name}", b""), (f"?{name}=1", good), (f"?priority={name}", good), ("", broken),
        (f"/{record}/retry", f'{{"reason": "{PATIENT}"'.encode()),
        (f"/{record}/retry", f'{{"{name}": "{PATIENT}"}}'.encode()),
    ):  # fmt: skip
        for media in ("application/pdf", "application/json", name):
            named = {"Content-Type": media, "Patient-Reference": REFERENCE}
            key = {"Idempotency-Key": f"{name}-{uuid4()}"}
            asker.ask("POST", f"/api/v1/records{path}", bearer | named | key, content)
    asker.ask("GET", f"/api/v1/records/{name}", bearer)
    asker.ask("GET", f"/api/v1/records?status={name}&cursor={name}", bearer)
    asker.ask("GET", "/api/v1/records", {"Authorization": f"Bearer {name}"})
    with refusing("shell_files", "original_filename"):
        body, kind = form(name, good + b"%a")
        asker.ask("POST", "/admin/upload/files/", log_in | kind, body)
        disposition = f'attachment; filename="{name}.pdf"'
        headers = {"Content-Type": "application/pdf", "Content-Disposition": disposition}
        asker.ask("POST", "/api/v1/records", bearer | headers, good + b"%b")


FORM = "application/x-www-form-urlencoded"


def form(name: str, content: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the body of an upload in the console, and the header with its type."""
    parts = {"token": str(uuid4()), "patient": REFERENCE}
    body = b"".join(
        f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in parts.items()
    )
    file = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}.pdf"\r\n'
    body += file.encode() + b"Content-Type: application/pdf\r\n\r\n" + content + b"\r\n--x--\r\n"
    return body, {"Content-Type": "multipart/form-data; boundary=x"}


class refusing:  # noqa: N801 - reads as a statement
    """Let PostgreSQL refuse rows of a table with a message that quotes the rows."""

    def __init__(
        self, table: str, column: str, event: str = "INSERT", condition: str = "true"
    ) -> None:
        self._table, self._said = table, f"NEW.{column}"
        self._event, self._condition = event, condition

    def __enter__(self) -> None:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                f" RAISE EXCEPTION 'refused: %%', {self._said}; END $$;"
                f"CREATE TRIGGER refuse BEFORE {self._event} ON {self._table}"
                f" FOR EACH ROW WHEN ({self._condition}) EXECUTE FUNCTION refuse()",
                [],
            )

    def __exit__(self, *exc: object) -> None:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")


def test_every_kind_of_end_was_met(lived: Lived) -> None:
    jobs = {name: lived.job(name) for name in lived.received}
    ends = {name: (job.status, job.error_code) for name, job in jobs.items()}

    assert ends["succeeded"] == ("completed", None)
    assert ends["failed"][0] == "failed"
    assert ends["refused"] == ends["refused early"] == ("failed", "DB_ERROR")
    assert ends["crashed"] == ("failed", "INTERNAL_ERROR")
    assert ends["broken"] == ("failed", "INPUT_INVALID")
    assert jobs["killed"].crash_count == jobs["crashed"].crash_count == 1
    assert any(b"StepFailedError" in each for each in lived.redis_before.values())
    assert "(POSTGRES_" in lived.pool.printed()
    outcomes = set(ProviderCall.objects.values_list("outcome", flat=True))
    assert outcomes >= {
        "OK",
        "PARSE_JSON",
        "PARSE_SCHEMA",
        "RATE_LIMIT",
        "API_TIMEOUT",
        "OUTPUT_TRUNCATED",
        "CONTENT_BLOCKED",
    }


def test_console_and_api_refused_in_every_way(lived: Lived) -> None:
    asked = {(each.asked.partition("?")[0], each.status) for each in lived.asker.answers}

    of_api = {status for path, status in asked if path.startswith("POST /api/v1")}
    of_upload = {status for path, status in asked if path == "POST /admin/upload/files/"}
    assert of_api >= {201, 400, 415, 422, 500}
    assert of_upload >= {200, 500}
    assert {status for _, status in asked} >= {400, 401, 403, 404}


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
    for table, column in (
        ("shell_file_pages", "text"),
        ("shell_files", "original_filename"),
        ("pass1_entity_detections", "name"),
        ("pass1_entity_detections", "quote"),
        ("pass05_pending_encounters", "patient_name"),
        ("pass05_pending_encounters", "patient_identifier"),
        ("user_profiles", "reference"),
    ):
        assert NEEDLES.found(phi_sinks.content(table, column)), column
    text = phi_sinks.content("shell_file_pages", "text")
    named = {"1965-02-11", "19650211", "2021-01-04", REFERENCE, FILE_WORD}
    assert NEEDLES.found(text) == {*NEEDLES.words} - named


def test_each_table_declares_its_columns_of_phi() -> None:
    assert phi_sinks.undeclared_tables() == phi_sinks.WITHOUT_ADMIN
    assert phi_sinks.hidden_columns() <= {*phi_sinks.columns()}


@pytest.mark.parametrize("name", SINKS)
def test_a_sink_holds_no_word_of_a_record(lived: Lived, name: str) -> None:
    assert lived.sinks[name].hits(NEEDLES) == {}


@pytest.mark.parametrize("name", SINKS)
def test_a_word_that_is_put_into_a_sink_is_found(lived: Lived, name: str) -> None:
    sink, word = lived.sinks[name], f"Planted{uuid4().hex}"

    with sink.planted(word):
        found = sink.hits(Needles([word]))

    places = PLANTED[name]
    assert {place for place in places if not any(place in each for each in found)} == set(), found
    assert sink.hits(Needles([word])) == {} or name in ("logs", "process lists")


def test_the_search_covers_every_process_and_almost_every_column(lived: Lived) -> None:
    logs, database = lived.sinks["logs"].read(), lived.sinks["database"].read()

    assert b"step_ended" in logs["workers"]
    assert b"HTTP/1.1" in logs["web server"]
    assert b"reconcile" in logs["scheduler"]
    assert len(database) > 300
    processes = lived.sinks["process lists"].read()["processes"]
    assert b"--files-from" in processes
    spans = lived.receiver.spans()
    names = {span.name for span in spans}
    assert {"record", "pages", "pass05", "chunk", "pass1", "batch", "call"} <= names
    records_traced = {each.shell_file_id for each in lived.received.values()}
    assert records_traced <= {span.trace for span in spans}
    assert "WORKER_LOST" in {span.attributes["medproc.outcome"] for span in spans}
    errors = [envelope[2] for envelope in lived.receiver.events()]
    assert {error["tags"].get("step") for error in errors} >= {None, "pass05", "pass1"}
    assert b"rqworker-pool" in processes or b"manage.py" in processes
