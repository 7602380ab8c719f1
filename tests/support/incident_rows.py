"""Factories of calls and incidents, for tests of provider trouble that affects all records."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from pipeline.core.states import IncidentKind, Step
from pipeline.core.types import ProviderModel
from pipeline.models import Incident, Job, ProviderCall, Session

GEMINI = ProviderModel(provider="gemini", model="gemini-3.5-flash-lite")
OTHER_MODEL = ProviderModel(provider="gemini", model="gemini-3.5-pro")


def calls(
    job: Job,
    outcome: str,
    count: int = 1,
    *,
    of: ProviderModel = GEMINI,
    ago_s: float = 0.0,
    step: Step = Step.PASS1,
    **columns: Any,
) -> None:
    """Insert calls of a job's session that ended `ago_s` seconds ago."""
    at = timezone.now() - timedelta(seconds=ago_s)
    session: UUID = Session.objects.get(shell_file_id=job.shell_file_id).id
    ProviderCall.objects.bulk_create(
        ProviderCall(
            processing_session_id=session,
            step=step,
            attempt=1,
            outcome=outcome,
            provider=of.provider,
            model=of.model,
            prompt_version="1",
            schema_version="1",
            lease_gen=1,
            started_at=at,
            created_at=at,
            **columns,
        )
        for _ in range(count)
    )


def an_incident(
    kind: IncidentKind = IncidentKind.OUTAGE, of: ProviderModel = GEMINI, **columns: Any
) -> Incident:
    """Insert an open incident."""
    return Incident.objects.create(
        kind=kind,
        provider=of.provider,
        model=of.model,
        **{"first_failure_at": timezone.now(), **columns},
    )
