"""Rendering of a page of the console inside the frame of the admin.

An htmx request gets the whole page, and the browser selects the element. Therefore each URL has
one answer.
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
    """Render a page at once, inside the read-only transaction of its view."""
    rights = {right.name.lower(): request.user.has_perm(right.permission) for right in Right}
    frame = {
        # `each_context` would also read the list of tables, which no page of the console shows.
        "site_title": admin.site.site_title,
        "site_header": admin.site.site_header,
        "site_url": None,
        "has_permission": True,
        "is_popup": False,
        "is_nav_sidebar_enabled": False,
        "title": title,
        "may": rights,
        "taken_at": timezone.now(),
        # The text in the search field.
        "text": "",
    }
    response = TemplateResponse(request, template, {**frame, **context}, status=status)
    response["Cache-Control"] = "no-store"
    return response.render()
