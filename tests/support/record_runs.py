"""Waiting for records that real workers process, and reading their results.

The helpers query the tables and not the pipeline's own selectors, which are under test too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from pipeline.core.states import JOB_TERMINAL, JobStatus
from pipeline.models import Encounter, Entity, Job, Page, PageAssignment, ShellFile
from pipeline.models.fields import ClockTimestamp
from pipeline.operations import operator_actions
from pipeline.stages.intake import Received
from tests.support.workers import until

RECORD_PATIENCE_S = 480.0
"""How long a test waits for whole records; an idle machine needs a tenth of this time."""


def ended(*received: Received) -> list[Job]:
    """Wait until the jobs of these records have ended; return the jobs in the same order."""
    ids = [each.job_id for each in received]
    rows = Job.objects.filter(id__in=ids)
    until(lambda: rows.filter(status__in=JOB_TERMINAL).count() == len(ids), RECORD_PATIENCE_S)
    jobs = Job.objects.in_bulk(ids)
    return [jobs[each] for each in ids]


def take_over(job_id: UUID) -> None:
    """Expire the lease of a job whose worker is gone, and let the reconciler recover the job."""
    taken = Job.objects.filter(id=job_id, status=JobStatus.PROCESSING).update(
        lease_expires_at=ClockTimestamp() - timedelta(seconds=1)
    )
    assert taken == 1
    assert operator_actions.jobs_reconcile().recovered == 1


def encounter_pages(record: ShellFile) -> list[tuple[str, list[int]]]:
    """Return the type and the assigned pages of each encounter, in order."""
    return [
        (
            encounter.encounter_type,
            sorted(
                set(
                    PageAssignment.objects.filter(healthcare_encounter=encounter).values_list(
                        "page_number", flat=True
                    )
                )
            ),
        )
        for encounter in Encounter.objects.filter(shell_file=record).order_by("encounter_index")
    ]


def spans_of(encounter_id: UUID) -> list[tuple[int, int, int]]:
    """Return the spans of an encounter as (page, start, end)."""
    return list(
        PageAssignment.objects.filter(healthcare_encounter_id=encounter_id)
        .order_by("page_number", "start_offset")
        .values_list("page_number", "start_offset", "end_offset")
    )


def astray(record: ShellFile) -> list[str]:
    """List the accepted entities of a record that are in the wrong place.

    In the right place, the quote equals the text at its span of its page, and the span lies within
    a span of the encounter.
    """
    texts = dict(Page.objects.filter(shell_file=record).values_list("page_number", "text"))
    spans = {
        encounter.id: spans_of(encounter.id)
        for encounter in Encounter.objects.filter(shell_file=record)
    }
    found = []
    for entity in Entity.objects.filter(shell_file=record, accepted=True):
        parts = _parts(entity, texts)
        if not parts:
            found.append(f"{entity.category} on page {entity.page_number}: not at its span")
        if not all(_within(part, spans[entity.healthcare_encounter_id]) for part in parts):
            found.append(f"{entity.category} on page {entity.page_number}: outside its encounter")
    return found


def _parts(entity: Entity, texts: dict[int, str]) -> list[tuple[int, int, int]]:
    """Return the spans of the quote: two if the quote continues on the next page, none if wrong."""
    quote, start, end = entity.quote, entity.char_start or 0, entity.char_end or 0
    if entity.page_end is None:
        whole = (entity.page_number, start, end)
        return [whole] if texts[entity.page_number][start:end] == quote else []
    breaks = [at for at, character in enumerate(quote) if character == "\n"]
    for at in breaks:
        head = (entity.page_number, start, start + at)
        tail = (entity.page_end, end - (len(quote) - at - 1), end)
        if "\n".join(texts[p][s:e] for p, s, e in (head, tail)) == quote:
            return [head, tail]
    return []


def _within(part: tuple[int, int, int], spans: Sequence[tuple[int, int, int]]) -> bool:
    page, start, end = part
    return any(page == p and s <= start and end <= e for p, s, e in spans)
