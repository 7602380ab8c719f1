"""The console checks roles on pages and actions, and its audit cannot be changed."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse

from observability.audit.log import AuditResult, record
from observability.models import AuditEvent
from observability.permissions import ROLES, USER_PERMISSIONS, Right, Role
from observability.views.decorators import RequestedAction, action, page
from tests.support.databases import as_owner
from tests.support.rows import a_job

pytestmark = pytest.mark.django_db

OK = HTTPStatus.OK


def a_user(name: str) -> User:
    """Create a member of staff, with the role of that name if the role exists."""
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set(Group.objects.filter(name=name))
    return user


def a_client(name: str) -> Client:
    """Return a client of a user, with the CSRF checks of a browser."""
    client = Client(enforce_csrf_checks=True)
    if name != "anonymous":
        client.force_login(a_user(name))
    return client


def test_a_page_that_would_write_is_refused_by_the_database() -> None:
    @page()
    def writes(request: HttpRequest) -> HttpResponse:
        a_job()
        return HttpResponse()

    request = RequestFactory().get("/")
    request.user = a_user(Role.ADMINISTRATOR)

    with pytest.raises(DatabaseError, match="read-only"):
        writes(request)


def test_an_action_takes_post_alone_and_needs_its_own_right() -> None:
    @action(
        lambda request: RequestedAction(action="retry", right=Right.RETRY, target_kind="record")
    )
    def retries(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    asked = RequestFactory().post("/")
    asked.user = a_user(Role.OPERATOR)
    looked = RequestFactory().get("/")
    looked.user = asked.user
    reviewer = RequestFactory().post("/")
    reviewer.user = a_user(Role.REVIEWER)

    assert retries(asked).status_code == OK
    assert retries(looked).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    with pytest.raises(PermissionDenied):
        retries(reviewer)


def test_an_unknown_record_is_not_found() -> None:
    client = a_client(Role.VIEWER)

    response = client.get(reverse("admin:record", args=["00000000-0000-0000-0000-000000000000"]))

    assert response.status_code == HTTPStatus.NOT_FOUND


def test_the_roles_of_the_migration_are_those_of_the_table() -> None:
    made = {
        group.name: set(group.permissions.values_list("codename", flat=True))
        for group in Group.objects.all()
    }

    expected = {role.value: {right.value for right in rights} for role, rights in ROLES.items()}
    expected[Role.ADMINISTRATOR.value] |= set(USER_PERMISSIONS)
    assert made == expected


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET reason = 'another'",
        "DELETE FROM audit_events",
        "TRUNCATE audit_events",
        "DELETE FROM audit_events WHERE false",
    ],
)
def test_nothing_that_was_written_down_is_changed(statement: str) -> None:
    operator = a_user(Role.OPERATOR)
    written = record(
        operator,
        "retry",
        target_kind="record",
        target_id="x",
        reason="the provider has recovered",
        result=AuditResult.DONE,
        facts={"batches": 7},
    )
    with connection.cursor() as cursor:
        # Deferred triggers run now, because a TRUNCATE needs a table without pending triggers.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    with (
        as_owner(),
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    kept = AuditEvent.objects.get(id=written.id)
    assert (kept.actor, kept.actor_id, kept.action, kept.reason, kept.facts) == (
        "operator",
        operator.pk,
        "retry",
        "the provider has recovered",
        {"batches": 7},
    )


def test_every_page_of_the_admin_has_the_policy() -> None:
    client = Client()
    pages: list[Any] = [client.get(reverse("admin:login"))]
    client.force_login(a_user(Role.ADMINISTRATOR))
    pages += [client.get(reverse(name)) for name in ("admin:overview", "admin:tables")]

    policies = {response.headers["Content-Security-Policy"] for response in pages}

    assert len(policies) == 1
    policy = policies.pop()
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
