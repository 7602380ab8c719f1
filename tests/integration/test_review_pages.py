"""The page of a review and its actions, with a constant number of statements."""

from __future__ import annotations

import re
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from observability.permissions import Role
from pipeline.models import Encounter, Entity, ReviewDecision, ReviewItem
from tests.support.audit_rows import audit_events
from tests.support.review_forms import a_form, a_plain_record, asked, does, expire, held, url_of
from tests.support.review_rows import (
    a_found_entity,
    a_reviewed_record,
    another_encounter,
    encounter_of,
    entities_of,
)
from tests.support.users import client_of

pytestmark = pytest.mark.django_db

REVIEW_STATEMENTS = 27


@pytest.fixture
def reviewer() -> Client:
    """Return a client of a reviewer."""
    return client_of(Role.REVIEWER, "anna")


def test_a_review_asks_the_same_for_10_and_for_200_entities(reviewer: Client) -> None:
    small, large = a_reviewed_record(entities=10), a_reviewed_record(entities=200)
    held(reviewer, small), held(reviewer, large)

    _, of_small = asked(reviewer, url_of(small))
    page, of_large = asked(reviewer, url_of(large))

    assert of_large == of_small <= REVIEW_STATEMENTS
    assert len(page.context["view"].part.rows) == 50
    assert page.context["view"].entities == 200


def test_the_links_of_the_list_lead_to_every_entity_once(reviewer: Client) -> None:
    item = a_reviewed_record(entities=120)
    shown: list[str] = []
    said: list[tuple[str, list[str]]] = []

    following = ""
    while following or not said:
        answer = reviewer.get(f"{url_of(item)}{following}")
        part, text = answer.context["view"].part, answer.content.decode()
        shown += [str(row.entity.id) for row in part.rows]
        links = re.findall(r'<a href="(\?entity=[^"]+)" rel="(prev|next)"', text)
        said.append((part.words, [rel for _, rel in links]))
        following = next((link for link, rel in links if rel == "next"), "")

    assert said == [
        ("1–50 of 120", ["next"]),
        ("51–100 of 120", ["prev", "next"]),
        ("101–120 of 120", ["prev"]),
    ]
    assert sorted(shown) == sorted(str(entity.id) for entity in entities_of(item))
    assert "100 before these" in text


def test_flagged_entities_come_first_and_a_decision_moves_none(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=3))
    plain = entities_of(item)
    flagged = a_found_entity(encounter_of(item), name="metoprolol", at=0, flags=True)

    before = reviewer.get(url_of(item)).context["view"]
    does(reviewer, item, "reject", flagged, reason="2")
    after = reviewer.get(url_of(item)).context["view"]

    order = [flagged.id, *(each.id for each in plain)]
    assert [row.entity.id for row in before.part.rows] == order
    assert [row.entity.id for row in after.part.rows] == order
    assert before.selected.entity.id == flagged.id
    assert after.selected.entity.id == plain[0].id
    assert [row.mark.word for row in before.part.rows] == ["flagged", *["not flagged"] * 3]
    assert after.part.rows[0].mark.word == "rejected"


def test_unaligned_held_and_flagged_entities_differ_by_shape_and_word(reviewer: Client) -> None:
    item = a_plain_record(entities=4)
    entities = entities_of(item)
    Entity.objects.filter(id=entities[0].id).update(
        alignment="unaligned", accepted=False, review_flags=["unaligned"]
    )
    Entity.objects.filter(id=entities[1].id).update(accepted=False, review_flags=["disputed:dose"])
    Entity.objects.filter(id=entities[2].id).update(review_flags=["read_once"])

    rows = reviewer.get(url_of(item)).context["view"].part.rows

    found = {row.entity.id: (row.mark.shape, row.mark.word) for row in rows}
    assert [found[entity.id] for entity in entities] == [
        ("◇", "no place on the page"),
        ("■", "held: no result yet"),
        ("▲", "flagged"),
        ("○", "not flagged"),
    ]


