"""Idempotency keys: a repeated request gets the answer of the first one and does nothing.

The key, the work and the answer are one transaction. So of several requests with the same key at
the same time, the first does the work, and the others wait for its answer. A refused request
leaves no key, so that a client can correct the cause and send the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from django.db import OperationalError, connection, transaction
from django.http import HttpRequest, JsonResponse
from psycopg.errors import LockNotAvailable

from api.models import ApiClient, IdempotencyKey
from api.problems import ApiError, ApiErrorCode
from pipeline.core.errors import MedprocError, UserError, UserErrorCode

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
LONGEST_KEY = 255
WAIT_S = 20
"""Seconds for which a request waits for an earlier request with the same key."""

# One statement, because an upload pays for each. The row waits for the end of an open transaction
# with the same key. The limit of the wait is set before, and ends with the new row.
_CLAIM = """
WITH patience AS MATERIALIZED (SELECT set_config('lock_timeout', %(wait)s, true))
INSERT INTO api_idempotency_keys (client_id, key_digest, fingerprint)
SELECT %(client)s, %(key)s, %(fingerprint)s FROM patience
ON CONFLICT (client_id, key_digest) DO NOTHING
RETURNING set_config('lock_timeout', '0', true)
"""

Answer = tuple[HTTPStatus, dict[str, Any]]


def fingerprint(parts: Sequence[str]) -> str:
    """Return the digest of a request; each part counts with its length."""
    return sha256("".join(f"{len(part)} {part}" for part in parts).encode()).hexdigest()


def answer_before(
    request: HttpRequest, client: ApiClient, parts: Sequence[str]
) -> JsonResponse | None:
    """Return the answer of an earlier request with the same key; None if there is none yet.

    A request asks before it does costly work outside the transaction of `once`. Raises ApiError
    IDEMPOTENCY_KEY_REUSED, and UserError VALUE_INVALID for a wrong key.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return None
    row = IdempotencyKey.objects.filter(client=client, key_digest=_checked(key)).first()
    return _repeated(row, fingerprint(parts)) if row else None


def once(
    request: HttpRequest, client: ApiClient, parts: Sequence[str], act: Callable[[], Answer]
) -> JsonResponse:
    """Carry out a request, or return the answer of an earlier request with the same key.

    Raises ApiError IDEMPOTENCY_KEY_REUSED or IDEMPOTENCY_KEY_IN_USE, and the errors of `act`.
    """
    key = request.headers.get(HEADER)
    digest = None if key is None else _checked(key)
    refusal: MedprocError | None = None
    with transaction.atomic():
        own = None
        if digest is not None:
            own = IdempotencyKey.objects.filter(client=client, key_digest=digest)
            if not _claim(client, digest, fingerprint(parts)):
                return _repeated(own.get(), fingerprint(parts))
        try:
            status, body = act()
        except MedprocError as error:
            refusal = error
            # The transaction commits, because the audit has a row about the refusal, unless the act
            # has given up the whole transaction and thereby the key.
            if own is not None and not transaction.get_rollback():
                own.delete()
        else:
            if own is not None:
                own.update(http_status=status, response_body=body)
    if refusal is not None:
        raise refusal
    return _answer(status, body)


def _checked(key: str) -> str:
    if not 1 <= len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise UserError(
            f"an idempotency key has 1 to {LONGEST_KEY} printable ASCII characters",
            code=UserErrorCode.VALUE_INVALID,
        )
    return sha256(key.encode()).hexdigest()


def _claim(client: ApiClient, key: str, print_: str) -> bool:
    """Insert the row of a key; return False if an earlier request has the key."""
    named = {"wait": f"{WAIT_S}s", "client": client.id, "key": key, "fingerprint": print_}
    try:
        with connection.cursor() as cursor:
            cursor.execute(_CLAIM, named)
            return cursor.fetchone() is not None
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        raise ApiError(ApiErrorCode.IDEMPOTENCY_KEY_IN_USE, headers={"Retry-After": "5"}) from None


def _repeated(row: IdempotencyKey, print_: str) -> JsonResponse:
    if row.fingerprint != print_ or row.http_status is None:
        raise ApiError(ApiErrorCode.IDEMPOTENCY_KEY_REUSED)
    response = _answer(row.http_status, row.response_body)
    response[REPLAYED] = "true"
    return response


def _answer(status: int, body: Mapping[str, Any]) -> JsonResponse:
    response = JsonResponse(dict(body), status=int(status))
    if "url" in body:
        response["Location"] = str(body["url"])
    return response
