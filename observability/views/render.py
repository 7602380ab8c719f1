"""A page of the console: the admin's frame around what a view has read.

Imports the admin site. A request by htmx for a part of a page gets the same page; the element that
it names is picked out by the browser, so that each URL has one answer.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from observability.permissions import Right


def render_page(
    request: HttpRequest, template: str, title: str, status: int = 200, **context: Any
) -> HttpResponse:
    """Render a page now, inside its read-only transaction."""
    rights = {right.name.lower(): request.user.has_perm(right.permission) for right in Right}
    frame = {
        # What each_context reads for the list of tables is not shown here.
        "site_title": admin.site.site_title,
        "site_header": admin.site.site_header,
        "site_url": None,
        "has_permission": True,
        "is_popup": False,
        "is_nav_sidebar_enabled": False,
        "title": title,
        "may": rights,
        "taken_at": timezone.now(),
        # What stands in the field of the search.
        "text": "",
    }
    response = TemplateResponse(request, template, {**frame, **context}, status=status)
    response["Cache-Control"] = "no-store"
    return response.render()
