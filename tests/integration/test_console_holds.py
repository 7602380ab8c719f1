"""The holds of queues and providers check rights, act once, and are audited."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from observability.actions.holds import HOLD_ACTIONS
from observability.permissions import ROLES, Role
from pipeline.core.states import Step
from pipeline.models import Pause
from tests.support.audit_rows import audit_events
from tests.support.incident_rows import GEMINI, an_incident
from tests.support.rows import a_job

pytestmark = pytest.mark.django_db


def a_client(name: str) -> Client:
    """Return a client with a role; `no-role` has no role."""
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set(Group.objects.filter(name=name))
    client = Client()
    client.force_login(user)
    return client


def a_target(action: str) -> str:
    """Return a target of an action."""
    if HOLD_ACTIONS[action].target_kind == "queue":
        if action == "resume":
            Pause.objects.create(queue=Step.PASS1, reason="a test")
        return Step.PASS1.value
    if action == "resume-provider":
        an_incident()
    return f"{GEMINI.provider}:{GEMINI.model}"


def do(client: Client, action: str, target: str, reason: str = "as agreed") -> Any:
    """Send the form of an action."""
    return client.post(
        reverse("admin:perform", args=[action]), {"target": target, "reason": reason}
    )


@pytest.mark.parametrize("action", HOLD_ACTIONS)
@pytest.mark.parametrize("who", ["no-role", *Role])
def test_an_action_is_open_to_the_roles_that_have_its_right(action: str, who: str) -> None:
    may = who != "no-role" and HOLD_ACTIONS[action].right in ROLES[Role(who)]
    client, target = a_client(who), a_target(action)

    asked = client.get(reverse("admin:confirm", args=[action]), {"target": target}).status_code
    looked = client.get(reverse("admin:perform", args=[action])).status_code
    done = do(client, action, target).status_code

    assert asked == (HTTPStatus.OK if may else HTTPStatus.FORBIDDEN)
    assert looked == HTTPStatus.METHOD_NOT_ALLOWED
    assert done == (HTTPStatus.FOUND if may else HTTPStatus.FORBIDDEN)
    expected = [("done" if may else "refused", action, target)]
    assert list(audit_events().values_list("result", "action", "target_id")) == expected


@pytest.mark.parametrize("action", HOLD_ACTIONS)
def test_a_second_click_is_refused_and_both_are_written_down(action: str) -> None:
    client, target = a_client(Role.OPERATOR), a_target(action)

    first = do(client, action, target)
    second = do(client, action, target)

    assert first.status_code == HTTPStatus.FOUND
    assert second.status_code == HTTPStatus.OK
    assert second.context["problem"]
    assert not second.context["is_open"]
    events = audit_events().values_list("action", "target_id", "result")
    assert list(events) == [(action, target, "done"), (action, target, "refused")]


def test_a_preview_shows_the_effect_of_an_action_and_changes_nothing() -> None:
    page = a_client(Role.OPERATOR).get(
        reverse("admin:confirm", args=["pause"]), {"target": a_target("pause")}
    )

    assert HOLD_ACTIONS["pause"].effect in page.content.decode()
    assert not Pause.objects.exists()


@pytest.mark.parametrize(
    ("action", "target"),
    [("pause", "none"), ("drop", "pass1"), ("cancel", "pass1"), ("pause-provider", "none")],
)
def test_an_action_on_a_missing_target_gives_404(action: str, target: str) -> None:
    url = reverse("admin:confirm", args=[action])

    response = a_client(Role.ADMINISTRATOR).get(url, {"target": target})

    assert response.status_code == HTTPStatus.NOT_FOUND


def test_an_action_without_a_reason_does_nothing() -> None:
    response = do(a_client(Role.OPERATOR), "pause", a_target("pause"), reason=" ")

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.context["problem"] == "give a reason"
    assert not Pause.objects.exists()
    assert [each.result for each in audit_events()] == ["refused"]


def test_the_queues_say_who_holds_them() -> None:
    a_job(step=Step.PASS05)
    client = a_client(Role.OPERATOR)
    do(client, "pause", "pass05", reason="the provider is moved")

    page = client.get(reverse("admin:queues"))

    words = page.content.decode()
    assert "by operator: the provider is moved" in words
    assert f"{reverse('admin:confirm', args=['resume'])}?target=pass05" in words
