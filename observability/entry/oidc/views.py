"""The pages of a log-in through the identity provider; without OIDC_ISSUER each answers 404."""

from __future__ import annotations

import logging
from http import HTTPStatus
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from observability.audit.signals import THROUGH
from observability.entry.oidc.refused import LogInRefusal, LogInRefusedError
from observability.entry.throttle import attempt_of, attempted

logger = logging.getLogger(__name__)

_STORED_USERS = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_GET
def start_log_in(request: HttpRequest) -> HttpResponse:
    """Send the browser to the identity provider."""
    _require_provider()
    from observability.entry.oidc import flow

    if _is_in(request):
        return redirect("admin:index")
    # A page of another site must not log a user in; a browser says where the click was.
    if request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}:
        return redirect("admin:login")
    attempt = attempted(request)
    if attempt.wait_s:
        text = f"Too many failed log-ins from this address. Try again in {attempt.wait}."
        page = _page(request, text, "", HTTPStatus.TOO_MANY_REQUESTS)
        page["Retry-After"] = str(attempt.wait_s)
        return page
    try:
        return flow.begin(request)
    except LogInRefusedError as refused:
        return _refusal(request, refused)


@never_cache
@require_GET
def finish_log_in(request: HttpRequest) -> HttpResponse:
    """Log the user in whom the identity provider sends back."""
    _require_provider()
    from observability.entry.oidc import flow

    try:
        user, page = flow.finish(request)
    except LogInRefusedError as refused:
        if refused.code is LogInRefusal.STATE and _is_in(request):
            # The way back of another tab, or the browser's button "back".
            return redirect("admin:index")
        return _refusal(request, refused)
    # Nothing of the session before the log-in stays, neither its key nor its content.
    request.session.flush()
    request.session[THROUGH] = "identity provider"
    login(request, user, backend=_STORED_USERS)
    attempt_of(request).succeeded()
    return redirect(page)


def end_session_address(request: HttpRequest) -> str:
    """Return the provider's address that ends its own session too, or an empty text."""
    from observability.entry.oidc.metadata import metadata

    try:
        address = metadata().end_session_endpoint
    except LogInRefusedError:
        return ""
    if not address:
        return ""
    query = {
        "client_id": settings.OIDC_CLIENT_ID,
        "post_logout_redirect_uri": request.build_absolute_uri(reverse("admin:login")),
    }
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


def _is_in(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_staff


def _require_provider() -> None:
    if not settings.OIDC_ISSUER:
        raise Http404


def _refusal(request: HttpRequest, refused: LogInRefusedError) -> HttpResponse:
    logger.warning(
        "a log-in through the identity provider was refused: %s", refused,
        extra={"action": "log_in_refused", "code": refused.code.value},
    )  # fmt: skip
    if refused.is_of_the_provider:
        messages.error(request, f"{refused.text} ({refused.code})")
        return redirect("admin:login")
    return _page(request, refused.text, refused.code, HTTPStatus.FORBIDDEN)


def _page(request: HttpRequest, text: str, code: str, status: HTTPStatus) -> HttpResponse:
    values = {"text": text, "code": code}
    return render(request, "console/log_in_refused.html", values, status=status)
