"""A person logs in through an identity provider in a real browser, and out again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, expect

from medproc.secret_files import Secret
from tests.support.browser import WatchedPage
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OpenIdProvider,
    open_id_provider,
)

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow(reason="a browser and a database of its own: 20 s"),
]


@pytest.fixture(scope="module")
def scenario(users: None) -> None:
    """Leave the rows of an incident out, which the server else waits for."""


@pytest.fixture
def provider(settings: Any) -> Iterator[OpenIdProvider]:
    with open_id_provider() as provider:
        settings.OIDC_ISSUER = provider.issuer
        settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT_ID, Secret(CLIENT_SECRET)
        settings.OIDC_ROLES, settings.OIDC_NAME = ("ops=operator",), "Example SSO"
        provider.person = {"sub": "0001", "preferred_username": "jane", "groups": ["ops"]}
        yield provider


@pytest.mark.parametrize("is_only", [False, True])
def test_the_button_leads_in_and_log_out_leads_out_of_both(
    context: BrowserContext, server: str, provider: OpenIdProvider, settings: Any, is_only: bool
) -> None:
    settings.OIDC_ONLY = is_only
    watched = WatchedPage(context.new_page())
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/admin/failures/")
    button = page.get_by_role("link", name="Log in with Example SSO")

    expect(button).to_be_visible()
    expect(page.locator("#id_password")).to_be_visible(visible=not is_only)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []
    button.click()
    expect(page).to_have_url(f"{server}/admin/failures/")
    page.get_by_role("button", name="Log out").click()

    # The provider ends its session and sends the browser back.
    expect(page).to_have_url(f"{server}/admin/login/")
    assert provider.seen[-1] == "/logout"
    # Neither the way there nor the way back is against the policy of the pages.
    assert watched.complaints == []
