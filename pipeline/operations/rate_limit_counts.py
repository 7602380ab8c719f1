"""The counters of the rate limiter over all lives of Redis (requirement 50).

Redis counts. Each worker copies the counters to the database at the end of a step, and the
scheduler with each tick. A copy only grows, so copies in any order and from any process are safe.
"""

from __future__ import annotations

from django.db import connection
from django.db.models import Sum

from pipeline.core.types import ProviderModel
from pipeline.models import RateLimitCounts
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider
from pipeline.ratelimit import Counters, RateLimiter, RateLimiterState

_NAMES = tuple(Counters.__dataclass_fields__)

_COPY = f"""
INSERT INTO rate_limit_counts (provider, model, born, {", ".join(_NAMES)})
VALUES (%(provider)s, %(model)s, %(born)s, {", ".join(f"%({name})s" for name in _NAMES)})
ON CONFLICT (provider, model, born) DO UPDATE SET
  {", ".join(f"{n} = greatest(rate_limit_counts.{n}, excluded.{n})" for n in _NAMES)}
"""  # noqa: S608 - names of a dataclass, values are parameters


def copy_counts_of(state: RateLimiterState) -> None:
    """Copy the counters of a state to the database; do nothing while all are 0."""
    counts = {name: getattr(state.counters, name) for name in _NAMES}
    if state.is_local or not any(counts.values()):
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _COPY,
            {"provider": state.provider, "model": state.model, "born": state.born, **counts},
        )


def total_counts(state: RateLimiterState) -> Counters:
    """Return the counters of all lives of Redis: the stored counters, and those of this state."""
    rows = RateLimitCounts.objects.filter(provider=state.provider, model=state.model)
    earlier = rows.exclude(born=state.born) if not state.is_local else rows
    kept = earlier.aggregate(**{name: Sum(name, default=0) for name in _NAMES})
    now = {name: getattr(state.counters, name) for name in _NAMES}
    return Counters(**{name: int(kept[name]) + now[name] for name in _NAMES})


def copy_all_counts() -> None:
    """Copy the counters of the configured model, and of every model that has counters."""
    rows = RateLimitCounts.objects.order_by().values_list("provider", "model").distinct()
    served = {ProviderModel(provider=provider, model=model) for provider, model in rows}
    for each in {named_provider(ProviderConfig.of_settings()), *served}:
        copy_counts_of(RateLimiter.for_(each.provider, each.model).state())
