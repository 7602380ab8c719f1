"""The console's real web server for tests: `manage.py serve` as a process with a log."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

from medproc.env import PROJECT_ROOT
from tests.support.plain_user import plain_folder
from tests.support.workers import until

PATIENCE_S = 60.0


class WebServer:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self._log = log

    def log(self) -> str:
        """Return what the server has logged or printed so far."""
        return self._log.read_bytes().decode("utf-8", "replace")

    def connect(self) -> socket.socket:
        """Open a connection that sends nothing yet."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def send(self, request: bytes) -> bytes:
        """Send a raw request, end the sending side, and return the whole answer."""
        with self.connect() as connection, suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(request)
            # A server that refuses the request may have closed the connection before.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)
        return b""

    def get(self, path: str, **headers: str) -> HTTPResponse:
        """Return the answer of a page, read to its end, on a connection of its own."""
        client = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        answer.body = answer.read()  # type: ignore[attr-defined]  # for the test
        client.close()
        return answer

    def reload(self) -> None:
        """Let the server load new code."""
        self.process.send_signal(signal.SIGHUP)


def read_all(connection: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    answer = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            answer += part
    return answer


@contextmanager
def serving(database_url: str, log: Path, **environment: str) -> Iterator[WebServer]:
    """Run the server on a database until the block ends.

    The server has a data folder of its own. Pages that a test renders itself would else find the
    static files that the server has collected, and name them by their hashes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with plain_folder() as data, log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", f"127.0.0.1:{port}"],
            cwd=PROJECT_ROOT,
            env=_environment(database_url, {"MEDPROC_DATA_DIR": str(data / "var"), **environment}),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        server = WebServer(process, port, log)
        try:
            until(lambda: process.poll() is not None or _answers(server))
            assert process.poll() is None, server.log()
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _environment(database_url: str, more: Mapping[str, str]) -> dict[str, str]:
    ours = {"DJANGO_SETTINGS_MODULE": "medproc.settings", "DATABASE_URL": database_url}
    return {**os.environ, **ours, **more}


def _answers(server: WebServer) -> bool:
    try:
        return server.get("/health/live").status == 200
    except OSError:
        return False
