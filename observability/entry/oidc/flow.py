"""The two steps of a log-in: the way to the identity provider, and the way back."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from mozilla_django_oidc.views import OIDCAuthenticationRequestView

from observability.entry.oidc.client import OidcClient, library_setting
from observability.entry.oidc.refused import LogInRefusal, LogInRefusedError, error_of

BEGUN_S = 600
"""Seconds between the two steps. A session of a stranger lives no longer."""
_STATES, _NEXT = "oidc_states", "oidc_login_next"
"""Keys of the library in the session."""


class RedirectToProvider(OIDCAuthenticationRequestView):  # type: ignore[misc]  # has no types
    """The library's view, which keeps state, nonce and the verifier of PKCE in the session."""

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        """Return a setting of the library."""
        return library_setting(attr, *args)

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        """Ask for a level of OIDC_ACR."""
        return {"acr_values": " ".join(settings.OIDC_ACR)} if settings.OIDC_ACR else {}


def begin(request: HttpRequest) -> HttpResponse:
    """Return the redirect to the provider. Raises LogInRefusedError."""
    if request.user.is_authenticated:
        # This user has no access. The expiry below must not become that of their session.
        request.session.flush()
    response: HttpResponse = RedirectToProvider.as_view()(request)
    request.session.set_expiry(BEGUN_S)
    return response


def finish(request: HttpRequest) -> tuple[User, str]:
    """Return the user and the page to go to. Raises LogInRefusedError. A state works once."""
    states = request.session.get(_STATES) or {}
    begun = states.pop(request.GET.get("state", ""), None)
    if begun is None:
        raise LogInRefusedError(LogInRefusal.STATE)
    # The stored session ends before the provider is asked, so a repeated request finds no state.
    request.session[_STATES] = states
    request.session.cycle_key()
    if time.time() - begun["added_on"] > BEGUN_S:
        raise LogInRefusedError(LogInRefusal.STATE, "too late")
    if "error" in request.GET or not request.GET.get("code"):
        raise LogInRefusedError(LogInRefusal.DENIED, error_of(request.GET))
    user = OidcClient().authenticate(
        request, nonce=begun["nonce"], code_verifier=begun["code_verifier"]
    )
    if not isinstance(user, User):
        raise LogInRefusedError(LogInRefusal.TOKEN, "no user")
    return user, request.session.get(_NEXT) or reverse(settings.LOGIN_REDIRECT_URL)
