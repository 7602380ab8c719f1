"""The admin site: Django's admin with the console's pages mounted in it.

The first page is the overview. The list of tables, Django's usual first page, is a separate page.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path

from observability.audit.signals import THROUGH
from observability.entry.log_in_form import ThrottledLogInForm
from observability.entry.oidc import views as oidc
from observability.permissions import Right


class ConsoleSite(AdminSite):
    """Django's look, log-in and table pages, with the console's pages added."""

    site_header = "medproc"
    site_title = "medproc"
    index_title = "Tables"
    site_url = None
    enable_nav_sidebar = False
    login_form = ThrottledLogInForm
    login_template = "console/log_in.html"

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return the URLs of the console's pages, then those of the tables."""
        from observability.entry import own_sessions
        from observability.urls import console_urls

        tables = path("tables/", self.admin_view(self.tables), name="tables")
        # No row has a page on a public site. Django's address of such a page accepts any table, and
        # a table that does not exist would be a server error.
        of_django = [each for each in super().get_urls() if _name_of(each) != "view_on_site"]
        log_in = [
            path("oidc/start/", oidc.start_log_in, name="oidc_start"),
            path("oidc/callback/", oidc.finish_log_in, name="oidc_callback"),
        ]
        sessions = [
            path("sessions/", self.admin_view(own_sessions.own_sessions), name="own_sessions"),
            path("sessions/end/", self.admin_view(own_sessions.end_sessions), name="end_sessions"),
        ]
        return [*console_urls(self), tables, *log_in, *sessions, *of_django]

    def index(  # type: ignore[override]  # it may send elsewhere
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the overview to users who can view the console, and the tables to other users."""
        if request.user.has_perm(Right.VIEW.permission):
            return redirect("admin:overview")
        return self.tables(request, extra_context)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Log a user in, or answer with 429 while the throttle refuses the address."""
        provider = {"name": settings.OIDC_NAME, "is_only": settings.OIDC_ONLY}
        found = {"provider": provider} if settings.OIDC_ISSUER else {}
        response = super().login(request, {**found, **(extra_context or {})})
        context = getattr(response, "context_data", None) or {}
        if wait_s := getattr(context.get("form"), "wait_s", 0):
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response["Retry-After"] = str(wait_s)
        return response

    def logout(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Log the user out, and let the browser delete what it has kept of the pages.

        A user of the identity provider is then sent to the page that ends the provider's session.
        """
        is_of_provider = settings.OIDC_ISSUER and THROUGH in request.session
        response = super().logout(request, extra_context)
        if is_of_provider and (address := oidc.end_session_address(request)):
            # No redirect: the policy `form-action` forbids one to another origin after a form.
            response["Refresh"] = f"0; url={address}"
        response["Clear-Site-Data"] = '"cache", "storage"'
        return response

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Change the user's own password and audit the change, in one transaction."""
        with transaction.atomic():
            return super().password_change(request, extra_context)

    def tables(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list of tables."""
        return super().index(request, extra_context)


def _name_of(url: URLPattern | URLResolver) -> str | None:
    return url.name if isinstance(url, URLPattern) else None
