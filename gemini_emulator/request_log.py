"""The emulator's log: one JSON line per request, from which losses and duplicates can be proved.

A line contains tokens, counts and times, never text of a document.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One request as the service saw it, written when its reply left (a hang: when it arrived)."""

    time: float
    """Unix time of arrival."""
    number: int
    """The number of the call, from 1; 0 for a request that does not reach the model."""
    route: str
    """`generateContent`, `embedContent`, `batchEmbedContents`, `countTokens`, or `other`."""
    item_token: str
    kind: str
    attempt: int
    """The attempt number of the item, from 1."""
    pages: list[int]
    """The call's own pages, 1-based."""
    outcome: str
    """`ok`, the name of a fault, `limit-rpm`, `limit-tpm`, `limit-rpd`, `limit-spend`,
    `server-timeout`, `bad-request`."""
    status: int
    finish_reason: str
    response_id: str
    input_tokens: int
    output_tokens: int
    drawn_s: float
    """The drawn or configured latency in seconds; 0 for a fault that replies at once."""
    latency_s: float
    """Measured seconds from arrival to reply."""
    delivered: bool
    """The client was still connected, and the whole reply was sent."""
    attached_pages: int = 0
    """Pages of the documents and images in the request."""


class RequestLog:
    """Appends whole lines to a file at once, so that a reader may read at any time."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[bytes] | None = path.open("ab", buffering=0) if path else None

    def write(self, line: LogLine) -> None:
        """Append one line."""
        if self._file is not None:
            self._file.write(json.dumps(asdict(line)).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_log(path: Path) -> list[LogLine]:
    """Read a log; the lines are in the order in which the replies left."""
    names = {f.name for f in fields(LogLine)}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [LogLine(**{k: v for k, v in json.loads(line).items() if k in names}) for line in lines]
