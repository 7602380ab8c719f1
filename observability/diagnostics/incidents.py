"""The explanation of an incident: the provider's failure, its duration, its effect, its end.

This module only reads. Its texts consist of codes, counts and times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from medproc.timing import scaled
from pipeline.core.labels import counted, duration
from pipeline.core.states import IncidentKind, IncidentState
from pipeline.models import Incident, IncidentJob

JOBS_SHOWN = 20
COUNTED = 1_000
"""The limit of each count of jobs; a list reads fifty incidents at once."""
TITLES: dict[IncidentKind, str] = {
    IncidentKind.OUTAGE: "has been down",
    IncidentKind.THROTTLING: "has limited the calls",
    IncidentKind.QUOTA: "has had no quota left",
    IncidentKind.CREDENTIALS: "has refused the key",
    IncidentKind.BILLING: "has asked for a payment",
    IncidentKind.PROXY: "has been hidden by a proxy or a wrong address",
}
ADVICE: dict[IncidentKind, str] = {
    IncidentKind.OUTAGE: "Nothing to do: probes are sent, and work resumes by itself.",
    IncidentKind.THROTTLING: "Nothing to do: the rate limiter paces the calls. Lower GEMINI_RPM or"
    " GEMINI_TPM if they exceed your quota.",
    IncidentKind.QUOTA: "Wait for the reset, or raise the quota and `resume` the provider.",
    IncidentKind.CREDENTIALS: "Set a valid GEMINI_API_KEY, restart the workers, and"
    " `resume` the provider.",
    IncidentKind.BILLING: "Check the billing of the account at the provider, and `resume` the"
    " provider.",
    IncidentKind.PROXY: "Check GEMINI_BASE_URL, HTTPS_PROXY and the proxy's login, restart the"
    " workers, and `resume` the provider.",
}


@dataclass(frozen=True, kw_only=True)
class IncidentReport:
    """An incident with its evidence, for people and for programs."""

    id: UUID
    kind: str
    provider: str
    model: str
    state: str
    answer: str
    """One line: what happens, since when, and what to do."""
    first_failure_at: datetime
    opened_at: datetime
    closed_at: datetime | None
    resumes_at: datetime | None
    evidence: Mapping[str, Any]
    failed_jobs: tuple[str, ...]
    """Ids of jobs that failed because of the incident, at most `JOBS_SHOWN`; for a retry."""

    def as_json(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)

    @property
    def in_words(self) -> list[tuple[str, str]]:
        """Return the evidence as pairs of title and text."""
        evidence = self.evidence
        said = [
            (title, _figures(seen))
            for key, title in (("opened_by", "Opened by"), ("latest", "Latest check"))
            if (seen := evidence.get(key))
        ]
        if totals := evidence.get("total_by_code"):
            said.append(("Total", _codes(totals)))
        if because := evidence.get("closed_because"):
            said.append(("Reason for closing", because))
        return said

    def as_lines(self) -> list[str]:
        """Return the evidence as indented lines."""
        evidence = self.evidence
        lines = [
            f"incident {self.id}  {self.kind}  {self.state}",
            f"  first failure {_at(self.first_failure_at)}, opened {_at(self.opened_at)}",
        ]
        if self.closed_at is not None:
            because = evidence.get("closed_because", "")
            lines.append(f"  closed {_at(self.closed_at)}: {because}")
        elif self.resumes_at is not None:
            lines.append(f"  resets {_at(self.resumes_at)}")
        for key, title in (("opened_by", "opened by"), ("latest", "latest check")):
            if seen := evidence.get(key):
                lines.append(f"  {title}: {_figures(seen)}")
        if totals := evidence.get("total_by_code"):
            lines.append(f"  total: {_codes(totals)}")
        if probes := evidence.get("probes"):
            last = _at(datetime.fromisoformat(probes[-1]))
            lines.append(f"  probes: {len(probes)}, the last one {last}")
        if affected := evidence.get("affected"):
            words = ", ".join(f"{number} {effect}" for effect, number in affected.items())
            lines.append(f"  jobs: {words}")
        lines += [f"  ✕ failed because of it: job {job}" for job in self.failed_jobs]
        return lines


def incident_report(incident_id: UUID) -> IncidentReport:
    """Return the report of an incident; three statements."""
    incident = Incident.objects.get(id=incident_id)
    failed = (
        IncidentJob.objects.filter(incident_id=incident_id, effect=IncidentJob.FAILED)
        .order_by("created_at", "id")
        .values_list("job_id", flat=True)[:JOBS_SHOWN]
    )
    return IncidentReport(
        id=incident.id,
        kind=incident.kind,
        provider=incident.provider,
        model=incident.model,
        state=incident.state,
        answer=incident_answer(incident),
        first_failure_at=incident.first_failure_at,
        opened_at=incident.opened_at,
        closed_at=incident.closed_at,
        resumes_at=incident.resumes_at,
        evidence=incident.evidence,
        failed_jobs=tuple(str(job_id) for job_id in failed),
    )


@dataclass(frozen=True, kw_only=True)
class IncidentJobCounts:
    """The present state of an incident's jobs; each count stops at `COUNTED`."""

    parked_now: int
    """Jobs that are parked for the incident now."""
    so_far: int
    """Jobs that the incident has ever parked."""
    failed: int
    """Jobs that failed because of the incident and were not retried since."""

    @property
    def words(self) -> str:
        """`2 parked now · 40 parked so far · 1 failed`."""
        return " · ".join(
            f"{number}{'+' if number >= COUNTED else ''} {word}"
            for number, word in (
                (self.parked_now, "parked now"),
                (self.so_far, "parked so far"),
                (self.failed, "failed"),
            )
        )


