"""The forms of a review as a reviewer sends them, and the records that tests review."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pipeline.models import Entity, ReviewItem
from pipeline.operations.review.rounds import unflagged_state
from pipeline.transitions.review_decisions import entity_state_sql
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
    """Send the form of an action as a new page has it: a new token, and the present state."""
    return client.post(url_of(item, act), {**a_form(item, entity), **form})


def a_form(item: ReviewItem, entity: Entity | None = None) -> dict[str, str]:
    """Return the hidden fields of a page that is loaded now."""
    item.refresh_from_db()
    waiting = unflagged_state(item.id, item.shell_file_id, item.round)
    form = {"token": str(uuid4()), "shown_unflagged": waiting}
    if entity is None:
        return form
    return {**form, "entity": str(entity.id), "shown": state_of(entity.id)}


def form_on(client: Client, item: ReviewItem, act: str, entity: Entity) -> dict[str, str]:
    """Load the page of an entity, and return the fields of one of its forms."""
    page = client.get(url_of(item), {"entity": str(entity.id)}).content.decode()
    forms = re.findall(r'<form method="post" action="([^"]*)"[^>]*>(.*?)</form>', page, re.DOTALL)
    (fields,) = (inside for url, inside in forms if url == url_of(item, act))
    inputs = re.findall(r'<input\b[^>]*?name="([^"]*)"[^>]*?value="([^"]*)"', fields)
    return {name: unescape(value) for name, value in inputs}


def state_of(entity_id: UUID) -> str:
    """Return the state of an entity that a page shows."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {entity_state_sql('d')} FROM pass1_entity_detections d WHERE d.id = %s",  # noqa: S608 - SQL without any input
            [entity_id],
        )
        row = cursor.fetchone()
    return str(row[0]) if row else ""


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
