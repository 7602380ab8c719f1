"""The only reader of the exports: one consistent snapshot of a record, row by row.

All statements of a snapshot run in one transaction (REPEATABLE READ, READ ONLY) and see one state
of the database. Large tables are read by server-side cursors, `CHUNK` rows at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from pipeline.clinical.page_text.marks import blanked
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.labels import PASS_TITLES, WORDS, incomplete_note
from pipeline.core.states import JOB_TERMINAL, JobStatus, Step
from pipeline.exports.rows import (
    EncounterRow,
    EntityRow,
    ListItemRow,
    PageRow,
    RecordRow,
    SentenceRow,
)
from pipeline.models import (
    Batch,
    Encounter,
    Entity,
    Job,
    NarrativeSentence,
    Page,
    ProcessedDocument,
    ProviderCall,
    RecordListItem,
    Reuse,
    ReviewItem,
    ReviewStatus,
    ShellFile,
    ZoneResult,
)
from pipeline.models.outdated import stale_results
from pipeline.models.selectors import held_spans

CHUNK = 1_000
"""Rows that a cursor fetches at a time."""

_ENTITY_LOOKUPS = {
    "encounter_id": "healthcare_encounter_id",
    "encounter_index": "healthcare_encounter__encounter_index",
    "attributes": "enriched__attributes",
    "code_system": "enriched__code_system",
    "code": "enriched__code",
    "code_display": "enriched__code_display",
    "enrichment_flags": "enriched__flags",
    "enrichment_second_reading": "enriched__second_reading",
    "enrichment_engine": "enriched__engine",
}
"""Fields of `EntityRow` that have another name in the query."""


class Snapshot:
    """One state of a record. Each method streams its rows; use it inside `snapshot()` only."""

    def __init__(self, record: RecordRow) -> None:
        self.record = record

    def entities(self) -> Iterator[EntityRow]:
        """Yield all entities, by encounter and in the order of the text."""
        return self._entities("healthcare_encounter__encounter_index", "entity_index")

    def entities_after(self, place: tuple[int, int] | None, limit: int) -> list[EntityRow]:
        """Return entities after a place (encounter and entity index), in the order of the text."""
        after = Q()
        if place is not None:
            encounter, entity = place
            after = Q(healthcare_encounter__encounter_index__gt=encounter) | Q(
                healthcare_encounter__encounter_index=encounter, entity_index__gt=entity
            )
        order = ("healthcare_encounter__encounter_index", "entity_index")
        return list(map(EntityRow._make, self._entity_rows(*order).filter(after)[:limit]))

    def entities_by_page(self) -> Iterator[EntityRow]:
        """Yield all entities, by page and in the order of their quotes."""
        return self._entities("page_number", "char_start", "id")

    def pages(self) -> Iterator[PageRow]:
        """Yield the pages in order, without the text that is held: another patient's, perhaps."""
        held = held_spans(self.record.id)
        rows = Page.objects.filter(shell_file_id=self.record.id).order_by("page_number")
        for number, text, source in _streamed(rows.values_list("page_number", "text", "source")):
            spans = held.get(number, ())
            yield PageRow(number, blanked(text, spans), source, is_held=bool(spans))

    def sentences(self) -> Iterator[SentenceRow]:
        """Yield the supported sentences: those of the record first, then by encounter.

        A sentence about an entity that a reviewer has changed since is left out.
        """
        rows = NarrativeSentence.objects.filter(
            shell_file_id=self.record.id, supported=True
        ).order_by("healthcare_encounter__encounter_index", "sentence_index", "id")
        columns = ("id", "healthcare_encounter__encounter_index", *SentenceRow._fields[2:])
        stale = stale_results(self.record.id)
        of_record = rows.filter(healthcare_encounter__isnull=True)
        of_encounters = rows.filter(healthcare_encounter__isnull=False)
        for part in (of_record, of_encounters):
            for row in map(SentenceRow._make, _streamed(part.values_list(*columns))):
                if row.id not in stale.sentences:
                    yield row

    def list_items(self) -> Iterator[ListItemRow]:
        """Yield the entries of the record's lists, by kind.

        An entry about an entity that a reviewer has changed is left out until the review closes.
        """
        stale = stale_results(self.record.id)
        rows = RecordListItem.objects.filter(shell_file_id=self.record.id).order_by(
            "kind", "item_index"
        )
        for row in map(ListItemRow._make, _streamed(rows.values_list(*ListItemRow._fields))):
            if row.id not in stale.list_items:
                yield row

    def _entities(self, *order: str) -> Iterator[EntityRow]:
        return map(EntityRow._make, _streamed(self._entity_rows(*order)))

    def _entity_rows(self, *order: str) -> QuerySet[Any, Any]:
        columns = [_ENTITY_LOOKUPS.get(name, name) for name in EntityRow._fields]
        rows = Entity.objects.filter(shell_file_id=self.record.id).order_by(*order)
        return rows.values_list(*columns)


