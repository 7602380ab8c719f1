"""The queue of reviews and the learning page, with a constant number of statements."""

from __future__ import annotations

import re
from http import HTTPStatus
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from observability.permissions import Role
from pipeline.models import ReviewDecision, ReviewItem
from tests.support.review_forms import a_plain_record, asked, does, held, url_of
from tests.support.review_rows import (
    a_reviewed_record,
    entities_of,
)
from tests.support.users import client_of

pytestmark = pytest.mark.django_db

QUEUE_STATEMENTS = 11
LEARNING_STATEMENTS = 9


@pytest.fixture
def reviewer() -> Client:
    """Return a client of a reviewer."""
    return client_of(Role.REVIEWER, "anna")


def test_the_queue_is_in_the_order_of_the_priority_and_explains_it(reviewer: Client) -> None:
    low, high = a_reviewed_record(priority=-1), a_reviewed_record(entities=3, priority=1)
    ReviewItem.objects.filter(id=low.id).update(confidence=1.0, base=0.0, order_key=-1e9)
    ReviewItem.objects.filter(id=high.id).update(reason="flagged")

    page, _ = asked(reviewer, reverse("admin:reviews"))

    assert [row.item.id for row in page.context["rows"]] == [high.id, low.id]
    words = page.content.decode()
    assert "▲</span> flagged" in words
    assert "1 encounter, 3 entities, 0 flagged" in words
    weights = ("0.40", "0.30", "0.20", "0.10")
    assert [weight for weight in weights if f" of {weight}<" in words] == [*weights]


def test_the_queue_asks_the_same_for_one_review_and_for_a_full_page(reviewer: Client) -> None:
    a_reviewed_record()
    _, one = asked(reviewer, reverse("admin:reviews"))
    for _ in range(8):
        a_reviewed_record(entities=2)

    page, nine = asked(reviewer, reverse("admin:reviews"))

    assert len(page.context["rows"]) == 9
    assert nine == one <= QUEUE_STATEMENTS


def test_the_pages_of_the_queue_hold_each_review_once(
    reviewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("observability.listing.reviews.LISTED", 2)
    items = {a_reviewed_record(priority=n % 3 - 1).id for n in range(7)}
    # Reviews with an equal place are told apart by their ids.
    ReviewItem.objects.filter(lane="normal").update(order_key=0.25)

    seen, place = [], ""
    while True:
        page = reviewer.get(reverse("admin:reviews"), {"after": place})
        seen += [row.item.id for row in page.context["rows"]]
        place = page.context["listed"].next_place
        if not place:
            break

    assert len(seen) == 7
    assert set(seen) == items


def test_the_queue_is_filtered_by_state_and_reason(reviewer: Client) -> None:
    mine, free, done = a_reviewed_record(), a_reviewed_record(), a_reviewed_record()
    held(reviewer, mine)
    bert = client_of(Role.REVIEWER, "bert")
    others = held(bert, a_reviewed_record())
    ReviewItem.objects.filter(id=done.id).update(status="closed", closed_at=timezone.now())
    ReviewItem.objects.filter(id=free.id).update(reason="failed")

    def listed(**query: str) -> set[UUID]:
        page = reviewer.get(reverse("admin:reviews"), query)
        return {row.item.id for row in page.context["rows"]}

    assert listed() == {mine.id, free.id, others.id}
    assert listed(**{"is": "mine"}) == {mine.id}
    assert listed(**{"is": "held"}) == {others.id}
    assert listed(**{"is": "free"}) == {free.id}
    assert listed(**{"is": "closed"}) == {done.id}
    assert listed(reason="failed") == {free.id}
    assert listed(reason="mismatch") == set()
    wrong = reviewer.get(reverse("admin:reviews"), {"is": "lost"})
    assert wrong.status_code == HTTPStatus.BAD_REQUEST
    assert "a review is one of free, mine" in wrong.content.decode()


def test_the_queue_says_who_holds_a_review_and_that_no_review_is_open(reviewer: Client) -> None:
    empty = reviewer.get(reverse("admin:reviews")).content.decode()
    held(client_of(Role.REVIEWER, "bert"), a_reviewed_record())

    words = reviewer.get(reverse("admin:reviews")).content.decode()

    assert "No review is open." in empty
    assert re.search(r"bert\s*<small>for <time", words)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_a_user_without_the_right_neither_sees_nor_reviews(role: Role) -> None:
    item, client = a_reviewed_record(), client_of(role)
    (entity,) = entities_of(item)
    urls = [reverse("admin:reviews"), url_of(item), reverse("admin:review_learning")]

    looked = {client.get(url).status_code for url in urls}
    acted = does(client, item, "accept", entity, claim="1").status_code

    assert (looked, acted) == ({HTTPStatus.FORBIDDEN}, HTTPStatus.FORBIDDEN)
    assert not ReviewDecision.objects.exists()


def test_the_learning_page_shows_precision_and_agreement(reviewer: Client) -> None:
    url = reverse("admin:review_learning")
    empty, of_empty = asked(reviewer, url)
    item = held(reviewer, a_plain_record(entities=3))
    first, second, third = entities_of(item)
    does(reviewer, item, "accept", first)
    does(reviewer, item, "accept", second)
    does(reviewer, item, "reject", third, reason="1")

    page, of_full = asked(reviewer, url)

    assert "No verdict in this time." in empty.content.decode()
    ((trend, *_),) = page.context["rows"]
    assert (trend.accepted, trend.rejected, trend.precision) == (2, 1, pytest.approx(2 / 3))
    assert "66.7 %" in page.content.decode()
    assert of_full == of_empty <= LEARNING_STATEMENTS
