"""The client of the identity provider: the library's, with the checks that the library leaves out.

mozilla-django-oidc 5 checks the signature, one algorithm and the nonce. It checks neither issuer
nor audience nor that a token ends, and finds users by e-mail, from the userinfo alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.utils.crypto import constant_time_compare
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings

from observability.entry.oidc.accounts import VerifiedIdentity, account_of
from observability.entry.oidc.metadata import TIMEOUT_S, metadata
from observability.entry.oidc.refused import LogInRefusal, LogInRefusedError, error_of
from observability.entry.oidc.roles import groups_of, roles_of

ALGORITHMS = ("RS256", "ES256")
LEEWAY_S = 60
"""Seconds by which the clocks of provider and medproc may differ."""
_REQUIRED = ["iss", "sub", "aud", "exp", "iat"]
_LONGEST_SUBJECT = 255
_SHORTEST_SERVER_ERROR = 500


def library_setting(name: str, *default: Any) -> Any:
    """Return a setting of the library, from the environment and the provider's configuration."""
    if name.startswith("OIDC_OP_"):
        provider = metadata()
        endpoints = {
            "OIDC_OP_AUTHORIZATION_ENDPOINT": provider.authorization_endpoint,
            "OIDC_OP_TOKEN_ENDPOINT": provider.token_endpoint,
            "OIDC_OP_JWKS_ENDPOINT": provider.jwks_uri,
            "OIDC_OP_USER_ENDPOINT": provider.userinfo_endpoint,
        }
        return endpoints[name]
    ours = {
        "OIDC_RP_CLIENT_ID": settings.OIDC_CLIENT_ID,
        "OIDC_RP_CLIENT_SECRET": str(settings.OIDC_CLIENT_SECRET),
        "OIDC_RP_SCOPES": " ".join(settings.OIDC_SCOPES),
        "OIDC_RP_SIGN_ALGO": ALGORITHMS[0],
        "OIDC_AUTHENTICATION_CALLBACK_URL": "admin:oidc_callback",
        "OIDC_TIMEOUT": TIMEOUT_S,
        "OIDC_USE_PKCE": True,
    }
    return ours[name] if name in ours else import_from_settings(name, *default)


class OidcClient(OIDCAuthenticationBackend):  # type: ignore[misc]  # the library has no types
    """Exchanges a code for the user. Its log-in never reaches the password form.

    The class is no entry of AUTHENTICATION_BACKENDS: Django would call it for each log-in form. The
    address of a form can hold a code, which would then work without state, nonce and PKCE.
    """

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        """Return a setting of the library."""
        if attr == "OIDC_TOKEN_USE_BASIC_AUTH":
            return "client_secret_post" not in metadata().token_endpoint_auth_methods_supported
        return library_setting(attr, *args)

    def get_token(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Exchange the code. No error quotes the answer, as the library's would."""
        try:
            found = super().get_token(payload)
        except requests.HTTPError as error:
            status = 0 if error.response is None else error.response.status_code
            if status >= _SHORTEST_SERVER_ERROR:
                raise LogInRefusedError(
                    LogInRefusal.UNREACHABLE, f"token: status {status}"
                ) from None
            raise LogInRefusedError(LogInRefusal.TOKEN, f"token: {_error_in(error)}") from None
        except requests.RequestException as error:
            raise LogInRefusedError(LogInRefusal.UNREACHABLE, type(error).__name__) from None
        if not isinstance(found, dict) or not isinstance(found.get("id_token"), str):
            raise LogInRefusedError(LogInRefusal.TOKEN, "no ID token")
        return found

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """Return the claims of a token for this client, of this issuer, for this log-in."""
        try:
            if jwt.get_unverified_header(token).get("alg") not in ALGORITHMS:
                raise LogInRefusedError(
                    LogInRefusal.TOKEN, "an algorithm other than RS256 and ES256"
                )
            claims: dict[str, Any] = jwt.decode(
                token,
                self.retrieve_matching_jwk(token),
                algorithms=ALGORITHMS,
                audience=settings.OIDC_CLIENT_ID,
                issuer=metadata().issuer,
                leeway=LEEWAY_S,
                options={"require": _REQUIRED},
            )
        except requests.RequestException as error:
            raise LogInRefusedError(LogInRefusal.UNREACHABLE, type(error).__name__) from None
        except (jwt.PyJWTError, SuspiciousOperation, KeyError, TypeError, ValueError) as error:
            # The library raises KeyError and TypeError for keys that lack a field.
            raise LogInRefusedError(LogInRefusal.TOKEN, type(error).__name__) from None
        if not constant_time_compare(str(claims.get("nonce")), str(kwargs.get("nonce") or "")):
            raise LogInRefusedError(LogInRefusal.TOKEN, "another nonce")
        is_of_several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if is_of_several else settings.OIDC_CLIENT_ID) != (
            settings.OIDC_CLIENT_ID
        ):
            raise LogInRefusedError(LogInRefusal.TOKEN, "another client")
        return claims

    def get_or_create_user(
        self, access_token: str | None, id_token: str, payload: dict[str, Any]
    ) -> User:
        """Return the user of the claims with the roles of the groups."""
        subject = payload["sub"]
        if not subject or len(subject) > _LONGEST_SUBJECT or not subject.isprintable():
            raise LogInRefusedError(LogInRefusal.TOKEN, "a subject that cannot be stored")
        groups = groups_of(payload)
        if groups is None:
            groups = groups_of(self._userinfo(access_token, id_token, payload))
        name = payload.get("preferred_username")
        return account_of(
            VerifiedIdentity(
                issuer=payload["iss"],
                subject=subject,
                wanted_name=name if isinstance(name, str) else "",
                roles=roles_of(groups or frozenset()),
                has_second_factor=_has_second_factor(payload),
            )
        )

    def _userinfo(
        self, access_token: str | None, id_token: str, payload: dict[str, Any]
    ) -> Mapping[str, Any]:
        """Return the claims of the userinfo, which must be about the same subject."""
        if not metadata().userinfo_endpoint or not access_token:
            return {}
        try:
            found = self.get_userinfo(access_token, id_token, payload)
        except requests.RequestException as error:
            raise LogInRefusedError(LogInRefusal.UNREACHABLE, type(error).__name__) from None
        if not isinstance(found, dict) or found.get("sub") != payload["sub"]:
            raise LogInRefusedError(LogInRefusal.TOKEN, "userinfo of another subject")
        return found


def _error_in(error: requests.HTTPError) -> str:
    try:
        return error_of(None if error.response is None else error.response.json())
    except requests.JSONDecodeError:
        return error_of(None)


def _has_second_factor(claims: Mapping[str, Any]) -> bool:
    """Return whether the provider used what OIDC_ACR and OIDC_AMR ask for."""
    amr = claims.get("amr") or []
    methods = {str(each) for each in (amr if isinstance(amr, list) else [amr])}
    has_level = not settings.OIDC_ACR or claims.get("acr") in settings.OIDC_ACR
    return has_level and (not settings.OIDC_AMR or bool(methods & set(settings.OIDC_AMR)))
