"""An open overview says by itself why a server refuses, and forgets it afterwards."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from pipeline.core.server_faults import ServerFault
from tests.support.browser import WatchedPage
from tests.support.refusing_servers import refusing

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow(reason="the page asks every five seconds: 25 s"),
]


def test_an_open_page_names_a_postgresql_that_refuses(operator: WatchedPage) -> None:
    page = operator.page
    expect(page.locator("#live")).to_be_visible()

    with refusing(ServerFault.POSTGRES_LOGIN):
        expect(page.locator("#refused")).to_contain_text("POSTGRES_LOGIN")
        page.goto(page.url)
        expect(page.locator("h1")).to_have_text("PostgreSQL refuses requests")

    page.go_back()
    page.goto(page.url)
    expect(page.locator("#refused")).to_have_count(0)


def test_the_overview_shows_a_full_redis_on_top(operator: WatchedPage, redis_db: object) -> None:
    page = operator.page

    with refusing(ServerFault.REDIS_FULL):
        page.reload()
        expect(page.locator("section[aria-label=Server]")).to_contain_text("REDIS_FULL")
    expect(page.locator("section[aria-label=Server]")).to_have_count(0)
