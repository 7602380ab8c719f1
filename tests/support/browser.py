"""Log-ins of the browser tests, and the errors that the browser reports."""

from __future__ import annotations

from typing import Literal

from django.conf import settings
from django.test import Client
from playwright.sync_api import BrowserContext, Page

ColourScheme = Literal["light", "dark"]
"""The preference of a reader, as the browser reports it."""

PASSWORD = "for-tests-only-0000"


class WatchedPage:
    """A page that collects its console errors and its violations of the content security policy."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))


def logged_in(context: BrowserContext, server: str, name: str) -> WatchedPage:
    """Open the console with the session of the user `name`; a separate test covers the form."""
    from django.contrib.auth.models import User

    client = Client()
    client.force_login(User.objects.get(username=name))
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": server}])
    watched = WatchedPage(context.new_page())
    watched.page.goto(f"{server}/admin/")
    return watched


def log_in(page: Page, server: str, name: str) -> None:
    """Log in through the form."""
    page.goto(f"{server}/admin/")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
