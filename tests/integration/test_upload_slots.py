"""The limit of simultaneous uploads, with parallel uploads to the real web server."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import connection

from medproc.web.limits import THREADS_WITHOUT_UPLOADS
from pipeline.models import ShellFile
from tests.support import records
from tests.support.api_clients import RECORDS, ApiProgram, a_program
from tests.support.web_server import WebServer, read_all, serving
from tests.support.workers import children, until

pytestmark = [pytest.mark.xdist_group("upload-slots"), pytest.mark.timeout(180)]

SLOTS = 3
PARALLEL = 7
PADDING = 65_536
"""A body of this size is read by a thread while it arrives."""


@pytest.fixture
def server(cloned_db: str, tmp_path: Path) -> Iterator[WebServer]:
    """Run the web server with two processes."""
    with serving(
        cloned_db, tmp_path / "server.log", WEB_WORKERS="2", API_UPLOADS_PER_CLIENT=str(SLOTS)
    ) as running:
        yield running


class Upload:
    """An upload that has sent its head and half of its body."""

    def __init__(self, server: WebServer, program: ApiProgram) -> None:
        # A PDF may end with blank lines.
        body = records.LAB.read_bytes() + b"\n" * PADDING
        self._rest = body[len(body) // 2 :]
        head = (
            f"POST {RECORDS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer {program.token}\r\n"
            f"Content-Type: application/pdf\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.socket: socket.socket = server.connect()
        self.socket.sendall(head.encode() + body[: len(body) // 2])

    @property
    def is_answered(self) -> bool:
        """Whether the server has answered before the end of the body."""
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(60)

    def answer(self) -> tuple[int, dict[str, str], str]:
        """Return status, headers and code or id of the answer, and close the connection."""
        with self.socket:
            text = read_all(self.socket).decode()
        head, _, body = text.partition("\r\n\r\n")
        lines = head.split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:])
        found = json.loads(body)
        return int(lines[0].split()[1]), headers, found.get("code") or found["id"]

    def finish(self) -> tuple[int, dict[str, str], str]:
        """Send the rest, and return the answer."""
        self.socket.sendall(self._rest)
        return self.answer()


def held() -> int:
    """Return the number of slots that PostgreSQL knows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def test_of_parallel_uploads_as_many_go_on_as_there_are_slots(server: WebServer) -> None:
    mercy, other = a_program(), a_program("other")
    with ExitStack() as stack:
        uploads = [Upload(server, mercy) for _ in range(PARALLEL)]
        for each in uploads:
            stack.enter_context(each.socket)
        until(lambda: sum(each.is_answered for each in uploads) == PARALLEL - SLOTS)
        at_once = held()
        going_on = [each for each in uploads if not each.is_answered]
        refused = [each.answer() for each in uploads if each not in going_on]
        of_another = Upload(server, other)
        stack.enter_context(of_another.socket)
        taken_by_other = of_another.finish()
        accepted = [each.finish() for each in going_on]
        after = Upload(server, mercy)
        stack.enter_context(after.socket)
        later = after.finish()

    assert at_once == SLOTS
    assert {(status, code) for status, _, code in refused} == {(429, "TOO_MANY_UPLOADS")}
    assert {headers["Retry-After"] for _, headers, _ in refused} == {"5"}
    assert {headers["Content-Type"] for _, headers, _ in refused} == {"application/problem+json"}
    assert [status for status, _, _ in (*accepted, taken_by_other, later)] == [201] * (SLOTS + 2)
    assert ShellFile.objects.count() == SLOTS + 2
    until(lambda: held() == 0)


def test_a_killed_process_and_a_lost_sender_free_their_slots(server: WebServer) -> None:
    program = a_program()
    with ExitStack() as stack:
        for each in (Upload(server, program) for _ in range(SLOTS)):
            stack.enter_context(each.socket)
        until(lambda: held() == SLOTS)
        for pid in children(server.process.pid):
            os.kill(pid, signal.SIGKILL)
        until(lambda: held() == 0)
    until(lambda: _is_back(server))

    lost = Upload(server, program)
    until(lambda: held() == 1)
    lost.socket.close()
    until(lambda: held() == 0)
    again = [Upload(server, program).finish()[0] for _ in range(SLOTS)]

    assert again == [201] * SLOTS
    assert ShellFile.objects.count() == SLOTS


def test_uploads_in_progress_leave_threads_for_pages_and_take_turns(
    cloned_db: str, tmp_path: Path
) -> None:
    program = a_program()
    with ExitStack() as stack:
        # One thread may receive files.
        server = stack.enter_context(
            serving(
                cloned_db, tmp_path / "few.log", WEB_WORKERS="1",
                WEB_THREADS=str(THREADS_WITHOUT_UPLOADS + 1),
            )
        )  # fmt: skip
        uploads = []
        for _ in range(THREADS_WITHOUT_UPLOADS + 1):
            uploads.append(Upload(server, program))
            stack.enter_context(uploads[-1].socket)
            until(lambda: held() > 0)
            # Uploads that each had a thread would leave none for the last of these requests.
            pages = [server.get("/health/live").status for _ in range(2)]
            assert pages == [200, 200]
        at_once = held()
        statuses = [each.finish()[0] for each in uploads]

    assert at_once == 1
    assert statuses == [201] * len(uploads)
    assert ShellFile.objects.count() == len(uploads)


def _is_back(server: WebServer) -> bool:
    try:
        return server.get("/health/live").status == 200
    except OSError:
        return False
