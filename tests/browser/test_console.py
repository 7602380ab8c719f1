"""The console as a person meets it: in a real Chromium, by mouse and by keyboard, light and dark.

Each test ends without an error of the browser's console and without a violation of the policy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from observability.permissions import Role
from tests.support.browser import ColourScheme, WatchedPage, log_in, logged_in

if TYPE_CHECKING:
    from tests.support.incident_scenario import IncidentScenario

# All of these share one database and one browser.
pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(600),
    pytest.mark.slow(reason="a real browser: 45 s, most of them CPU time"),
]

SERIOUS = {"serious", "critical"}


def the_pages(scenario: IncidentScenario) -> dict[str, str]:
    """Return the path of each page."""
    return {
        "overview": "/admin/overview/",
        "failures": "/admin/failures/",
        "members": "/admin/failures/members/?cause=API_5XX&step=pass1",
        "records": "/admin/records/",
        "record": f"/admin/records/{scenario.failed}/",
        "retry": f"/admin/retry/?record={scenario.failed}",
        "actions": "/admin/bulk-operations/",
        "queues": "/admin/queues/",
        "incidents": "/admin/incidents/",
        "incident": f"/admin/incidents/{scenario.incident}/",
        "stale": "/admin/stale/",
        "cancel many": "/admin/bulk-operations/new/cancel/?is=waiting",
        "requeue many": "/admin/bulk-operations/new/requeue/",
        "pause a provider": "/admin/holds/pause-provider/?target=gemini",
        "upload": "/admin/upload/",
        "confirm": "/admin/holds/pause/?target=pass1",
        "search": "/admin/search/?q=xyzxyz",
        "sessions": "/admin/sessions/",
        "tables": "/admin/tables/",
        "list": "/admin/pipeline/providercall/",
    }


def test_the_incident_is_told_in_three_clicks(
    operator: WatchedPage, scenario: IncidentScenario
) -> None:
    page = operator.page
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_label("Incident")).to_contain_text("has been down for 19 min")

    page.get_by_role("link", name="API_5XX").first.click()
    page.get_by_role("row").filter(has_text="failed").get_by_role("link").first.click()

    expect(page.locator("#answer")).to_contain_text("7 of 8 batches failed")
    expect(page.locator("#detail-title")).to_contain_text("Call")
    expect(page.locator(".c-detail")).to_contain_text("503")
    assert str(scenario.failed) in page.url
    assert operator.complaints == []


def test_a_node_opens_without_a_new_page_and_keeps_its_address(
    operator: WatchedPage, server: str, scenario: IncidentScenario
) -> None:
    page = operator.page
    page.goto(f"{server}/admin/records/{scenario.failed}/")
    page.evaluate("window.stayed = true")

    page.locator(".c-tree a", has_text="chunk 1 of 1").click()

    expect(page.locator("#detail-title")).to_contain_text("Chunk 1 of 1")
    assert page.evaluate("window.stayed")
    assert "?node=" in page.url
    expect(page.locator("#here")).to_be_focused()
    assert operator.complaints == []


def test_the_keyboard_alone_reaches_a_failed_call(
    operator: WatchedPage, scenario: IncidentScenario
) -> None:
    page = operator.page

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.wait_for_url("**/failures/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/members/**")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/records/.+node="))
    expect(page.locator("#detail-title")).to_contain_text("Call")
    page.keyboard.press("/")
    page.keyboard.type(str(scenario.completed))
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/records/{scenario.completed}/")
    expect(page.locator("#answer")).to_contain_text("Done in")
    assert operator.complaints == []


def test_the_keys_turn_to_the_next_record_of_a_list_and_retry_a_chosen_group(
    operator: WatchedPage, server: str, scenario: IncidentScenario
) -> None:
    page = operator.page
    page.goto(f"{server}/admin/records/?is=parked")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/records/.+at="))
    first = page.url

    page.keyboard.press("n")
    page.wait_for_url(lambda url: url != first)
    page.keyboard.press("p")
    page.wait_for_url(first)
    page.get_by_role("navigation", name="List").get_by_role("link").first.click()
    page.wait_for_url("**/records/?is=parked")
    page.goto(f"{server}/admin/failures/")
    page.get_by_role("row").filter(has_text="PARSE_JSON").get_by_role("link").focus()
    page.keyboard.press("r")
    page.wait_for_url("**/retry/?**")

    assert "error_code=PARSE_JSON" in page.url
    assert operator.complaints == []


def test_rows_without_a_link_are_passed_over_by_keyboard(
    context: BrowserContext, server: str, scenario: IncidentScenario
) -> None:
    viewer = logged_in(context, server, Role.VIEWER)
    page = viewer.page
    page.goto(f"{server}/admin/queues/")

    # A viewer pauses no queue; of all rows that of the incident's provider has a link.
    for key in ("j", "k", "j"):
        page.keyboard.press(key)
        expect(page.get_by_role("link", name="outage since")).to_be_focused()

    assert viewer.complaints == []


def test_a_bar_of_the_time_line_leads_to_its_call(
    operator: WatchedPage, server: str, scenario: IncidentScenario
) -> None:
    page = operator.page
    page.goto(f"{server}/admin/records/{scenario.failed}/")

    page.locator(".c-time .b-failed").last.click()

    expect(page.locator("#detail-title")).to_contain_text("Call")
    assert operator.complaints == []


def test_a_failed_record_is_retried_by_keyboard_and_watched_to_the_end(
    operator: WatchedPage, server: str, scenario: IncidentScenario
) -> None:
    from observability.actions.bulk_runner import advance
    from tests.support import records

    page = operator.page
    page.goto(f"{server}/admin/records/{scenario.broken}/")

    page.keyboard.press("r")
    expect(page.get_by_text("What will happen")).to_be_visible()
    page.get_by_label("Reason").focus()
    page.keyboard.type("the provider has recovered")
    page.keyboard.press("Enter")
    page.wait_for_url("**/bulk-operations/**")
    expect(page.locator("[data-announce]")).to_contain_text("0 of 1 settled")
    advance()
    expect(page.locator("[data-announce]")).to_contain_text("1 requeued")
    records.run_again(scenario.broken)

    row = page.get_by_role("row").filter(has_text=str(scenario.broken)[:8])
    expect(row.locator(".chip")).to_contain_text("done")
    page.goto(f"{server}/admin/records/{scenario.broken}/")
    expect(page.locator("#answer")).to_contain_text("Done in")
    assert operator.complaints == []


def test_the_overview_goes_on_while_it_is_looked_at_and_rests_while_it_is_not(
    operator: WatchedPage, server: str
) -> None:
    page = operator.page
    page.clock.install()
    page.goto(f"{server}/admin/overview/")
    asked: list[str] = []
    page.on(
        "request",
        lambda request: asked.append(request.url) if "overview" in request.url else None,
    )
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true})"
    )

    page.evaluate("window.away = true")
    page.clock.run_for(60_000)
    while_away = list(asked)
    page.evaluate("window.away = false")
    with page.expect_response("**/overview/") as answered:
        page.clock.run_for(1_000)

    assert while_away == []
    assert answered.value.ok
    expect(page.locator("#taken time")).to_be_visible()
    assert operator.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_barrier(
    operator: WatchedPage, server: str, scenario: IncidentScenario, scheme: ColourScheme
) -> None:
    page = operator.page
    page.emulate_media(color_scheme=scheme)
    found = {}

    for name, path in the_pages(scenario).items():
        page.goto(f"{server}{path}")
        found[name] = _barriers(page)

    assert {name: of for name, of in found.items() if of} == {}
    assert operator.complaints == []


def test_every_page_fits_a_phone(
    operator: WatchedPage, server: str, scenario: IncidentScenario
) -> None:
    page = operator.page
    page.set_viewport_size({"width": 390, "height": 844})

    widths = {}
    for name, path in the_pages(scenario).items():
        page.goto(f"{server}{path}")
        widths[name] = page.evaluate("document.documentElement.scrollWidth")

    assert set(widths.values()) == {390}


def test_the_dark_theme_is_dark_and_the_toggle_holds(operator: WatchedPage) -> None:
    page = operator.page
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.querySelector('.c-card')).backgroundColor")

    # The admin's own button: auto, light, dark.
    page.locator(".theme-toggle").click()
    light = page.evaluate("getComputedStyle(document.querySelector('.c-card')).backgroundColor")

    assert (dark, light) == ("rgb(26, 26, 26)", "rgb(255, 255, 255)")


def test_staff_without_a_role_sees_no_console(context: BrowserContext, server: str) -> None:
    watched = logged_in(context, server, "no-role")

    expect(watched.page.get_by_role("navigation", name="Console")).to_have_count(0)
    assert watched.page.goto(f"{server}/admin/overview/").status == 403  # type: ignore[union-attr]


def test_the_log_in_leads_to_the_overview(context: BrowserContext, server: str) -> None:
    watched = WatchedPage(context.new_page())

    log_in(watched.page, server, Role.VIEWER)

    expect(watched.page.get_by_role("heading", name="Overview")).to_be_visible()
    assert watched.complaints == []


def _barriers(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:120]} {each['nodes'][0]['failureSummary'][:200]}"
        for each in found
        if each["impact"] in SERIOUS
    ]
