"""The page to return to after a preview: from the filter, or from a given console path."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

LONGEST = 2000
_OF_MEMBERS = {"error_code": "cause", "step": "step", "since": "since", "until": "until"}
"""Fields of a retry, with the names that the list of failures uses."""


def checked(path: str) -> str:
    """Return a path if it belongs to the console, else "" (no open redirects)."""
    is_ours = (
        len(path) <= LONGEST
        and path.startswith(reverse("admin:index"))
        and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    )
    return path if is_ours else ""


def origin(action: str, fields: Mapping[str, str]) -> str:
    """Return the page that shows the subject of a filter."""
    if "operation" in fields:
        return reverse("admin:bulk_operation", args=[fields["operation"]])
    if "incident" in fields:
        return reverse("admin:incident", args=[fields["incident"]])
    if "record" in fields:
        return reverse("admin:record", args=[fields["record"]])
    if action == "reset":
        return reverse("admin:stale", query={"older": fields.get("older", "")})
    for name in ("job", "encounter", "item"):
        if name in fields:
            return reverse("admin:search", query={"q": fields[name]})
    if action == "retry" and "error_code" in fields:
        query = {_OF_MEMBERS[name]: fields[name] for name in _OF_MEMBERS if name in fields}
        return reverse("admin:failure_members", query=query)
    if action == "requeue":
        return reverse("admin:stale")
    if "step" in fields:
        return reverse("admin:queues")
    if action in {"cancel", "release"}:
        word = fields.get("is", "parked" if action == "release" else "")
        return reverse("admin:records", query={"is": word} if word else None)
    return reverse("admin:failures")
