"""What the first bytes of a connection say: whether a thread can serve the request at once.

A thread must never wait for a client that sends half a request. So the event loop looks at the
bytes of the socket, without taking the bytes, until the request is whole.
"""

from __future__ import annotations

import re
from enum import Enum

from medproc.web.limits import HEAD_BYTES, SMALL_BODY

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_ASKS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
_CODING = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
ENOUGH = HEAD_BYTES + SMALL_BODY
"""The bytes that `arrived` needs at most."""


class Arrival(Enum):
    """How much of a request has arrived."""

    PART = "the client must send more"
    ASKS = "the client sends its small body after an answer 100 Continue"
    WHOLE = "a thread can serve the request"
    LONG = "a thread can serve the request, and reads its long body while the body arrives"
    TOO_LONG = "the head is longer than HEAD_BYTES"
    WITHOUT_LENGTH = "the body has no Content-Length"


def arrived(data: bytes) -> Arrival:
    """Judge the first bytes of a request; `data` has at most ENOUGH bytes.

    A body of more than SMALL_BODY bytes is not awaited: a thread reads the body while it arrives.
    A request that cannot be read counts as whole, because its refusal needs no more bytes.
    """
    end = data.find(_END_OF_HEAD)
    if end < 0 or end > HEAD_BYTES:
        return Arrival.TOO_LONG if len(data) > HEAD_BYTES else Arrival.PART
    head = data[: end + len(_END_OF_HEAD)]
    if _CODING.search(head):
        # Django reads no chunked body, and such a body may never end.
        return Arrival.WITHOUT_LENGTH
    length = _LENGTH.search(head)
    size = int(length[1]) if length else 0
    if size > SMALL_BODY:
        return Arrival.LONG
    if len(data) >= len(head) + size:
        return Arrival.WHOLE
    return Arrival.ASKS if _ASKS.search(head) else Arrival.PART
