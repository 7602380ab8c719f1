"""The admin site: Django's own, with the console's pages mounted in it.

Imports the console's URLs when they are asked for. Its first page is the overview; the list of
tables, which the stock admin opens with, is a page beside it.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path

from observability.permissions import Right


class ConsoleSite(AdminSite):
    """Stock look, stock log-in, stock tables."""

    site_header = "medproc"
    site_title = "medproc"
    index_title = "Tables"
    site_url = None
    enable_nav_sidebar = False

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return the console's pages, then the tables."""
        from observability.urls import console_urls

        tables = path("tables/", self.admin_view(self.tables), name="tables")
        return [*console_urls(self), tables, *super().get_urls()]

    def index(  # type: ignore[override]  # it may send elsewhere
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the overview to whoever may see the console, and the tables to others."""
        if request.user.has_perm(Right.VIEW.permission):
            return redirect("admin:overview")
        return self.tables(request, extra_context)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Change one's own password, and write it down, in one transaction."""
        with transaction.atomic():
            return super().password_change(request, extra_context)

    def tables(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list of tables."""
        return super().index(request, extra_context)
