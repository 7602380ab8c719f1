"""Two people review a record, a third settles; closing renews lists; each action is audited."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.utils import OperationalError
from django.utils import timezone

from observability.actions import reviews
from observability.models import AuditEvent
from pipeline.core.errors import UserError
from pipeline.models import (
    DecisionAction,
    Entity,
    LockedField,
    RecordListItem,
    ReviewDecision,
    ReviewItem,
)
from pipeline.models.outdated import stale_results
from pipeline.operations.review import closing, queue
from pipeline.operations.review.agreement import agreement
from pipeline.operations.review.decisions import accept_all_unflagged, decide
from pipeline.operations.review.learning import precision, precision_by_week
from pipeline.operations.review.rounds import waiting
from tests.support.review_rows import (
    ANNA,
    BERT,
    CLEO,
    a_found_entity,
    a_reviewed_record,
    claimed,
    encounter_of,
    entities_of,
    says,
)


def a_double_review(entities: int = 3) -> ReviewItem:
    """Insert a record that Anna has reviewed and that waits for a second person."""
    item = claimed(a_reviewed_record(entities=entities))
    ReviewItem.objects.update(is_double=True)
    says(item, entities_of(item)[0], "reject")
    accept_all_unflagged(item.id, ANNA, token=uuid4())
    closing.close(item.id, ANNA)
    return item


@pytest.mark.django_db
def test_a_review_closes_only_when_each_entity_is_decided() -> None:
    item = claimed(a_reviewed_record(entities=2))

    with pytest.raises(UserError) as refused:
        closing.close(item.id, ANNA)
    ReviewItem.objects.update(is_double=False)
    accept_all_unflagged(item.id, ANNA, token=uuid4())
    status = closing.close(item.id, ANNA)

    item.refresh_from_db()
    assert refused.value.code == "REVIEW_UNDECIDED"
    assert (status, item.status, item.closed_by) == ("closed", "closed", ANNA)


@pytest.mark.django_db
def test_flagged_entities_wait_first() -> None:
    item = a_reviewed_record(entities=2)
    flagged = a_found_entity(encounter_of(item), name="Warfarin", at=30, flags=True)

    found = waiting(item.id, item.shell_file_id, item.round)

    assert [each.is_flagged for each in found] == [True, False, False]
    assert found[0].entity_id == flagged.id


@pytest.mark.django_db
def test_the_second_review_is_for_another_person() -> None:
    item = a_double_review()

    with pytest.raises(UserError) as refused:
        queue.claim(item.id, ANNA)

    assert refused.value.code == "REVIEW_SECOND_READER"
    assert queue.next_item(ANNA) is None
    assert queue.next_item(BERT) == item.id


@pytest.mark.django_db
def test_a_second_reviewer_who_agrees_closes_the_review() -> None:
    item = claimed(a_double_review(), BERT)
    rejected = entities_of(item)[0]

    with pytest.raises(UserError) as refused:
        accept_all_unflagged(item.id, BERT, token=uuid4())
    says(item, rejected, "reject", BERT)
    agreed = accept_all_unflagged(item.id, BERT, token=uuid4())
    closing.close(item.id, BERT)

    item.refresh_from_db()
    assert refused.value.code == "REVIEW_FLAGS_OPEN"
    assert (agreed.count, item.status) == (2, "closed")
    assert [each.verdict for each in entities_of(item)] == ["rejected", "accepted", "accepted"]


@pytest.mark.django_db
def test_two_reviewers_who_disagree_need_a_third_decision() -> None:
    item = claimed(a_double_review(), BERT)
    first, second, _ = entities_of(item)
    says(item, first, "reject", BERT)
    says(item, second, "correct", BERT, dose="50 mg")
    accept_all_unflagged(item.id, BERT, token=uuid4())

    status = closing.close(item.id, BERT)

    second.refresh_from_db()
    item.refresh_from_db()
    assert (status, item.round) == ("open", 3)
    assert (second.verdict, second.accepted, second.dose) == ("disputed", False, "25 mg")
    (lab,) = agreement(timezone.now() - timedelta(days=1))
    assert (lab.category, lab.entities, lab.agreed) == ("medication", 3, 2)
    assert lab.kappa == pytest.approx(0.5)

    claimed(item, CLEO)
    says(item, second, "correct", CLEO, dose="50 mg")
    closing.close(item.id, CLEO)

    second.refresh_from_db()
    assert (second.verdict, second.accepted, second.dose) == ("corrected", True, "50 mg")


@pytest.mark.django_db
def test_a_second_reviewer_can_think_again() -> None:
    item = claimed(a_double_review(), BERT)
    accepted = entities_of(item)[1]

    says(item, accepted, "reject", BERT)
    says(item, accepted, "accept", BERT)

    accepted.refresh_from_db()
    assert (accepted.verdict, accepted.accepted) == ("accepted", True)


@pytest.mark.django_db
def test_a_reopened_review_keeps_its_decisions() -> None:
    item = claimed(a_reviewed_record())
    ReviewItem.objects.update(is_double=False)
    (entity,) = entities_of(item)
    says(item, entity, "reject")
    closing.close(item.id, ANNA)

    closing.reopen(item.id, BERT, reason="a second look")
    says(item, entity, "accept", BERT)

    entity.refresh_from_db()
    assert entity.verdict == "accepted"
    actions = ReviewDecision.objects.order_by("created_at").values_list("action", flat=True)
    assert list(actions) == ["reject", "reopen", "accept"]
    with pytest.raises(UserError, match="the review is open"):
        closing.reopen(item.id, ANNA)


@pytest.mark.django_db
def test_lists_and_sentences_of_a_rejected_entity_are_named_until_the_lists_are_renewed() -> None:
    item = claimed(a_reviewed_record())
    ReviewItem.objects.update(is_double=False)
    (entity,) = entities_of(item)
    says(item, entity, "reject")
    # In one transaction all rows have the time of its start, so a decision is always newer.

    stale = stale_results(item.shell_file_id)
    closing.close(item.id, ANNA)

    assert set(stale.list_items.values()) == {(entity.id,)}
    assert len(stale.sentences) == 2
    assert not RecordListItem.objects.filter(shell_file_id=item.shell_file_id).exists()
    left = stale_results(item.shell_file_id)
    assert (bool(left.list_items), len(left.sentences)) == (False, 2)


@pytest.mark.django_db
def test_precision_counts_each_entity_once_with_its_newest_verdict() -> None:
    item = claimed(a_reviewed_record(entities=4))
    first, second, third, fourth = entities_of(item)
    says(item, first, "reject")
    says(item, first, "accept")
    says(item, second, "accept")
    says(item, third, "correct", dose="50 mg")
    says(item, fourth, "reject")
    since = timezone.now() - timedelta(days=1)

    (line,) = precision(since)
    (week,) = precision_by_week(since)

    assert (line.category, line.engine) == ("medication", "local-rules-3")
    assert (line.accepted, line.corrected, line.rejected, line.added) == (2, 1, 1, 0)
    assert line.precision == 0.5
    assert week.precision == 0.5
    assert week.week is not None
    assert week.week.weekday() == 0


@pytest.mark.django_db
def test_an_action_is_audited_without_a_value_of_the_record() -> None:
    user = User.objects.create_user("anna")
    item = a_reviewed_record()
    (entity,) = entities_of(item)

    reviews.take(user, item.id)
    decided = reviews.decide(
        user, item.id, entity.id, DecisionAction.CORRECT, token=uuid4(),
        changes={"dose": "77.31 mg"}, reason="the page says 77.31 mg",
    )  # fmt: skip

    event = AuditEvent.objects.get(action="review correct")
    assert event.actor == "anna"
    assert event.facts["decision"] == str(decided.decision_ids[0])
    assert event.facts["category"] == "medication"
    assert "dose" in event.facts["fields"]
    assert "77.31" not in f"{event.facts} {event.reason}"


@pytest.mark.django_db
def test_a_refused_action_is_audited() -> None:
    user = User.objects.create_user("anna")
    item = a_reviewed_record()
    (entity,) = entities_of(item)

    with pytest.raises(UserError):
        reviews.decide(user, item.id, entity.id, DecisionAction.ACCEPT, token=uuid4())

    event = AuditEvent.objects.get(action="review accept")
    assert (event.result, event.facts["code"]) == ("refused", "REVIEW_NOT_HELD")


@pytest.mark.usefixtures("cloned_db")
def test_the_same_request_from_two_windows_is_one_decision() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    token = uuid4()
    ready = threading.Barrier(6)
    repeated: list[bool] = []

    def send() -> None:
        try:
            ready.wait()
            decided = decide(item.id, ANNA, entity.id, DecisionAction.REJECT, token=token)
            repeated.append(decided.is_repeated)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(repeated) == [False] + [True] * 5
    assert ReviewDecision.objects.count() == 1


@pytest.mark.usefixtures("cloned_db")
def test_a_connection_that_dies_between_statements_leaves_nothing_of_a_decision() -> None:
    item = claimed(a_reviewed_record())
    (entity,) = entities_of(item)
    died = 0

    for statement in range(1, 30):
        seen = 0

        def kill(execute: Any, sql: Any, parameters: Any, many: Any, context: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == statement:  # noqa: B023 - runs within its round of the loop
                context["cursor"].connection.close()
                raise OperationalError("the server closed the connection")
            return execute(sql, parameters, many, context)

        try:
            with connection.execute_wrapper(kill):
                says(item, entity, "correct", dose="50 mg")
        except OperationalError:
            died += 1
            connection.close()
            entity.refresh_from_db()
            left = ReviewDecision.objects.count(), LockedField.objects.count()
            assert (entity.verdict, entity.dose, left) == (None, "25 mg", (0, 0))
        else:
            break

    assert died >= 6
    assert Entity.objects.get().dose == "50 mg"


@pytest.mark.django_db
@pytest.mark.parametrize(("percent", "is_double"), [(100.0, True), (0.0, False)])
def test_the_setting_decides_which_share_has_two_reviewers(
    settings: Any, percent: float, is_double: bool
) -> None:
    settings.REVIEW_DOUBLE_PERCENT = percent

    items = [a_reviewed_record() for _ in range(3)]

    assert [each.is_double for each in items] == [is_double] * 3
