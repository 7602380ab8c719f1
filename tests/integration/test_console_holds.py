"""The verbs about a queue or provider: who may, that each is done once and is written down."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from observability.actions.holds import VERBS
from observability.permissions import ROLES, Role
from pipeline.core.states import Step
from pipeline.models import Pause
from tests.support.audit_rows import deeds
from tests.support.incident_rows import GEMINI, an_incident
from tests.support.rows import a_job

pytestmark = pytest.mark.django_db


def a_client(name: str) -> Client:
    """Give a client of somebody; `nobody` has no role."""
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set(Group.objects.filter(name=name))
    client = Client()
    client.force_login(user)
    return client


def a_target(verb: str) -> str:
    """Give something that a verb applies to."""
    if VERBS[verb].target_kind == "queue":
        if verb == "resume":
            Pause.objects.create(queue=Step.PASS1, reason="a test")
        return Step.PASS1.value
    if verb == "resume-provider":
        an_incident()
    return f"{GEMINI.provider}:{GEMINI.model}"


def do(client: Client, verb: str, target: str, reason: str = "as agreed") -> Any:
    """Perform a verb as its form does."""
    return client.post(reverse("admin:act", args=[verb]), {"target": target, "reason": reason})


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("who", ["nobody", *Role])
def test_a_verb_is_open_to_the_roles_that_have_its_right(verb: str, who: str) -> None:
    may = who != "nobody" and VERBS[verb].right in ROLES[Role(who)]
    client, target = a_client(who), a_target(verb)

    asked = client.get(reverse("admin:confirm", args=[verb]), {"target": target}).status_code
    looked = client.get(reverse("admin:act", args=[verb])).status_code
    done = do(client, verb, target).status_code

    assert asked == (HTTPStatus.OK if may else HTTPStatus.FORBIDDEN)
    assert looked == HTTPStatus.METHOD_NOT_ALLOWED
    assert done == (HTTPStatus.FOUND if may else HTTPStatus.FORBIDDEN)
    expected = [("done" if may else "refused", verb, target)]
    assert list(deeds().values_list("result", "verb", "target_id")) == expected


@pytest.mark.parametrize("verb", VERBS)
def test_a_second_click_is_refused_and_both_are_written_down(verb: str) -> None:
    client, target = a_client(Role.OPERATOR), a_target(verb)

    first = do(client, verb, target)
    second = do(client, verb, target)

    assert first.status_code == HTTPStatus.FOUND
    assert second.status_code == HTTPStatus.OK
    assert second.context["problem"]
    assert not second.context["is_open"]
    events = deeds().values_list("verb", "target_id", "result")
    assert list(events) == [(verb, target, "done"), (verb, target, "refused")]


def test_what_a_verb_will_do_is_shown_and_nothing_is_done() -> None:
    page = a_client(Role.OPERATOR).get(
        reverse("admin:confirm", args=["pause"]), {"target": a_target("pause")}
    )

    assert VERBS["pause"].effect in page.content.decode()
    assert not Pause.objects.exists()


@pytest.mark.parametrize(
    ("verb", "target"),
    [("pause", "none"), ("drop", "pass1"), ("cancel", "pass1"), ("pause-provider", "none")],
)
def test_what_is_not_there_is_not_found(verb: str, target: str) -> None:
    url = reverse("admin:confirm", args=[verb])

    response = a_client(Role.ADMINISTRATOR).get(url, {"target": target})

    assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_verb_without_a_reason_does_nothing() -> None:
    response = do(a_client(Role.OPERATOR), "pause", a_target("pause"), reason=" ")

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.context["problem"] == "give a reason"
    assert not Pause.objects.exists()
    assert [each.result for each in deeds()] == ["refused"]


def test_the_queues_say_who_holds_them() -> None:
    a_job(step=Step.PASS05)
    client = a_client(Role.OPERATOR)
    do(client, "pause", "pass05", reason="the provider is moved")

    page = client.get(reverse("admin:queues"))

    words = page.content.decode()
    assert "by operator: the provider is moved" in words
    assert f"{reverse('admin:confirm', args=['resume'])}?target=pass05" in words
