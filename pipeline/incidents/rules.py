"""When an incident begins and when it is over: pure decisions over one window of calls.

Imports `errors`, `states` and the settings' figures. A window is looked at twice: whole, for a
provider that is asked slowly, and its last seconds, for one that was well until just now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from django.conf import settings

from medproc.timing import scaled
from pipeline.core.errors import ErrorCode
from pipeline.core.states import IncidentKind

CODES: dict[IncidentKind, frozenset[ErrorCode]] = {
    IncidentKind.OUTAGE: frozenset({ErrorCode.API_5XX, ErrorCode.API_TIMEOUT}),
    IncidentKind.THROTTLING: frozenset({ErrorCode.RATE_LIMIT}),
    IncidentKind.QUOTA: frozenset({ErrorCode.QUOTA_EXHAUSTED}),
    IncidentKind.CREDENTIALS: frozenset({ErrorCode.API_AUTH}),
}
"""The outcomes of calls that speak for each kind."""
SILENT = frozenset(
    {
        "LATE",
        ErrorCode.CANCELLED,
        ErrorCode.INTERNAL_ERROR,
        ErrorCode.DB_ERROR,
        ErrorCode.WORKER_LOST,
        ErrorCode.DEADLINE_EXCEEDED,
        ErrorCode.STORAGE_FULL,
    }
)
"""Outcomes that say nothing of the provider; every other one that is no failure is an answer."""
BURST_S = 10.0
"""The last seconds of the window, which the gate's breaker looks at by default too."""
QUIET_WINDOWS = 10
"""Windows without a failure after which an incident that nobody waits for is over."""
_FAILURES = frozenset().union(*CODES.values())


@dataclass(frozen=True, kw_only=True)
class Call:
    """What the window knows of one call."""

    outcome: str
    at: datetime
    hint_s: float | None = None
    quota_id: str = ""

    @property
    def counts(self) -> bool:
        """Whether it says anything of the provider."""
        return self.outcome not in SILENT

    @property
    def is_answer(self) -> bool:
        """Whether the provider answered, with whatever."""
        return self.counts and self.outcome not in _FAILURES


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The figures of the settings, in this process's time."""

    window: timedelta
    burst: timedelta
    failures: int
    share: float
    limited: int
    successes: int
    probe: timedelta

    @classmethod
    def of_settings(cls) -> Self:
        """Return the figures of the settings."""
        return cls(
            window=timedelta(seconds=scaled(settings.INCIDENT_WINDOW_S)),
            burst=timedelta(seconds=scaled(min(BURST_S, settings.INCIDENT_WINDOW_S))),
            failures=settings.INCIDENT_FAILURES,
            share=settings.INCIDENT_SHARE,
            limited=settings.INCIDENT_LIMITED,
            successes=settings.INCIDENT_SUCCESSES,
            probe=timedelta(seconds=scaled(settings.INCIDENT_PROBE_S)),
        )


@dataclass(frozen=True, kw_only=True)
class Opening:
    """An incident that has begun."""

    kind: IncidentKind
    first_failure_at: datetime
    last_failure_at: datetime
    """What a reset is reckoned from, so that a later look reckons the same."""
    hint_s: float | None = None
    quota_id: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class End:
    """How far an incident is from its end."""

    because: str | None
    """Why it is over; None: it is not."""
    answered: int
    """Calls that the provider has answered since its last failure."""


def judge_start(
    seen: Sequence[Call],
    now: datetime,
    limits: Thresholds,
    ended: Mapping[IncidentKind, datetime],
) -> list[Opening]:
    """Return the incidents that these calls of one provider and model speak for."""
    found = []
    for kind, codes in CODES.items():
        after = ended.get(kind, now - limits.window)
        calls = [call for call in seen if call.counts and call.at > after]
        for part in (calls, [call for call in calls if call.at > now - limits.burst]):
            bad = [call for call in part if call.outcome in codes]
            if _speaks(kind, len(bad), len(part), limits):
                last = max(bad, key=lambda call: call.at)
                found.append(
                    Opening(
                        kind=kind,
                        first_failure_at=min(call.at for call in bad),
                        last_failure_at=last.at,
                        hint_s=last.hint_s,
                        quota_id=last.quota_id,
                        evidence={
                            "at": now,
                            "window_s": (now - min(call.at for call in part)).total_seconds(),
                            **snapshot(part, kind),
                            "by": "clock",
                        },
                    )
                )
                break
    return found


def _speaks(kind: IncidentKind, bad: int, calls: int, limits: Thresholds) -> bool:
    match kind:
        case IncidentKind.OUTAGE:
            return bad >= limits.failures and bad >= limits.share * calls
        case IncidentKind.THROTTLING:
            return bad >= limits.limited
        case _:
            return bad > 0


def judge_end(
    kind: IncidentKind,
    seen: Sequence[Call],
    now: datetime,
    limits: Thresholds,
    *,
    since: datetime,
    resumes_at: datetime | None,
    somebody_waits: bool,
    last_failure_at: datetime,
) -> End:
    """Decide whether an open incident is over; `since` is its first failure."""
    failed_at = max(since, last_failure_at)
    answered = sum(call.is_answer and call.at > failed_at for call in seen)
    quiet_for = now - failed_at
    because = None
    match kind:
        case IncidentKind.QUOTA:
            if resumes_at is not None and now >= resumes_at:
                because = "the quota was reset"
        case IncidentKind.THROTTLING:
            if quiet_for > limits.window:
                because = "no call was limited any more"
        case _:
            if answered >= limits.successes:
                because = "the provider answers again"
            elif answered and not somebody_waits and quiet_for > limits.burst:
                # There is no more work that could answer oftener.
                because = "the provider answers again, and nothing waits"
            elif not somebody_waits and quiet_for > QUIET_WINDOWS * limits.window:
                because = "nothing failed for long, and nothing waits"
    return End(because=because, answered=answered)


def snapshot(calls: Sequence[Call], kind: IncidentKind) -> dict[str, Any]:
    """Return the figures of some calls as evidence: counts by code, share, last hint, quota."""
    counted = [call for call in calls if call.counts]
    bad = sorted(
        (call for call in counted if call.outcome in CODES[kind]), key=lambda call: call.at
    )
    hints = [call.hint_s for call in bad if call.hint_s is not None]
    quotas = [call.quota_id for call in bad if call.quota_id]
    return {
        "calls": len(counted),
        "failures": len(bad),
        "share": round(len(bad) / len(counted), 3) if counted else None,
        "by_code": dict(Counter(call.outcome for call in counted)),
        "last_hint_s": hints[-1] if hints else None,
        "quota_id": quotas[-1] if quotas else None,
    }
