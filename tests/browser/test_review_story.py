"""A reviewer works through five records by keyboard alone, and no page of the review is a barrier.

The records are read by the real steps. The test prints keys and seconds for each decision.
"""

from __future__ import annotations

import io
import json
import sys
import time
import zipfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import override_settings
from playwright.sync_api import Browser, BrowserContext, Page, expect

from observability.permissions import Role
from pipeline.models import Entity, ReviewDecision, ReviewItem
from pipeline.operations.review.closing import reopen
from tests.support import records
from tests.support.browser import ColourScheme, WatchedPage, logged_in
from tests.support.short_records import short_record

# One browser and one database with five records.
pytestmark = [
    pytest.mark.xdist_group("review-story"),
    pytest.mark.timeout(600),
    pytest.mark.slow(reason="a real browser and five records; 40 s"),
]

EXPORTS = {"FHIR": ".json", "Parquet and JSON": ".zip", "HTML": ".html", "CSV": ".csv"}
"""The buttons of the summary, and the ends of the names of the files."""
SERIOUS = {"serious", "critical"}
DRUGS = ("metformin", "lisinopril", "atorvastatin", "amlodipine", "warfarin")
DECISIONS = ("accept", "accept", "reject", "correct", "move", "accept")
"""What the reviewer decides about the first six entities of each record."""
MOST_KEYS = {"accept": 1, "reject": 2, "correct": 2, "move": 2}
"""Keys of a decision without the letters of a corrected value."""


@dataclass
class KeyboardReviewer:
    """Presses keys, and counts keys and seconds of each kind of decision."""

    page: Page
    keys: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def decides(self, kind: str) -> None:
        """Decide about the selected entity and wait for the next one."""
        started = time.monotonic()
        token = self.token()
        pressed = {
            "accept": ("a",),
            "reject": ("r", "2"),
            "move": ("m", "1"),
            "correct": ("c", "Enter"),
        }[kind]
        for key in pressed:
            if key == "Enter":
                field_of_day = self.page.locator(".w-more[open] #w-entity_date")
                expect(field_of_day).to_be_visible()
                # The letters of the keys above, typed into a field, decide nothing.
                self.page.keyboard.type(" arm")
            self.page.keyboard.press(key)
        self.keys[kind].append(len(pressed))
        # Each page has new tokens.
        expect(self.page.locator("#review [name=token]").first).not_to_have_value(token)
        said = {"accept": "Accepted.", "reject": "Rejected.", "correct": "Corrected."}
        expect(self.page.locator(".w-said b")).to_contain_text(said.get(kind, "Moved"))
        self.seconds[kind].append(time.monotonic() - started)

    def token(self) -> str:
        """Return the first token of the page."""
        return self.page.locator("#review [name=token]").first.input_value()

    def printed(self) -> str:
        """Return a table of keys and seconds for each kind of decision."""
        lines = ["decision   number  keys  seconds (mean, longest)"]
        for kind, keys in sorted(self.keys.items()):
            spent = self.seconds[kind]
            lines.append(
                f"{kind:<10} {len(keys):>6} {max(keys):>5}"
                f"  {sum(spent) / len(spent):.2f}, {max(spent):.2f}"
            )
        total = [each for of in self.seconds.values() for each in of]
        count = sum(key for of in self.keys.values() for key in of)
        lines.append(
            f"{'all':<10} {len(total):>6} {count / len(total):>5.1f}"
            f"  {sum(total) / len(total):.2f}, {max(total):.2f}"
        )
        return "\n".join(lines)


