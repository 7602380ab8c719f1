"""Search: from an id or its first digits to a page, from a pseudonym to the patient's records."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from observability.drilldown.lookup import IdError, locate
from observability.listing.records import patient_of
from observability.views.decorators import page
from observability.views.render import render_page


@page()
def search(request: HttpRequest) -> HttpResponse:
    """Redirect to the object of an id; show a problem if the id names no object or several."""
    text = request.GET.get("q", "").strip()
    if text.upper().startswith("P-"):
        return _of_patient(request, text)
    if not text:
        return render_page(request, "console/search.html", "Search", text="", problem="")
    try:
        located = locate(text)
    except IdError as error:
        return render_page(request, "console/search.html", "Search", text=text, problem=str(error))
    if located.kind == "record batch":
        return redirect(reverse("admin:records", query={"batch": str(located.id)}))
    if located.shell_file_id is None:
        return redirect("admin:incident", located.id)
    url = reverse("admin:record", args=[located.shell_file_id])
    is_record = located.node_id == located.shell_file_id
    return redirect(url if is_record else f"{url}?node={located.node_id}")


@page()
def short(request: HttpRequest, digits: str) -> HttpResponse:
    """Redirect to the record whose id begins with the digits in the address."""
    return redirect(reverse("admin:search", query={"q": digits}))


def _of_patient(request: HttpRequest, text: str) -> HttpResponse:
    if found := patient_of(text):
        return redirect(reverse("admin:records", query={"patient": found.pseudonym}))
    problem = f"No patient here has the pseudonym {text}."
    return render_page(request, "console/search.html", "Search", text=text, problem=problem)
