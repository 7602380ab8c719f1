"""A thread gets only a request that has arrived."""

from __future__ import annotations

import pytest

from medproc.web.limits import HEAD_BYTES, SMALL_BODY
from medproc.web.request_head import Arrival, arrived

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def _post(length: int, sent: int, name: bytes = b"Content-Length") -> bytes:
    return b"POST / HTTP/1.1\r\n%s: %d\r\n\r\n" % (name, length) + b"x" * sent


def _asking(length: int, sent: int) -> bytes:
    return _post(length, sent).replace(b"\r\n", b"\r\nExpect: 100-Continue\r\n", 1)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", Arrival.PART),
        (GET[:-1], Arrival.PART),
        (GET, Arrival.WHOLE),
        (GET + b"GET / HT", Arrival.WHOLE),
        (_post(10, 9), Arrival.PART),
        (_post(10, 10), Arrival.WHOLE),
        (_post(10, 9, b"content-length"), Arrival.PART),
        (_post(0, 0), Arrival.WHOLE),
        (_post(SMALL_BODY, SMALL_BODY - 1), Arrival.PART),
        (_post(SMALL_BODY + 1, 0), Arrival.LONG),
        (b"GET / HTTP/1.1\r\nX-Content-Length: 10\r\n\r\n", Arrival.WHOLE),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", Arrival.WHOLE),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", Arrival.WITHOUT_LENGTH),
        (_asking(SMALL_BODY, 0), Arrival.ASKS),
        (_asking(9, 9), Arrival.WHOLE),
        (_asking(SMALL_BODY + 1, 0), Arrival.LONG),
        (b"x" * HEAD_BYTES, Arrival.PART),
        (b"x" * (HEAD_BYTES + 1), Arrival.TOO_LONG),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES + b"\r\n\r\n", Arrival.TOO_LONG),
    ],
)
def test_the_first_bytes_say_how_much_has_arrived(data: bytes, expected: Arrival) -> None:
    assert arrived(data) is expected
