"""Every URL of the admin site lets in the right roles, and reading changes nothing.

The table is in `tests/support/url_matrix.py`. A URL of the resolver without an entry in the table
fails.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from observability.permissions import Right, Role
from tests.support.audit_rows import audit_events
from tests.support.url_matrix import (
    ACTION_URLS,
    ANONYMOUS,
    AUDIT,
    NO_ROLE,
    OF_A_TABLE,
    OF_THE_API,
    OTHERS,
    OUTSIDER,
    PAGES,
    STAFF,
    USERS,
    CheckedUrl,
    holders,
    targets,
)

pytestmark = pytest.mark.django_db
OK, FOUND, FORBIDDEN = HTTPStatus.OK, HTTPStatus.FOUND, HTTPStatus.FORBIDDEN
NOT_ALLOWED, NOT_FOUND = HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_FOUND
TABLES = sorted(admin.site._registry, key=lambda model: model._meta.label_lower)
OUR_TABLES = [model for model in TABLES if model._meta.app_label != "auth"]


def a_client(who: str) -> Client:
    """Return a client of a user, with the CSRF checks of a browser."""
    client = Client(enforce_csrf_checks=True)
    # This page gives every client a token, so that a missing token causes no refusal below.
    client.get(reverse("admin:login"))
    if who != ANONYMOUS:
        user = User.objects.create_user(who, is_staff=who != OUTSIDER)
        user.groups.set(Group.objects.filter(name=who))
        client.force_login(user)
    return client


def url_of(checked_url: CheckedUrl, known: dict[str, str]) -> str:
    """Return the URL of an entry of the table, with its keys filled in."""
    is_action = checked_url.name in {"perform", "confirm", "bulk_preview", "bulk_start"}
    args = [arg if is_action else known.get(arg, arg) for arg in checked_url.args]
    query = {name: known.get(key, key) for name, key in checked_url.query.items()}
    return reverse(f"admin:{checked_url.name}", args=args, query=query)


def post(client: Client, url: str, form: dict[str, str] | None = None) -> Any:
    """Send a form with its token, and roll back its effect."""
    with undone():
        return client.post(
            url, {**(form or {}), "csrfmiddlewaretoken": client.cookies["csrftoken"].value}
        )


def reverse_of(checked_url: CheckedUrl, known: dict[str, str]) -> str:
    """Return the URL without its query."""
    return url_of(checked_url, known).partition("?")[0]


def form_of(checked_url: CheckedUrl, known: dict[str, str]) -> dict[str, str]:
    """Return the form of an action."""
    return {name: known.get(key, key) for name, key in (checked_url.form or {}).items()}


@contextmanager
def undone() -> Iterator[None]:
    """Roll back all changes of the block."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def written() -> dict[str, int]:
    """Return PostgreSQL's count of the rows that this transaction has written, by table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
            " WHERE n_tup_ins + n_tup_upd + n_tup_del > 0"
        )
        return dict(cursor.fetchall())


def changed_since(before: dict[str, int]) -> set[str]:
    """Return the tables written since an earlier count."""
    return {table for table, number in written().items() if number != before.get(table)}


def names(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[str | None]:
    """Provide the name of every URL below."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from names(pattern.url_patterns)
        else:
            yield pattern.name


def refusal(who: str, response: Any) -> HTTPStatus:
    """Return the expected refusal of a user; users without staff rights are sent to the log-in."""
    if who in STAFF:
        return FORBIDDEN
    assert response.headers["Location"].startswith(reverse("admin:login"))
    return FOUND


def test_every_url_of_the_site_is_in_the_matrix() -> None:
    of_tables = {
        f"{model._meta.app_label}_{model._meta.model_name}_{what}"
        for model in TABLES
        for what in OF_A_TABLE
    }
    listed = {checked_url.name for checked_url in (*PAGES, *ACTION_URLS)} | OTHERS | of_tables
    listed |= OF_THE_API

    found = {name for name in names(get_resolver().url_patterns) if name is not None}

    assert found == listed


RQ_PATHS = [
    f"{root}/{path}"
    for root in ("/admin/django_rq", "/django-rq", "/rq", "/admin/rq")
    for path in ("", "stats.json", "stats.json/token/", "metrics/", "dashboard/", "queues/0/empty/")
]
"""The usual place of django-rq's pages in other projects."""


