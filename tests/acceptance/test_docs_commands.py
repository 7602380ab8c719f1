"""Every command of README and docs/ runs, and prints what its page says."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from medproc.env import PROJECT_ROOT, VARIABLES
from tests.support.doc_commands import DocsBlock, DocsReader, blocks
from tests.support.webhook_receiver import receiving

UP = "Ctrl-C stops everything"
MANAGE = ".venv/bin/python manage.py "
NOT_RUN = {
    "README.md: make demo": ".ci/run runs both commands before this test",
    "README.md: export GEMINI_API_KEY": "calls the real service",
    "configuration.md: export DATABASE_URL": "needs other hosts; test_deployment has them",
    "configuration.md: createdb": "needs the tools of PostgreSQL; the embedded server has none",
    "deployment.md: export SECRET_KEY": "needs a container engine",
    "deployment.md: export METRICS_TOKEN": "needs a container engine",
    "emulator.md: export MEDPROC_PROVIDER": "the command of the README with another scenario",
}
"""The blocks that no test runs, each with the reason."""
OUTAGE = (
    f"runbook.md: {MANAGE}health",
    "README.md: printf",
    "README.md: GEMINI_BASE_URL",
    f"README.md: {MANAGE}explain",
    f"runbook.md: {MANAGE}retry",
    f"runbook.md: {MANAGE}detect_incidents",
    f"emulator.md: {MANAGE}gemini_emulator --scenario",
    f"emulator.md: {MANAGE}gemini_emulator --check",
)
"""The blocks in the order in which a person types them while the provider fails."""
DAILY = (
    "configuration.md: PASS1_CONCURRENCY_LIMIT",
    "configuration.md: SECRET_KEY_FILE",
    "README.md: make up",
    f"integrating.md: {MANAGE}process",
    "README.md: echo",
    f"configuration.md: {MANAGE}process",
    "exports.md: mkdir",
    f"api.md: {MANAGE}api_client",
    'api.md: curl -s -H "Authorization: Bearer $TOKEN" -H "Idempotency-Key',
    'api.md: curl -s -H "Authorization: Bearer $TOKEN" -H "Content-Type',
    "metrics.md: curl",
    f"metrics.md: {MANAGE}check_sla",
    "runbook.md: curl",
    f"recovery.md: {MANAGE}backup",
    f"review.md: {MANAGE}export_labels",
    f"retention.md: {MANAGE}prune",
    f"retention.md: {MANAGE}erase",
    f"configuration.md: {MANAGE}services",
    f"configuration.md: {MANAGE}serve",
)
"""The blocks in the order in which a person types them on a usual day."""
ENDS_THE_SERVERS = (
    f"emulator.md: {MANAGE}gemini_emulator --scenario",
    "configuration.md: PASS1_CONCURRENCY_LIMIT",
    f"configuration.md: {MANAGE}services",
)
"""The blocks before which a person stops what serves."""
EMULATED = "export GEMINI_BASE_URL=http://127.0.0.1:8090 GEMINI_API_KEY=rehearsal"
"""What the environment of an operator holds while the service uses the emulator."""
SERVES = {"make up": UP, "gemini_emulator --": "http://", "manage.py serve ": "Listening at"}
"""Commands that run until the person stops them, and the text that says that they serve."""
SHOWS_A_STATE = ("/api/v1/records/$ID\n", "/deliveries\n", "detect_incidents\n")
"""Ends of commands that a person types again until the state is the expected state."""


def _block(start: str) -> DocsBlock:
    (found,) = (block for block in blocks() if block.name.startswith(start))
    return found


def _free_port() -> int:
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[DocsReader]:
    """Provide a person with an empty installation."""
    own = {*VARIABLES, "DJANGO_SETTINGS_MODULE"}
    console, emulator = _free_port(), _free_port()
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving())
        person = DocsReader(
            tmp_path / "medproc",
            {
                **{name: value for name, value in os.environ.items() if name not in own},
                "MEDPROC_DATA_DIR": str(tmp_path / "var"),
                "METRICS_TOKEN": secrets.token_hex(32),
                "PORT": str(console),
                "WEBHOOK_ALLOWED_HOSTS": "127.0.0.1",
            },
            {
                "127.0.0.1:8000": f"127.0.0.1:{console}",
                "127.0.0.1:8090": f"127.0.0.1:{emulator}",
                "gemini_emulator --latency": f"gemini_emulator --port {emulator} --latency",
                "gemini_emulator --scenario": f"gemini_emulator --port {emulator} --scenario",
                "https://hooks.example.org/medproc": receiver.url,
                "/srv/": f"{tmp_path}/srv/",
                "/backups": f"{tmp_path}/backups",
            },
        )
        (tmp_path / "srv").mkdir()
        (tmp_path / "backups").mkdir()
        shutil.copy(PROJECT_ROOT / "samples/visits_20p_4enc.pdf", person.folder / "visit.pdf")
        shutil.copy(PROJECT_ROOT / "samples/lab_5p_8enc.pdf", person.folder / "lab.pdf")
        (person.folder / "oru.hl7").write_text("MSH|^~\\&|LAB|MERCY|||20260101||ORU^R01|1|P|2.5\n")
        yield person
        person.stop()


def _type(person: DocsReader, start: str) -> None:
    for example in _block(start).examples:
        ready = next((SERVES[part] for part in SERVES if part in example.command), "")
        again = f"{example.command}\n".endswith(SHOWS_A_STATE)
        person.run(example, "" if "--check" in example.command else ready, again=again)


def test_each_command_is_run_or_has_a_reason() -> None:
    starts = [*NOT_RUN, *OUTAGE, *DAILY]

    reached = [_block(start).name for start in starts]

    assert sorted(reached) == sorted(block.name for block in blocks())


@pytest.mark.xdist_group("docs-commands")
@pytest.mark.slow(reason="starts `make up` twice, and types every command of the docs")
@pytest.mark.timeout(900)
def test_the_commands_of_an_outage_and_of_a_usual_day(reader: DocsReader) -> None:
    reader.ask(f"{MANAGE}services up && {MANAGE}migrate")
    for start in OUTAGE[:3]:
        _type(reader, start)
    reader.ask(EMULATED)
    failed = _processed(reader)
    assert failed["status"] == "failed"
    reader.replaced |= dict.fromkeys(("d54a8e80", "9aed537a"), failed["shell_file_id"][:8])
    for start in (*OUTAGE[3:], *DAILY):
        if start in ENDS_THE_SERVERS:
            reader.stop_servers()
            reader.ask("unset GEMINI_BASE_URL GEMINI_API_KEY")
        if start.endswith("detect_incidents"):
            reader.stop_server(0)  # the emulator: now the provider is away
            reader.ask(f"{MANAGE}process visit.pdf --force > /dev/null 2>&1 &")
        if start.startswith("integrating.md"):
            reader.ask("echo MRN-0077 > patient.txt")  # the file names another person
        if start.startswith("exports.md"):
            record = _processed(reader)["shell_file_id"]
            reader.replaced |= {"7483778b": record[:8], "RECORD": record[:8]}
        _type(reader, start)
    reader.stop_servers()
    assert not reader.differences, "\n\n".join(reader.differences)


def _processed(person: DocsReader) -> dict[str, Any]:
    """Process a file and return the object that `--json` prints."""
    printed = person.ask(f"{MANAGE}process visit.pdf --json")
    found: dict[str, Any] = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])
    return found
