"""The rows that the drill-down of one record reads; the number of statements is constant.

Columns with document text, model output, names or file names are not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, TextField, Value
from django.db.models.functions import Concat

from pipeline.core.states import Step
from pipeline.models import (
    ClinicalMetrics,
    CodeCandidate,
    DiscoverySession,
    Encounter,
    EncounterResult,
    Job,
    NarrativeMetrics,
    Page,
    ProviderCall,
    Reuse,
    Session,
    ShellFile,
    Summary,
)
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES

_NOT_IN_TREE = (
    "processing_session", "completed_at", "created_at", "ai_model_used", "input_tokens",
    "output_tokens", "had_transient_failure",
)  # fmt: skip
"""Columns of a work item that its node does not show: it shows the figures of its calls."""


@dataclass(frozen=True, kw_only=True)
class Shortlists:
    """What Pass 1.5 offers for a record."""

    entities: int = 0
    """Entities with at least one candidate."""
    code_tables: Sequence[str] = ()
    """Key and version of each code system of the candidates."""


@dataclass(frozen=True, kw_only=True)
class RecordRows:
    """The rows of one record, without PHI."""

    shell_file: ShellFile
    pseudonym: str
    job: Job
    session: Session
    summary: Summary
    discovery: DiscoverySession | None
    pages_by_source: Mapping[str, int]
    encounters: Sequence[Encounter]
    """In the order of the pages."""
    results: Mapping[UUID, EncounterResult]
    """By encounter."""
    items: Mapping[Step, Sequence[WorkItem]]
    """The work items of each pass that has a table of them, in the order of the pages."""
    calls: Sequence[ProviderCall]
    """In the order of their start."""
    coded: Shortlists
    clinical: ClinicalMetrics | None
    """The totals of Pass 2; None before the first end of a step."""
    narrative: NarrativeMetrics | None
    """The totals of Pass 3."""
    reuses: Sequence[Reuse]
    """What each pass reused from which record."""

    @cached_property
    def calls_of_items(self) -> dict[UUID, list[ProviderCall]]:
        """The calls of each work item, by its id."""
        found: defaultdict[UUID, list[ProviderCall]] = defaultdict(list)
        for call in self.calls:
            if owner := call.work_item_id:
                found[owner].append(call)
        return dict(found)


def rows_of(shell_file_id: UUID) -> RecordRows:
    """Read the rows of a record and of its newest job."""
    shell_file = (
        ShellFile.objects.select_related(
            "patient", "session", "summary", "clinical_metrics", "narrative_metrics"
        )
        .defer("original_filename", "patient__reference", "patient__identity_digests")
        .get(id=shell_file_id)
    )
    job = Job.objects.filter(shell_file_id=shell_file_id).latest("created_at")
    discovery = DiscoverySession.objects.filter(shell_file_id=shell_file_id).first()
    pages = Page.objects.filter(shell_file_id=shell_file_id).order_by().values_list("source")
    return RecordRows(
        shell_file=shell_file,
        pseudonym=shell_file.patient.pseudonym,
        job=job,
        session=shell_file.session,
        summary=shell_file.summary,
        discovery=discovery,
        pages_by_source=dict(pages.annotate(number=Count("id"))),
        encounters=list(
            Encounter.objects.filter(shell_file_id=shell_file_id)
            .only(
                "encounter_index",
                "encounter_type",
                "page_start",
                "page_end",
                "page_count",
                "entities_published_at",
            )
            .order_by("encounter_index")
        ),
        results={
            result.healthcare_encounter_id: result
            for result in EncounterResult.objects.filter(shell_file_id=shell_file_id)
        },
        items={
            step: list(
                table.rows.filter(**{table.record: shell_file_id})
                .defer(*table.unread, *_NOT_IN_TREE)
                .order_by("page_range_start", table.index)
            )
            for step, table in WORK_TABLES.items()
        },
        calls=list(
            ProviderCall.objects.filter(processing_session_id=shell_file.session.id).order_by(
                "started_at", "attempt"
            )
        ),
        coded=_shortlists(shell_file_id),
        clinical=getattr(shell_file, "clinical_metrics", None),
        narrative=getattr(shell_file, "narrative_metrics", None),
        reuses=list(Reuse.objects.filter(shell_file_id=shell_file_id)),
    )


def _shortlists(shell_file_id: UUID) -> Shortlists:
    table = Concat("system", Value(" "), "system_version", output_field=TextField())
    found: dict[str, Any] = CodeCandidate.objects.filter(shell_file_id=shell_file_id).aggregate(
        entities=Count("entity", distinct=True), code_tables=ArrayAgg(table, distinct=True)
    )
    return Shortlists(entities=found["entities"], code_tables=found["code_tables"] or ())