@pytest.fixture(scope="module")
def scenario(users: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Process five records with all passes; each waits for its review."""
    folder: Path = tmp_path_factory.mktemp("records")
    with override_settings(SKIPPED_PASSES=()):
        for drug in DRUGS:
            records.completed_record(short_record(folder / f"{drug}.pdf", 3, drug=drug))


@pytest.fixture
def reviewer(context: BrowserContext, server: str) -> WatchedPage:
    """Return the queue page of a logged-in reviewer."""
    watched = logged_in(context, server, Role.REVIEWER)
    watched.page.goto(f"{server}/admin/reviews/")
    return watched


def barriers(page: Page) -> list[str]:
    """List the serious accessibility violations."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:160]}"
        for each in found
        if each["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_the_review_has_a_serious_barrier_and_each_fits_a_phone(
    reviewer: WatchedPage, server: str, scheme: ColourScheme
) -> None:
    page = reviewer.page
    page.emulate_media(color_scheme=scheme)
    item = ReviewItem.objects.earliest("created_at")
    found, widths = {}, {}

    for path in ("/admin/reviews/", f"/admin/reviews/{item.id}/", "/admin/reviews/learning/"):
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(f"{server}{path}")
        found[path] = barriers(page)
        for key in "rcmn" if str(item.id) in path else "":
            page.keyboard.press(key)
            expect(page.locator(".w-more[open]")).to_have_count(1)
            found[f"{path} {key}"] = barriers(page)
            page.set_viewport_size({"width": 390, "height": 844})
            widths[f"{path} {key}"] = page.evaluate("document.documentElement.scrollWidth")
            page.set_viewport_size({"width": 1440, "height": 900})
            # The first Escape leaves the field, the second one closes the panel.
            page.keyboard.press("Escape")
            page.keyboard.press("Escape")
            expect(page.locator(".w-more[open]")).to_have_count(0)
        page.set_viewport_size({"width": 390, "height": 844})
        widths[path] = page.evaluate("document.documentElement.scrollWidth")

    assert {name: of for name, of in found.items() if of} == {}
    assert set(widths.values()) == {390}
    assert reviewer.complaints == []


def test_a_reviewer_decides_about_30_entities_of_5_records_by_keyboard_alone(
    reviewer: WatchedPage, capsys: pytest.CaptureFixture[str]
) -> None:
    page, hands = reviewer.page, KeyboardReviewer(reviewer.page)
    images: list[str] = []
    page.on(
        "request",
        lambda sent: images.append(urlsplit(sent.url).path) if "/image/" in sent.url else None,
    )

    page.keyboard.press("n")
    reviewed: list[UUID] = []
    for _ in DRUGS:
        page.wait_for_url("**/admin/reviews/*-*-*-*-*/**")
        item_id = UUID(urlsplit(page.url).path.split("/")[3])
        assert item_id not in reviewed
        reviewed.append(item_id)
        for kind in DECISIONS:
            hands.decides(kind)
        _decide_the_rest(page)
        page.keyboard.press("f")
        expect(page.locator(f"[action$='{item_id}/close/']")).to_have_count(0)

    with capsys.disabled():
        sys.stdout.write(f"\n{hands.printed()}\n")
    assert ReviewItem.objects.filter(status="closed").count() == len(DRUGS)
    assert set(ReviewItem.objects.values_list("id", flat=True)) == set(reviewed)
    assert not Entity.objects.filter(verdict=None).exists()
    made = Counter(ReviewDecision.objects.filter(part=0).values_list("action", flat=True))
    assert {kind: made[kind] for kind in ("reject", "correct", "move")} == {
        "reject": 5, "correct": 5, "move": 5,
    }  # fmt: skip
    assert sum(len(of) for of in hands.keys.values()) == 30
    assert {kind: max(of) for kind, of in hands.keys.items()} == MOST_KEYS
    # Decisions about one page request its image once.
    assert not [one for one, other in pairwise(images) if one == other]
    assert reviewer.complaints == []


def test_a_key_in_a_field_decides_nothing_and_undo_goes_back(
    reviewer: WatchedPage, server: str
) -> None:
    page = reviewer.page
    item = _an_open_review()
    page.goto(f"{server}/admin/reviews/{item.id}/")
    before = ReviewDecision.objects.count()

    page.keyboard.press("n")
    expect(page.locator("#n-words")).to_be_focused()
    page.keyboard.type("arm fsu")
    typed = page.locator("#n-words").input_value()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    name = page.locator("#here").inner_text()
    page.keyboard.press("a")
    expect(page.locator(".w-said b")).to_have_text("Accepted.")
    page.keyboard.press("u")

    assert typed == "arm fsu"
    expect(page.locator("#here")).to_contain_text(name.split("\n")[0].split(" ")[0])
    assert ReviewDecision.objects.count() == before + 1
    assert reviewer.complaints == []


def test_a_lost_claim_is_told_while_typing_and_the_next_decision_claims_again(
    reviewer: WatchedPage, server: str
) -> None:
    page = reviewer.page
    page.clock.install()
    item = _an_open_review()
    page.goto(f"{server}/admin/reviews/{item.id}/")
    if page.locator("#free").count():
        page.keyboard.press("h")
    expect(page.locator("#review[data-renew]")).to_have_count(1)
    page.keyboard.press("c")
    expect(page.locator("#w-name")).to_be_focused()
    ReviewItem.objects.filter(id=item.id).update(claimed_until=None)

    # A third of the time of a claim has passed, so the next key renews the claim.
    page.clock.fast_forward(20_000)
    page.keyboard.press("End")
    expect(page.locator("#lost")).to_contain_text("you do not hold this review any more")
    page.keyboard.type(" twice")
    page.keyboard.press("Enter")
    expect(page.locator(".w-said b")).to_have_text("Corrected.")

    assert Entity.objects.filter(shell_file=item.shell_file, name__endswith=" twice").exists()
    # The browser reports the answer 409 itself.
    assert not [each for each in reviewer.complaints if "409" not in each]


def test_a_review_works_without_a_script(browser: Browser, server: str) -> None:
    item = _an_open_review()
    context = browser.new_context(java_script_enabled=False)
    page = logged_in(context, server, Role.REVIEWER).page
    page.goto(f"{server}/admin/reviews/{item.id}/")
    name = page.locator("#here").inner_text()

    page.get_by_role("button", name="Accept", exact=False).first.click()
    expect(page.locator(".w-said b")).to_have_text("Accepted.")
    page.get_by_role("link", name="back to the last decision").click()
    again = page.locator("#here").inner_text()
    page.locator("summary", has_text="Reject").click()
    page.get_by_role("button", name="not about this patient").click()
    expect(page.locator(".w-said b")).to_have_text("Rejected.")
    context.close()

    assert again.split()[0] == name.split()[0]
    decision = ReviewDecision.objects.filter(field="verdict").latest("created_at")
    assert (decision.old_value, decision.new_value) == ("accepted", "rejected")
    assert decision.reason == "not about this patient"


def test_each_button_of_the_summary_downloads_an_export(reviewer: WatchedPage, server: str) -> None:
    page = reviewer.page
    record = ReviewItem.objects.earliest("created_at").shell_file_id
    page.goto(f"{server}/admin/records/{record}/results/")
    saved: dict[str, bytes] = {}

    for words in EXPORTS:
        with page.expect_download() as downloading:
            page.get_by_role("button", name=words, exact=True).click()
        download = downloading.value
        saved[words] = Path(download.path()).read_bytes()
        assert download.suggested_filename.endswith(EXPORTS[words])

    entities = Entity.objects.filter(shell_file=record, accepted=True).count()
    bundle = json.loads(saved["FHIR"])
    assert (bundle["resourceType"], bundle["type"]) == ("Bundle", "document")
    assert len(saved["CSV"].decode("utf-8-sig").splitlines()) > entities > 0
    assert b"<script" not in saved["HTML"]
    with zipfile.ZipFile(io.BytesIO(saved["Parquet and JSON"])) as pair:
        assert {Path(name).suffix for name in pair.namelist()} == {".parquet", ".json"}
    assert reviewer.complaints == []


def _an_open_review() -> ReviewItem:
    """Return a review with waiting entities that no other reviewer holds, reopened if closed."""
    item = ReviewItem.objects.order_by("created_at")[0]
    if item.status == "closed":
        reopen(item.id, str(item.closed_by), reason="a test")
        item.refresh_from_db()
    return item


def _decide_the_rest(page: Page) -> None:
    """Accept the flagged entities one by one, and then all the unflagged ones."""
    for _ in range(200):
        button = page.locator("[data-turn='A']")
        if page.locator(".c-facts").inner_text().startswith("0 of"):
            return
        token = page.locator("#review [name=token]").first
        was = token.input_value()
        page.keyboard.press("a" if button.is_disabled() else "A")
        expect(token).not_to_have_value(was)
    raise AssertionError("entities wait after 200 decisions")
