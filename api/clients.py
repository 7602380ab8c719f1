"""The actions on clients and tokens, for the command line; each writes a row of the audit."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from api.models import ApiClient, ApiToken
from api.scopes import TokenScope
from api.tokens import token_create
from observability.audit import log
from pipeline.core.errors import UserError, UserErrorCode

KIND = "API client"
"""The audit's name for a client as a target."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)


def client_create(name: str, *, by: str) -> ApiClient:
    """Create a client with a user of its own. Raises UserError for a wrong or used name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            "a client's name has 1 to 40 characters: lower-case letters, digits and dashes",
            code=UserErrorCode.VALUE_INVALID,
        )
    with log.audited(by, "create_api_client", target_kind=KIND, target_id=name):
        try:
            with transaction.atomic():
                user = User.objects.create_user(f"api.{name}")
                return ApiClient.objects.create(name=name, user=user, created_by=by)
        except IntegrityError:
            raise UserError(
                f"there is a client {name} already; `token` makes another token for it",
                code=UserErrorCode.STATE_CONFLICT,
            ) from None


def client_of(name: str) -> ApiClient:
    """Return a client by name. Raises UserError."""
    found = ApiClient.objects.filter(name=name).first()
    if found is None:
        raise UserError(f"there is no API client {name}", code=UserErrorCode.NOT_FOUND)
    return found


def issue_token(
    client: ApiClient, scopes: Collection[TokenScope], *, expires_at: datetime | None, by: str
) -> tuple[ApiToken, str]:
    """Create a token for a client; earlier tokens stay valid until someone revokes them."""
    with log.audited(by, "create_api_token", target_kind=KIND, target_id=client.name) as facts:
        row, token = token_create(client, scopes, expires_at=expires_at, by=by)
        facts |= {"prefix": row.prefix, "scopes": row.scopes}
        facts["expires_at"] = expires_at and expires_at.isoformat()
    return row, token


def revoke_tokens(client: ApiClient, prefix: str | None, *, by: str) -> list[str]:
    """Revoke one token of a client, or all; return the prefixes. Raises UserError for none."""
    with log.audited(by, "revoke_api_token", target_kind=KIND, target_id=client.name) as facts:
        rows = ApiToken.objects.filter(client=client, revoked_at__isnull=True)
        if prefix is not None:
            rows = rows.filter(prefix=prefix)
        found = sorted(rows.select_for_update().values_list("prefix", flat=True))
        if not found:
            raise UserError(
                f"the API client {client.name} has no such token", code=UserErrorCode.NOT_FOUND
            )
        rows.update(revoked_at=timezone.now(), revoked_by=by)
        facts["prefixes"] = found
    return found
