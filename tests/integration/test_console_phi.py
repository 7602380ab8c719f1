"""PHI is shown only to readers with the right, and each reading is audited once."""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from observability.permissions import ROLES, Right, Role
from observability.phi.calls import Prompt, read_call
from observability.phi.diff import difference
from observability.phi.pages import page_view
from pipeline.clinical.page_text.marks import halves, runs
from pipeline.models import Batch, Entity, Page, ProviderCall, ProviderPayload
from tests.support import records
from tests.support.audit_rows import audit_events
from tests.support.databases import as_owner

OK, FORBIDDEN, LOGIN = HTTPStatus.OK, HTTPStatus.FORBIDDEN, HTTPStatus.FOUND
READ = 5
"""The page of the encounter on display. Its batch failed once and then succeeded."""


@pytest.fixture(scope="module")
def ran(module_db: str) -> UUID:
    """Return a record after an outage that one batch absorbed."""
    found: UUID = records.failed_record(records.LAB).id
    return found


def a_client(name: str) -> Client:
    """Return a client with a role; `no-role` has no role, `anonymous` is not logged in."""
    client = Client()
    if name != "anonymous":
        user = User.objects.create_user(f"{name}-{uuid4()}", is_staff=True)
        user.groups.set(Group.objects.filter(name=name))
        client.force_login(user)
    return client


def the_calls(record_id: UUID) -> list[ProviderCall]:
    """Return the two calls of the batch that was requested twice, in order."""
    batch = Batch.objects.get(pass1_encounter_result__shell_file=record_id, status="succeeded")
    return list(ProviderCall.objects.filter(work_item_id=batch.id).order_by("attempt"))


def the_urls(record_id: UUID) -> dict[str, str]:
    """Return each URL whose response contains PHI."""
    first, second = the_calls(record_id)
    return {
        "page": reverse("admin:record_page", args=[record_id, READ]),
        "image": reverse("admin:page_image", args=[record_id, READ]),
        "summary": reverse("admin:record_results", args=[record_id]),
        "call": reverse("admin:call_reading", args=[second.id]),
        "replies": reverse("admin:compare_replies", args=[record_id])
        + f"?a={first.id}&b={second.id}",
    }


@pytest.mark.parametrize("who", ["anonymous", "no-role", *Role])
def test_phi_goes_to_those_with_the_right_and_each_reading_is_written_down(
    ran: UUID, who: str
) -> None:
    may = who in set(Role) and Right.READ_PHI in ROLES[Role(who)]
    client, before = a_client(who), audit_events().count()
    urls = the_urls(ran)

    answers = {name: client.get(url) for name, url in urls.items()}
    posted = {name: client.post(url).status_code for name, url in urls.items()}

    expected = OK if may else LOGIN if who == "anonymous" else FORBIDDEN
    assert {name: each.status_code for name, each in answers.items()} == dict.fromkeys(
        urls, expected
    )
    assert set(posted.values()) == {LOGIN if who == "anonymous" else HTTPStatus.METHOD_NOT_ALLOWED}
    written = list(audit_events())[before:]
    assert [(each.action, each.target_kind) for each in written] == (
        [("read_phi", kind) for kind in ("record", "record", "record", "call", "call")]
        if may
        else []
    )
    if may:
        kept = [each.headers["Cache-Control"] for each in answers.values()]
        assert all(each.startswith("no-store") for each in kept)
        assert answers["image"].content.startswith(b"\x89PNG")


def test_a_page_and_its_image_are_one_reading(ran: UUID) -> None:
    client, before = a_client(Role.REVIEWER), audit_events().count()
    page = client.get(the_urls(ran)["page"])
    image = page.context["image"]

    drawn = client.get(image)
    by_another = a_client(Role.REVIEWER).get(image)

    assert (drawn.status_code, by_another.status_code) == (OK, OK)
    facts = [each.facts for each in audit_events()[before:]]
    assert facts == [
        {"page": READ, "entities": len(page.context["view"].entities)},
        {"page": READ, "image": True},
    ]


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.REVIEWER])
def test_the_record_page_offers_what_may_be_read_and_nothing_else(ran: UUID, role: Role) -> None:
    call = the_calls(ran)[1]
    url = reverse("admin:record", args=[ran])

    words = a_client(role).get(f"{url}?node={call.id}").content.decode()

    offered = [
        reverse("admin:call_reading", args=[call.id]) in words,
        reverse("admin:record_pages", args=[ran]) in words,
        reverse("admin:record_page", args=[ran, READ]) in words,
    ]
    assert offered == [role is Role.REVIEWER] * 3


def test_the_marked_text_is_the_quote_of_the_entity(ran: UUID) -> None:
    view = page_view(ran, READ)

    marked = {
        each.number: "".join(run.text for run in view.runs if each.number in run.numbers)
        for each in view.entities
    }

    assert marked == {each.number: each.entity.quote for each in view.entities}
    assert (
        "".join(run.text for run in view.runs)
        == Page.objects.get(shell_file=ran, page_number=READ).text
    )
    assert view.drawing is not None
    assert {box.number for box in view.drawing.boxes} == marked.keys()
    assert len(marked) == Entity.objects.filter(shell_file=ran, page_number=READ).count() > 0


CHANGED = ("value", "negated", "accepted", "review_flags", "second_reading")


