"""The registry of work items: one entry per pass that asks the provider.

Every module that reads or moves work items of all passes uses `WORK_TABLES`: the transitions, the
previews and the console. The docstring of `WORK_TABLES` lists all places of a new pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from pipeline.core.states import Step
from pipeline.models.clinical import (
    EnrichedEntity,
    NarrativeResult,
    NarrativeSentence,
    ZoneResult,
)
from pipeline.models.discovery import Chunk, DiscoverySession
from pipeline.models.entities import Batch, EncounterResult, Entity
from pipeline.models.sessions import Session
from pipeline.models.work_item import WorkItem


@dataclass(frozen=True, kw_only=True)
class ParentTable:
    """The rows above the work items of a pass: one per encounter, or one per record.

    A parent of an encounter fails as a whole, and waits and runs together with its items. A parent
    of a record fails with the step.

    Every parent has `id`, `shell_file` and `status`. A parent of an encounter also has
    `updated_at`, which a flush writes. A parent of a record also has `completed_at`, `error_code`
    and `error_message`, which a failed step writes. A test checks these columns.
    """

    model: type[Model]
    noun: str
    """The singular noun for one parent that people read."""
    field: str
    """The foreign key of a work item that names its parent."""
    reset: str
    """SQL assignments that a retry makes beside the status."""
    encounter: str | None = None
    """The foreign key to the encounter, with the same name as in the items; None for a parent of a
    whole record."""
    columns: tuple[str, ...] = ()
    """Columns that a flush writes."""
    publication: str | None = None
    """Column of the encounter that holds the time at which its parent succeeded."""
    failed_item: str | None = None
    """Column of the number of the first failed item. The column is NULL in a failed parent whose
    replies could not be published. None if every failed parent has a failed item."""

    def __post_init__(self) -> None:
        if self.encounter and not self.columns:
            raise ValueError(f"{self.table}: name the columns that a flush writes")

    @property
    def table(self) -> str:
        """Name of the database table."""
        return self.model._meta.db_table

    @property
    def rows(self) -> QuerySet[Any, Any]:
        """All rows of the table."""
        return self.model._default_manager.all()


@dataclass(frozen=True, kw_only=True)
class WorkTable:
    """The work items of one pass: their table, their parent, and the columns of their own.

    Every such table needs a partial index on `started_at` where `status = 'processing'`, for the
    search for stale items.
    """

    step: Step
    model: type[WorkItem]
    noun: str
    """The singular noun for one item that people read."""
    task: str
    """Name of the task that a call sets (`providers.tasks`)."""
    index: str
    """Column of the item's 0-based number."""
    counts: tuple[tuple[str, str], ...]
    """Counter columns, each with the noun that people read; an empty noun is not shown."""
    parent: ParentTable | None = None
    encounter: str | None = None
    """The foreign key to the encounter; None if no item belongs to a single encounter. The key may
    be empty in an item of the whole record."""
    error_columns: tuple[str, ...] = ()
    """Columns of a failure in addition to those of `WorkItem`."""
    estimate: str | None = None
    """Column of the estimated input tokens."""
    context: str | None = None
    """Column of the page before the first one, which a call shows too."""
    results: type[Model] | None = None
    """The model of the results that a flush inserts at publication. The model has `shell_file` and
    the same foreign key to the encounter as the items."""
    slices: str | None = None
    """`module:function` that returns the slices of an item's prompt, from the item, the split and
    the pages. None if the prompt shows whole pages."""
    unread: tuple[str, ...] = ("output",)
    """Columns that a drill-down does not read: long columns, and columns with PHI."""
    calls_a_page: float = 0.0
    """Calls for each page of a record, as an estimate before the pass is planned."""
    tokens_a_page: int = 0
    """Input tokens for each page of a record, as an estimate before the pass is planned."""

    @property
    def table(self) -> str:
        """Name of the database table."""
        return self.model._meta.db_table

    @property
    def rows(self) -> QuerySet[WorkItem, WorkItem]:
        """All rows of the table."""
        return self.model._default_manager.all()

    @property
    def owner(self) -> type[Model]:
        """The table that links an item to its record: the parent, or else the session."""
        return self.parent.model if self.parent else Session

    @property
    def owner_field(self) -> str:
        """The foreign key of an item to its owner."""
        return self.parent.field if self.parent else "processing_session"

    @property
    def record(self) -> str:
        """The lookup from an item to the id of its record."""
        return f"{self.owner_field}__shell_file_id"

    @property
    def encounter_parent(self) -> ParentTable | None:
        """The parent table, if each encounter has a parent; else None."""
        return self.parent if self.parent and self.parent.encounter else None

    @property
    def has_encounters_alone(self) -> bool:
        """Whether items belong to encounters, and no parent holds the status of an encounter."""
        return self.encounter is not None and self.parent is None

    @property
    def record_parent(self) -> ParentTable | None:
        """The parent table, if the whole record has one parent; else None."""
        return self.parent if self.parent and not self.parent.encounter else None

    def number_of(self, item: WorkItem) -> int:
        """Return the 0-based number of an item."""
        return int(getattr(item, self.index))

    def encounter_index_of(self, item: WorkItem) -> int | None:
        """Return the 1-based index of an item's encounter; None for an item of no encounter."""
        encounter = getattr(item, self.encounter) if self.encounter else None
        return encounter.encounter_index if encounter else None

    def found_in(self, item: WorkItem) -> dict[str, int]:
        """Return the results of an item by their nouns, without zeros."""
        counts = {noun: getattr(item, column) for column, noun in self.counts if noun}
        return {noun: int(number) for noun, number in counts.items() if number}

    def estimate_of(self, item: WorkItem) -> int:
        """Return the estimated input tokens of an item; 0 if its table has no estimate."""
        return int(getattr(item, self.estimate) or 0) if self.estimate else 0


