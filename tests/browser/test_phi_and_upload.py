"""Pages of a record and the upload in a real Chromium, without a complaint of the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from observability.permissions import Role
from tests.support.browser import ColourScheme, WatchedPage, logged_in

if TYPE_CHECKING:
    from tests.support.incident_scenario import IncidentScenario

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(600),
    pytest.mark.slow(reason="a real browser: 20 s, most of them CPU time"),
]

SERIOUS = {"serious", "critical"}
DROP = """
async ([name, type, bytes]) => {
  const files = new DataTransfer();
  files.items.add(new File([Uint8Array.from(bytes)], name, { type }));
  const zone = document.querySelector("#drop");
  for (const kind of ["dragover", "drop"]) {
    const options = { dataTransfer: files, bubbles: true, cancelable: true };
    zone.dispatchEvent(new DragEvent(kind, options));
  }
}
"""


def barriers(page: Page) -> list[str]:
    """List the serious accessibility violations."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:160]}"
        for each in found
        if each["impact"] in SERIOUS
    ]


def the_pages(record_id: UUID, enriched: UUID) -> dict[str, str]:
    """Return the path of each page that holds PHI, and of the upload.

    `enriched` is a record that gets results of all passes.
    """
    from pipeline.models import Encounter, ProviderCall
    from tests.support.clinical_rows import clinical_rows

    entity = clinical_rows(
        Encounter.objects.filter(shell_file_id=enriched).earliest("encounter_index")
    )
    calls = ProviderCall.objects.filter(
        processing_session__shell_file=record_id, page_range_start=5, step="pass1"
    ).order_by("attempt")
    first, second = calls[:2]
    return {
        "page": f"/admin/records/{record_id}/pages/5/",
        "summary": f"/admin/records/{enriched}/results/",
        "source": f"/admin/records/{enriched}/source/{entity.id}/",
        "empty summary": f"/admin/records/{record_id}/results/",
        "page after Pass 2": f"/admin/records/{enriched}/pages/1/",
        "call": f"/admin/calls/{second.id}/reading/",
        "compare": f"/admin/records/{record_id}/compare/replies/?a={first.id}&b={second.id}",
        "upload": "/admin/upload/",
    }


def test_an_entity_is_marked_in_image_and_text_at_once(
    context: BrowserContext, server: str, scenario: IncidentScenario
) -> None:
    reviewer = logged_in(context, server, Role.REVIEWER)
    page = reviewer.page
    page.goto(f"{server}/admin/records/{scenario.failed}/")
    page.get_by_label("Read page").fill("4")
    page.get_by_role("button", name="Open").click()
    page.wait_for_url("**/pages/4/")
    with page.expect_response("**/image/**") as drawn:
        page.keyboard.press("n")
    page.wait_for_url("**/pages/5/")

    page.locator("#e1 a").first.focus()
    lit_by_focus = page.locator(".is-lit").evaluate_all("all => all.map(e => e.localName)")
    page.locator("a.r-mark[data-e='2']").hover()

    assert drawn.value.ok
    assert sorted(set(lit_by_focus)) == ["a", "li", "rect"]
    expect(page.locator("#e2")).to_have_class("is-lit")
    expect(page.locator("#e1")).not_to_have_class("is-lit")
    expect(page.locator("#no-image")).to_be_hidden()
    assert reviewer.complaints == []


def test_a_result_opens_its_quote_beside_the_results(
    context: BrowserContext, server: str, scenario: IncidentScenario
) -> None:
    from pipeline.models import Encounter
    from tests.support.clinical_rows import clinical_rows

    record_id = scenario.completed
    clinical_rows(Encounter.objects.filter(shell_file_id=record_id).earliest("encounter_index"))
    reviewer = logged_in(context, server, Role.REVIEWER)
    page = reviewer.page
    page.goto(f"{server}/admin/records/{record_id}/results/")

    page.locator(".s-list th a").first.focus()
    page.keyboard.press("Enter")

    panel = page.locator("#source")
    expect(panel.locator(".v-quote")).to_have_text("metoprolol")
    expect(panel).to_be_focused()
    assert page.url.endswith("/results/")
    assert reviewer.complaints == []


def test_files_are_dropped_and_chosen_and_each_gets_its_word(
    operator: WatchedPage, server: str, tmp_path: Path
) -> None:
    from pipeline.models import Job
    from tests.support.records import LAB

    page = operator.page
    page.goto(f"{server}/admin/upload/")
    (tmp_path / "notes.pdf").write_bytes(b"\x7fELF\0\0\0")

    page.evaluate(DROP, [LAB.name, "application/pdf", list(LAB.read_bytes())])
    page.get_by_label("PDF, images, text, RTF, DOCX or C-CDA files").set_input_files(
        [tmp_path / "notes.pdf", LAB.with_name("visits_20p_4enc.pdf")]
    )
    page.get_by_label("Patient reference").fill("ward-7")
    page.get_by_role("button", name="Upload").dblclick()

    expect(page.locator("#u-sum")).to_have_text("2 of 3 accepted, 1 failed.")
    rows = page.locator("#u-list tbody tr")
    expect(rows.filter(has_text=LAB.name)).to_contain_text("Accepted: record")
    expect(rows.filter(has_text="notes.pdf")).to_contain_text("unknown type by its content")
    jobs = Job.objects.filter(shell_file__patient__reference="ward-7")
    assert len(jobs) == 2
    assert len({job.record_batch_id for job in jobs} - {None}) == 1
    rows.filter(has_text=LAB.name).get_by_role("link").click()
    expect(page.locator("#answer")).to_be_visible()
    assert operator.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_barrier_and_each_fits_a_phone(
    context: BrowserContext, server: str, scenario: IncidentScenario, scheme: ColourScheme
) -> None:
    watched = logged_in(context, server, Role.ADMINISTRATOR)
    page = watched.page
    page.emulate_media(color_scheme=scheme)
    found, widths = {}, {}

    for name, path in the_pages(scenario.failed, scenario.completed).items():
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(f"{server}{path}")
        found[name] = barriers(page)
        page.set_viewport_size({"width": 390, "height": 844})
        widths[name] = page.evaluate("document.documentElement.scrollWidth")

    assert {name: of for name, of in found.items() if of} == {}
    assert set(widths.values()) == {390}
    assert watched.complaints == []
