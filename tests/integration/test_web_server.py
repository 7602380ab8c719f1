"""The console's web server keeps its threads and connections for whole requests."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from django.contrib.staticfiles.finders import get_finders
from django.core.management import CommandError, call_command
from django.db import connection

from medproc.web.limits import ANONYMOUS_BODY, HEAD_BYTES, LARGEST_FILE, WAITING_REQUESTS
from observability.management.commands.serve import UNUSED_FILES
from pipeline.core.server_faults import ServerFault
from tests.support.databases import no_connections
from tests.support.web_server import WebServer, read_all, serving
from tests.support.workers import until

pytestmark = [pytest.mark.xdist_group("web-server"), pytest.mark.timeout(180)]

HALF = {
    "nothing": b"",
    "half a head": b"GET /admin/ HTTP/1.1\r\nHost: localhost\r\nX: y",
    "half a body": b"POST /admin/login/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
    "a second, half request": b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\nGET /admin/",
}
CLIENTS = 200
STRANGER = {"Cookie": f"sessionid={'x' * 32}"}


def _has_reloaded(server: WebServer, times: int) -> bool:
    return server.log().count("Worker exiting") >= times


@pytest.fixture(scope="module")
def server(module_db: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Run the server with one thread, so that one held thread would stop everything."""
    log = tmp_path_factory.mktemp("server") / "server.log"
    with serving(module_db, log, WEB_THREADS="1") as running:
        assert running.get("/admin/login/").status == 200
        yield running


@pytest.mark.parametrize("name", HALF)
def test_clients_that_send_half_a_request_hold_no_thread(server: WebServer, name: str) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(CLIENTS)]
        for client in clients:
            client.sendall(HALF[name])

        # The server has one thread. If each client held the thread, the page would come too late.
        assert server.get("/admin/login/").status == 200
        answers = Counter(read_all(client)[:12] for client in clients)

    expected = {"nothing": b"", "a second, half request": b"HTTP/1.1 200"}
    assert answers == {expected.get(name, b"HTTP/1.1 408"): CLIENTS}


def test_clients_that_read_no_answer_hold_no_thread(server: WebServer) -> None:
    """The largest static file fits into the buffer of the kernel."""
    files = [
        (finder_storage.size(name), name)
        for finder in get_finders()
        for name, finder_storage in finder.list(UNUSED_FILES)
    ]
    size, largest = max(files)
    assert size < LARGEST_FILE
    request = f"GET /static/{largest} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(8):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.connect(("127.0.0.1", server.port))
            client.sendall(request)

        # The only thread is free for the page after it has given all answers to the kernel.
        assert server.get("/admin/login/").status == 200
        assert server.log().count(f'"GET /static/{largest} HTTP/1.1" 200') == 8


def test_a_client_that_asks_first_is_told_to_send_its_body(server: WebServer) -> None:
    head = b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
    with server.connect() as client:
        client.sendall(head + b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n")
        client.sendall(b"a=b")

        assert b"HTTP/1.1 403 Forbidden" in read_all(client)


def test_a_flood_of_strangers_is_answered_and_leaves_connections_for_others(
    server: WebServer,
) -> None:
    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = [clients.submit(server.get, "/admin/", **STRANGER) for _ in range(2 * CLIENTS)]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            (backends,) = cursor.fetchone()

    # Each is sent to the log-in, or told at once to come back later.
    statuses = Counter(answer.result().status for answer in answers)
    assert set(statuses) <= {302, 503}
    assert statuses[302] > WAITING_REQUESTS / 2
    assert backends <= 1 + 10
    assert server.get("/admin/login/").status == 200


def test_reloads_lose_no_request(server: WebServer) -> None:
    stop = threading.Event()

    def ask() -> Counter[int]:
        statuses: Counter[int] = Counter()
        while not stop.is_set():
            statuses[server.get("/admin/login/").status] += 1
        return statuses

    with ThreadPoolExecutor(4) as clients:
        asked = [clients.submit(ask) for _ in range(4)]
        for number in (1, 2):
            server.reload()
            until(partial(_has_reloaded, server, number))
        stop.set()
    statuses = sum((each.result() for each in asked), Counter[int]())

    assert set(statuses) == {200}
    assert statuses[200] >= 4
    assert server.process.poll() is None


def test_what_cannot_be_served_is_refused_without_a_thread(server: WebServer) -> None:
    head = b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\n"
    refused = {
        b"431": b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES + b"\r\n\r\n",
        b"411": head + b"Transfer-Encoding: chunked\r\n\r\n",
        b"400": b"GET / HTTP",
        b"413": head + b"Content-Length: %d\r\n\r\n" % (ANONYMOUS_BODY + 1),
    }

    for status, request in refused.items():
        assert server.send(request).startswith(b"HTTP/1.1 " + status), status


def test_static_files_are_named_by_content_and_compressed(server: WebServer) -> None:
    page = server.get("/admin/login/")
    body = page.body.decode()  # type: ignore[attr-defined]  # of the test's client
    found = re.search(r"/static/console/console\.[0-9a-f]{12}\.css", body)
    assert found

    file = server.get(found[0], **{"Accept-Encoding": "gzip"})

    assert file.status == 200
    assert b"{" in gzip.decompress(file.body)  # type: ignore[attr-defined]  # of the test's client
    assert file.headers["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in file.headers["Cache-Control"]
    assert file.headers["Access-Control-Allow-Origin"] is None
    assert server.get("/static/console/console.000000000000.css").status == 404


def test_probes_need_no_host_and_no_log_in(server: WebServer) -> None:
    for path in ("/health/live", "/health/ready"):
        answer = server.get(path, Host="10.1.2.3")
        assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    assert server.get("/admin/login/", Host="10.1.2.3").status == 400


def test_readiness_names_the_faults(server: WebServer) -> None:
    with no_connections():
        until(lambda: server.get("/health/ready").status == 503)
        answer = server.get("/health/ready")
        faults = json.loads(answer.body)["faults"]  # type: ignore[attr-defined]  # of the test's client
        assert faults == [ServerFault.POSTGRES_LOGIN]
        assert server.get("/health/live").status == 200
    until(lambda: server.get("/health/ready").status == 200)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("8000", "The address must have the form 127.0.0.1:8000"),
        ("127.0.0.1:many", "The address must have the form 127.0.0.1:8000"),
        ("127.0.0.1:99999", "The address must have the form 127.0.0.1:8000"),
        ("no.such.host.invalid:8000", "The host no.such.host.invalid has no address"),
        ("192.0.2.1:8000", "Port 8000 cannot be opened"),
    ],
)
def test_an_unusable_address_is_refused_in_one_line(address: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("serve", address)


def test_a_taken_port_is_refused_in_one_line(server: WebServer) -> None:
    with pytest.raises(CommandError, match=f"Port {server.port} is taken; choose another"):
        call_command("serve", f"127.0.0.1:{server.port}")
