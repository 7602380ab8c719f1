"""The rows that the drill-down of one record reads; the number of statements is constant.

Columns with document text, model output, names or file names are not read.
"""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, cast
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
from pipeline.models.work_tables import WORK_TABLES, WorkTable

_OF_ITEMS = (
    "id", "page_range_start", "page_range_end", "status", "attempt_count", "max_attempts",
    "rate_limit_waits", "started_at", "duration_ms", "error_code", "error_message",
    "error_context", "transient_error_history",
)  # fmt: skip
"""Columns of a work item of any pass. The tokens that a node shows are those of its calls."""
_OF_CALLS = (
    "id", "step", "work_item_id", "split", "page_range_start", "page_range_end", "attempt",
    "outcome", "accepted", "message", "provider", "model", "model_version", "response_id",
    "prompt_version", "schema_version", "http_status", "finish_reason", "quota_id",
    "retry_after_ms", "queue_wait_ms", "duration_ms", "input_tokens", "output_tokens",
    "thinking_tokens", "cost_usd", "started_at",
)  # fmt: skip


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
    """The work items of each pass that has a table of them, in the order of the pages. Named tuples
    with the columns that the tree shows, because a record can have thousands of work items."""
    calls: Sequence[ProviderCall]
    """In the order of their start. Named tuples too."""
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
        items={step: _items(table, shell_file_id) for step, table in WORK_TABLES.items()},
        calls=cast(
            list[ProviderCall],
            list(
                ProviderCall.objects.filter(processing_session_id=shell_file.session.id)
                .order_by("started_at", "attempt")
                .values_list(*_OF_CALLS, named=True)
            ),
        ),
        coded=_shortlists(shell_file_id),
        clinical=getattr(shell_file, "clinical_metrics", None),
        narrative=getattr(shell_file, "narrative_metrics", None),
        reuses=list(Reuse.objects.filter(shell_file_id=shell_file_id)),
    )


class _ItemFacts:
    """What a work item derives from its columns; the same names as in `WorkItem`."""

    __slots__ = ()
    encounter_column = ""

    @property
    def pk(self) -> UUID:
        return cast(UUID, getattr(self, "id"))  # noqa: B009 - a column of the named tuple

    @property
    def encounter_id(self) -> UUID | None:
        return getattr(self, self.encounter_column, None)

    @property
    def failure_history(self) -> Sequence[Any]:
        return getattr(self, "transient_error_history") or ()  # noqa: B009 - likewise


@cache
def _item_row(table: WorkTable) -> Any:
    """Return the named tuple of a pass's work items."""
    encounter = f"{table.encounter}_id" if table.encounter else ""
    columns = (
        *_OF_ITEMS, table.index, *(column for column, noun in table.counts if noun),
        *filter(None, (encounter, table.estimate)),
    )  # fmt: skip
    named: Any = namedtuple("ItemRow", list(columns))  # type: ignore[misc]  # of the registry
    facts = {"__slots__": (), "encounter_column": encounter}
    return type("ItemRow", (named, _ItemFacts), facts)


def _items(table: WorkTable, shell_file_id: UUID) -> list[WorkItem]:
    row = _item_row(table)
    found = (
        table.rows.filter(**{table.record: shell_file_id})
        .order_by("page_range_start", table.index)
        .values_list(*row._fields)
    )
    return list(map(row._make, found))


def _shortlists(shell_file_id: UUID) -> Shortlists:
    table = Concat("system", Value(" "), "system_version", output_field=TextField())
    found: dict[str, Any] = CodeCandidate.objects.filter(shell_file_id=shell_file_id).aggregate(
        entities=Count("entity", distinct=True), code_tables=ArrayAgg(table, distinct=True)
    )
    return Shortlists(entities=found["entities"], code_tables=found["code_tables"] or ())