T = TypeVar("T")

ENCOUNTER_COLUMNS = (
    "status",
    "batches_succeeded",
    "batches_failed",
    "total_retries_used",
    "started_at",
    "completed_at",
    "total_duration_ms",
    "total_input_tokens",
    "total_output_tokens",
    "total_entities_detected",
    "total_zones_detected",
    "total_rows_not_understood",
    "no_known_allergies",
    "zones",
    "warnings",
    "failure_batch_index",
    "error_code",
    "error_summary",
)
"""Columns of an encounter result that a flush writes."""

WORK_TABLES: dict[Step, WorkTable] = {
    Step.PASS05: WorkTable(
        step=Step.PASS05,
        model=Chunk,
        noun="chunk",
        task="discovery",
        index="chunk_index",
        counts=(("encounters_detected", "encounter"),),
        parent=ParentTable(
            model=DiscoverySession,
            noun="discovery",
            field="discovery_session",
            reset="completed_at = NULL, error_code = NULL, error_message = NULL",
        ),
        error_columns=("error_details",),
        context="context_page",
        # A chunk has 50 pages; a page of the samples has some 300 tokens.
        calls_a_page=0.02,
        tokens_a_page=400,
    ),
    Step.PASS1: WorkTable(
        step=Step.PASS1,
        model=Batch,
        noun="batch",
        task="entities",
        index="batch_index",
        counts=(("entities_detected", "entity"), ("zones_detected", "")),
        parent=ParentTable(
            model=EncounterResult,
            noun="encounter result",
            field="pass1_encounter_result",
            encounter="healthcare_encounter",
            columns=ENCOUNTER_COLUMNS,
            publication="entities_published_at",
            failed_item="failure_batch_index",
            reset="started_at = NULL, completed_at = NULL, total_duration_ms = NULL,"
            " batches_failed = 0, failure_batch_index = NULL, error_code = NULL,"
            " error_summary = NULL, updated_at = clock_timestamp()",
        ),
        encounter="healthcare_encounter",
        estimate="estimated_input_tokens",
        results=Entity,
        slices="pipeline.stages.pass1.store:batch_slices",
        # A batch of the samples has 1 to 6 pages.
        calls_a_page=0.2,
        tokens_a_page=1_100,
        unread=("output", "spans"),
    ),
    Step.PASS2: WorkTable(
        step=Step.PASS2,
        model=ZoneResult,
        noun="zone",
        task="enrichment",
        index="zone_index",
        counts=(("entities_enriched", "entity"), ("attributes_rejected", "")),
        encounter="healthcare_encounter",
        estimate="estimated_input_tokens",
        results=EnrichedEntity,
        unread=("output", "spans", "entity_ids"),
        # The samples need 1.6 to 3.5 calls.
        calls_a_page=3.0,
        tokens_a_page=4_500,
    ),
    Step.PASS3: WorkTable(
        step=Step.PASS3,
        model=NarrativeResult,
        noun="narrative",
        task="narrative",
        index="narrative_index",
        counts=(
            ("sentences_supported", "sentence"),
            ("sentences_unsupported", "unsupported sentence"),
        ),
        encounter="healthcare_encounter",
        estimate="estimated_input_tokens",
        results=NarrativeSentence,
        unread=("output", "entity_ids"),
        # The samples need 0.2 to 1.6 calls.
        calls_a_page=0.3,
        tokens_a_page=1_800,
    ),
}
"""The passes that call the provider, in the order in which a record goes through them.

The places of a new pass with provider calls:
1. the model of its work items with a migration, and the entry here;
2. its stage in `stages/`, and the place of the stage in the order of `stages/registry.py`;
3. its task in `providers/tasks.py`, with a prompt file, a reply model and a local engine;
4. an admin class for each new model in `observability/admin/`.
A pass that `core/states.py` does not name needs a step, statuses and a title there and in
`core/labels.py`, a queue in `medproc/settings.py`, and a status column of the session.
"""


