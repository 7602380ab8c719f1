"""Administrators grant only rights that they have, and every change and log-in is audited."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from observability.audit.actor import command_line
from observability.models import AuditEvent
from observability.permissions import Right, Role

pytestmark = pytest.mark.django_db

PASSWORD = "a-word-that-no-one-guesses"


def a_user(name: str, *roles: Role, **columns: Any) -> User:
    """Create a member of staff."""
    user = User.objects.create_user(name, password=PASSWORD, **{"is_staff": True, **columns})
    user.groups.set(Group.objects.filter(name__in=roles))
    return user


def a_client(user: User) -> Client:
    """Return a client of a user."""
    client = Client()
    client.force_login(user)
    return client


def form(user: User, **fields: Any) -> dict[str, Any]:
    """Return the form of a user's page as the browser sends it."""
    return {
        "username": user.username,
        "is_active": "on",
        "is_staff": "on",
        "groups": [group.pk for group in user.groups.all()],
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        **fields,
    }


def page(user: User) -> str:
    """Return the URL of a user's page."""
    return reverse("admin:auth_user_change", args=[user.pk])


def role(name: Role) -> Group:
    """Return the group of a role."""
    return Group.objects.get(name=name)


def rows(user: User) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the audit events about a user since the creation of the user."""
    found = AuditEvent.objects.filter(target_kind="user", target_id=user.pk, actor="boss")
    return list(found.order_by("created_at").values_list("action", "result", "facts"))


def test_an_administrator_makes_no_user_a_superuser_not_even_themselves() -> None:
    boss, other = a_user("boss", Role.ADMINISTRATOR), a_user("other")
    client = a_client(boss)
    everything = [each.pk for each in Permission.objects.all()]

    for user in (boss, other):
        sent = form(user, is_superuser="on", user_permissions=everything)
        response = client.post(page(user), sent)
        assert response.status_code == HTTPStatus.FOUND

    assert not User.objects.filter(is_superuser=True).exists()
    assert not Permission.objects.filter(user__isnull=False).exists()


def test_an_administrator_gives_roles_and_it_is_written_down() -> None:
    boss, other = a_user("boss", Role.ADMINISTRATOR), a_user("other")

    a_client(boss).post(page(other), form(other, groups=[role(Role.REVIEWER).pk]))

    assert rows(other) == [("change", "done", {"groups_added": ["reviewer"]})]


def test_a_group_beside_the_roles_is_not_an_administrators_to_give_nor_to_take_by_the_way() -> None:
    boss, other = a_user("boss", Role.ADMINISTRATOR), a_user("other")
    own, another = (Group.objects.create(name=name) for name in ("night shift", "another"))
    other.groups.add(own)
    client = a_client(boss)

    given = client.post(page(other), form(other, groups=[another.pk]))
    kept = client.post(page(other), form(other))

    assert (given.status_code, kept.status_code) == (HTTPStatus.OK, HTTPStatus.FOUND)
    assert list(other.groups.all()) == [own]


def test_a_holder_of_change_user_gives_no_role_that_may_more_than_he() -> None:
    boss, other = a_user("boss", Role.VIEWER), a_user("other")
    boss.user_permissions.add(*Permission.objects.filter(codename__in=["change_user", "view_user"]))
    client = a_client(boss)

    refused = client.post(page(other), form(other, groups=[role(Role.OPERATOR).pk]))
    given = client.post(page(other), form(other, groups=[role(Role.VIEWER).pk]))

    assert (refused.status_code, given.status_code) == (HTTPStatus.OK, HTTPStatus.FOUND)
    assert [group.name for group in other.groups.all()] == [Role.VIEWER]


@pytest.mark.parametrize(
    "columns", [{"is_superuser": True}, {"is_superuser": True, "is_active": False}, {}]
)
def test_an_administrator_cannot_take_over_a_user_with_more_rights(columns: dict[str, Any]) -> None:
    boss, other = a_user("boss", Role.ADMINISTRATOR), a_user("other", **columns)
    if not columns:
        other.user_permissions.add(Permission.objects.get(codename="delete_user"))
    client = a_client(boss)
    password = {"password1": "another-word-of-many", "password2": "another-word-of-many"}

    changed = client.post(page(other), form(other))
    taken = client.post(reverse("admin:auth_user_password_change", args=[other.pk]), password)

    assert (changed.status_code, taken.status_code) == (HTTPStatus.FORBIDDEN,) * 2
    other.refresh_from_db()
    assert other.check_password(PASSWORD)


def test_a_holder_of_change_group_changes_no_group() -> None:
    boss = a_user("boss", Role.VIEWER)
    boss.user_permissions.add(*Permission.objects.filter(content_type__app_label="auth"))
    sent = {"name": "viewer", "permissions": [Permission.objects.get(codename="read_phi").pk]}

    response = a_client(boss).post(
        reverse("admin:auth_group_change", args=[role(Role.VIEWER).pk]), sent
    )

    assert response.status_code == HTTPStatus.FORBIDDEN
    assert not role(Role.VIEWER).permissions.filter(codename="read_phi").exists()


def test_a_superuser_makes_another_and_it_is_written_down() -> None:
    boss, other = User.objects.create_superuser("boss"), a_user("other")
    right = Permission.objects.get(codename=Right.EXPORT)

    a_client(boss).post(page(other), form(other, is_superuser="on", user_permissions=[right.pk]))

    assert User.objects.get(pk=other.pk).is_superuser
    assert rows(other) == [
        ("change", "done", {"is_superuser": True}),
        ("change", "done", {"permissions_added": ["export_results"]}),
    ]


def test_a_password_is_an_event_without_content() -> None:
    boss, other = a_user("boss", Role.ADMINISTRATOR), a_user("other")
    new = "another-word-of-many"

    a_client(boss).post(
        reverse("admin:auth_user_password_change", args=[other.pk]),
        {"password1": new, "password2": new, "usable_password": "true", "set-password": "1"},
    )

    other.refresh_from_db()
    assert other.check_password(new)
    assert rows(other) == [("change", "done", {"password": "set"})]


def test_an_action_outside_of_a_request_belongs_to_the_command_line() -> None:
    other = a_user("other", Role.VIEWER)
    group = role(Role.VIEWER)
    group.permissions.add(Permission.objects.get(codename=Right.EXPORT))
    group.user_set.remove(other)
    other.groups.add(group)
    other.groups.clear()
    other.delete()

    found = AuditEvent.objects.filter(actor=command_line()).order_by("created_at")
    told = [(each.target_kind, each.action, each.facts) for each in found]
    assert [(kind, action) for kind, action, _ in told] == [
        ("user", "add"),
        ("user", "change"),
        ("group", "change"),
        *[("user", "change")] * 3,
        ("user", "delete"),
    ]
    assert [facts for _, _, facts in told[2:6]] == [
        {"permissions_added": ["export_results"]},
        {"groups_removed": ["viewer"]},
        {"groups_added": ["viewer"]},
        {"groups_removed": ["viewer"]},
    ]
    assert PASSWORD not in str(told)


def test_log_ins_and_failed_log_ins_are_audited_without_unknown_names() -> None:
    other, client = a_user("other", Role.VIEWER), Client()
    login = reverse("admin:login")

    for name, word in (("other", PASSWORD + "!"), (PASSWORD, PASSWORD), ("other", PASSWORD)):
        client.post(login, {"username": name, "password": word})
    client.post(reverse("admin:logout"))

    found = AuditEvent.objects.exclude(actor=command_line()).order_by("created_at")
    assert list(found.values_list("actor", "action", "result", "target_id")) == [
        ("anonymous", "log_in", "refused", str(other.pk)),
        ("other", "log_in", "done", str(other.pk)),
        ("other", "log_out", "done", str(other.pk)),
    ]
    assert PASSWORD not in str(list(AuditEvent.objects.values()))
