"""The secrets and signatures of webhooks, by the Standard Webhooks specification 1.0.0.

The server needs the secret itself for each signature, so a digest is not enough. A secret is
derived from SECRET_KEY and the seed of the endpoint: the database and its backups alone sign
nothing. The ten lines of HMAC need no library; `standardwebhooks` would be one more dependency,
and the same lines.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from uuid import UUID

from django.utils.crypto import salted_hmac

PREFIX = "whsec_"
_SALT = "medproc.webhooks"


def new_seed() -> str:
    """Return a random seed of 128 bits."""
    return secrets.token_hex(16)


def secret_of(endpoint_id: UUID, seed: str) -> bytes:
    """Return the secret of an endpoint: 32 bytes."""
    return salted_hmac(_SALT, f"{endpoint_id} {seed}", algorithm="sha256").digest()


def shown(secret: bytes) -> str:
    """Return a secret as its receiver gets it."""
    return PREFIX + b64encode(secret).decode()


def digest_of(secret: bytes) -> str:
    """Return the digest by which a changed secret is found."""
    return sha256(secret).hexdigest()


def signed(
    event_id: UUID, timestamp_s: int, body: bytes, with_secrets: Iterable[bytes]
) -> dict[str, str]:
    """Return the headers of a delivery, with one signature for each secret."""
    content = f"{event_id}.{timestamp_s}.".encode() + body
    found = [
        "v1," + b64encode(hmac.digest(secret, content, "sha256")).decode()
        for secret in with_secrets
    ]
    return {
        "webhook-id": str(event_id),
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(found),
    }