def test_a_member_of_staff_without_a_right_neither_sees_nor_acts_on_a_queue() -> None:
    known, client = targets(), a_client(NO_ROLE)
    job = known["cancel"]
    before = written()

    looked = [
        client.get(reverse("admin:pipeline_job_change", args=[job])).status_code,
        client.get(reverse("admin:queues")).status_code,
    ]
    acted = {
        post(client, url, {"target": target, "reason": "idle hands", "post": "yes"}).status_code
        for url, target in (
            (reverse("admin:pipeline_job_delete", args=[job]), job),
            (reverse("admin:bulk_start", args=["cancel"]), job),
            (reverse("admin:perform", args=["pause"]), known["pause"]),
        )
    }
    of_rq = {post(client, path).status_code for path in RQ_PATHS}

    assert (looked, acted, of_rq) == ([FORBIDDEN] * 2, {FORBIDDEN}, {NOT_FOUND})
    assert changed_since(before) == AUDIT


def test_neither_statistics_of_rq_nor_any_page_tells_the_password_of_redis(settings: Any) -> None:
    settings.REDIS_URL = "redis://medproc:a-word-for-redis@127.0.0.1:1/0"
    known, client = targets(), a_client(Role.ADMINISTRATOR)

    of_rq = {client.get(path, follow=True).status_code for path in RQ_PATHS}
    pages = {checked_url.title: client.get(url_of(checked_url, known)) for checked_url in PAGES}

    assert of_rq == {NOT_FOUND}
    assert {title for title, page in pages.items() if b"a-word-for-redis" in page.content} == set()
    answers = {checked_url.title: checked_url.answer for checked_url in PAGES}
    assert {title: page.status_code for title, page in pages.items()} == answers


@pytest.mark.parametrize("who", USERS)
def test_each_page_is_open_to_those_with_its_right_and_writes_nothing(who: str) -> None:
    known, client = targets(), a_client(who)
    before = written()

    for checked_url in PAGES:
        response = client.get(url_of(checked_url, known))
        expected = checked_url.answer if who in checked_url.who else refusal(who, response)
        assert response.status_code == expected, checked_url.title
        assert changed_since(before) == (checked_url.writes if who in checked_url.who else set()), (
            checked_url.title
        )
        before = written()


@pytest.mark.parametrize("who", USERS)
def test_each_action_is_open_only_to_users_with_its_right(who: str) -> None:
    known, client = targets(), a_client(who)

    for checked_url in ACTION_URLS:
        before = written()
        response = post(client, url_of(checked_url, known), form_of(checked_url, known))
        if who in checked_url.who:
            assert response.status_code == checked_url.answer, checked_url.title
        else:
            assert response.status_code == refusal(who, response), checked_url.title
            assert changed_since(before) == (AUDIT if who in STAFF else set()), checked_url.title


def test_an_action_takes_neither_a_link_nor_a_form_from_elsewhere() -> None:
    known, client = targets(), a_client(Role.ADMINISTRATOR)
    before = written()

    looked = {client.get(url_of(checked_url, known)).status_code for checked_url in ACTION_URLS}
    forged = {
        client.post(url_of(checked_url, known), form_of(checked_url, known)).status_code
        for checked_url in ACTION_URLS
    }

    assert looked == {NOT_ALLOWED}
    assert forged == {FORBIDDEN}
    assert written() == before


def test_a_page_takes_no_form() -> None:
    known, client = targets(), a_client(Role.ADMINISTRATOR)
    ours = [checked_url for checked_url in PAGES if checked_url.name not in {"index", "tables"}]
    before = written()

    answers = {
        checked_url.title: post(client, url_of(checked_url, known)).status_code
        for checked_url in ours
    }

    assert answers == {checked_url.title: NOT_ALLOWED for checked_url in ours}
    assert written() == before


def right_of(model: type[Model]) -> Right:
    """Return the right that a table requires."""
    shown: Any = admin.site.get_model_admin(model)
    return shown.right  # type: ignore[no-any-return]


@pytest.mark.parametrize("who", USERS)
def test_each_table_is_open_to_users_with_its_right_and_changed_by_no_user(who: str) -> None:
    targets()
    client = a_client(who)
    before = written()

    for model in OUR_TABLES:
        may = who in holders(right_of(model))
        row = model._default_manager.first()
        base = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        key = row.pk if row else uuid4().int % 10**9 if model.__name__ in _NUMBERED else uuid4()
        for what in OF_A_TABLE:
            args = [] if what in {"changelist", "add"} else [key]
            url = reverse(f"{base}_{what}", args=args)
            response = client.get(url)
            if not may or what in {"add", "delete"}:
                # Django reports a missing row before any other check.
                gone = what == "history" and row is None and who in STAFF
                expected = {FOUND} if gone else {refusal(who, response)}
            else:
                expected = {OK} if row or what == "changelist" else {FOUND}
            assert response.status_code in expected, url
            if what not in {"changelist", "history"} or who == Role.ADMINISTRATOR:
                sent = post(client, url, {"action": "delete_selected", "post": "yes"})
                assert sent.status_code in {FORBIDDEN, FOUND, OK}, url
    assert written() == before


