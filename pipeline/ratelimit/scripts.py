"""The Lua scripts beside this module, and the Redis keys that they touch.

Each script is the text of `clock.lua`, `common.lua`, `breaker.lua` and its own file. A test
replaces `clock.lua` with another clock to simulate hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import redis
from redis.commands.core import Script

_FOLDER = Path(__file__).parent
_PARTS = (
    "state",
    "window",
    "buckets",
    "leases",
    "outcomes",
    "line",
    "line-until",
    "served",
    "parked",
    "ratios",
)


@cache
def source(name: str, clock: str | None = None) -> str:
    """Return the text of a script. `clock` is Lua that defines `clock()` in seconds."""
    texts = [] if clock is None else [clock]
    names = [*(() if texts else ("clock",)), "common", "breaker", name]
    return "\n".join([*texts, *((_FOLDER / f"{n}.lua").read_text("utf-8") for n in names)])


def keys_of(provider: str, model: str) -> list[str]:
    """Return the keys of one rate limiter; the braces keep them on one node of a cluster."""
    return [f"medproc:gate:{{{provider}:{model}}}:{part}" for part in _PARTS]


@dataclass(frozen=True)
class Scripts:
    """The scripts, with the digests by which the transport runs them."""

    admit: Script
    report: Script
    state: Script
    control: Script

    @classmethod
    def on(cls, client: redis.Redis, clock: str | None = None) -> Scripts:
        """Prepare the scripts for a client; send nothing."""
        return cls(
            *(
                client.register_script(source(name, clock))
                for name in ("admit", "report", "state", "control")
            )
        )
