"""A real Chromium and a live server with its own database.

The tests use the Chromium of the system. Without a Chromium they skip; under CI they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from observability.permissions import Role
from tests.support.browser import PASSWORD, WatchedPage, logged_in

if TYPE_CHECKING:
    # This module is loaded before Django is set up, so imports of models come later.
    from tests.support.incident_scenario import IncidentScenario

PATIENCE_MS = 60_000
"""Playwright's own five seconds for `expect` fail on a busy machine."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium for one module, or skip if there is none."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs a browser: apt-get install chromium")
        pytest.skip(f"needs one of {', '.join(BROWSERS)} on PATH")
    # Playwright runs an event loop in this thread, so Django would refuse synchronous queries.
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        expect.set_options(timeout=PATIENCE_MS)
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def users(browser: Browser, module_db: str) -> None:
    """Create a user of each role, and a user without a role."""
    from django.contrib.auth.models import Group, User

    for role in Role:
        user = User.objects.create_user(role.value, password=PASSWORD, is_staff=True)
        user.groups.add(Group.objects.get(name=role.value))
    User.objects.create_user("no-role", password=PASSWORD, is_staff=True)


@pytest.fixture(scope="module")
def scenario(users: None) -> IncidentScenario:
    """Return the rows of an incident scenario."""
    from tests.support.incident_scenario import an_incident_scenario

    return an_incident_scenario()


@pytest.fixture(scope="module")
def server(scenario: IncidentScenario) -> Iterator[str]:
    """Serve the console; return the address."""
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.test.testcases import LiveServerThread

    thread = LiveServerThread("127.0.0.1", StaticFilesHandler)
    thread.daemon = True
    thread.start()
    thread.is_ready.wait()
    if thread.error:
        raise thread.error
    yield f"http://127.0.0.1:{thread.port}"
    thread.terminate()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Provide a browser context without cookies."""
    made = browser.new_context(viewport={"width": 1440, "height": 900})
    made.set_default_timeout(PATIENCE_MS)
    yield made
    made.close()


@pytest.fixture
def operator(context: BrowserContext, server: str) -> WatchedPage:
    """Return the overview page with a logged-in operator."""
    return logged_in(context, server, Role.OPERATOR)
