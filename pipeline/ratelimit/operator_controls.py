"""An operator's verbs, told to every gate of a provider that Redis knows.

Imports the gate. A gate that Redis does not know yet needs no telling: it is armed from the
database when it is first asked. Redis away is an answer, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable

import redis
from django.conf import settings

from pipeline.ratelimit.limiter import Gate, gate_client
from pipeline.ratelimit.scripts import keys_of


def pause_gates(provider: str, model: str | None) -> bool:
    """Pause each gate of a provider, or of one model of it; False if Redis is away."""
    return _each(provider, model, lambda gate: gate.pause())


def resume_gates(provider: str, model: str | None) -> bool:
    """End pauses and closures by quota of these gates; False if Redis is away."""
    return _each(provider, model, lambda gate: gate.resume())


def _each(provider: str, model: str | None, act: Callable[[Gate], bool]) -> bool:
    try:
        models = [each for each in _models(provider) if model in {None, each}]
    except redis.RedisError:
        return False
    # All of them are told, also where one is not reached.
    told = [act(Gate.for_(provider, each)) for each in models]
    return all(told)


def _models(provider: str) -> list[str]:
    """Return the models of a provider whose gates Redis knows; it goes over all keys."""
    before, after = keys_of(provider, "\n")[0].split("\n")
    with gate_client(settings.REDIS_URL) as client:
        keys = {key.decode() for key in client.scan_iter(match=f"medproc:gate:*{after}")}
    return sorted(
        key.removeprefix(before).removesuffix(after) for key in keys if key.startswith(before)
    )
