"""What a request may do: the scope of its token, and the records of its client.

A record of another client is answered like a record that does not exist.
"""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.http import HttpRequest
from ninja.security import HttpBearer

from api.models import ApiClient, ApiToken
from api.problems import ApiError, ApiErrorCode
from api.scopes import SCOPE_NAMES, TokenScope
from observability.audit import log
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import ShellFile
from pipeline.stages.intake import owner_of_user


class BearerToken(HttpBearer):
    """The check of an operation: the token, which the middleware has verified, has the scope."""

    def __init__(self, scope: TokenScope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> ApiToken:
        """Return the token. Raises ApiError SCOPE_MISSING; a refused action is audited."""
        token = token_of_request(request)
        if self.scope not in token.scopes:
            if request.method != "GET":
                log.record(
                    request.user,
                    "api_request",
                    target_kind="API client",
                    target_id=token.client.name,
                    result=log.AuditResult.REFUSED,
                    facts={"scope": self.scope.value, "prefix": token.prefix},
                )
            raise missing_scope(self.scope)
        return token

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        """Return the verified token."""
        return token_of_request(request)


def missing_scope(scope: TokenScope) -> ApiError:
    """Return the answer to a token without the scope of a request."""
    return ApiError(
        ApiErrorCode.SCOPE_MISSING,
        f"The token lacks the scope {scope} ({SCOPE_NAMES[scope]}).",
        headers={
            "WWW-Authenticate": 'Bearer realm="medproc", error="insufficient_scope",'
            f' scope="{scope}"'
        },
    )


def token_of_request(request: HttpRequest) -> ApiToken:
    """Return the token that the middleware has verified."""
    return cast(ApiToken, request.api_token)  # type: ignore[attr-defined]  # set by the middleware


def client_of_request(request: HttpRequest) -> ApiClient:
    """Return the client of the request."""
    return token_of_request(request).client


def owner_of(request: HttpRequest) -> str:
    """Return the owner of the client's records."""
    return owner_of_user(client_of_request(request).user_id)


def require_own(request: HttpRequest, record_id: UUID) -> None:
    """Raise UserError NOT_FOUND unless the record belongs to the client."""
    if not ShellFile.objects.filter(id=record_id, owner=owner_of(request)).exists():
        raise not_found()


def not_found() -> UserError:
    """Return the answer to the id of an unknown record, and of another client's record."""
    return UserError("this client has no record of this id", code=UserErrorCode.NOT_FOUND)
