"""Each upload waits in the queue by its priority; of several reviewers each gets another item."""

from __future__ import annotations

import random
import threading
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pipeline.core.errors import UserError
from pipeline.core.states import JobStatus, Step
from pipeline.models import Entity, EntityMetrics, Job, ReviewItem, ShellFile
from pipeline.operations.review import queue
from pipeline.operations.review.priority import explained, priority_of
from pipeline.transitions import open_review, place_review_items
from pipeline.transitions.reviews import sla_targets
from tests.support.databases import as_owner
from tests.support.review_rows import ANNA, BERT, CLEO, a_reviewed_record, claimed, says
from tests.support.rows import a_job


def an_item(
    *, sla: str = "normal", age_s: float = 0.0, confidence: float = 0.5, **columns: object
) -> ReviewItem:
    """Insert an open item of a given age, weighed as the pipeline weighs it."""
    job = a_job(step=Step.PASS3, status=JobStatus.COMPLETED)
    open_review(job.shell_file_id)
    opened = timezone.now() - timedelta(seconds=age_s)
    items = ReviewItem.objects.filter(shell_file_id=job.shell_file_id)
    items.update(
        sla=sla,
        confidence=confidence,
        opened_at=opened,
        due_at=opened + timedelta(seconds=sla_targets()[sla]),
        weighed_by="",
        **columns,
    )
    return items.get()


def all_claims(reviewer: str) -> list[UUID]:
    """Return the items that the queue offers one after the other."""
    offered: list[UUID] = []
    while (item := queue.next_item(reviewer, but=offered)) is not None:
        offered.append(item)
    return offered


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("columns", "warnings", "reason"),
    [
        ({"status": JobStatus.COMPLETED}, [], "completed"),
        ({"status": JobStatus.FAILED}, [], "failed"),
        ({"status": JobStatus.DEAD}, [], "failed"),
        ({"status": JobStatus.CANCELLED}, [], "failed"),
        ({"status": JobStatus.FAILED}, [{"code": "PATIENT_MISMATCH"}], "mismatch"),
    ],
)
def test_a_record_has_one_review_for_its_gravest_reason(
    columns: dict[str, Any], warnings: list[dict[str, str]], reason: str
) -> None:
    job = a_job(step=Step.PASS1, **columns)
    ShellFile.objects.filter(id=job.shell_file_id).update(warnings=warnings)

    open_review(job.shell_file_id)
    open_review(job.shell_file_id)

    assert [(each.reason, each.status) for each in ReviewItem.objects.all()] == [(reason, "open")]


@pytest.mark.django_db
def test_a_flagged_medication_is_a_reason_and_adds_value() -> None:
    item = a_reviewed_record(entities=2)
    Entity.objects.filter(entity_index=0).update(review_flags=["read_once"])

    open_review(item.shell_file_id)

    item.refresh_from_db()
    assert item.reason == "flagged"
    assert (item.figures["flagged"], item.figures["flagged_risks"], item.value) == (1, 1, 0.1)


@pytest.mark.django_db
def test_the_queue_offers_the_highest_priority_first(settings: Any) -> None:
    settings.TIME_SCALE = 1.0
    chance = random.Random(7)
    targets = sla_targets()
    for number in range(40):
        sla = ("urgent", "normal", "low")[number % 3]
        an_item(
            sla=sla,
            age_s=chance.uniform(0, 1.6) * targets[sla],
            confidence=chance.random(),
            complexity=chance.random(),
            value=chance.random(),
        )
    place_review_items(1_000)
    now = timezone.now()
    items = {each.id: priority_of(each, now) for each in ReviewItem.objects.all()}

    offered = all_claims(ANNA)

    assert len(offered) == len(items)
    found = [items[each] for each in offered]
    # The priorities grow a little while the queue is asked forty times.
    assert all(later <= earlier + 0.02 for earlier, later in pairwise(found))
    assert found[0] - found[-1] > 0.4
    assert {each.lane for each in ReviewItem.objects.all()} == {*targets, "overdue"}


@pytest.mark.django_db
def test_an_overdue_item_is_placed_once() -> None:
    an_item(age_s=10 * sla_targets()["normal"])
    place_review_items(10)

    placed = place_review_items(10)

    assert placed == 0
    assert ReviewItem.objects.get().lane == "overdue"


