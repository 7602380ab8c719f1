"""A form of an old tab: a decision about a state that has changed since is refused."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from observability.permissions import Role
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import DecisionAction, EnrichedEntity, Entity, ReviewDecision, ReviewItem
from pipeline.operations.review.decisions import accept_all_unflagged, decide
from tests.support.audit_rows import audit_events
from tests.support.review_forms import a_plain_record, does, form_on, held, state_of, url_of
from tests.support.review_rows import (
    ANNA,
    a_found_entity,
    another_encounter,
    claimed,
    encounter_of,
    entities_of,
    says,
)
from tests.support.users import client_of

pytestmark = pytest.mark.django_db

SENT: dict[str, dict[str, str]] = {
    "accept": {},
    "reject": {"reason": "1"},
    "correct": {"dose": "75 mg"},
    "move": {},
}
"""The forms of a decision, with what the reviewer adds to the fields of the page."""


@pytest.fixture
def reviewer() -> Client:
    """Return a client of a reviewer."""
    return client_of(Role.REVIEWER, "anna")


def _of_old_tab(client: Client, item: ReviewItem, act: str, entity: Entity) -> dict[str, str]:
    form = {**form_on(client, item, act, entity), **SENT[act]}
    if act == "move":
        form["encounter"] = str(another_encounter(item, index=3).id)
    return form


@pytest.mark.parametrize("act", SENT)
@pytest.mark.parametrize("other", ["accept", "reject", "correct"])
def test_a_decision_of_an_old_tab_is_refused_and_changes_nothing(
    reviewer: Client, act: str, other: str
) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    another_encounter(item)
    (entity,) = entities_of(item)
    old = _of_old_tab(reviewer, item, act, entity)
    done = {"was_dose": "25 mg", "dose": "50 mg"} if other == "correct" else {}
    does(reviewer, item, other, entity, **done)
    before = (state_of(entity.id), ReviewDecision.objects.count())

    answer = reviewer.post(url_of(item, act), old)

    words = " ".join(answer.content.decode().split())
    assert answer.status_code == HTTPStatus.CONFLICT
    assert (state_of(entity.id), ReviewDecision.objects.count()) == before
    verb = {"accept": "accepted", "reject": "rejected", "correct": "corrected"}[other]
    assert f"You {verb} this entity" in words
    assert "after this page was shown, so nothing was stored: look at the entity" in words
    (refused,) = [row for row in audit_events() if row.result == "refused"]
    assert refused.facts["code"] == "REVIEW_CHANGED"


def test_a_state_that_was_restored_since_has_changed_too(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    does(reviewer, item, "accept", entity)
    old = form_on(reviewer, item, "reject", entity)
    does(reviewer, item, "reject", entity, reason="1")
    does(reviewer, item, "accept", entity)

    answer = reviewer.post(url_of(item, "reject"), {**old, "reason": "1"})

    assert answer.status_code == HTTPStatus.CONFLICT
    entity.refresh_from_db()
    assert entity.verdict == "accepted"


def test_the_refused_page_shows_the_new_state_keeps_what_was_typed_and_decides(
    reviewer: Client,
) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    old = {**form_on(reviewer, item, "correct", entity), "dose": "75 mg"}
    does(reviewer, item, "correct", entity, was_dose="25 mg", dose="50 mg", was_route="",
         route="oral")  # fmt: skip

    answer = reviewer.post(url_of(item, "correct"), old)
    fields = {each.name: each for each in answer.context["view"].fields}
    shown = {"shown": answer.context["shown"], "token": str(uuid4())}
    sent = {f"was_{name}": each.was for name, each in fields.items()}
    sent |= {name: each.value for name, each in fields.items()}
    again = reviewer.post(url_of(item, "correct"), {**old, **sent, **shown})

    assert answer.status_code == HTTPStatus.CONFLICT
    assert (fields["dose"].was, fields["dose"].value) == ("50 mg", "75 mg")
    assert (fields["route"].was, fields["route"].value) == ("oral", "oral")
    assert again.status_code == HTTPStatus.FOUND
    entity.refresh_from_db()
    assert (entity.dose, entity.route) == ("75 mg", "oral")


def test_a_refusal_for_another_cause_does_not_renew_what_the_form_showed(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    old = {**form_on(reviewer, item, "correct", entity), "step": "soon"}
    does(reviewer, item, "accept", entity)

    answer = reviewer.post(url_of(item, "correct"), old)
    again = reviewer.post(
        url_of(item, "correct"), {**old, "step": "2", "shown": answer.context["shown"]}
    )

    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert again.status_code == HTTPStatus.CONFLICT


def test_a_replayed_form_is_carried_out_once_also_after_another_decision(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    form = form_on(reviewer, item, "accept", entity)
    reviewer.post(url_of(item, "accept"), form)
    does(reviewer, item, "reject", entity, reason="1")

    replayed = reviewer.post(url_of(item, "accept"), form)

    assert replayed.status_code == HTTPStatus.FOUND
    entity.refresh_from_db()
    assert entity.verdict == "rejected"


def test_a_value_that_a_later_pass_changed_is_not_accepted_unseen(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    old = form_on(reviewer, item, "accept", entity)
    EnrichedEntity.objects.filter(entity=entity).update(flags=["disputed:route"])

    answer = reviewer.post(url_of(item, "accept"), old)

    assert answer.status_code == HTTPStatus.CONFLICT
    assert "A later pass has changed this entity" in answer.content.decode()
    assert not ReviewDecision.objects.exists()


def test_an_opinion_of_an_old_tab_is_refused(reviewer: Client) -> None:
    item = a_plain_record(entities=1)
    ReviewItem.objects.filter(id=item.id).update(is_double=True)
    held(reviewer, item)
    (entity,) = entities_of(item)
    does(reviewer, item, "accept", entity)
    does(reviewer, item, "close")
    bert = client_of(Role.REVIEWER, "bert")
    held(bert, item)
    old = form_on(bert, item, "reject", entity)
    does(bert, item, "accept", entity)

    answer = bert.post(url_of(item, "reject"), {**old, "reason": "1"})

    # The agreement of the second reviewer changed no verdict.
    assert answer.status_code == HTTPStatus.CONFLICT
    entity.refresh_from_db()
    assert entity.verdict == "accepted"


def test_another_reviewer_is_named(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    old = form_on(reviewer, item, "reject", entity)
    does(reviewer, item, "give-back")
    does(client_of(Role.REVIEWER, "bert"), item, "accept", entity, claim="1")
    ReviewItem.objects.filter(id=item.id).update(claimed_until=None)

    answer = reviewer.post(url_of(item, "reject"), {**old, "reason": "1", "claim": "1"})

    assert answer.status_code == HTTPStatus.CONFLICT
    assert "Bert accepted this entity" in answer.content.decode()


def test_the_page_is_marked_in_the_navigation_and_its_links_are_separated(
    reviewer: Client,
) -> None:
    item = a_plain_record(entities=1)

    page = reviewer.get(url_of(item)).content.decode()

    assert 'data-go="v" aria-current="page"' in page
    assert page.count('aria-current="page"') == 1
    assert page.partition('class="c-crumbs"')[2].partition("</p>")[0].count("›") == 2


def test_a_refused_addition_keeps_its_values_also_without_the_claim(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    ReviewItem.objects.filter(id=item.id).update(claimed_by="user:999")

    answer = does(reviewer, item, "add", entities_of(item)[0], page="1", words="Warfarin",
                  which="2", encounter="1", category="allergy", dose="5 mg")  # fmt: skip

    words = answer.content.decode()
    assert answer.status_code == HTTPStatus.CONFLICT
    assert 'value="5 mg"' in words
    assert "<option selected>allergy</option>" in words


@pytest.mark.parametrize("act", ["accept", "reject", "correct", "accept-all"])
def test_a_form_that_does_not_say_what_it_showed_is_refused(reviewer: Client, act: str) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    (entity,) = entities_of(item)
    form: dict[str, Any] = {"shown": "", "shown_unflagged": "", "was_dose": "25 mg", "dose": "5 mg"}

    answer = does(reviewer, item, act, entity, **form)

    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "The form does not say what it showed" in answer.content.decode()
    assert not ReviewDecision.objects.exists()


def test_accept_all_of_an_old_tab_keeps_each_decision_and_says_what_changed(
    reviewer: Client,
) -> None:
    item = held(reviewer, a_plain_record(entities=3))
    first, _, third = entities_of(item)
    old = form_on(reviewer, item, "accept-all", first)
    does(reviewer, item, "reject", third, reason="1")

    refused = reviewer.post(url_of(item, "accept-all"), old)
    verdicts = [each.verdict for each in entities_of(item)]
    renewed = form_on(reviewer, item, "accept-all", first)
    done = reviewer.post(url_of(item, "accept-all"), renewed)

    words = " ".join(refused.content.decode().split())
    assert refused.status_code == HTTPStatus.CONFLICT
    assert "Other entities wait now than this page showed (you rejected an entity" in words
    assert verdicts == [None, None, "rejected"]
    assert done.status_code == HTTPStatus.FOUND
    assert [each.verdict for each in entities_of(item)] == ["accepted", "accepted", "rejected"]


def test_accept_all_accepts_no_entity_that_the_page_did_not_show(reviewer: Client) -> None:
    item = held(reviewer, a_plain_record(entities=1))
    old = form_on(reviewer, item, "accept-all", entities_of(item)[0])
    a_found_entity(encounter_of(item), name="metoprolol", at=0)

    answer = reviewer.post(url_of(item, "accept-all"), old)

    assert answer.status_code == HTTPStatus.CONFLICT
    assert not ReviewDecision.objects.exists()


def test_the_statement_that_stores_a_decision_compares_the_state() -> None:
    item = claimed(a_plain_record(entities=2))
    entity, _ = entities_of(item)
    shown = state_of(entity.id)
    says(item, entity, "accept")

    with pytest.raises(UserError) as refused:
        decide(item.id, ANNA, entity.id, DecisionAction.REJECT, token=uuid4(), shown=shown)
    with pytest.raises(UserError) as all_refused:
        accept_all_unflagged(item.id, ANNA, token=uuid4(), shown="2-0")

    codes = {refused.value.code, all_refused.value.code}
    assert codes == {UserErrorCode.REVIEW_CHANGED}
    assert ReviewDecision.objects.count() == 1
