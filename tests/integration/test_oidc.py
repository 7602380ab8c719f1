"""The log-in through an identity provider: real HTTP to a provider with real keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import requests
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client

from medproc.secret_files import Secret
from observability.entry.oidc import metadata
from observability.entry.oidc.refused import LogInRefusal
from observability.entry.throttle import OF_ADDRESS
from observability.models import AuditEvent, FederatedIdentity
from pipeline.queueing.queues import producer
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OpenIdProvider,
    open_id_provider,
)
from tests.support.workers import until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]
START, CALLBACK, LOG_IN = "/admin/oidc/start/", "/admin/oidc/callback/", "/admin/login/"
PASSWORD = "a long password of a test"


@pytest.fixture(scope="module")
def running() -> Iterator[OpenIdProvider]:
    with open_id_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: OpenIdProvider, settings: Any) -> OpenIdProvider:
    running.reset()
    running.person = {"sub": "0001", "preferred_username": "jane", "groups": ["staff", "ops"]}
    settings.OIDC_ISSUER = running.issuer
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT_ID, Secret(CLIENT_SECRET)
    settings.OIDC_ROLES = ("ops=operator", "doctors=reviewer", "/med/chief=administrator")
    settings.OIDC_NAME = "Example SSO"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()
    return running


def way_back(client: Client, page: str = "") -> str:
    """Go to the provider and return the address to which it sends the browser back."""
    started = client.get(START, {"next": page} if page else {})
    assert started.status_code == 302, started.content
    answer = requests.get(started["Location"], allow_redirects=False, timeout=10)
    back = urlsplit(answer.headers["Location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == f"http://testserver{CALLBACK}"
    return f"{back.path}?{back.query}"


def log_in(client: Client | None = None, page: str = "") -> HttpResponse:
    client = client or Client()
    return cast("HttpResponse", client.get(way_back(client, page)))


def code_of(answer: Any) -> str:
    """Return the code that a page of a refusal shows."""
    assert answer.status_code == 403, answer.content
    found = [code for code in LogInRefusal if f"({code})" in answer.content.decode()]
    assert len(found) == 1
    return found[0]


def roles_of(name: str) -> set[str]:
    return set(User.objects.get(username=name).groups.values_list("name", flat=True))


def log_ins() -> list[tuple[str, str, dict[str, str]]]:
    found = AuditEvent.objects.filter(action="log_in").order_by("created_at")
    return list(found.values_list("actor", "result", "facts"))


def test_a_user_gets_the_roles_of_all_groups_and_a_session_of_its_own(
    provider: OpenIdProvider,
) -> None:
    provider.person["groups"] = ["ops", "doctors", "staff"]
    client = Client()
    back = way_back(client, "/admin/failures/?q=1")
    stranger = client.session.session_key

    answer = client.get(back)

    assert (answer.status_code, answer["Location"]) == (302, "/admin/failures/?q=1")
    assert client.get("/admin/failures/").status_code == 200
    user = User.objects.get(username="jane")
    assert roles_of("jane") == {"operator", "reviewer"}
    assert (user.is_staff, user.is_superuser, user.email) == (True, False, "")
    assert not user.has_usable_password()
    assert list(FederatedIdentity.objects.values_list("issuer", "subject", "user")) == [
        (provider.issuer, "0001", user.pk)
    ]
    # The request had all three protections, and the session keeps nothing of the log-in.
    assert provider.asked["code_challenge_method"] == "S256"
    assert min(len(provider.asked[name]) for name in ("state", "nonce", "code_challenge")) >= 32
    assert client.session.session_key != stranger
    names = set(client.session.keys())
    assert {name for name in names if not name.startswith("_auth")} == {
        "log_in_through", "began_at", "seen_at", "address", "browser",
    }  # fmt: skip
    assert log_ins() == [("jane", "done", {"through": "identity provider"})]
    by_provider = AuditEvent.objects.filter(actor="identity provider")
    assert set(by_provider.values_list("action", "target_id")) == {
        ("add", str(user.pk)), ("change", str(user.pk)),
    }  # fmt: skip


def test_a_group_that_is_left_takes_its_role_away_at_the_next_log_in(
    provider: OpenIdProvider,
) -> None:
    provider.person["groups"] = ["ops", "doctors"]
    log_in()
    User.objects.get(username="jane").groups.add(Group.objects.create(name="our own"))

    provider.person |= {"groups": ["doctors"], "preferred_username": "jane.new"}
    assert log_in().status_code == 302
    assert roles_of("jane") == {"reviewer", "our own"}

    # A user without a group stays out, also with a session from before.
    client = Client()
    log_in(client)
    assert client.get("/admin/tables/").status_code == 200
    provider.person["groups"] = ["staff"]
    assert code_of(log_in()) == LogInRefusal.NO_ROLE
    assert roles_of("jane") == {"our own"}
    assert client.get("/admin/tables/").status_code == 302
    assert log_ins()[-1] == (
        "anonymous", "refused", {"username": "jane", "code": "OIDC_NO_ROLE"},
    )  # fmt: skip


def test_a_person_without_a_group_gets_no_user_and_fills_no_audit(
    provider: OpenIdProvider,
) -> None:
    provider.userinfo = {"sub": "0001"}
    for groups in ([], ["staff"], "operator", [{"ops": 1}], None):
        provider.person["groups"] = groups
        assert code_of(log_in()) == LogInRefusal.NO_ROLE

    assert not User.objects.exists()
    assert log_ins() == []


@pytest.mark.parametrize(
    ("claims", "way"),
    [
        ({"iss": "http://127.0.0.1:1"}, "rs256"),
        ({"iss": None}, "rs256"),
        ({"aud": "another client"}, "rs256"),
        ({"aud": [CLIENT_ID, "another client"]}, "rs256"),
        ({"aud": [CLIENT_ID, "another client"], "azp": "another client"}, "rs256"),
        ({"aud": None}, "rs256"),
        ({"nonce": "another nonce"}, "rs256"),
        ({"nonce": None}, "rs256"),
        ({"exp": int(time.time()) - 3600}, "rs256"),
        ({"exp": None}, "rs256"),
        ({"iat": int(time.time()) + 3600}, "rs256"),
        ({"sub": None}, "rs256"),
        ({"sub": ""}, "rs256"),
        ({"sub": 1}, "rs256"),
        ({"sub": "a\0b"}, "rs256"),
        ({"sub": "x" * 256}, "rs256"),
        ({}, "unsigned"),
        ({}, "forged_with_the_public_key"),
        ({}, "forged_with_another_key"),
        ({}, "with_an_unknown_key"),
        ({}, "without_the_name_of_a_key"),
    ],
)
def test_a_token_that_is_not_for_this_log_in_is_refused(
    provider: OpenIdProvider, claims: dict[str, Any], way: str
) -> None:
    provider.claims, provider.sign = claims, getattr(provider, way)

    assert code_of(log_in()) == LogInRefusal.TOKEN
    assert not User.objects.exists()


def test_a_token_of_an_elliptic_curve_and_one_for_two_audiences_are_accepted(
    provider: OpenIdProvider,
) -> None:
    provider.sign = provider.es256
    provider.claims = {"aud": [CLIENT_ID, "another client"], "azp": CLIENT_ID}

    assert log_in()["Location"] == "/admin/"


def test_a_state_works_once_and_only_in_the_browser_that_began(provider: OpenIdProvider) -> None:
    client = Client()
    back = way_back(client)

    assert code_of(Client().get(back)) == LogInRefusal.STATE
    assert client.get(back).status_code == 302
    # The state is used; the user, who is in, goes to the start page.
    assert client.get(back)["Location"] == "/admin/"
    client.logout()
    assert code_of(client.get(back)) == LogInRefusal.STATE
    assert code_of(Client().get(CALLBACK)) == LogInRefusal.STATE
    assert provider.seen.count("/token") == 1


def test_a_state_and_the_session_of_a_stranger_end_after_ten_minutes(
    provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    back = way_back(client)
    assert client.session.get_expiry_age() == 600
    later = time.time() + 601
    monkeypatch.setattr("observability.entry.oidc.flow.time.time", lambda: later)

    assert code_of(client.get(back)) == LogInRefusal.STATE


def test_the_log_in_form_takes_no_code(provider: OpenIdProvider) -> None:
    code = way_back(Client()).partition("?")[2]

    Client().post(f"{LOG_IN}?{code}", {"username": "x", "password": "y"})

    assert "/token" not in provider.seen


def test_neither_name_nor_e_mail_gives_the_account_of_another_user(
    provider: OpenIdProvider,
) -> None:
    admin = User.objects.create_user("jane", "jane@example.org", PASSWORD, is_staff=True)
    provider.person |= {"email": admin.email, "email_verified": True, "preferred_username": "JANE"}

    log_in()
    provider.person["sub"] = "0002"
    log_in()

    assert not hasattr(User.objects.get(pk=admin.pk), "federated_identity")
    assert User.objects.filter(username__istartswith="jane-").count() == 2
    provider.person |= {"sub": "0003", "preferred_username": "anonymous"}
    log_in()
    assert not User.objects.filter(username="anonymous").exists()
    provider.person |= {"sub": "0004", "preferred_username": "command line: root@host"}
    log_in()
    assert User.objects.filter(username="command-line-root@host").exists()
    # The audit names the periodic tasks so.
    provider.person |= {"sub": "0005", "preferred_username": "Scheduler"}
    log_in()
    assert not User.objects.filter(username__iexact="scheduler").exists()


def test_a_deactivated_user_and_a_superuser_stay_out(provider: OpenIdProvider) -> None:
    log_in()
    user = User.objects.get(username="jane")

    user.is_active = False
    user.save()
    assert code_of(log_in()) == LogInRefusal.DEACTIVATED

    user.is_active = user.is_superuser = True
    user.save()
    assert code_of(log_in()) == LogInRefusal.SUPERUSER


@pytest.mark.parametrize(
    ("claims", "is_enough"),
    [
        ({}, False),
        ({"amr": ["pwd"], "acr": "phr"}, False),
        ({"amr": "mfa", "acr": "1"}, False),
        ({"amr": ["pwd", "mfa"], "acr": "phr"}, True),
        ({"amr": "otp", "acr": "phrh"}, True),
    ],
)
def test_the_second_factor_of_the_provider_is_required(
    provider: OpenIdProvider, settings: Any, claims: dict[str, Any], is_enough: bool
) -> None:
    settings.OIDC_ACR, settings.OIDC_AMR = ("phr", "phrh"), ("mfa", "otp")
    provider.claims = claims

    answer = log_in()

    assert provider.asked["acr_values"] == "phr phrh"
    if is_enough:
        assert answer.status_code == 302
    else:
        assert code_of(answer) == LogInRefusal.SECOND_FACTOR
    assert User.objects.exists() is is_enough


def test_groups_are_found_in_a_nested_claim_and_in_the_userinfo(
    provider: OpenIdProvider, settings: Any
) -> None:
    settings.OIDC_GROUPS_CLAIM = "realm_access.roles"
    provider.person |= {"groups": None, "realm_access": {"roles": ["/med/chief"]}}
    log_in()
    assert roles_of("jane") == {"administrator"}

    del provider.person["realm_access"]
    provider.userinfo = {"sub": "0001", "realm_access.roles": "doctors"}
    log_in()
    assert roles_of("jane") == {"reviewer"}

    provider.userinfo["sub"] = "another"
    assert code_of(log_in()) == LogInRefusal.TOKEN


def test_while_the_provider_is_away_the_log_in_page_says_so_and_takes_passwords(
    provider: OpenIdProvider, settings: Any
) -> None:
    User.objects.create_user("anna", password=PASSWORD, is_staff=True)
    settings.OIDC_ISSUER = "http://127.0.0.1:1"
    client = Client()

    page = client.get(START, follow=True)

    assert page.redirect_chain == [(LOG_IN, 302)]
    assert "does not answer" in page.content.decode()
    assert "(OIDC_UNREACHABLE)" in page.content.decode()
    answer = client.post(LOG_IN, {"username": "anna", "password": PASSWORD})
    assert answer["Location"] == "/admin/"


def test_a_provider_that_fails_is_asked_by_one_request_at_a_time(
    provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers begin log-ins too: each would hold a thread of the console for seconds."""
    provider.published = {"issuer": "https://login.example.org"}
    pages = [Client().get(START, follow=True).content.decode() for _ in range(3)]

    assert provider.seen == ["/.well-known/openid-configuration"]
    assert all("(OIDC_METADATA)" in page for page in pages)

    monkeypatch.setattr(metadata, "AGAIN_S", 0.1)
    cache.delete(f"medproc:oidc:{provider.issuer}:asked")
    Client().get(START)
    provider.published = {}
    until(lambda: "/authorize" in Client().get(START)["Location"])


