"""Calls and response times of the last six hours, in intervals of fifteen minutes.

At a quota of 300 calls a minute, six hours have 108,000 calls. So finished intervals are cached,
and a request reads only the newest intervals, in one statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.core.cache import cache
from django.db import connection

QUARTER_HOUR = timedelta(minutes=15)
QUARTER_HOURS = 24
SETTLES = timedelta(minutes=2)
"""Delay until an interval is final, because call rows are written together, a little later."""
KEPT_S = QUARTER_HOURS * QUARTER_HOUR.total_seconds()


@dataclass(frozen=True, kw_only=True)
class QuarterHour:
    """The calls that ended within one interval of fifteen minutes."""

    at: datetime
    """The start of the interval."""
    answered: int = 0
    limited: int = 0
    failed: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None

    @property
    def calls(self) -> int:
        """The number of all calls."""
        return self.answered + self.limited + self.failed


_SQL = """
SELECT date_bin('15 minutes', created_at, %(since)s),
  count(*) FILTER (WHERE outcome = 'OK'), count(*) FILTER (WHERE outcome = 'RATE_LIMIT'),
  count(*) FILTER (WHERE outcome <> 'OK' AND outcome <> 'RATE_LIMIT'),
  percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms)
    FILTER (WHERE outcome = 'OK')
FROM provider_calls WHERE created_at >= %(since)s GROUP BY 1
"""


def fifteen_minute_history(now: datetime) -> Sequence[QuarterHour]:
    """Return the intervals before `now`, oldest first, with empty ones; the last is unfinished."""
    newest = datetime.fromtimestamp(now.timestamp() // 900 * 900, UTC)
    times = [newest - QUARTER_HOUR * back for back in range(QUARTER_HOURS)][::-1]
    kept: dict[str, QuarterHour] = cache.get_many([_key(at) for at in times])
    since = next(at for at in times if _key(at) not in kept)
    read = _read(since)
    found = [kept.get(_key(at)) or read.get(at) or QuarterHour(at=at) for at in times]
    settled = {_key(each.at): each for each in found if each.at + QUARTER_HOUR + SETTLES <= now}
    cache.set_many({key: settled[key] for key in settled.keys() - kept.keys()}, KEPT_S)
    return found


def _read(since: datetime) -> dict[datetime, QuarterHour]:
    with connection.cursor() as cursor:
        cursor.execute(_SQL, {"since": since})
        return {
            at: QuarterHour(
                at=at,
                answered=answered,
                limited=limited,
                failed=failed,
                p50_ms=percentiles[0] if percentiles else None,
                p95_ms=percentiles[1] if percentiles else None,
            )
            for at, answered, limited, failed, percentiles in cursor
        }


def _key(at: datetime) -> str:
    """Return a cache key that includes the database, so that test databases do not collide."""
    return f"console-quarter-{connection.settings_dict['NAME']}-{at:%Y%m%dT%H%M}"
