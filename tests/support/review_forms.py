"""The forms of a review as a reviewer sends them, and the records that tests review."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pipeline.models import Entity, ReviewItem
from tests.support.review_rows import (
    a_found_entity,
    a_reviewed_record,
    encounter_of,
)


def asked(client: Client, url: str) -> tuple[Any, int]:
    """Open a page, and return the response and the number of statements."""
    with CaptureQueriesContext(connection) as captured:
        response = client.get(url)
    assert response.status_code == HTTPStatus.OK
    return response, len(captured)


def url_of(item: ReviewItem, act: str = "") -> str:
    """Return the URL of a review or of an action on it."""
    return (
        reverse("admin:review_act", args=[item.id, act])
        if act
        else reverse("admin:review", args=[item.id])
    )


def does(
    client: Client, item: ReviewItem, act: str, entity: Entity | None = None, **form: Any
) -> Any:
    """Send the form of an action with a new token."""
    named = {"entity": str(entity.id)} if entity else {}
    return client.post(url_of(item, act), {"token": str(uuid4()), **named, **form})


def held(client: Client, item: ReviewItem) -> ReviewItem:
    """Claim an item through its form."""
    assert does(client, item, "claim").status_code == HTTPStatus.FOUND
    return item


def a_plain_record(*, entities: int) -> ReviewItem:
    """Insert a record whose entities have no flag."""
    item = a_reviewed_record(entities=0)
    for number in range(entities):
        a_found_entity(encounter_of(item), name="Warfarin", at=30 + number % 5)
    return item


def expire(item: ReviewItem) -> None:
    """Let the claim of an item end."""
    ReviewItem.objects.filter(id=item.id).update(claimed_until=timezone.now() - timedelta(hours=1))
