"""The contents of a Redis database as text, for tests that search them."""

from __future__ import annotations

import base64
import binascii
import zlib
from contextlib import suppress
from typing import Any

from rq.utils import as_text

HOST_FIELDS = frozenset({"python_version", "hostname", "ip_address"})


def everything(client: Any) -> str:
    """Return all keys and values, decompressed, except RQ's notes on the host."""
    held: list[str] = []
    for key in client.scan_iter("*"):
        held.append(as_text(key))
        match as_text(client.type(key)):
            case "hash":
                for name, value in client.hgetall(key).items():
                    if as_text(name) not in HOST_FIELDS:
                        held += [as_text(name), _inflated(value)]
            case "list":
                held += [as_text(value) for value in client.lrange(key, 0, -1)]
            case "set":
                held += [as_text(value) for value in client.smembers(key)]
            case "zset":
                held += [as_text(value) for value in client.zrange(key, 0, -1)]
            case "stream":
                for _, item in client.xrange(key):
                    held += [_inflated(value) for value in item.values()]
            case "none":
                continue  # gone since it was listed
            case _:
                held.append(as_text(client.get(key) or b""))
    return "\n".join(held)


def _inflated(value: bytes) -> str:
    with suppress(zlib.error):
        return zlib.decompress(value).decode()
    with suppress(zlib.error, binascii.Error):
        return zlib.decompress(base64.b64decode(value)).decode()
    return as_text(value)
