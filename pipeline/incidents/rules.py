"""The rules for the start and the end of an incident: pure decisions over one window of calls.

The window is judged twice. The whole window detects failures of a provider with few calls; its last
seconds detect a provider that worked until a moment ago.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from django.conf import settings

from medproc.timing import scaled
from pipeline.core.errors import OUTAGE_CODES, ErrorCode
from pipeline.core.states import IncidentKind

CODES: dict[IncidentKind, frozenset[ErrorCode]] = {
    IncidentKind.OUTAGE: OUTAGE_CODES,
    IncidentKind.THROTTLING: frozenset({ErrorCode.RATE_LIMIT}),
    IncidentKind.QUOTA: frozenset({ErrorCode.QUOTA_EXHAUSTED}),
    IncidentKind.CREDENTIALS: frozenset({ErrorCode.API_AUTH}),
    IncidentKind.BILLING: frozenset({ErrorCode.API_BILLING}),
    IncidentKind.PROXY: frozenset({ErrorCode.API_PROXY}),
}
"""The outcomes of calls that count as a failure of each kind."""
SILENT = frozenset(
    {
        "LATE",
        ErrorCode.CANCELLED,
        ErrorCode.INTERNAL_ERROR,
        ErrorCode.DB_ERROR,
        ErrorCode.WORKER_LOST,
        ErrorCode.DEADLINE_EXCEEDED,
        ErrorCode.STORAGE_FULL,
        ErrorCode.STORAGE_REFUSED,
    }
)
"""Outcomes that say nothing about the provider; every other outcome is a failure, or the call was
processed."""
BURST_S = 10.0
"""Length of the last part of the window, which is judged by itself too. GATE_BREAKER_WINDOW_S, the
window of the circuit breaker, has the same default."""
QUIET_WINDOWS = 10
"""Windows without a failure after which an incident without waiting jobs ends."""
_FAILURES = frozenset().union(*CODES.values())


@dataclass(frozen=True, kw_only=True)
class ObservedCall:
    """One call, as far as the rules need it."""

    outcome: str
    at: datetime
    hint_s: float | None = None
    quota_id: str = ""

    @property
    def counts(self) -> bool:
        """Whether the call says anything about the provider."""
        return self.outcome not in SILENT

    @property
    def was_processed(self) -> bool:
        """Whether the provider processed the request, whatever its reply contains."""
        # Stricter than `is_reachable` of the circuit breaker (breaker.lua): a refusal by quota,
        # limit or key proves a reachable provider, but does not end the incident.
        return self.counts and self.outcome not in _FAILURES


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The thresholds from the settings, in this process's time."""

    window: timedelta
    burst: timedelta
    failures: int
    share: float
    limited: int
    successes: int
    probe: timedelta

    @classmethod
    def of_settings(cls) -> Self:
        """Return the thresholds of the settings."""
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
    """A new incident."""

    kind: IncidentKind
    first_failure_at: datetime
    last_failure_at: datetime
    """The time from which a reset is calculated, so that later ticks calculate the same time."""
    hint_s: float | None = None
    quota_id: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EndCondition:
    """How close an incident is to its end."""

    because: str | None
    """Why the incident is over; None while it is open."""
    answered: int
    """Calls that the provider has answered since its last failure."""


def judge_start(
    seen: Sequence[ObservedCall],
    now: datetime,
    limits: Thresholds,
    ended: Mapping[IncidentKind, datetime],
) -> list[Opening]:
    """Return the incidents that these calls of one provider and model prove."""
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
    seen: Sequence[ObservedCall],
    now: datetime,
    limits: Thresholds,
    *,
    since: datetime,
    resumes_at: datetime | None,
    has_waiting_jobs: bool,
    last_failure_at: datetime,
) -> EndCondition:
    """Decide whether an open incident is over; `since` is its first failure."""
    failed_at = max(since, last_failure_at)
    answered = sum(call.was_processed and call.at > failed_at for call in seen)
    quiet_for = now - failed_at
    because = None
    match kind:
        case IncidentKind.QUOTA:
            if resumes_at is not None and now >= resumes_at:
                because = "the quota was reset"
        case IncidentKind.THROTTLING:
            if quiet_for > limits.window:
                because = "no call is limited any more"
        case _:
            if answered >= limits.successes:
                because = "the provider answers again"
            elif answered and not has_waiting_jobs and quiet_for > limits.burst:
                # Without waiting jobs no further calls can prove the recovery.
                because = "the provider answers again, and no job waits"
            elif not has_waiting_jobs and quiet_for > QUIET_WINDOWS * limits.window:
                because = "no call failed for long, and no job waits"
    return EndCondition(because=because, answered=answered)


def snapshot(calls: Sequence[ObservedCall], kind: IncidentKind) -> dict[str, Any]:
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