@pytest.mark.django_db
def test_other_weights_weigh_open_items_again(settings: Any) -> None:
    item = a_reviewed_record()
    settings.REVIEW_WEIGHT_CONFIDENCE, settings.REVIEW_WEIGHT_VALUE = 0.1, 0.4

    placed = place_review_items(10), place_review_items(10)

    before = item.base
    item.refresh_from_db()
    assert placed == (1, 0)
    assert item.base < before


@pytest.mark.django_db
def test_the_priority_is_explained_and_adds_up() -> None:
    item = a_reviewed_record()
    metrics = EntityMetrics.objects.create(
        shell_file_id=item.shell_file_id, profile_id=item.shell_file.patient_id,
        processing_session=item.shell_file.session, confidence=0.82,
    )  # fmt: skip
    open_review(item.shell_file_id)
    item.refresh_from_db()

    parts = explained(item, item.opened_at)

    assert metrics.confidence == 0.82
    assert [part.name for part in parts] == ["confidence", "SLA", "complexity", "value"]
    assert parts[0].words == "confidence 0.82 → 0.07 of 0.40"
    assert sum(part.points for part in parts) == pytest.approx(item.base)
    assert "1 encounter, 1 entity, 0 flagged" in parts[2].words


@pytest.mark.django_db
def test_a_second_reviewer_of_a_held_item_is_told_so() -> None:
    item = claimed(a_reviewed_record(), ANNA)

    with pytest.raises(UserError) as refused:
        queue.claim(item.id, BERT)

    assert refused.value.code == "REVIEW_HELD"
    assert queue.next_item(BERT) is None


@pytest.mark.django_db
def test_a_claim_ends_and_another_reviewer_takes_the_item() -> None:
    item = claimed(a_reviewed_record(), ANNA)
    ReviewItem.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))

    queue.claim(item.id, BERT)

    with pytest.raises(UserError) as refused:
        says(item, Entity.objects.get(), "accept", ANNA)
    assert refused.value.code == "REVIEW_NOT_HELD"


@pytest.mark.django_db
def test_work_renews_the_claim() -> None:
    item = claimed(a_reviewed_record(), ANNA)
    soon = timezone.now() + timedelta(seconds=5)
    ReviewItem.objects.update(claimed_until=soon)

    says(item, Entity.objects.get(), "accept")

    item.refresh_from_db()
    assert item.claimed_until > soon


@pytest.mark.django_db
def test_a_skipped_item_is_offered_to_others_only() -> None:
    item = claimed(a_reviewed_record(), ANNA)

    queue.release(item.id, ANNA, skips=True)

    assert queue.next_item(ANNA) is None
    assert queue.next_item(CLEO) == item.id


@pytest.mark.usefixtures("cloned_db")
def test_of_ten_reviewers_each_gets_another_item() -> None:
    for _ in range(12):
        a_reviewed_record()
    ready = threading.Barrier(10)
    got: list[UUID | None] = []

    def ask(number: int) -> None:
        try:
            ready.wait()
            got.append(queue.next_item(f"user:{number}"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert None not in got
    assert len(set(got)) == 10


MANY = """
WITH files AS (
  INSERT INTO shell_files (id, patient_id, sha256, size_bytes, media_type, storage_key)
  SELECT gen_random_uuid(), %s, repeat('0', 64), 1, 'application/pdf', n::text
  FROM generate_series(1, 4000) n RETURNING id)
INSERT INTO review_items (id, shell_file_id, reason, status, lane, order_key, sla, due_at)
SELECT gen_random_uuid(), id, 'completed', CASE WHEN random() < 0.5 THEN 'open' ELSE 'closed' END,
  (ARRAY['urgent', 'normal', 'low', 'overdue'])[1 + floor(random() * 4)::int], random(), 'normal',
  now() + interval '1 day'
FROM files
"""


@pytest.mark.django_db
def test_the_next_item_is_one_statement_that_reads_an_index() -> None:
    item = a_reviewed_record()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(MANY, [item.shell_file.patient_id])
        cursor.execute("ANALYZE review_items")

    with CaptureQueriesContext(connection) as asked:
        queue.next_item(ANNA)

    assert len(asked) == 1
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {asked[0]['sql']}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Scan using idx_review_items_queue" in plan, plan
    assert "Seq Scan on review_items" not in plan, plan


@pytest.mark.django_db
def test_a_job_that_fails_for_good_opens_a_review(settings: Any) -> None:
    job = Job.objects.get(id=a_job(step=Step.PASS1, status=JobStatus.FAILED).id)

    open_review(job.shell_file_id)

    assert queue.next_item(ANNA) == ReviewItem.objects.get().id
