"""The provider goes down; an operator sees the outage, finds a failed call, and retries.

The test uses real workers, the real scheduler, the emulator's outage and a real browser. It runs
once by mouse and once by keyboard, and the browser must report no error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from gemini_emulator import Emulator
from gemini_emulator.recorded_rows import prove_log
from gemini_emulator.request_log import LogLine
from gemini_emulator.scenario import load_scenario
from observability.models import AuditEvent, BulkOperation
from pipeline.core.states import JOB_TERMINAL, IncidentState, JobStatus
from pipeline.models import Batch, Incident, Job, ProviderCall
from pipeline.stages.intake import Received
from tests.acceptance.conftest import (  # noqa: F401 - fixtures
    PATIENT,
    module_redis,
    scheduler,
    start_pool,
    step_worker_fixture,
)
from tests.support import records
from tests.support.browser import WatchedPage
from tests.support.record_runs import RECORD_PATIENCE_S, ended
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, until

# One pool of workers and one browser.
pytestmark = [
    pytest.mark.xdist_group("outage-story"),
    pytest.mark.timeout(1200),
    pytest.mark.slow(reason="two outages, watched in a real browser; 38 s"),
]

Start = Callable[..., WorkerCommand]

RECORDS = 3
VISITS = 6
BROKEN_PAGE = 6
"""With two calls at once, the third pair asks for this page; the provider is down by then."""
SCALE = 0.05
LATENCY = "8/call"
PATIENCE_MS = 180_000
ATTEMPTS = 3
"""Replies without JSON for one page: as many as a batch has attempts, so a retry succeeds."""
GARBLED = {"fault": "bad-json", "kind": "entities", "page": BROKEN_PAGE, "attempt": f"1-{ATTEMPTS}"}
POOL = {
    "MEDPROC_PROVIDER": "gemini",
    "PASS1_CONCURRENCY_LIMIT": 2,
    "PASS1_BATCH_MIN_PAGES": 1,
    "PASS1_BATCH_MAX_PAGES": 1,
    "PASS1_BATCH_HARD_CEILING": 1,
}
REASON = "the provider is back"


@pytest.fixture(scope="module")
def scenario(users: None) -> None:
    """Start with an empty console; the test itself makes the rows."""


class Mouse:
    """Operates the page by mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.followed = 0
        """Number of links followed."""

    def follow(self, link: Locator) -> None:
        self.followed += 1
        self._follow(link)

    def _follow(self, link: Locator) -> None:
        link.first.click(timeout=PATIENCE_MS)

    def overview(self) -> None:
        self.page.get_by_role("navigation", name="Console").get_by_text("Overview").click()

    def retry(self) -> None:
        self.page.get_by_role("link", name="Retry these").click()

    def confirm(self, reason: str) -> None:
        self.page.get_by_label("Reason").fill(reason)
        self.page.get_by_role("button", name="Start").click()


class Keyboard(Mouse):
    """Operates the page by keyboard only."""

    def _follow(self, link: Locator) -> None:
        link.first.wait_for(timeout=PATIENCE_MS)
        for _ in range(400):
            if link.first.evaluate("each => each === document.activeElement"):
                self.page.keyboard.press("Enter")
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"no key leads to {link}")

    def overview(self) -> None:
        self.page.keyboard.press("g")
        self.page.keyboard.press("o")

    def retry(self) -> None:
        self.page.keyboard.press("r")

    def confirm(self, reason: str) -> None:
        reach = self.page.get_by_label("Reason")
        reach.wait_for()
        while not reach.evaluate("each => each === document.activeElement"):
            self.page.keyboard.press("Tab")
        self.page.keyboard.type(reason)
        self.page.keyboard.press("Enter")


@pytest.fixture
def before_pass1(
    start_pool: Start,  # noqa: F811
    tmp_path: Path,
    settings: Any,
) -> tuple[list[Received], list[LogLine]]:
    """Run records up to Pass 1; return them and the calls until then."""
    settings.MEDPROC_PROVIDER = "gemini"
    settings.JOB_MAX_RETRIES = 0
    files = [short_record(tmp_path / f"{n}.pdf", VISITS, patient=f"P{n}") for n in range(RECORDS)]
    received = [records.submit(file) for file in files]
    with Emulator() as emulator:
        pool = start_pool(
            "--queues",
            "pass05",
            "pages",
            "--workers",
            "2",
            GEMINI_BASE_URL=emulator.url,
            **POOL,
        )
        before = Job.objects.filter(id__in=[each.job_id for each in received], current_step="pass1")
        until(lambda: before.count() == RECORDS, RECORD_PATIENCE_S)
        pool.stop()
        earlier = emulator.log()
    return received, earlier


