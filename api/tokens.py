"""Tokens: made once, shown once, and known afterwards by prefix and digest only.

A token is `medproc_<prefix>_<secret>`: a scanner of leaked secrets recognizes the first word, a
person recognizes the prefix, and the secret has 256 random bits.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from hashlib import sha256

from django.db.models import Q
from django.utils import timezone

from api.models import ApiClient, ApiToken
from api.scopes import TokenScope

USED_EVERY = timedelta(minutes=10)
"""The precision of `last_used_at`."""
_TOKEN = re.compile(r"medproc_(?P<prefix>[0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)


def token_create(
    client: ApiClient, scopes: Collection[TokenScope], *, expires_at: datetime | None, by: str
) -> tuple[ApiToken, str]:
    """Create a token; return its row, and the token itself, which is stored nowhere."""
    prefix = secrets.token_hex(6)
    token = f"medproc_{prefix}_{secrets.token_urlsafe(32)}"
    row = ApiToken.objects.create(
        client=client,
        prefix=prefix,
        digest=_digest(token),
        scopes=sorted(scope.value for scope in scopes),
        expires_at=expires_at,
        created_by=by,
    )
    return row, token


def token_of(text: str) -> ApiToken | None:
    """Return the valid token of a text, with its client and user; None for any other text."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        return None
    row = (
        ApiToken.objects.select_related("client__user")
        .filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now()),
            prefix=found["prefix"],
            revoked_at__isnull=True,
            client__user__is_active=True,
        )
        .first()
    )
    if row is None or not hmac.compare_digest(row.digest, _digest(text)):
        return None
    return row


def note_use(token: ApiToken) -> None:
    """Write the time of use, at most once in ten minutes."""
    before = timezone.now() - USED_EVERY
    if token.last_used_at is None or token.last_used_at < before:
        ApiToken.objects.filter(
            Q(last_used_at__isnull=True) | Q(last_used_at__lt=before), id=token.id
        ).update(last_used_at=timezone.now())


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