_NUMBERED = {"AuditLink", "Page", "PageAssignment"}


def test_the_first_page_is_the_overview_or_for_a_member_of_staff_without_a_role_nothing() -> None:
    viewer, without_role = a_client(Role.VIEWER), a_client(NO_ROLE)

    sent = viewer.get(reverse("admin:index"))
    shown = without_role.get(reverse("admin:index"))

    assert (sent.status_code, sent.headers["Location"]) == (FOUND, reverse("admin:overview"))
    assert (shown.status_code, shown.context["app_list"]) == (OK, [])


@pytest.mark.parametrize("who", USERS)
def test_only_an_administrator_creates_users_and_no_role_deletes_them(who: str) -> None:
    client = a_client(who)
    other = User.objects.create_user("other", is_staff=True)
    urls = {
        "list": reverse("admin:auth_user_changelist"),
        "add": reverse("admin:auth_user_add"),
        "change": reverse("admin:auth_user_change", args=[other.pk]),
        "password": reverse("admin:auth_user_password_change", args=[other.pk]),
        "groups": reverse("admin:auth_group_changelist"),
    }
    closed = {
        "delete": reverse("admin:auth_user_delete", args=[other.pk]),
        "make a group": reverse("admin:auth_group_add"),
    }
    expected = OK if who == Role.ADMINISTRATOR else FORBIDDEN if who in STAFF else FOUND

    opened = {name: client.get(url).status_code for name, url in urls.items()}
    refused = {client.get(url).status_code for url in closed.values()}

    assert opened == dict.fromkeys(urls, expected)
    assert refused == {FORBIDDEN if who in STAFF else FOUND}


@pytest.mark.parametrize("checked_url", ACTION_URLS, ids=lambda checked_url: checked_url.title)
def test_an_action_without_its_right_is_written_down_as_refused(checked_url: CheckedUrl) -> None:
    known, client = targets(), Client()
    client.force_login(User.objects.create_user(NO_ROLE, is_staff=True))
    form = form_of(checked_url, known)

    response = client.post(
        url_of(checked_url, known), {**form, "reason": "Jane Doe", "patient": "Jane"}
    )

    assert response.status_code == FORBIDDEN
    (row,) = audit_events()
    assert (row.actor, row.result, row.reason) == (NO_ROLE, "refused", "")
    of_review = {f"review {name}" for name in (*checked_url.args, "claim")}
    assert row.action in {
        *checked_url.args,
        "retry",
        "abort",
        "upload",
        "replay_webhook",
        *of_review,
    }
    assert row.target_id in {"", *form.values(), *known.values()}
    named = {"perform", "bulk_abort", "upload_close", "review_act"}
    assert bool(row.target_id) == (checked_url.name in named)
    assert "Jane" not in str(row.facts)


@pytest.mark.parametrize(
    "checked_url",
    [checked_url for checked_url in (*PAGES, *ACTION_URLS) if not checked_url.writes],
    ids=lambda checked_url: checked_url.title,
)
def test_a_text_that_no_database_can_keep_is_refused_in_words(checked_url: CheckedUrl) -> None:
    known, client = targets(), Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root"))
    posted = form_of(checked_url, known)
    fields = {*posted, *(checked_url.query or {}), "reason", "target", "patient", "older", "since"}
    fields |= {"q", "after", "until", "error_code", "is", "actor", "action", "window", "batch"}

    for name in sorted(fields):
        for text in ("as agreed\0", "inf"):
            given = {**posted, **checked_url.query, name: text}
            given = {key: known.get(value, value) for key, value in given.items()}
            with undone():
                if checked_url.is_action:
                    response = client.post(url_of(checked_url, known), given)
                else:
                    response = client.get(reverse_of(checked_url, known), given)
            assert response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, (name, text)


STOCK = {"subtitle"}
"""Variables that the admin's own templates use without a value."""


@pytest.mark.parametrize("checked_url", PAGES, ids=lambda checked_url: checked_url.title)
def test_no_page_shows_a_variable_that_its_view_does_not_give(
    checked_url: CheckedUrl, caplog: pytest.LogCaptureFixture
) -> None:
    client = a_client(Role.ADMINISTRATOR)
    url = url_of(checked_url, targets())

    # Django shows nothing for a missing variable, and reports the variable only to this logger.
    with caplog.at_level(logging.DEBUG, "django.template"):
        client.get(url)

    missing = [said.getMessage() for said in caplog.records if said.name == "django.template"]
    assert not [
        each
        for each in missing
        if "console/" in each and not any(f"'{name}'" in each for name in STOCK)
    ]
