"""The provider calls of the last minute, by provider and model: the input of every judgement."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone

from pipeline.core.types import ProviderModel
from pipeline.incidents.rules import ObservedCall, Thresholds

# `since` is a parameter, because no index can serve an expression of the clock. `failed` is the
# failed calls of the window, from a partial index. `watched` is the providers and models with a
# failure or an open incident. Successful calls, the bulk of the window, are read only if `watched`
# is not empty. MATERIALIZED, so that each CTE is evaluated only once.
_WINDOW = """
WITH failed AS MATERIALIZED (
  SELECT provider, model, outcome, created_at, retry_after_ms, quota_id
  FROM provider_calls WHERE outcome <> 'OK' AND created_at > %(since)s
), watched AS MATERIALIZED (
  SELECT provider, model FROM failed
  UNION SELECT provider, model FROM incidents WHERE state = 'open'
)
SELECT provider, model, outcome, created_at, retry_after_ms, quota_id FROM failed
UNION ALL
SELECT provider, model, outcome, created_at, NULL, NULL FROM provider_calls
WHERE outcome = 'OK' AND created_at > %(since)s AND EXISTS (SELECT 1 FROM watched)
"""


def window(now: datetime, limits: Thresholds) -> dict[ProviderModel, list[ObservedCall]]:
    """Return the calls of the window by provider and model; always one statement."""
    found: dict[ProviderModel, list[ObservedCall]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_WINDOW, {"since": now - limits.window})
        for provider, model, outcome, at, retry_after_ms, quota_id in cursor.fetchall():
            found.setdefault(ProviderModel(provider=provider, model=model), []).append(
                ObservedCall(
                    outcome=outcome,
                    at=at,
                    hint_s=None if retry_after_ms is None else retry_after_ms / 1000,
                    quota_id=quota_id or "",
                )
            )
    return found


def database_now() -> datetime:
    """Return the time of the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    return now if isinstance(now, datetime) else timezone.now()
