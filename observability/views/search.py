"""From an id, or the beginning of one, to its page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from observability.lookup import IdError, locate
from observability.views.guard import page
from observability.views.shown import shown


@page()
def search(request: HttpRequest) -> HttpResponse:
    """Go to what an id stands for; say so where it stands for nothing, or for several things."""
    text = request.GET.get("q", "").strip()
    if not text:
        return shown(request, "console/search.html", "Search", text="", problem="")
    try:
        located = locate(text)
    except IdError as error:
        return shown(request, "console/search.html", "Search", text=text, problem=str(error))
    if located.kind == "record batch":
        return redirect(reverse("admin:records", query={"batch": str(located.id)}))
    if located.shell_file_id is None:
        return redirect("admin:incident", located.id)
    url = reverse("admin:record", args=[located.shell_file_id])
    is_record = located.node_id == located.shell_file_id
    return redirect(url if is_record else f"{url}?node={located.node_id}")
