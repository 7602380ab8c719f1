"""A client of medproc's HTTP API in one file. Copy the file; it needs Python 3.11 and httpx2.

Each action carries an idempotency key, so a request that got no answer is repeated safely. No
message of an error holds a file name, a reference of a patient, or the token.
"""

from __future__ import annotations

import hmac
import json
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

TRIES = 5
"""Requests for one action, with the first one."""
LONGEST_WAIT_S = 60.0
"""The longest wait before a repetition, whatever the server says."""
ENDED = frozenset({"completed", "failed", "dead", "cancelled"})
"""The states in which a record changes only by an action."""
TOLERANCE_S = 300
"""Seconds by which the time of a webhook may differ from the clock of the receiver."""
_REPEATED = frozenset({429, 502, 503, 504})


class RequestRefusedError(Exception):
    """The API refused a request: the status, the named code, and the sentence about it."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        super().__init__(f"{detail} ({code})")


class NoAnswerError(Exception):
    """The API gave no answer to any try. The action may have happened: repeat it with its key."""


class SignatureError(Exception):
    """A webhook that is not signed with the secret, or whose time is not near."""


@dataclass(frozen=True, kw_only=True)
class RecordNow:
    """The state of a record; `body` has every field of the answer."""

    id: str
    status: str
    incomplete: bool
    failure_code: str | None
    """The code that a person must act on; None without a failure."""
    body: Mapping[str, Any] = field(repr=False)

    @property
    def is_ended(self) -> bool:
        """Whether the record has ended, with or without success."""
        return self.status in ENDED


def verify_webhook(
    headers: Mapping[str, str], body: bytes, secret: str, *, now_s: float | None = None
) -> Mapping[str, Any]:
    """Return the event of a webhook (Standard Webhooks). Raises SignatureError.

    `body` is the body exactly as received. An event can arrive twice: skip a `webhook-id` that you
    have handled.
    """
    given = {name.lower(): value for name, value in headers.items()}
    stamp = given.get("webhook-timestamp", "")
    key = b64decode(secret.removeprefix("whsec_"))
    content = f"{given.get('webhook-id', '')}.{stamp}.".encode() + body
    wanted = b"v1," + b64encode(hmac.digest(key, content, "sha256"))
    found = [
        hmac.compare_digest(each.encode(), wanted)
        for each in given.get("webhook-signature", "").split(" ")
    ]
    if not any(found):
        raise SignatureError("the webhook is not signed with this secret")
    now = time.time() if now_s is None else now_s
    # The signed time is a number. An old time can mean that a copied request is sent again.
    if abs(now - int(stamp)) > TOLERANCE_S:
        raise SignatureError("the webhook is not of the last five minutes")
    event: Mapping[str, Any] = json.loads(body)
    return event


class MedprocClient:
    """The operations of the API for one token. Close the client, or use it in a `with` block."""

    def __init__(self, base_url: str, token: str, *, timeout_s: float = 60.0) -> None:
        self._http = httpx2.Client(
            base_url=f"{base_url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout_s,
            # A redirect could send the token elsewhere.
            follow_redirects=False,
        )

    def __enter__(self) -> MedprocClient:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def submit(
        self,
        path: Path,
        *,
        patient: str | None = None,
        priority: int = 0,
        force: bool = False,
        key: str | None = None,
    ) -> str:
        """Submit a file; return the id of the record.

        With the same `key`, a second call is the same submission, also after a crash of the
        caller. Raises RequestRefusedError, NoAnswerError and OSError.
        """
        fields = {"patient": patient} if patient else {}
        query = {"priority": priority, "force": force}
        with path.open("rb") as file:

            def send(headers: Mapping[str, str]) -> httpx2.Response:
                file.seek(0)
                return self._http.post(
                    "/records",
                    params=query,
                    data=fields,
                    files={"file": (path.name, file)},
                    headers=headers,
                )

            return str(self._acted(send, key)["id"])

    def record(self, record_id: str) -> RecordNow:
        """Return the state of a record. RequestRefusedError NOT_FOUND: another's record."""
        return _now(self._read(f"/records/{record_id}"))

    def wait(self, record_id: str, *, timeout_s: float, poll_s: float = 2.0) -> RecordNow:
        """Wait until a record has ended; return its last state, also if the time is over."""
        until = time.monotonic() + timeout_s
        while True:
            found = self.record(record_id)
            if found.is_ended or time.monotonic() + poll_s > until:
                return found
            time.sleep(poll_s)

    def records(self, *, status: str | None = None) -> Iterator[RecordNow]:
        """Yield the client's records, newest first."""
        return map(_now, self._pages("/records", {"status": status} if status else {}))

    def entities(self, record_id: str) -> Iterator[Mapping[str, Any]]:
        """Yield the entities of a record in the order of the text. PHI."""
        return self._pages(f"/records/{record_id}/entities", {})

    def results(self, record_id: str) -> Mapping[str, Any]:
        """Return the results of a record. PHI."""
        return self._read(f"/records/{record_id}/results")

    def drill_down(self, record_id: str) -> Mapping[str, Any]:
        """Return why a record is as it is."""
        return self._read(f"/records/{record_id}/drill-down")

    def reviews(self, *, status: str | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the reviews of the client's records."""
        return self._pages("/reviews", {"status": status} if status else {})

    def export(self, record_id: str, form: str, to: Path, *, incomplete: bool = False) -> None:
        """Write an export (`fhir`, `csv`, `html` or `pair`) to a file that this user can read. PHI.

        The file appears when it is whole. Raises RequestRefusedError, NoAnswerError and OSError.
        """
        part = to.with_name(f".{to.name}.{uuid4().hex}.part")
        query = {"incomplete": incomplete}
        with ExitStack() as stack:
            stack.callback(part.unlink, missing_ok=True)
            response = self._tried(
                lambda _: stack.enter_context(
                    self._http.stream("GET", f"/records/{record_id}/exports/{form}", params=query)
                ),
                {},
            )
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                try:
                    for block in response.iter_bytes():
                        out.write(block)
                except httpx2.TransportError:
                    raise NoAnswerError("the export ended early; export again") from None
                out.flush()
                os.fsync(out.fileno())
            part.replace(to)

    def retry(self, record_id: str, reason: str, *, key: str | None = None) -> str:
        """Retry what failed; return the new state. Name no patient in a reason."""
        return self._post(f"/records/{record_id}/retry", reason, key)

    def cancel(self, record_id: str, reason: str, *, key: str | None = None) -> str:
        """Cancel a record; return the new state. Name no patient in a reason."""
        return self._post(f"/records/{record_id}/cancel", reason, key)

    def _post(self, path: str, reason: str, key: str | None) -> str:
        def send(headers: Mapping[str, str]) -> httpx2.Response:
            return self._http.post(path, json={"reason": reason}, headers=headers)

        return str(self._acted(send, key)["status"])

    def _acted(self, send: Any, key: str | None) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._tried(
            send, {"Idempotency-Key": key or str(uuid4())}
        ).json()
        return found

    def _read(self, path: str, **query: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._tried(
            lambda _: self._http.get(path, params=query), {}
        ).json()
        return found

    def _pages(self, path: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        cursor: dict[str, str] = {}
        while True:
            page = self._read(path, **query, **cursor)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    def _tried(self, send: Any, headers: Mapping[str, str]) -> httpx2.Response:
        """Send a request until it is answered; raise RequestRefusedError or NoAnswerError."""
        for tried in range(1, TRIES + 1):
            wait_s = float(2 ** (tried - 1))
            try:
                response: httpx2.Response = send(headers)
            except httpx2.TransportError:
                if tried == TRIES:
                    raise NoAnswerError("the API gave no answer; repeat the action") from None
            else:
                if response.is_success:
                    return response
                if response.status_code not in _REPEATED or tried == TRIES:
                    raise _refusal(response)
                stated = response.headers.get("Retry-After", "")
                wait_s = float(stated) if stated.isdecimal() else wait_s
            time.sleep(min(wait_s, LONGEST_WAIT_S))
        raise AssertionError("the last try returns or raises")


def _now(body: Mapping[str, Any]) -> RecordNow:
    failure = body["failure"] or {}
    return RecordNow(
        id=body["id"],
        status=body["status"],
        incomplete=body["incomplete"],
        failure_code=failure.get("underlying_code") or failure.get("code"),
        body=body,
    )


def _refusal(response: httpx2.Response) -> RequestRefusedError:
    response.read()
    if response.headers.get("Content-Type") == "application/problem+json":
        body = response.json()
        return RequestRefusedError(response.status_code, body["code"], body["detail"])
    # The web server itself, or a proxy, answers without a code.
    return RequestRefusedError(response.status_code, "UNKNOWN", "an answer that is not of the API")