@contextmanager
def snapshot(
    record_id: UUID, generation: UUID, *, allow_incomplete: bool = False
) -> Iterator[Snapshot]:
    """Open a snapshot of a record for the export `generation`.

    Raises UserError NOT_FOUND for an unknown record, and RECORD_INCOMPLETE for a record with
    missing results, unless `allow_incomplete`. The caller has no transaction open.
    """
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SELECT now()")
            (taken_at,) = cursor.fetchone()
        record = _record(record_id, generation, taken_at)
        if record.is_incomplete and not allow_incomplete:
            raise UserError(
                f"{record.incomplete_note} Wait, retry the record, or allow an incomplete export"
                " (command line: --allow-incomplete; API: ?incomplete=true).",
                code=UserErrorCode.RECORD_INCOMPLETE,
            )
        yield Snapshot(record)


def _streamed(rows: QuerySet[Any, Any]) -> Iterator[Any]:
    return rows.iterator(chunk_size=CHUNK)


def _record(record_id: UUID, generation: UUID, taken_at: datetime) -> RecordRow:
    row = ShellFile.objects.select_related("patient").filter(id=record_id).first()
    if row is None:
        raise UserError(f"{record_id} is the id of no record.", code=UserErrorCode.NOT_FOUND)
    encounters = tuple(_encounters(record_id))
    return RecordRow(
        id=row.id,
        patient_id=row.patient_id,
        pseudonym=row.patient.pseudonym,
        patient_reference=row.patient.reference,
        media_type=row.media_type,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        page_count=row.page_count,
        language=row.language,
        warnings=row.warnings,
        submitted_at=row.created_at,
        generation=generation,
        taken_at=taken_at,
        incomplete_note=_incomplete_note(record_id, encounters),
        is_review_closed=ReviewItem.objects.filter(
            shell_file_id=record_id, status=ReviewStatus.CLOSED
        ).exists(),
        encounters=encounters,
        prompt_versions=_prompt_versions(record_id, encounters),
    )


def _encounters(record_id: UUID) -> Iterator[EncounterRow]:
    rows = Encounter.objects.filter(shell_file_id=record_id).order_by("encounter_index")
    columns = [*EncounterRow._fields[:-1], "pass1_result__no_known_allergies"]
    return map(EncounterRow._make, rows.values_list(*columns))


def _incomplete_note(record_id: UUID, encounters: tuple[EncounterRow, ...]) -> str:
    """Return why results are missing, as one sentence; "" if none is missing."""
    job = Job.objects.filter(shell_file_id=record_id).order_by("-created_at").first()
    published = sum(each.entities_published_at is not None for each in encounters)
    note = incomplete_note(published, len(encounters)).removesuffix(".")
    if job is None:
        return f"{note or 'Record incomplete'}; the record has no job."
    status, title = JobStatus(job.status), PASS_TITLES[Step(job.current_step)]
    if status == JobStatus.COMPLETED:
        return f"{note}." if note else ""
    said = f"{'the job ended as' if status in JOB_TERMINAL else 'the job is'} {WORDS[status]}"
    return f"{note}; {said} in {title}." if note else f"Record incomplete: {said} in {title}."


def _prompt_versions(
    record_id: UUID, encounters: tuple[EncounterRow, ...]
) -> dict[tuple[Step, UUID], tuple[str, ...]]:
    """Return the prompt versions of Pass 1 and Pass 2 by encounter.

    A pass that reused its results made no call; its versions are those of the source record.
    """
    found: defaultdict[tuple[Step, UUID], set[str]] = defaultdict(set)
    for step, table in ((Step.PASS1, Batch), (Step.PASS2, ZoneResult)):
        rows: Any = table._default_manager.filter(healthcare_encounter__shell_file_id=record_id)
        item_encounters = dict(rows.values_list("id", "healthcare_encounter_id"))
        calls = ProviderCall.objects.filter(
            processing_session__shell_file_id=record_id, step=step, accepted=True
        )
        for item, version in calls.values_list("work_item_id", "prompt_version").iterator(CHUNK):
            if item in item_encounters:
                found[step, item_encounters[item]].add(version)
    for step, version in _reused_versions(record_id):
        for each in encounters:
            if (step, each.id) not in found:
                found[step, each.id] = {version}
    return {key: tuple(sorted(versions)) for key, versions in found.items()}


def _reused_versions(record_id: UUID) -> Iterator[tuple[Step, str]]:
    """Yield the prompt version of each pass whose source states one version."""
    reuses = Reuse.objects.filter(
        shell_file_id=record_id, step__in=(Step.PASS1, Step.PASS2), source__isnull=False
    ).values_list("step", "source_id")
    for step, source in reuses:
        version = (
            ProcessedDocument.objects.filter(shell_file_id=source, step=step)
            .values_list("prompt_version", flat=True)
            .first()
        )
        if version:
            yield Step(step), version