def test_a_disputed_entity_shows_both_readings_side_by_side(ran: UUID) -> None:
    disputed = Entity.objects.filter(shell_file=ran, page_number=READ).exclude(value=None)[0]
    before = {name: getattr(disputed, name) for name in CHANGED}
    Entity.objects.filter(id=disputed.id).update(
        value="4.1",
        negated=None,
        accepted=False,
        review_flags=["disputed:value", "disputed:negated", "not_in_quote:unit"],
        second_reading={"value": "<0.50", "negated": True},
    )

    (shown,) = [e for e in page_view(ran, READ).entities if e.entity.id == disputed.id]
    words = a_client(Role.REVIEWER).get(reverse("admin:record_page", args=[ran, READ]))
    Entity.objects.filter(id=disputed.id).update(**before)

    assert [(r.attribute, r.reply, r.second) for r in shown.readings] == [
        ("value", "4.1", "<0.50"),
        ("negated", "not stated", "negated"),
    ]
    assert shown.reasons[0] == "two readers disagree"
    assert "disputed" not in " ".join(shown.reasons)
    assert "<strong>Not accepted:</strong>" in words.content.decode()
    assert "<td>&lt;0.50</td>" in words.content.decode()


def test_entities_that_share_text_are_each_marked_whole() -> None:
    found = runs("aspirin 81 mg daily", [(1, 0, 13), (2, 8, 19), (3, 8, 10)])

    assert [(run.text, run.numbers, run.first_of) for run in found] == [
        ("aspirin ", (1,), (1,)),
        ("81", (1, 2, 3), (2, 3)),
        (" mg", (1, 2), ()),
        (" daily", (2,), ()),
    ]


def test_a_quote_over_two_pages_is_divided_where_the_pages_say() -> None:
    before, after = "Plan:\nstart aspirin\nfooter", "header\n81 mg\ndaily. Then"

    edges = halves("start aspirin\n81 mg\ndaily", before, after, 6, len("header\n81 mg\ndaily"))

    assert (before[6 : edges[0]], after[edges[1] : 18]) == ("start aspirin", "81 mg\ndaily")


def test_a_prompt_says_whether_it_is_the_prompt_that_was_sent(ran: UUID) -> None:
    failed, call = the_calls(ran)
    chunk_call = ProviderCall.objects.get(processing_session__shell_file=ran, step="pass05")
    sent, of_chunk, unanswered = read_call(call), read_call(chunk_call), read_call(failed)
    payload = ProviderPayload.objects.get(call=call)

    with as_owner():
        ProviderPayload.objects.filter(call=call).update(prompt_sha256="0" * 64)
    changed = read_call(ProviderCall.objects.get(id=call.id))
    with as_owner():
        ProviderPayload.objects.filter(call=call).delete()
    pruned = read_call(ProviderCall.objects.get(id=call.id))
    payload.save(force_insert=True)

    assert (sent.state, of_chunk.state) == (Prompt.SAME, Prompt.SAME)
    assert sent.reply is not None
    assert '"entities": [' in sent.reply
    assert (unanswered.state, unanswered.reply) == (Prompt.UNCHECKED, None)
    assert changed.state is Prompt.DIFFERS
    assert (pruned.state, pruned.reply) == (Prompt.UNCHECKED, None)
    assert "after its retention time" in pruned.missing


def test_a_call_whose_pages_are_gone_says_so_and_shows_its_reply(ran: UUID) -> None:
    failed, answered = the_calls(ran)
    with as_owner():
        Page.objects.filter(shell_file_id=ran).delete()

    page = a_client(Role.ADMINISTRATOR).get(reverse("admin:call_reading", args=[answered.id]))

    assert page.status_code == OK
    assert page.context["read"].state is Prompt.PAGES_GONE
    assert page.context["read"].reply
    assert read_call(failed).state is Prompt.PAGES_GONE


def test_two_attempts_stand_side_by_side_without_phi(ran: UUID) -> None:
    first, second = the_calls(ran)
    url = reverse("admin:compare", args=[ran])

    page = a_client(Role.VIEWER).get(url, {"of": str(first.work_item_id)})
    strange = a_client(Role.VIEWER).get(url, {"a": str(first.id), "b": str(uuid4())})

    facts = {name: (left, right) for name, left, right, _ in page.context["facts"]}
    assert facts["Outcome"] == ("API_5XX", "OK, accepted")
    assert facts["HTTP"] == ("500", "200")
    assert facts["Response id"][1] == second.response_id
    assert reverse("admin:compare_replies", args=[ran]) not in page.content.decode()
    assert strange.status_code == HTTPStatus.NOT_FOUND


def test_a_difference_folds_what_is_alike() -> None:
    left = [f"line {n}" for n in range(40)]

    lines = difference(left, [*left[:20], "another", *left[21:]])

    assert [(line.left, line.right) for line in lines if line.kind == "changed"] == [
        ("line 20", "another")
    ]
    assert [line.folded for line in lines if line.kind == "folded"] == [17, 16]


@pytest.mark.parametrize("number", [0, 6, 99999])
def test_a_page_that_is_not_there_is_not_found_and_no_reading(ran: UUID, number: int) -> None:
    client, before = a_client(Role.REVIEWER), audit_events().count()

    page = client.get(reverse("admin:record_page", args=[ran, number]))
    image = client.get(reverse("admin:page_image", args=[ran, number]))

    assert (page.status_code, image.status_code) == (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_FOUND)
    assert audit_events().count() == before
