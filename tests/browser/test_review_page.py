"""The page of a review in a real browser: a key without a claim, a refused form, the address."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, expect

from observability.permissions import Role
from pipeline.models import Entity, ReviewItem
from pipeline.operations.review import queue
from tests.support.browser import WatchedPage, logged_in
from tests.support.review_forms import a_plain_record

pytestmark = [pytest.mark.xdist_group("review-page"), pytest.mark.timeout(120)]

ANOTHER = "user:999"
SAID = re.compile("said=")


@pytest.fixture(scope="module")
def scenario(users: None) -> None:
    """Insert nothing; each test inserts its own record."""


@pytest.fixture
def item() -> ReviewItem:
    """Insert a record of two entities without a flag."""
    return a_plain_record(entities=2)


@pytest.fixture
def reviewer(context: BrowserContext, server: str, item: ReviewItem) -> WatchedPage:
    """Return the page of the review for a reviewer who does not hold it."""
    watched = logged_in(context, server, Role.REVIEWER)
    watched.page.goto(f"{server}/admin/reviews/{item.id}/")
    return watched


def test_a_key_without_a_claim_says_how_to_claim(reviewer: WatchedPage, item: ReviewItem) -> None:
    page = reviewer.page

    page.keyboard.press("f")
    free = "Nothing was done: claim this review first with the key h."
    expect(page.locator(".w-said")).to_contain_text(free)
    expect(page.locator("#announce")).to_have_text(free)
    queue.claim(item.id, ANOTHER)
    page.reload()
    for key in ("a", "r", "c", "m", "n", "A", "f", "s"):
        page.evaluate("document.querySelector('#announce').textContent = ''")
        page.keyboard.press(key)
        expect(page.locator("#announce")).to_contain_text("Nothing was done: user:999 holds")
    expect(page.locator(".w-said")).to_contain_text("claim it first with the key h")

    assert not Entity.objects.filter(verdict__isnull=False).exists()
    assert reviewer.complaints == []


def test_a_failed_addition_keeps_its_form_with_what_was_typed(reviewer: WatchedPage) -> None:
    page = reviewer.page

    page.keyboard.press("n")
    expect(page.locator("#n-words")).to_be_focused()
    page.keyboard.type("no such words")
    page.locator("#n-category").select_option("allergy")
    page.locator("#n-dose").fill("5 mg")
    page.locator("#n-words").press("Enter")

    expect(page.locator("#n-problem")).to_contain_text("does not have these words")
    expect(page.locator("#n-words")).to_be_visible()
    expect(page.locator("#n-words")).to_have_value("no such words")
    expect(page.locator("#n-words")).to_have_attribute("aria-describedby", "n-problem")
    expect(page.locator("#n-words")).to_be_focused()


def test_the_address_says_nothing_that_was_done(reviewer: WatchedPage) -> None:
    page = reviewer.page

    page.keyboard.press("A")
    expect(page.locator(".w-said b")).to_have_text("All unflagged entities are accepted.")
    expect(page).not_to_have_url(SAID)
    page.keyboard.press("f")
    expect(page.locator(".w-said b")).not_to_have_text("All unflagged entities are accepted.")
    expect(page).not_to_have_url(SAID)


def test_a_page_that_the_browser_loads_whole_forgets_what_was_done(
    reviewer: WatchedPage, item: ReviewItem
) -> None:
    """A key that is pressed before htmx knows the new forms sends its form without htmx."""
    page = reviewer.page
    entity = Entity.objects.filter(shell_file_id=item.shell_file_id).earliest("id").id

    page.goto(f"{page.url}?said=accept-all&entity={entity}")

    expect(page.locator(".w-said b")).to_have_text("All unflagged entities are accepted.")
    expect(page).to_have_url(re.compile(rf"/{item.id}/\?entity={entity}$"))
