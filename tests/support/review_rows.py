"""Records with results and a review, by INSERT alone."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.utils import timezone

from pipeline.core.states import JobStatus, Step
from pipeline.models import (
    DecisionAction,
    Encounter,
    Entity,
    Job,
    Page,
    ReviewItem,
    Session,
)
from pipeline.operations.review import queue
from pipeline.operations.review.decisions import Decided, decide
from pipeline.transitions import open_review
from tests.support.clinical_rows import clinical_rows
from tests.support.rows import a_job, an_encounter

ANNA, BERT, CLEO = "user:1", "user:2", "user:3"
TEXT = "metoprolol 25 mg twice daily. Warfarin 5 mg daily.\nWarfarin stopped.\n"


def a_reviewed_record(*, entities: int = 1, priority: int = 0) -> ReviewItem:
    """Insert a completed record: one page, one encounter, enriched entities, and its review."""
    job = a_job(step=Step.PASS3, status=JobStatus.COMPLETED, priority=priority)
    result, _ = an_encounter(job)
    encounter = Encounter.objects.get(id=result.healthcare_encounter_id)
    Encounter.objects.filter(id=encounter.id).update(entities_published_at=timezone.now())
    Page.objects.create(
        shell_file_id=job.shell_file_id, page_number=1, text=TEXT, source="text_layer",
        width=612, height=792,
    )  # fmt: skip
    for number in range(entities):
        a_found_entity(encounter, name="metoprolol", at=number)
    open_review(job.shell_file_id)
    return ReviewItem.objects.get(shell_file_id=job.shell_file_id)


def a_found_entity(encounter: Encounter, *, name: str, at: int, flags: bool = False) -> Entity:
    """Insert an entity with its attributes, list entry and sentences, at an offset of page 1."""
    entity = clinical_rows(encounter, name=name)
    entity.enriched.flags = ["disputed:route"] if flags else []
    entity.enriched.save(update_fields=["flags"])
    entity.char_start, entity.char_end = at, at + len(name)
    entity.dose = "25 mg"
    entity.save(update_fields=["char_start", "char_end", "dose"])
    return entity


def encounter_of(item: ReviewItem) -> Encounter:
    """Return the first encounter of an item's record."""
    return Encounter.objects.filter(shell_file_id=item.shell_file_id).order_by("encounter_index")[0]


def another_encounter(item: ReviewItem, *, index: int = 2) -> Encounter:
    """Insert another published encounter of an item's record."""
    job = Job.objects.get(shell_file_id=item.shell_file_id)
    result, _ = an_encounter(job, index=index)
    Encounter.objects.filter(id=result.healthcare_encounter_id).update(
        entities_published_at=timezone.now()
    )
    return Encounter.objects.get(id=result.healthcare_encounter_id)


def entities_of(item: ReviewItem) -> list[Entity]:
    """Return the entities of an item's record in their order."""
    return list(
        Entity.objects.filter(shell_file_id=item.shell_file_id).order_by(
            "healthcare_encounter__encounter_index", "entity_index"
        )
    )


def claimed(item: ReviewItem, reviewer: str = ANNA) -> ReviewItem:
    """Claim an item for a reviewer."""
    queue.claim(item.id, reviewer)
    item.refresh_from_db()
    return item


def says(
    item: ReviewItem, entity: Entity | UUID, action: str, reviewer: str = ANNA, **changes: object
) -> Decided:
    """Decide about an entity with a new token; `attributes__dose` names `attributes.dose`."""
    return decide(
        item.id,
        reviewer,
        entity.id if isinstance(entity, Entity) else entity,
        DecisionAction(action),
        token=uuid4(),
        changes={name.replace("__", "."): value for name, value in changes.items()},
    )


def session_of(item: ReviewItem) -> Session:
    """Return the session of an item's record."""
    return Session.objects.get(shell_file_id=item.shell_file_id)
