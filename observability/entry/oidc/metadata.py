"""The endpoints of the identity provider, from its published configuration (discovery).

They are read at the first log-in, not at the start: the service starts while the provider is away.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.core.cache import cache
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator

from medproc.env_values import is_loopback
from observability.entry.oidc.refused import LogInRefusal, LogInRefusedError

PATH = "/.well-known/openid-configuration"
TIMEOUT_S = 5.0
"""Seconds to connect to the provider, and to wait for its next bytes."""
KEPT_S = 600
"""Seconds for which a process keeps the configuration."""
AGAIN_S = 10
"""Seconds after a refusal until a process asks again. Strangers begin log-ins too: with a provider
that hangs, they would else occupy all threads of the console."""


class ProviderMetadata(BaseModel):
    """The part of the configuration that medproc uses (OpenID Connect Discovery 1.0)."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)

    @field_validator(
        "authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint",
        "end_session_endpoint",
    )  # fmt: skip
    @classmethod
    def check_protected(cls, value: str) -> str:
        """Accept https, and http on this machine."""
        parts = urlsplit(value)
        is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise ValueError("is not a URL")
        if value and parts.scheme != "https" and not is_here:
            raise ValueError("is not https")
        return value


_TEXTS = TypeAdapter(dict[str, object])


def metadata() -> ProviderMetadata:
    """Return the provider's configuration. Raises LogInRefusedError if the provider gives none.

    After a refusal, one thread asks at a time. All other threads are refused at once.
    """
    issuer = str(settings.OIDC_ISSUER)
    key = f"medproc:oidc:{issuer}"
    refusal_key, asked_key = f"{key}:refusal", f"{key}:asked"
    if (kept := cache.get(key)) is not None:
        return ProviderMetadata.model_validate(kept)
    last = cache.get(refusal_key)
    if last is not None and not cache.add(asked_key, True, AGAIN_S):
        raise LogInRefusedError(*last)
    try:
        found = _fetched(issuer.removesuffix("/"))
    except LogInRefusedError as refused:
        cache.set(refusal_key, (refused.code, refused.detail), KEPT_S)
        cache.set(asked_key, True, AGAIN_S)
        raise
    cache.set(key, found.model_dump(), KEPT_S)
    cache.delete(refusal_key)
    return found


def _fetched(issuer: str) -> ProviderMetadata:
    try:
        response = requests.get(issuer + PATH, timeout=TIMEOUT_S, allow_redirects=False)
    except requests.RequestException as error:
        raise LogInRefusedError(LogInRefusal.UNREACHABLE, type(error).__name__) from None
    if response.status_code != requests.codes.ok:
        raise LogInRefusedError(LogInRefusal.UNREACHABLE, f"status {response.status_code}")
    try:
        found = ProviderMetadata.model_validate(_TEXTS.validate_json(response.content))
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())
        raise LogInRefusedError(LogInRefusal.METADATA, f"wrong: {fields or 'not JSON'}") from None
    # The address may lack the last slash of the issuer, as RFC 8414 and operators do.
    if found.issuer.removesuffix("/") != issuer:
        raise LogInRefusedError(LogInRefusal.METADATA, "another issuer")
    return found
