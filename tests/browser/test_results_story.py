"""The results page in a browser: a section shows another part, and each address finds its row."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from observability.permissions import Role
from tests.support.browser import ColourScheme, WatchedPage, logged_in
from tests.support.wide_results import WideResults, a_wide_record

# One browser and one database.
pytestmark = [
    pytest.mark.xdist_group("results-story"),
    pytest.mark.timeout(300),
    pytest.mark.slow(reason="a real browser; 30 s"),
]


@pytest.fixture(scope="module")
def scenario(users: None) -> WideResults:
    """Insert a record that is long in each section."""
    return a_wide_record()


@pytest.fixture
def reviewer(context: BrowserContext, server: str) -> WatchedPage:
    """Return the page of a logged-in reviewer."""
    return logged_in(context, server, Role.REVIEWER)


def _url(server: str, scenario: WideResults) -> str:
    return f"{server}/admin/records/{scenario.record_id}/results/"


def _focused(page: Page) -> str:
    said: str = page.evaluate("document.activeElement.id")
    return said


def test_a_link_changes_its_section_alone_and_takes_the_focus_there(
    reviewer: WatchedPage, server: str, scenario: WideResults
) -> None:
    page = reviewer.page
    page.goto(_url(server, scenario))
    page.evaluate("document.querySelector('#problem').dataset.kept = 'yes'")

    page.locator("#medication [rel=next]").click()

    expect(page.locator("#medication-title")).to_contain_text("21–40 of 45")
    assert _focused(page) == "medication-title"
    assert "?at=medication-" in page.url
    assert page.locator("#problem").get_attribute("data-kept") == "yes"
    page.go_back()
    expect(page.locator("#medication-title")).to_contain_text("1–20 of 45")
    assert reviewer.complaints == []


def test_links_and_addresses_find_a_row_of_another_part(
    reviewer: WatchedPage, server: str, scenario: WideResults
) -> None:
    page = reviewer.page
    late = f"allergy-{scenario.entries}"

    page.goto(f"{_url(server, scenario)}#{late}")
    expect(page.locator(f"#{late}")).to_be_in_viewport()
    page.locator("#medication [rel=next]").click()
    expect(page.locator("#medication-title")).to_contain_text("21–40 of 45")
    page.locator("#contradictions a").first.click()

    expect(page.locator(f"#medication-{scenario.contradicted}")).to_be_in_viewport()
    assert reviewer.complaints == []


def test_a_result_of_another_part_opens_its_source_beside_the_results(
    reviewer: WatchedPage, server: str, scenario: WideResults
) -> None:
    page = reviewer.page
    page.goto(_url(server, scenario))
    series = page.locator(f"#lab_series-{scenario.series}")
    if not series.count():
        page.goto(f"{_url(server, scenario)}?at=lab_series-{scenario.series}")
    series.locator("[rel=prev]").click()
    expect(series.locator("[rel=next]")).to_be_visible()
    address = page.url

    page.locator("#problem tbody th a").first.click()

    expect(page.locator("#source")).to_contain_text("problem")
    assert page.url == address


def test_every_part_works_without_script(
    browser: Browser, server: str, scenario: WideResults
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = logged_in(context, server, Role.REVIEWER).page
    page.goto(_url(server, scenario))

    page.locator("#problem [rel=next]").click()
    page.locator("#problem [rel=next]").click()

    expect(page.locator("#problem-title")).to_contain_text("41–45 of 45")
    expect(page.locator("#problem-45")).to_be_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_long_page_fits_a_phone(
    reviewer: WatchedPage, server: str, scenario: WideResults, scheme: ColourScheme
) -> None:
    page = reviewer.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(_url(server, scenario))

    assert page.evaluate("document.documentElement.scrollWidth") == 390