def table_of(model: type[WorkItem]) -> WorkTable:
    """Return the entry of a model. Raises LookupError for a model that no pass has registered."""
    for table in WORK_TABLES.values():
        if table.model is model:
            return table
    raise LookupError(f"no pass has registered {model.__name__}")


def table_named(noun: str) -> WorkTable:
    """Return the entry of a noun. Raises LookupError for a noun that no pass has registered."""
    for table in WORK_TABLES.values():
        if table.noun == noun:
            return table
    raise LookupError(f"no pass has registered a {noun}")


def encounter_parents() -> tuple[ParentTable, ...]:
    """Return the parent tables of encounters, in the order of their passes."""
    parents = (table.encounter_parent for table in WORK_TABLES.values())
    return tuple(parent for parent in parents if parent)


def states_sql(tables: Sequence[WorkTable], rows: str, *columns: str) -> str:
    """Return a query: these columns of rows that have `item` and `step`, and the item's status.

    A row whose item does not exist is left out.
    """
    # OFFSET 0 keeps each lookup by its key: PostgreSQL plans a join as a scan of the whole table.
    named = "".join(f"{rows}.{column}, " for column in columns)
    return " UNION ALL ".join(
        f"SELECT {named}i.status FROM {rows},"  # noqa: S608 - names come from the models
        f" LATERAL (SELECT status FROM {table.table} WHERE id = {rows}.item OFFSET 0) i"
        f" WHERE {rows}.step = '{table.step}'"
        for table in tables
    )


def composed(compose: Callable[[tuple[WorkTable, ...]], T]) -> Callable[[], T]:
    """Cache a composed value, mostly SQL, until the content of the registry changes."""
    cached = lru_cache(maxsize=4)(compose)

    @wraps(compose)
    def current() -> T:
        return cached(tuple(WORK_TABLES.values()))

    return current
