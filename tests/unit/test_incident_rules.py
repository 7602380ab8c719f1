"""An incident begins and ends exactly at its thresholds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.core.states import IncidentKind
from pipeline.incidents.rules import (
    QUIET_WINDOWS,
    EndCondition,
    ObservedCall,
    Thresholds,
    judge_end,
    judge_start,
    snapshot,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMITS = Thresholds(
    window=timedelta(seconds=60),
    burst=timedelta(seconds=10),
    failures=5,
    share=0.5,
    limited=20,
    successes=3,
    probe=timedelta(seconds=30),
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def some(outcome: str, count: int, ago_s: float = 5.0) -> list[ObservedCall]:
    return [ObservedCall(outcome=outcome, at=ago(ago_s)) for _ in range(count)]


def kinds(
    seen: list[ObservedCall], ended: dict[IncidentKind, datetime] | None = None
) -> list[IncidentKind]:
    return [opening.kind for opening in judge_start(seen, NOW, LIMITS, ended or {})]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([], []),
        (some("API_5XX", 4), []),
        (some("API_5XX", 5), ["outage"]),
        (some("API_5XX", 3) + some("API_TIMEOUT", 2), ["outage"]),
        (some("API_5XX", 5) + some("OK", 5), ["outage"]),
        (some("API_5XX", 5) + some("OK", 6), []),
        (some("API_5XX", 5) + some("OK", 250, 30), ["outage"]),
        (some("API_5XX", 5, 30) + some("OK", 5, 40), ["outage"]),
        (some("API_5XX", 5) + some("LATE", 60) + some("CANCELLED", 60), ["outage"]),
        (some("PARSE_JSON", 60), []),
        (some("RATE_LIMIT", 19), []),
        (some("RATE_LIMIT", 20) + some("OK", 200), ["throttling"]),
        (some("QUOTA_EXHAUSTED", 1) + some("OK", 200), ["quota"]),
        (some("API_AUTH", 1), ["credentials"]),
        (some("API_BILLING", 1) + some("OK", 200), ["billing"]),
        (some("API_PROXY", 1) + some("OK", 200), ["proxy"]),
        (some("API_5XX", 5) + some("API_AUTH", 1), ["outage", "credentials"]),
    ],
)
def test_an_incident_opens_at_its_threshold_and_not_before(
    seen: list[ObservedCall], expected: list[str]
) -> None:
    assert kinds(seen) == expected


def test_failures_before_the_end_of_an_incident_open_no_new_incident() -> None:
    ended = {IncidentKind.OUTAGE: ago(4), IncidentKind.CREDENTIALS: ago(6)}
    seen = some("API_5XX", 5) + some("API_AUTH", 1)

    assert kinds(seen, ended) == ["credentials"]


def test_an_opening_carries_its_evidence() -> None:
    seen = [
        *some("OK", 1, 8),
        *some("API_5XX", 4, 7),
        ObservedCall(outcome="API_TIMEOUT", at=ago(3), hint_s=39.0),
    ]

    (opening,) = judge_start(seen, NOW, LIMITS, {})

    assert opening.first_failure_at == ago(7)
    assert opening.evidence["by_code"] == {"OK": 1, "API_5XX": 4, "API_TIMEOUT": 1}
    assert opening.evidence["calls"] == 6
    assert opening.evidence["last_hint_s"] == 39.0
    assert opening.evidence["window_s"] == 8.0


def end(
    kind: IncidentKind,
    seen: list[ObservedCall],
    *,
    failed_ago: float = 20,
    waits: bool = True,
    resumes_ago: float | None = None,
) -> EndCondition:
    return judge_end(
        kind,
        seen,
        NOW,
        LIMITS,
        since=ago(10_000),
        resumes_at=None if resumes_ago is None else ago(resumes_ago),
        has_waiting_jobs=waits,
        last_failure_at=ago(failed_ago),
    )


@pytest.mark.parametrize("kind", [IncidentKind.OUTAGE, IncidentKind.CREDENTIALS])
def test_an_outage_ends_with_enough_answers_since_its_last_failure(kind: IncidentKind) -> None:
    two, three = some("OK", 2), some("OK", 2) + some("PARSE_JSON", 1)

    assert end(kind, two) == EndCondition(because=None, answered=2)
    assert end(kind, three).because == "the provider answers again"
    assert end(kind, three, failed_ago=5).because is None
    assert end(kind, some("RATE_LIMIT", 3)).because is None


def test_an_outage_without_waiting_jobs_ends_with_one_answer_or_a_long_quiet() -> None:
    window_s = LIMITS.window.total_seconds()

    assert end(IncidentKind.OUTAGE, some("OK", 1), waits=False).because is not None
    assert end(IncidentKind.OUTAGE, some("OK", 1), waits=True).because is None
    assert end(IncidentKind.OUTAGE, some("OK", 1, 2), waits=False, failed_ago=9).because is None
    quiet_s = QUIET_WINDOWS * window_s
    assert end(IncidentKind.OUTAGE, [], waits=False, failed_ago=quiet_s).because is None
    assert end(IncidentKind.OUTAGE, [], waits=False, failed_ago=quiet_s + 1).because is not None
    assert end(IncidentKind.OUTAGE, [], waits=True, failed_ago=quiet_s + 1).because is None


def test_a_quota_ends_at_its_reset_whatever_was_answered_meanwhile() -> None:
    answers = some("OK", 50)

    assert end(IncidentKind.QUOTA, answers, resumes_ago=-1).because is None
    assert end(IncidentKind.QUOTA, [], resumes_ago=0).because == "the quota was reset"


def test_throttling_ends_after_a_window_without_a_limited_call() -> None:
    assert end(IncidentKind.THROTTLING, [], failed_ago=60).because is None
    assert end(IncidentKind.THROTTLING, [], failed_ago=61).because is not None


def test_a_snapshot_of_nothing_has_no_share() -> None:
    assert snapshot([], IncidentKind.OUTAGE)["share"] is None
