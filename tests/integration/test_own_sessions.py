"""A user sees the own sessions and ends others, after a proof of who they are."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from observability.entry.own_sessions import OwnSession
from observability.entry.sessions import BEGAN, BROWSER_LENGTH
from observability.models import AuditEvent
from observability.permissions import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]
PAGE, END = "/admin/sessions/", "/admin/sessions/end/"
PASSWORD = "a long word of the ward"


def a_user(name: str = "ida", password: str | None = PASSWORD) -> User:
    user = User.objects.create_user(name, password=password, is_staff=True)
    user.groups.add(Group.objects.get(name=Role.VIEWER))
    return user


def logged_in(user: User, browser: str = "Firefox") -> Client:
    client = Client(headers={"User-Agent": browser})
    if user.has_usable_password():
        form = {"username": user.username, "password": PASSWORD}
        assert client.post("/admin/login/", form).status_code == 302
    else:
        client.force_login(user)
    return client


def listed(client: Client) -> list[OwnSession]:
    page: Any = client.get(PAGE)
    found: list[OwnSession] = page.context_data["sessions"]
    return found


def marks(client: Client) -> list[str]:
    """Return the names of the sessions that the page offers to end."""
    return [each.mark for each in listed(client) if not each.is_this]


def is_in(client: Client) -> bool:
    return client.get("/admin/tables/").status_code == 200


def test_the_page_lists_the_own_sessions_and_no_key() -> None:
    ida, other = a_user(), a_user("ole")
    here, there = logged_in(ida), logged_in(ida, "Safari " * 40)
    logged_in(other, "Chrome")

    page = here.get(PAGE)
    text = page.content.decode()

    found = listed(here)
    assert [each.is_this for each in found] == [False, True]
    assert [each.address for each in found] == ["127.0.0.1"] * 2
    assert len(found[0].browser) == BROWSER_LENGTH
    assert "Chrome" not in text
    assert "no-store" in page["Cache-Control"]
    assert not any(str(client.session.session_key) in text for client in (here, there))


def test_a_chosen_session_ends_at_once_and_the_audit_tells_of_it() -> None:
    ida = a_user()
    here, there, third = logged_in(ida), logged_in(ida), logged_in(ida)
    chosen = next(each.mark for each in listed(here) if each.key == there.session.session_key)

    ended = here.post(END, {"session": chosen, "password": PASSWORD}, follow=True)

    assert "1 session ended." in ended.content.decode()
    assert [is_in(client) for client in (here, there, third)] == [True, False, True]
    event = AuditEvent.objects.get(action="end_sessions")
    assert (event.actor, event.target_id, event.facts) == ("ida", str(ida.pk), {"sessions": 1})


def test_no_session_ends_with_a_wrong_password_and_guesses_are_throttled() -> None:
    ida = a_user()
    here, there = logged_in(ida), logged_in(ida)
    form = {"session": marks(here), "password": "wrong"}

    answers = [here.post(END, form) for _ in range(6)]
    throttled = here.post(END, {**form, "password": PASSWORD})

    assert [answer.status_code for answer in answers] == [403] * 5 + [429]
    assert "The password is wrong. Nothing was ended." in answers[0].content.decode()
    assert throttled.status_code == 429
    assert is_in(there)
    assert AuditEvent.objects.filter(action="log_in", result="refused").count() == 5


def test_a_session_of_another_user_and_this_session_stay() -> None:
    ida, ole = a_user(), a_user("ole")
    here, other = logged_in(ida), logged_in(ole)
    chosen = [each.mark for client in (here, other) for each in listed(client)]

    ended = here.post(END, {"session": chosen, "password": PASSWORD}, follow=True)

    assert "0 sessions ended." in ended.content.decode()
    assert is_in(here)
    assert is_in(other)


@pytest.mark.parametrize(("age_s", "status", "stays"), [(290, 302, False), (310, 403, True)])
def test_a_user_without_a_password_needs_a_fresh_log_in(
    age_s: float, status: int, stays: bool
) -> None:
    ida = a_user(password=None)
    here, there = logged_in(ida), logged_in(ida)
    session = here.session
    session[BEGAN] = time.time() - age_s
    session.save()

    ended = here.post(END, {"session": marks(here)})

    assert ended.status_code == status
    assert is_in(there) is stays


def test_an_empty_choice_is_said_and_costs_no_attempt() -> None:
    here = logged_in(a_user())

    answers = [here.post(END, {"password": "wrong"}) for _ in range(7)]

    assert {answer.status_code for answer in answers} == {400}
    assert "Choose the sessions to end." in answers[0].content.decode()


def test_an_outdated_session_is_not_listed() -> None:
    ida = a_user()
    here, there = logged_in(ida), logged_in(ida)
    session = there.session
    session[BEGAN] = time.time() - 1_000_000
    session.save()

    assert marks(here) == []