def test_a_password_after_a_begun_log_in_gives_a_session_of_the_full_length(
    provider: OpenIdProvider, settings: Any
) -> None:
    User.objects.create_user("anna", password=PASSWORD, is_staff=True)
    client = Client()
    client.get(START)
    begun = client.session.get_expiry_age()

    client.post(LOG_IN, {"username": "anna", "password": PASSWORD})

    assert begun < client.session.get_expiry_age() == settings.SESSION_COOKIE_AGE


@pytest.mark.parametrize(
    "published",
    [
        {"issuer": "https://login.example.org"},
        {"token_endpoint": "http://login.example.org/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    provider: OpenIdProvider, published: dict[str, Any]
) -> None:
    provider.published = published

    page = Client().get(START, follow=True)

    assert "(OIDC_METADATA)" in page.content.decode()


def test_a_refusal_of_the_provider_is_shown(provider: OpenIdProvider) -> None:
    provider.refuses = True

    assert code_of(log_in()) == LogInRefusal.DENIED


@pytest.mark.parametrize(
    "evil",
    ["https://evil.example", "//evil.example", "///evil.example", "\\\\evil.example",
     "https:evil.example", "javascript:alert(1)", "http://testserver@evil.example/", "\t//evil"],
)  # fmt: skip
def test_no_address_leads_to_another_site(provider: OpenIdProvider, evil: str) -> None:
    assert log_in(page=evil)["Location"] == "/admin/"


def test_a_click_on_another_site_begins_no_log_in(provider: OpenIdProvider) -> None:
    answer = Client().get(START, HTTP_SEC_FETCH_SITE="cross-site")

    assert answer["Location"] == LOG_IN
    assert provider.seen == []


def test_failed_log_ins_are_throttled_with_those_of_passwords(provider: OpenIdProvider) -> None:
    log_in()
    counts = [producer().get(key) for key in producer().scan_iter("medproc:log-in:*")]
    assert counts == [b"0"]
    provider.claims = {"nonce": "another"}

    for _ in range(OF_ADDRESS):
        assert Client().get(START).status_code == 302
    answer = Client().get(START)

    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 900
    assert Client().post(LOG_IN, {"username": "a", "password": "b"}).status_code == 429


def test_a_session_of_the_provider_ends_as_every_session(
    provider: OpenIdProvider, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SESSION_IDLE_S, settings.SESSION_MAX_S = 1_800.0, 43_200.0
    client = Client()
    log_in(client)
    later = time.time() + 1_801
    monkeypatch.setattr("observability.entry.sessions.time.time", lambda: later)

    assert client.get("/admin/tables/")["Location"].startswith(LOG_IN)


def test_a_log_out_ends_the_session_of_the_provider_too(provider: OpenIdProvider) -> None:
    client = Client()
    log_in(client)

    answer = client.post("/admin/logout/")

    assert answer["Clear-Site-Data"] == '"cache", "storage"'
    assert answer["Refresh"] == (
        f"0; url={provider.issuer}/logout?client_id={CLIENT_ID}"
        "&post_logout_redirect_uri=http%3A%2F%2Ftestserver%2Fadmin%2Flogin%2F"
    )
    assert client.get("/admin/tables/").status_code == 302
    with_password = User.objects.create_user("anna", is_staff=True)
    client.force_login(with_password)
    assert "Refresh" not in client.post("/admin/logout/")


def test_a_user_of_the_provider_has_no_second_way_in_and_is_not_deleted(
    provider: OpenIdProvider,
) -> None:
    log_in()
    user = User.objects.get(username="jane")
    user.set_password(PASSWORD)
    user.save()

    answer = Client().post(LOG_IN, {"username": "jane", "password": PASSWORD})

    assert "correct username and password" in answer.content.decode()
    root = Client()
    root.force_login(User.objects.create_superuser("root"))
    root.post(f"/admin/auth/user/{user.pk}/delete/", {"post": "yes"})
    assert User.objects.filter(pk=user.pk).exists()


def test_two_tabs_can_begin_at_once(provider: OpenIdProvider) -> None:
    client = Client()
    first, second = way_back(client, "/admin/failures/"), way_back(client, "/admin/records/")

    assert client.get(first).status_code == 302
    assert client.get(second)["Location"] == "/admin/"
    assert client.get("/admin/tables/").status_code == 200


def test_the_log_names_the_error_and_no_secret(
    provider: OpenIdProvider, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OIDC_CLIENT_SECRET = Secret("the wrong secret")
    back = way_back(Client())
    client = Client()

    assert code_of(log_in(client)) == LogInRefusal.TOKEN
    client.get(back + "&error=hunter2")

    assert "OIDC_TOKEN: token: invalid_client" in caplog.text
    code = back.partition("code=")[2].partition("&")[0]
    assert not [each for each in ("hunter2", "secret", "eyJ", code) if each in caplog.text]


def test_the_log_in_page_offers_the_provider_by_its_name(
    provider: OpenIdProvider, settings: Any
) -> None:
    page = Client().get(LOG_IN, {"next": "/admin/failures/?q=a&b=c"}).content.decode()

    assert "Log in with Example SSO" in page
    assert 'href="/admin/oidc/start/?next=%2Fadmin%2Ffailures%2F%3Fq%3Da%26b%3Dc"' in page
    assert provider.seen == []
    settings.OIDC_ISSUER = None
    assert "/admin/oidc/" not in Client().get(LOG_IN).content.decode()
    assert Client().get(START).status_code == Client().get(CALLBACK).status_code == 404