def test_a_decision_leads_to_the_next_entity_and_is_audited_with_old_and_new_value(
    reviewer: Client,
) -> None:
    item = held(reviewer, a_plain_record(entities=2))
    first, second = entities_of(item)
    page = reviewer.get(url_of(item)).content.decode()
    assert f'name="next" value="{second.id}"' in page

    answer = does(
        reviewer, item, "correct", first, next=str(second.id), was_dose="25 mg", dose="50 mg",
        was_name="Warfarin", name="Warfarin",
    )  # fmt: skip

    asked_for = parse_qs(urlsplit(answer["Location"]).query)
    assert asked_for == {
        "entity": [str(second.id)], "said": ["correct"], "last": [str(first.id)],
    }  # fmt: skip
    rows = {row.field: row for row in ReviewDecision.objects.filter(entity_id=first.id)}
    assert (rows["dose"].old_value, rows["dose"].new_value) == ("25 mg", "50 mg")
    assert (rows["verdict"].old_value, rows["verdict"].new_value) == (None, "corrected")
    written = next(row for row in audit_events() if row.action == "review correct")
    assert written.actor == "anna"
    assert UUID(written.facts["decision"]) in {row.id for row in rows.values()}
    assert "dose" in written.facts["fields"]
    assert "mg" not in str(written.facts)
    told = reviewer.get(f"{url_of(item)}?entity={first.id}").content.decode()
    assert "dose: 25 mg → 50 mg" in told


def test_no_address_holds_a_word_of_the_record(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=2))
    first, second = entities_of(item)
    answers = [
        does(reviewer, item, "accept", first, next=str(second.id)),
        does(reviewer, item, "correct", second, was_dose="25 mg", dose="Jane 50 mg"),
        does(reviewer, item, "add", page="1", words="Warfarin stopped", encounter="1",
             category="medication", name="Jane"),
    ]  # fmt: skip

    page = reviewer.get(url_of(item)).content.decode()

    targets = [answer["Location"] for answer in answers]
    targets += re.findall(r'(?:href|action|hx-[a-z]+)="([^"]*)"', page)
    assert not [url for url in targets if re.search("(?i)warfarin|jane|mg", url)]


def test_an_old_form_overwrites_no_newer_value(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    does(reviewer, item, "correct", entity, was_dose="25 mg", dose="50 mg")

    answer = does(
        reviewer,
        item,
        "correct",
        entity,
        was_dose="25 mg",
        dose="25 mg",
        was_route="",
        route="oral",
    )

    entity.refresh_from_db()
    assert answer.status_code == HTTPStatus.FOUND
    assert (entity.dose, entity.route) == ("50 mg", "oral")


def test_a_wrong_value_is_refused_in_words_and_the_form_keeps_what_was_typed(
    reviewer: Client,
) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)

    answer = does(
        reviewer, item, "correct", entity, was_dose="25 mg", dose="75 mg", was_step="", step="soon"
    )

    words = answer.content.decode()
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "Step has no permitted value" in words
    assert 'value="75 mg"' in words
    assert answer["HX-Replace-Url"] == "false"
    assert not ReviewDecision.objects.exists()