@pytest.mark.parametrize("by", [Mouse, Keyboard], ids=["mouse", "keyboard"])
def test_an_outage_is_seen_understood_and_what_is_left_of_it_retried(
    by: type[Mouse],
    before_pass1: tuple[list[Received], list[LogLine]],
    start_pool: Start,  # noqa: F811
    scheduler: WorkerCommand,  # noqa: F811
    operator: WatchedPage,
) -> None:
    waiting, earlier = before_pass1
    page, hand = operator.page, by(operator.page)
    before = BulkOperation.objects.count()
    # The scenario has no end here: the provider is back after the call has been found.
    outage = {
        **load_scenario("outage").model_dump(mode="json"),
        "latency": LATENCY,
        "timeline": ["from 15s: down"],
    }
    with Emulator(scenario=outage, scale=SCALE, seed=3) as down:
        port = int(down.url.rsplit(":", 1)[1])
        pool = start_pool(
            "--queues",
            "pass1",
            "--workers",
            str(RECORDS),
            GEMINI_BASE_URL=down.url,
            **POOL,
        )
        banner = page.get_by_label("Incident")
        expect(banner).to_contain_text("has been down for", timeout=PATIENCE_MS)
        clicks = _drill_to_a_failed_call(page, hand, banner)
    with Emulator(faults=[GARBLED], port=port, seed=5) as back:
        until(lambda: not Incident.objects.filter(state=IncidentState.OPEN).exists())
        lost = _all_ended(waiting)
        hand.overview()
        expect(banner).to_have_count(0, timeout=PATIENCE_MS)
        hand.follow(page.get_by_role("link", name="PARSE_JSON"))
        page.wait_for_url("**/members/**")
        hand.retry()
        expect(page.get_by_text("What will happen")).to_be_visible()
        expect(page.locator(".c-dl").first).to_contain_text(f"{RECORDS} jobs")
        hand.confirm(REASON)
        page.wait_for_url(re.compile("/bulk-operations/[0-9a-f]{8}-"))
        announced = page.locator("[data-announce]")
        expect(announced).to_contain_text(f"{RECORDS} requeued", timeout=PATIENCE_MS)
        expect(announced).to_have_class(re.compile("is-done"), timeout=PATIENCE_MS)
        jobs = ended(*waiting)
        log = [*earlier, *down.log(), *back.log()]
        pool.stop()

    assert clicks == 3
    assert lost == RECORDS
    assert [job.status for job in jobs] == [JobStatus.COMPLETED] * RECORDS
    assert set(_batches(waiting).values_list("status", flat=True)) == {"succeeded"}
    batches = set(_batches(waiting).values_list("id", flat=True))
    accepted = ProviderCall.objects.filter(accepted=True, work_item_id__in=batches)
    assert Counter(accepted.values_list("work_item_id", flat=True)) == Counter(batches)
    assert prove_log(log).findings == []
    assert BulkOperation.objects.count() == before + 1
    event = AuditEvent.objects.latest("created_at")
    assert (event.actor, event.action, event.reason) == ("operator", "retry", REASON)
    assert operator.complaints == []


def _drill_to_a_failed_call(page: Page, hand: Mouse, banner: Locator) -> int:
    """Go from the overview to a call that failed in the outage; count the links."""
    until(lambda: Job.objects.filter(status=JobStatus.PARKED).exists())
    before = hand.followed
    hand.follow(banner.get_by_role("link", name="Open the incident"))
    expect(page.get_by_role("heading", name="Incident")).to_be_visible()
    expect(page.locator("[data-announce]")).to_contain_text("Nothing to do: probes are sent")
    hand.follow(page.get_by_role("row").filter(has_text="parked").get_by_role("link"))
    page.wait_for_url("**/records/**")
    hand.follow(page.locator(".c-tree a, .c-detail tbody a").filter(has_text=re.compile("call")))
    expect(page.locator("#detail-title")).to_contain_text("Call")
    expect(page.locator(".c-detail")).to_contain_text("503")
    return hand.followed - before


def _all_ended(received: list[Received]) -> int:
    """Wait until each record has ended; count the failed records."""
    jobs = Job.objects.filter(id__in=[each.job_id for each in received])
    until(lambda: not jobs.exclude(status__in=JOB_TERMINAL).exists(), RECORD_PATIENCE_S)
    return jobs.filter(status=JobStatus.FAILED).count()


def _batches(received: list[Received]) -> Any:
    return Batch.objects.filter(
        processing_session__shell_file__in=[each.shell_file_id for each in received]
    )
