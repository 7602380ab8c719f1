"""What a peer gets, and what it reports: two files between two processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class PeerWork:
    """The calls of one scenario for one peer. All seconds are those of the clock."""

    url: str
    warm_url: str
    """An emulator that answers at once, for the call before the clock starts."""
    model: str
    config: Mapping[str, Any]
    """The options of each call, with the schema of the reply."""
    items: Mapping[str, str]
    """Prompts by item token, in the order of the record."""
    warm_item: Mapping[str, str]
    slots: int
    backoff_s: float
    most_backoff_s: float
    attempts: int
    rest_s: float
    """Pause between the first call and the start of the clock."""
    per_window: int
    """Calls that the provider accepts per window; 0 means no limit."""
    window_s: float
    redis_url: str
    servers: str
    """A part of the command lines of PostgreSQL and Valkey. Both are empty for a peer without
    servers."""

    def warm(self) -> PeerWork:
        """Return the work before the clock starts: one call, answered at once."""
        return replace(self, url=self.warm_url, items=self.warm_item, per_window=0)

    def write(self, path: Path) -> None:
        """Write the work as JSON."""
        path.write_text(json.dumps(asdict(self)), "utf-8")


def read_work(path: Path) -> PeerWork:
    """Read what `PeerWork.write` wrote."""
    return PeerWork(**json.loads(path.read_text("utf-8")))


@dataclass(frozen=True, kw_only=True)
class PeerReport:
    """What a peer's process measured."""

    began: float
    """Unix time at the start of the clock."""
    wall_s: float
    cpu_s: float
    servers_cpu_s: float
    """CPU of PostgreSQL and Valkey in the same time."""
    sql: int
    redis: int
    """Commands that Valkey executed in the same time."""
    answered: list[str]
    """The tokens whose reply names the token, sorted; a token can be there twice."""
