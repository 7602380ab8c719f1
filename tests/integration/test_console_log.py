"""The log of the running console holds no word that a client sent, wherever the word was."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.support.web_server import WebServer, serving
from tests.support.workers import until

pytestmark = pytest.mark.xdist_group("console-log")

WORD = b"ZyxquillCanary"
ID = str(uuid4()).encode()
HEAD = b"Host: 127.0.0.1\r\nConnection: close\r\n"


def _get(target: bytes, head: bytes = HEAD, method: bytes = b"GET") -> bytes:
    return method + b" " + target + b" HTTP/1.1\r\n" + head + b"\r\n"


def _post(target: bytes, body: bytes, head: bytes = b"") -> bytes:
    length = b"Content-Length: " + str(len(body)).encode() + b"\r\n"
    return _get(target, HEAD + length + head, b"POST") + body


FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
PARTS = b"Content-Type: multipart/form-data"
PART = b'--x\r\nContent-Disposition: form-data; name="' + WORD + b'"\r\n\r\n' + WORD
REQUESTS: dict[str, bytes] = {
    "path": _get(b"/" + WORD),
    "path of the admin": _get(b"/admin/pipeline/page/" + WORD + b"/change/"),
    "path without an end": _get(b"/admin/records/" + WORD),
    "path with spaces": _get(b"/admin/records/Jane " + WORD + b"/"),
    "encoded path": _get(b"/admin/%5A" + WORD + b"%00%0a%1b"),
    "path in Latin-1": _get(b"/\xe9" + WORD),
    "static file": _get(b"/static/" + WORD),
    "static folder": _get(b"/static/console/" + WORD + b".css"),
    "static file above": _get(b"/static/../" + WORD),
    "static beside the folder": _get(b"/static/%2e%2e/" + WORD),
    "absolute static file": _get(b"/static//etc/" + WORD),
    "static with NUL": _get(b"/static/%00" + WORD),
    "long static file": _get(b"/static/" + WORD * 400),
    "query": _get(b"/admin/?q=" + WORD),
    "query of a static file": _get(b"/static/console/console.css?" + WORD),
    "fragment": _get(b"/admin/#" + WORD),
    "parameters": _get(b"/admin/;" + WORD),
    "number": _get(b"/admin/records/" + ID + b"/pages/19550211/"),
    "absolute form": _get(b"http://" + WORD + b"/admin/"),
    "authority form": _get(WORD + b":443", method=b"CONNECT"),
    "word as target": _get(WORD),
    "word as method": _get(b"/admin/", method=WORD),
    "known path, unknown method": _get(b"/admin/records/", method=WORD.upper()),
    "method not allowed": _get(b"/admin/holds/" + WORD.lower() + b"/perform/", method=b"PUT"),
    "three words": WORD + b" " + WORD + b" " + WORD + b"\r\n\r\n",
    "one word": WORD + b"\r\n\r\n",
    "four words": b"GET / " + WORD + b" HTTP/1.1\r\n\r\n",
    "version": b"GET / HTTP/" + WORD + b"\r\n\r\n",
    "version with digits": b"GET / HTTP/1.1.1" + WORD + b"\r\n\r\n",
    "high version": b"GET /" + WORD + b" HTTP/9.9\r\n\r\n",
    "old version": b"GET /" + WORD + b"\r\n",
    "old version, other method": b"POST /" + WORD + b"\r\n",
    "binary": b"\x00\xff\x1b[31m" + WORD + b"\x80 \x07\r\n\r\n",
    "TLS": b"\x16\x03\x01" + WORD + b"\r\n\r\n",
    "long request line": b"GET /" + WORD * 6_000 + b" HTTP/1.1\r\n\r\n",
    "long header": _get(b"/admin/", HEAD + b"X: " + WORD * 6_000 + b"\r\n"),
    "many headers": _get(b"/admin/", HEAD + (b"X: " + WORD + b"\r\n") * 120),
    "header without a colon": _get(b"/admin/", HEAD + WORD + b"\r\n"),
    "header's name": _get(b"/admin/", HEAD + WORD + b": 1\r\n"),
    "host": _get(b"/admin/", b"Host: " + WORD + b".example\r\nConnection: close\r\n"),
    "malformed host": _get(b"/admin/", b"Host: \xe9 " + WORD + b"\r\nConnection: close\r\n"),
    "cookie": _get(b"/admin/", HEAD + b"Cookie: sessionid=" + WORD + b"; a=" + WORD + b"\r\n"),
    "authorization": _get(b"/admin/", HEAD + b"Authorization: " + WORD + b"\r\n"),
    "language": _get(b"/admin/", HEAD + b"Accept-Language: " + WORD + b"\r\n"),
    "since": _get(b"/static/console/console.css", HEAD + b"If-Modified-Since: " + WORD + b"\r\n"),
    "body": _post(b"/admin/login/", b"username=" + WORD + b"&password=" + WORD, FORM),
    "field's name": _post(b"/admin/login/", WORD + b"=1", FORM),
    "many fields": _post(b"/admin/login/", (WORD + b"=1&") * 1_100, FORM),
    "origin": _post(b"/admin/login/", b"", FORM + b"Origin: https://" + WORD + b"\r\n"),
    "referer": _post(b"/admin/login/", b"", FORM + b"Referer: https://" + WORD + b"/\r\n"),
    "type of the body": _post(b"/admin/login/", b"x", b"Content-Type: " + WORD + b"\r\n"),
    "charset": _post(b"/admin/login/", b"x=1", FORM[:-2] + b"; charset=" + WORD + b"\r\n"),
    "boundary": _post(b"/admin/login/", b"--x", PARTS + b"; boundary=\xe9" + WORD + b"\r\n"),
    "parts": _post(b"/admin/login/", PART, PARTS + b"; boundary=x\r\n"),
    "length": _get(b"/admin/login/", HEAD + b"Content-Length: " + WORD + b"\r\n", b"POST"),
    "chunks": _get(b"/admin/login/", HEAD + b"Transfer-Encoding: " + WORD + b"\r\n", b"POST"),
}  # fmt: skip
"""A word in every position of a request."""


@pytest.fixture(scope="module")
def console(module_db: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Run the console on the module's database."""
    with serving(module_db, tmp_path_factory.mktemp("console") / "console.log") as running:
        yield running


@pytest.mark.parametrize("name", REQUESTS)
def test_a_word_of_a_request_is_not_logged(console: WebServer, name: str) -> None:
    before = len(console.log())

    console.send(REQUESTS[name])

    said = console.log()[before:]
    assert WORD.lower().decode() not in said.lower()
    assert "19550211" not in said
    assert "Traceback" not in said


def test_the_log_still_tells_pages_from_each_other(console: WebServer) -> None:
    for target in (
        b"/admin/login/?next=/admin/",
        b"/static/console/console.css",
        b"/admin/records/" + ID + b"/",
    ):
        console.send(_get(target))

    until(lambda: ID.decode() in console.log(), 10)
    said = console.log()
    assert '"GET /admin/login/ HTTP/1.1" 200' in said
    assert '"GET /static/console/console.css HTTP/1.1" 200' in said
    assert f'"GET /admin/records/{ID.decode()}/ HTTP/1.1" 302' in said
    assert "(unknown page)" in said
    assert "code 400, message Bad Request" in said
    assert "refused: DisallowedHost" in said
