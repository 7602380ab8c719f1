"""All faults that the emulator can inject, by the names that scripts use.

A fault changes the draft of a reply. An error replaces the draft, a bad reply corrupts its text,
and a bad connection corrupts its delivery. `docs/emulator.md` lists the names.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate

from gemini_emulator import api_bodies
from gemini_emulator.http import Delivery

MINUTE = api_bodies.minute_requests(300)
TOKENS = api_bodies.minute_tokens(1_000_000)
DAY = api_bodies.day_requests(250)
SPEND = api_bodies.spend(10)

FINISH_REASONS = (
    "FINISH_REASON_UNSPECIFIED",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_OTHER",
    "NO_IMAGE",
    "IMAGE_RECITATION",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
    "CONTINUATION",
    "MODEL_ARMOR",
    "A_REASON_OF_TOMORROW",
)
"""Finish reasons other than STOP. The last one is a reason that no client knows."""
BLOCK_REASONS = (
    "BLOCKED_REASON_UNSPECIFIED",
    "SAFETY",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
    "JAILBREAK",
)
"""Block reasons of a refused prompt."""
ANY = "any"
"""As a `reason`: draw one from the list by the seed."""
SLOW_S = 30.0
"""The seconds that `slow` adds if the rule has no `delay_s`."""
LATE_S = 2.0
"""`late` replies this many seconds after the client's own timeout."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The parameters of a rule's fault."""

    retry_after_s: float | None = None
    delay_s: float | None = None
    reason: str = ""
    """A finish or block reason, or `ANY`."""
    seed: str = ""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A reply under construction."""

    model: str
    item_token: str
    text: str | None = field(default="", repr=False)
    finish_reason: str | None = "STOP"
    block_reason: str = ""
    status: int = 200
    body: bytes | None = field(default=None, repr=False)
    """A body that replaces the whole reply."""
    content_type: str = "application/json; charset=UTF-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    delivery: Delivery = Delivery.WHOLE
    extra_delay_s: float = 0.0
    waits_out: bool = False
    """The reply arrives after the client's timeout, at which the service would have given up."""
    full_output: bool = False
    """The output counts up to the limit, as in an endless loop."""


Change = Callable[[Draft, Setting], Draft]


@dataclass(frozen=True)
class Fault:
    """A fault.

    `answers` is True if the model works before the fault shows, so that latency applies.
    """

    change: Change
    answers: bool


def _failure(status: int, name: str, message: str, *details: object) -> Fault:
    body = api_bodies.error(status, name, message, details)
    return Fault(lambda draft, _: replace(draft, status=status, body=body), answers=False)


def _limited(*quotas: api_bodies.ServiceQuota, retry_s: float | None, reason: str = "") -> Fault:
    def change(draft: Draft, setting: Setting) -> Draft:
        wait = retry_s if setting.retry_after_s is None else setting.retry_after_s
        body = api_bodies.resource_exhausted(
            quotas, model=draft.model, retry_after_s=wait, reason=reason
        )
        return replace(draft, status=429, body=body)

    return Fault(change, answers=False)


def _limited_until(retry_s: float) -> Fault:
    """Limit a call with a Retry-After that is a date, in place of details."""
    body = api_bodies.error(429, "RESOURCE_EXHAUSTED", "Too many requests.")

    def change(draft: Draft, setting: Setting) -> Draft:
        wait = retry_s if setting.retry_after_s is None else setting.retry_after_s
        now = time.time()
        headers = {
            "Date": formatdate(now, usegmt=True),
            # A date has whole seconds; the next one keeps the wait from becoming too short.
            "Retry-After": formatdate(math.ceil(now + wait), usegmt=True),
        }
        return replace(draft, status=429, body=body, headers=headers)

    return Fault(change, answers=False)


def _html(status: int, title: str, headers: Mapping[str, str] | None = None) -> Fault:
    page = f"<html><head><title>{title}</title></head><body>{title}</body></html>".encode()
    return Fault(
        lambda draft, _: replace(
            draft,
            status=status,
            body=page,
            content_type="text/html; charset=UTF-8",
            headers=headers or {},
        ),
        answers=False,
    )


def _line(delivery: Delivery, *, answers: bool) -> Fault:
    return Fault(lambda draft, _: replace(draft, delivery=delivery), answers=answers)


def _text(spoil: Callable[[str], str | None], finish_reason: str | None = "STOP") -> Fault:
    return Fault(
        lambda draft, _: replace(draft, text=spoil(draft.text or ""), finish_reason=finish_reason),
        answers=True,
    )


def _body(body: bytes) -> Fault:
    return Fault(lambda draft, _: replace(draft, body=body), answers=True)


def _slow(draft: Draft, setting: Setting) -> Draft:
    return replace(draft, extra_delay_s=SLOW_S if setting.delay_s is None else 0.0)


def _late(draft: Draft, _: Setting) -> Draft:
    return replace(draft, waits_out=True)


def _reason(setting: Setting, default: str, known: Sequence[str]) -> str:
    if setting.reason == ANY:
        return random.Random(f"{setting.seed}:reason").choice(known)
    return setting.reason or default


def _blocked(draft: Draft, setting: Setting) -> Draft:
    reason = _reason(setting, "PROHIBITED_CONTENT", BLOCK_REASONS)
    return replace(draft, block_reason=reason, text=None)


def _finish(draft: Draft, setting: Setting) -> Draft:
    return replace(draft, finish_reason=_reason(setting, "SAFETY", FINISH_REASONS), text=None)