def test_a_lost_claim_is_said_and_nothing_typed_is_lost(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    expire(item)

    lost = does(reviewer, item, "correct", entity, was_dose="25 mg", dose="75 mg")
    words = lost.content.decode()
    again = does(reviewer, item, "correct", entity, was_dose="25 mg", dose="75 mg", claim="1")

    assert lost.status_code == HTTPStatus.CONFLICT
    assert "You do not hold this review any more" in words
    assert 'value="75 mg"' in words
    assert 'name="claim" value="1"' in words
    assert again.status_code == HTTPStatus.FOUND
    entity.refresh_from_db()
    assert entity.dose == "75 mg"


def test_a_claim_is_renewed_without_a_page_and_a_lost_one_is_told(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    soon = timezone.now() + timedelta(seconds=5)
    ReviewItem.objects.filter(id=item.id).update(claimed_until=soon)

    renewed = does(reviewer, item, "renew")
    item.refresh_from_db()
    until = item.claimed_until
    expire(item)
    lost = does(reviewer, item, "renew")

    assert renewed.status_code == HTTPStatus.NO_CONTENT
    assert until is not None
    assert until > soon
    assert lost.status_code == HTTPStatus.CONFLICT
    assert lost.content.decode().startswith("you do not hold this review any more")


def test_a_second_reviewer_of_a_held_review_is_told_and_cannot_decide(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    bert = client_of(Role.REVIEWER, "bert")

    page = bert.get(url_of(item)).content.decode()
    answer = does(bert, item, "accept", entity, claim="1")

    assert "anna reviews this record now" in page
    assert 'data-turn="a"' not in page
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "Another reviewer holds this review" in answer.content.decode()
    assert not ReviewDecision.objects.exists()


def test_the_second_reviewer_is_told_that_decisions_are_opinions(reviewer: Client) -> None:
    item = a_plain_record(entities=1)
    ReviewItem.objects.filter(id=item.id).update(is_double=True)
    held(reviewer, item)
    (entity,) = entities_of(item)
    does(reviewer, item, "accept", entity)
    does(reviewer, item, "close")
    bert = client_of(Role.REVIEWER, "bert")

    of_first = reviewer.get(url_of(item)).content.decode()
    of_second = bert.get(url_of(item)).content.decode()
    does(bert, item, "reject", entity, claim="1", reason="1")
    listed = bert.get(reverse("admin:reviews"), {"is": "second"}).content.decode()

    assert "You did the first review of this record" in of_first
    assert "You are the second reviewer; anna did the first review" in of_second
    assert 'data-turn="m"' not in of_second
    assert 'data-turn="n"' not in of_second
    assert "second review" in listed
    entity.refresh_from_db()
    assert entity.verdict == "disputed"


def test_a_rejection_of_the_first_reviewer_needs_an_opinion_of_its_own(reviewer: Client) -> None:
    """The page offers "accept all" only where the database takes it."""
    item = a_plain_record(entities=2)
    ReviewItem.objects.filter(id=item.id).update(is_double=True)
    held(reviewer, item)
    rejected, _ = entities_of(item)
    does(reviewer, item, "reject", rejected, reason="1")
    does(reviewer, item, "accept-all")
    does(reviewer, item, "close")
    bert = client_of(Role.REVIEWER, "bert")

    before = bert.get(url_of(item)).content.decode()
    refused = does(bert, item, "accept-all", claim="1")
    does(bert, item, "reject", rejected, reason="1")
    after = bert.get(url_of(item)).content.decode()

    assert refused.status_code == HTTPStatus.CONFLICT
    assert 'data-turn="A" disabled' in before
    assert 'data-turn="A">' in after


def test_accept_all_leaves_flagged_entities_for_a_decision_of_their_own(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=3))
    flagged = a_found_entity(encounter_of(item), name="metoprolol", at=0, flags=True)

    refused = does(reviewer, item, "accept-all")
    does(reviewer, item, "accept", flagged)
    done = does(reviewer, item, "accept-all")

    assert refused.status_code == HTTPStatus.CONFLICT
    assert "1 flagged entities wait for a decision of their own" in refused.content.decode()
    assert done.status_code == HTTPStatus.FOUND
    assert {each.verdict for each in entities_of(item)} == {"accepted"}
    (row,) = [row for row in audit_events() if row.facts.get("entities") == 3]
    assert row.action == "review accept"


def test_a_missed_entity_is_added_by_its_words_on_the_page(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    form: dict[str, Any] = {"page": "1", "encounter": "1", "category": "medication"}

    missing = does(reviewer, item, "add", words="Aspirin", **form)
    several = does(reviewer, item, "add", words="warfarin", **form)
    added = does(reviewer, item, "add", words="warfarin", which="2", name="Warfarin", **form)

    assert (missing.status_code, several.status_code) == (HTTPStatus.BAD_REQUEST,) * 2
    assert "Page 1 does not have these words" in missing.content.decode()
    assert "page 1 has these words 2 times" in several.content.decode().replace("Page", "page")
    assert 'value="warfarin"' in several.content.decode()
    assert added.status_code == HTTPStatus.FOUND
    entity = Entity.objects.get(shell_file_id=item.shell_file_id, verdict="added")
    assert (entity.quote, entity.char_start, entity.name) == ("Warfarin", 51, "Warfarin")


def test_an_entity_moves_to_another_encounter_by_its_key(reviewer: Client) -> None:
    item = a_plain_record(entities=1)
    other = another_encounter(item)
    held(reviewer, item)
    (entity,) = entities_of(item)
    page = reviewer.get(url_of(item)).content.decode()
    assert f'value="{other.id}" data-move="1"' in page

    does(reviewer, item, "move", entity, encounter=str(other.id))

    entity.refresh_from_db()
    assert entity.healthcare_encounter_id == other.id


def test_a_finished_review_leads_to_the_next_one_and_can_be_reopened(reviewer: Client) -> None:
    item, following = held(reviewer, a_plain_record(entities=1)), a_reviewed_record()
    (entity,) = entities_of(item)

    early = does(reviewer, item, "close")
    does(reviewer, item, "accept", entity)
    closed = does(reviewer, item, "close")
    page = reviewer.get(url_of(item)).content.decode()
    reopened = does(reviewer, item, "reopen", reason="a page was missed")

    assert early.status_code == HTTPStatus.CONFLICT
    assert "1 entities wait for a decision" in early.content.decode()
    assert urlsplit(closed["Location"]).path == url_of(following)
    following.refresh_from_db()
    assert following.claimed_by == f"user:{User.objects.get(username='anna').pk}"
    assert "✓ anna closed this review" in page
    assert reopened.status_code == HTTPStatus.FOUND
    item.refresh_from_db()
    assert item.status == "open"


def test_a_sent_form_is_carried_out_once(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    form = a_form(item, entity)

    answers = [reviewer.post(url_of(item, "accept"), form).status_code for _ in range(2)]

    assert answers == [HTTPStatus.FOUND] * 2
    assert ReviewDecision.objects.count() == 1


def test_an_incomplete_record_is_named_incomplete(reviewer: Client) -> None:
    item = a_plain_record(entities=1)
    Encounter.objects.filter(id=another_encounter(item).id).update(entities_published_at=None)

    page = reviewer.get(url_of(item)).content.decode()
    listed = reviewer.get(reverse("admin:reviews")).content.decode()

    note = "Record incomplete: 1 of 2 encounters is not published."
    assert note in page
    assert note in listed


def test_an_entity_of_another_record_is_not_found(reviewer: Client) -> None:
    item, other = a_plain_record(entities=1), a_plain_record(entities=1)
    (entity,) = entities_of(other)
    held(reviewer, item)

    looked = reviewer.get(f"{url_of(item)}?entity={entity.id}")
    decided = does(reviewer, item, "accept", entity)

    assert (looked.status_code, decided.status_code) == (HTTPStatus.NOT_FOUND,) * 2
    assert not ReviewDecision.objects.exists()


def test_the_last_entities_load_the_first_page_of_the_next_review(reviewer: Client) -> None:
    item, following = held(reviewer, a_plain_record(entities=1)), a_reviewed_record()

    page = reviewer.get(url_of(item))

    (image,) = page.context["view"].images
    assert (image.record_id, image.page) == (following.shell_file_id, 1)
    following.refresh_from_db()
    assert following.claimed_by is None


def test_the_pages_have_no_inline_script_style_or_handler(reviewer: Client) -> None:
    item = held(reviewer, a_reviewed_record(entities=2))
    urls = [reverse("admin:reviews"), url_of(item), reverse("admin:review_learning")]

    for url in urls:
        markup = asked(reviewer, url)[0].content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", markup), url


def test_each_reading_of_a_review_is_audited(reviewer: Client) -> None:
    item = a_plain_record(entities=1)
    (entity,) = entities_of(item)

    reviewer.get(url_of(item))

    (row,) = audit_events()
    assert (row.action, row.target_id) == ("read_phi", str(item.shell_file_id))
    assert row.facts == {"what": "review", "entity": str(entity.id), "entities": 1}


def test_results_that_rest_on_a_changed_entity_are_named_outdated(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=2))
    first, _ = entities_of(item)
    url = reverse("admin:record_results", args=[item.shell_file_id])
    before = reviewer.get(url).content.decode()

    does(reviewer, item, "reject", first, reason="1")
    after = reviewer.get(url).content.decode()

    # One sentence and one list entry rest on the entity.
    assert "Outdated" not in before
    assert after.count("≠ Outdated") == 2
    assert reverse("admin:review", args=[item.id]) in after
    record = reverse("admin:record", args=[item.shell_file_id])
    assert reverse("admin:review", args=[item.id]) in reviewer.get(record).content.decode()


def test_closed_reviews_change_what_the_results_say_about_themselves(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    url = reverse("admin:record_results", args=[item.shell_file_id])
    before = reviewer.get(url).content.decode()

    does(reviewer, item, "accept", entities_of(item)[0])
    does(reviewer, item, "close")
    after = reviewer.get(url).content.decode()

    assert "written by a machine, not reviewed" in before
    assert "written by a machine, not reviewed" not in after
    assert "a person has reviewed the entities" in after


def test_a_record_whose_encounters_are_all_held_says_what_to_do_and_asks_for_no_entity(
    reviewer: Client,
) -> None:
    item = a_reviewed_record(entities=0)
    Encounter.objects.filter(shell_file_id=item.shell_file_id).update(entities_published_at=None)
    ReviewItem.objects.filter(id=item.id).update(figures={"held": 1})

    said = " ".join(reviewer.get(url_of(item)).content.decode().split())

    assert "No encounter of this record is published" in said
    assert "upload its file under that patient" in said
    assert "Add what the pages say" not in said
