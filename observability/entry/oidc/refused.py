"""The reasons why a log-in through the identity provider is refused, each with a code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class LogInRefusal(StrEnum):
    """The code of a refusal, which the page and the log show."""

    UNREACHABLE = "OIDC_UNREACHABLE"
    METADATA = "OIDC_METADATA"
    STATE = "OIDC_STATE"
    DENIED = "OIDC_DENIED"
    TOKEN = "OIDC_TOKEN"  # noqa: S105 - a code
    SECOND_FACTOR = "OIDC_SECOND_FACTOR"
    NO_ROLE = "OIDC_NO_ROLE"
    DEACTIVATED = "OIDC_DEACTIVATED"
    SUPERUSER = "OIDC_SUPERUSER"


TEXTS: dict[LogInRefusal, str] = {
    LogInRefusal.UNREACHABLE: "The identity provider does not answer. Try again later, or log in"
    " with a password.",
    LogInRefusal.METADATA: "The identity provider's configuration does not fit OIDC_ISSUER. Tell"
    " your administrator.",
    LogInRefusal.STATE: "This log-in was not begun here, was used before, or took too long. Begin"
    " again.",
    LogInRefusal.DENIED: "The identity provider refused the log-in. Begin again, or ask the"
    " administrator of the identity provider.",
    LogInRefusal.TOKEN: "The identity provider's answer is not valid. Begin again; if that does not"
    " help, tell your administrator.",
    LogInRefusal.SECOND_FACTOR: "The identity provider did not ask for a second factor. Set one up"
    " at the identity provider, then log in again.",
    LogInRefusal.NO_ROLE: "You are in no group that has a role in medproc. Ask your administrator"
    " for a group.",
    LogInRefusal.DEACTIVATED: "Your account in medproc is deactivated. Ask your administrator.",
    LogInRefusal.SUPERUSER: "A superuser logs in with a password only.",
}
"""What the page says, and what the user can do."""


KNOWN_ERRORS = frozenset(
    {
        "access_denied", "account_selection_required", "consent_required", "interaction_required",
        "invalid_client", "invalid_grant", "invalid_request", "invalid_scope", "login_required",
        "server_error", "temporarily_unavailable", "unauthorized_client",
        "unmet_authentication_requirements", "unsupported_grant_type", "unsupported_response_type",
    }
)  # fmt: skip
"""The errors of OAuth 2.0 and OpenID Connect. The log names no other text of an answer."""


def error_of(answer: object) -> str:
    """Return the error of a provider's answer if it is a known one, for the log."""
    found = answer.get("error") if isinstance(answer, Mapping) else None
    return found if isinstance(found, str) and found in KNOWN_ERRORS else "an unknown error"


class LogInRefusedError(Exception):
    """A log-in is refused. The detail is for the log; it holds no token and no name."""

    def __init__(self, code: LogInRefusal, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else str(code))
        self.code = code
        self.detail = detail

    @property
    def text(self) -> str:
        """The sentence for the user."""
        return TEXTS[self.code]

    @property
    def is_of_the_provider(self) -> bool:
        """Whether the provider fails, so that passwords are the way in."""
        return self.code in {LogInRefusal.UNREACHABLE, LogInRefusal.METADATA}