def _looping(tail: str) -> Fault:
    def change(draft: Draft, _: Setting) -> Draft:
        text = (draft.text or "")[:40] + tail
        return replace(draft, text=text, finish_reason="MAX_TOKENS", full_output=True)

    return Fault(change, answers=True)


def _wrong_token(draft: Draft, _: Setting) -> Draft:
    other = "".join("0123456789abcdef"[15 - int(c, 16)] for c in draft.item_token)
    text = (draft.text or "").replace(draft.item_token, other)
    return replace(draft, text=text)


def _bad_json(draft: Draft, setting: Setting) -> Draft:
    # A model that breaks off does so elsewhere each time: the attempt is part of the seed.
    text = (draft.text or "")[: max(1, len(draft.text or "") * 2 // 3)]
    noise = f"{random.Random(f'{setting.seed}:noise').getrandbits(32):08x}"
    return replace(draft, text=f'{text} "oops {noise}')


def _bad_item(text: str) -> str:
    reply = json.loads(text)
    if reply.get("entities"):
        reply["entities"].append({**reply["entities"][-1], "quote": ""})
    return json.dumps(reply, ensure_ascii=False)


def _bare_list(text: str) -> str:
    reply = json.loads(text)
    lists = [value for value in reply.values() if isinstance(value, list)]
    return json.dumps(lists[0] if lists else [])


def _wrong_shape(text: str) -> str:
    token = json.loads(text).get("item_token")
    return json.dumps({"item_token": token, "encounters": "none", "entities": "none"})


FAULTS: dict[str, Fault] = {
    "429": _limited(MINUTE, retry_s=1.837906927),
    "429-bare": _failure(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted."),
    "429-tokens": _limited(TOKENS, retry_s=1.837906927),
    "429-reason": _limited(retry_s=None, reason="RATE_LIMIT_EXCEEDED"),
    "429-day": _limited(DAY, retry_s=5.0),
    "429-mixed": _limited(MINUTE, DAY, retry_s=5.0),
    "429-spend": _limited(SPEND, retry_s=600.0),
    "429-date": _limited_until(2.0),
    "302": _html(302, "Log in", {"Location": "/login"}),
    "402": _failure(402, "PAYMENT_REQUIRED", "Insufficient balance."),
    "403-html": _html(403, "Access to this site is blocked"),
    "407": _html(407, "Log in", {"Proxy-Authenticate": 'Basic realm="proxy"'}),
    "400-key": _failure(
        400,
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
        api_bodies.error_info("API_KEY_INVALID"),
    ),
    "400-tokens": _failure(
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "400-bare": _failure(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "400-schema": _failure(
        400,
        "INVALID_ARGUMENT",
        "The specified schema produces a constraint that has too many states for serving.",
    ),
    "400-size": _failure(
        400,
        "INVALID_ARGUMENT",
        "Request payload size exceeds the limit: 52428800 bytes.",
    ),
    "400-pages": _failure(400, "INVALID_ARGUMENT", "The document has no pages."),
    "400-deadline": _failure(
        400,
        "INVALID_ARGUMENT",
        "Manually set deadline 1s is too short. Minimum allowed deadline is 10s.",
    ),
    "403": _failure(
        403, "PERMISSION_DENIED", "Permission denied.", api_bodies.error_info("SERVICE_DISABLED")
    ),
    "404": _failure(404, "NOT_FOUND", "The model is not found for this API version."),
    "499": _failure(499, "CANCELLED", "The operation was cancelled."),
    "500": _failure(500, "INTERNAL", "An internal error has occurred."),
    "502": _html(502, "502 Bad Gateway"),
    "503": _failure(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "503-deadline": _failure(
        503, "UNAVAILABLE", "Deadline expired before operation could complete."
    ),
    "504": _failure(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    "hang": _line(Delivery.HANG, answers=False),
    "reset": _line(Delivery.RESET, answers=False),
    "cut": _line(Delivery.CUT, answers=True),
    "trickle": _line(Delivery.TRICKLE, answers=True),
    "slow": Fault(_slow, answers=True),
    "late": Fault(_late, answers=True),
    "bad-json": Fault(_bad_json, answers=True),
    "bad-item": _text(_bad_item),
    "fenced": _text(lambda text: f"```json\n{text}\n```"),
    "prose-around-json": _text(
        lambda text: f"Here is the JSON requested:\n{text}\n\nLet me know if you need more."
    ),
    "bare-list": _text(_bare_list),
    "wrong-shape": _text(_wrong_shape),
    "wrong-token": Fault(_wrong_token, answers=True),
    "truncated": _text(lambda text: text[: len(text) // 2], finish_reason="MAX_TOKENS"),
    "truncated-empty": _text(lambda _: None, finish_reason="MAX_TOKENS"),
    "loop": _looping('"value": "0.' + "0" * 20_000),
    "loop-newlines": _looping("\n" * 20_000),
    "empty": _text(lambda _: None),
    "empty-object": _body(b"{}"),
    "empty-body": _body(b""),
    "html": _html(200, "proxy"),
    "200-error": Fault(
        lambda draft, _: replace(
            draft, body=api_bodies.error(503, "UNAVAILABLE", "The model is overloaded.")
        ),
        answers=False,
    ),
    "blocked": Fault(_blocked, answers=False),
    "finish": Fault(_finish, answers=True),
}
"""Name in a script → fault."""

OF_ANY_BODY = frozenset({"cut", "trickle", "slow", "late", "empty-body", "empty-object"})
"""Answering faults that need no text. Only these faults apply to an embedding."""
