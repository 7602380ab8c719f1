"""No address answers with a server error, whatever a person types into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from itertools import product
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.support.url_matrix import targets

pytestmark = pytest.mark.django_db

ODD = (
    "1", "-1", "9223372036854775808", "9" * 400, "x", "é患者\u202e", "１", "%00", "a%2Fb", "..",
    " ", "_5F_00", "%0a", "'\"<b>{}", "x" * 3_000, str(uuid4()), uuid4().hex, "ffffff", "0",
)  # fmt: skip
"""What a person, or a broken link, can put in the place of an id; some are percent-encoded."""
FEW = ("1", "9" * 400, "%00", "_5F_00", "é患者\u202e")
"""The addresses of all tables have the same code behind them, so a few ids are enough."""
QUERIES = (
    "q=%00&is=%00&cursor=%00&after=%00", "q=é&page=-1&p=-1", "p=9999999999999999999&o=-1.x.99",
    "cursor=x&after=x&before=y&is=x&since=x&source=x&a=x&b=y&window=99999999999&hours=-1",
    "record=x&job=1&encounter=%00&batch=-1&error_code=x&state=x&target=x&step=x&from=x&to=y",
    "_popup=1&_to_field=id&_changelist_filters=%00", "status__exact=x&id=1&pk=x",
    "app_label=x&model_name=y&field_name=z&term=a",
    "app_label=auth&model_name=user&field_name=groups&term=%00",
)  # fmt: skip


TABLE = re.compile(r"/admin/(auth|pipeline|observability)/")
KINDS = ("1", "5", "9999", "0", "-1")
"""Ids of content types that exist, and of others that do not."""


def routes() -> Iterator[str]:
    """Yield every route of the console, with a `*` for each argument."""
    yield from _routes(get_resolver().url_patterns, "/")


def _routes(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[str]:
    for each in patterns:
        route = before + _plain(str(each.pattern))
        if isinstance(each, URLResolver):
            yield from _routes(each.url_patterns, route)
        else:
            yield route


def _plain(route: str) -> str:
    without_groups = re.sub(r"\(\?P<\w+>[^)]*(?:\[[^]]*\])?[^)]*\)", "*", route)
    return (
        re.sub(r"<[^>]+>", "*", without_groups).replace("^", "").replace("$", "").replace("\\", "")
    )


@pytest.fixture
def client(db: None) -> Client:
    """Return the client of a user who may do everything; a server error is an answer."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("everyone"))
    return client


def test_the_routes_are_those_of_the_console() -> None:
    found = set(routes())

    assert "/admin/records/*/pages/*/image/" in found
    assert "/admin/pipeline/batch/*/change/" in found
    assert len(found) > 100


@pytest.mark.slow(reason="hundreds of addresses")
def test_an_odd_id_is_never_a_server_error(client: Client) -> None:
    targets()
    with_ids = {route for route in routes() if "*" in route}
    own = {route for route in with_ids if not TABLE.match(route)}
    addresses = [(_filled(route, each), "get") for route in own for each in ODD]
    addresses += [(_filled(route, each), "post") for route in own for each in FEW]
    addresses += [(_filled(route, each), "get") for route in with_ids - own for each in FEW]

    failed = {at: code for at in addresses if (code := _status(client, at[1], at[0])) >= 500}

    assert len(addresses) > 500
    assert failed == {}


def _filled(route: str, odd: str) -> str:
    return route.replace("*", quote(odd, safe="%"))


def _status(client: Client, method: str, address: str) -> int:
    answer = getattr(client, method)(address)
    # A stream must be read to its end, because it can fail on its way.
    if answer.streaming:
        b"".join(answer.streaming_content)
    return int(answer.status_code)


@pytest.mark.slow(reason="hundreds of addresses")
def test_an_odd_query_is_never_a_server_error(client: Client) -> None:
    ids = targets()
    plain = [route for route in set(routes()) if "*" not in route and "logout" not in route]
    plain += [f"/admin/records/{ids['record']}/{page}" for page in ("", "pages/", "compare/")]
    addresses = [f"{at}?{query}" for at, query in product(plain, QUERIES)]

    failed = {at: status for at in addresses if (status := _status(client, "get", at)) >= 500}

    assert failed == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_no_page_on_a_public_site(client: Client, kind: str) -> None:
    assert client.get(f"/admin/r/{kind}/1/").status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("address", ["/admin/tables/", "/admin/pipeline/", "/admin/auth/user/"])
def test_the_tables_of_the_admin_have_the_navigation_once(client: Client, address: str) -> None:
    page = client.get(address).content.decode()

    assert page.count('aria-label="Console"') == 1
