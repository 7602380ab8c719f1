"""Turn the reply of `state.lua` into a `RateLimiterState`."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.ratelimit.config import Quota
from pipeline.ratelimit.types import Breaker, Counters, RateLimiterState


def state_of(provider: str, model: str, quota: Quota, reply: Sequence[bytes]) -> RateLimiterState:
    """Return the state in `reply`, a flat list of names and values."""
    texts = [value.decode() for value in reply]
    values = dict(zip(texts[::2], texts[1::2], strict=True))

    def whole(name: str) -> int:
        return int(float(values.get(name) or 0))

    def future(name: str) -> float | None:
        value = float(values.get(name) or 0)
        return value if value > now else None

    now = float(values["now"])
    open_since = moment_of(values.get("open_since", ""))
    breaker = Breaker.CLOSED
    if open_since is not None:
        breaker = Breaker.OPEN if future("probe_at") else Breaker.HALF_OPEN
    outage = None
    if values.get("outage_until"):
        outage = float(values["outage_from"]), float(values["outage_until"])
    return RateLimiterState(
        provider=provider,
        model=model,
        is_local=False,
        now=now,
        born=float(values.get("born") or 0),
        requests_used=whole("requests"),
        requests_limit=quota.requests,
        tokens_used=whole("tokens"),
        tokens_limit=quota.tokens,
        day_used=whole("day_calls"),
        day_limit=quota.per_day,
        guard_s=float(values.get("guard") or 0),
        in_flight=whole("in_flight"),
        waiting_jobs=whole("waiting_jobs"),
        limited_items=whole("limited_items"),
        generation=whole("generation"),
        consecutive=whole("consecutive"),
        cooldown_until=future("until"),
        closed_until=future("closed_until"),
        is_paused=bool(values.get("paused")),
        is_ramping=bool(values.get("ramp_from")),
        ramp_step=whole("ramp_step"),
        breaker=breaker,
        outage_since=moment_of(values.get("first_failure", "")),
        probe_at=float(values["probe_at"]) if open_since is not None else None,
        last_outage=outage,
        counters=Counters(**{name: whole(name) for name in Counters.__dataclass_fields__}),
    )


def moment_of(value: bytes | str) -> float | None:
    """Return epoch seconds as a number; an empty value is None."""
    return float(value) if value else None