# Each LATERAL counts up to the limit with one index scan; the OFFSET 0 forces look-ups by key.
_STANDINGS = """
SELECT asked.id, parked.number, effects.number, failed.number
FROM unnest(%(ids)s::uuid[]) asked(id), LATERAL (
  SELECT count(*) AS number FROM (
    SELECT FROM job_queue
    WHERE incident_id = asked.id AND status = 'parked' LIMIT %(cap)s
  ) each
) parked, LATERAL (
  SELECT count(*) AS number FROM (
    SELECT FROM incident_jobs
    WHERE incident_id = asked.id AND effect = 'parked' LIMIT %(cap)s
  ) each
) effects, LATERAL (
  SELECT count(*) FILTER (WHERE j.status = 'failed') AS number FROM (
    SELECT job_id FROM incident_jobs
    WHERE incident_id = asked.id AND effect = 'failed' LIMIT %(cap)s
  ) each, LATERAL (SELECT status FROM job_queue j WHERE j.id = each.job_id OFFSET 0) j
) failed
"""


def standings(incident_ids: Sequence[UUID]) -> dict[UUID, IncidentJobCounts]:
    """Count the present jobs of each incident, unlike the stored evidence; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDINGS, {"ids": list(incident_ids), "cap": COUNTED})
        return {
            incident_id: IncidentJobCounts(parked_now=parked, so_far=so_far, failed=failed)
            for incident_id, parked, so_far, failed in cursor
        }


def next_probe(incident: Incident) -> datetime | None:
    """Return the time of an open incident's next probe; None if none was sent yet."""
    probes = incident.evidence.get("probes") or []
    if not probes or incident.state != IncidentState.OPEN:
        return None
    every = timedelta(seconds=scaled(settings.INCIDENT_PROBE_S))
    return datetime.fromisoformat(probes[-1]) + every


def incident_answer(incident: Incident) -> str:
    """Say in one line what happens, since when, and what to do."""
    kind = IncidentKind(incident.kind)
    name = f"{incident.provider} {incident.model}"
    if incident.state == IncidentState.CLOSED and incident.closed_at is not None:
        lasted = duration((incident.closed_at - incident.first_failure_at).total_seconds())
        because = incident.evidence.get("closed_because", "the cause is gone")
        return f"Closed: {name} {_past(kind)} for {lasted}; {because}."
    since = duration((timezone.now() - incident.first_failure_at).total_seconds())
    return f"{name} {TITLES[kind]} for {since}. {ADVICE[kind]}"


def _past(kind: IncidentKind) -> str:
    return {
        IncidentKind.OUTAGE: "was down",
        IncidentKind.THROTTLING: "limited the calls",
        IncidentKind.QUOTA: "had no quota left",
        IncidentKind.CREDENTIALS: "refused the key",
        IncidentKind.BILLING: "asked for a payment",
        IncidentKind.PROXY: "was hidden by a proxy or a wrong address",
    }[kind]


def _figures(seen: Mapping[str, Any]) -> str:
    said = [f"{seen.get('failures', 0)} of {counted(seen.get('calls', 0), 'call')} failed"]
    if (window := seen.get("window_s")) is not None:
        said[0] += f" within {duration(window)}"
    if by_code := seen.get("by_code"):
        said.append(_codes(by_code))
    if (hint := seen.get("last_hint_s")) is not None:
        said.append(f"last hint {duration(hint)}")
    if quota_id := seen.get("quota_id"):
        said.append(f"quota {quota_id}")
    if (status := seen.get("http_status")) is not None:
        said.append(f"HTTP {status}")
    if answered := seen.get("answered_since"):
        said.append(f"{answered} calls succeeded after the last failure")
    return "; ".join(said)


def _codes(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{code} {number}" for code, number in ordered)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
