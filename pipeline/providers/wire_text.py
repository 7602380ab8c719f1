"""The one border for text that a provider writes beside its answer.

Viewers see error names, quota ids, model versions and response ids. A provider, or a proxy before
it, could write PHI into any of these fields. So `allowed` passes known names and shapes that spell
no words; every other text becomes a fixed word. No free text passes.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

UNREADABLE = "unreadable"
"""Stored in place of a text that the border refused."""
MAX_TOKENS = 10_000_000
"""Larger counts are refused. The largest context of Gemini has two million tokens."""
MAX_HINT_S = 86_400.0
"""The longest wait in seconds that a provider can ask for: one day."""


class WireText(StrEnum):
    """A field of a reply or an error."""

    FINISH_REASON = "finishReason"
    BLOCK_REASON = "blockReason"
    STATUS = "status"
    REASON = "reason"
    QUOTA = "quotaId"
    MODEL_VERSION = "modelVersion"
    RESPONSE_ID = "responseId"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KNOWN: dict[WireText, frozenset[str]] = {
    WireText.FINISH_REASON: _words(
        """
        FINISH_REASON_UNSPECIFIED STOP MAX_TOKENS SAFETY RECITATION LANGUAGE OTHER BLOCKLIST
        PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT
        IMAGE_OTHER NO_IMAGE IMAGE_RECITATION UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS
        MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE ESCALATION PUP_LIMITED_DISABLED CONTINUATION
        MODEL_ARMOR
        """
    ),
    WireText.BLOCK_REASON: _words(
        """
        BLOCKED_REASON_UNSPECIFIED BLOCK_REASON_UNSPECIFIED SAFETY OTHER BLOCKLIST
        PROHIBITED_CONTENT IMAGE_SAFETY MODEL_ARMOR JAILBREAK
        """
    ),
    WireText.STATUS: _words(
        """
        OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS
        PERMISSION_DENIED UNAUTHENTICATED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED
        OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS
        """
    ),
    WireText.REASON: _words(
        """
        ERROR_REASON_UNSPECIFIED SERVICE_DISABLED BILLING_DISABLED API_KEY_INVALID API_KEY_EXPIRED
        API_KEY_SERVICE_BLOCKED API_KEY_HTTP_REFERRER_BLOCKED API_KEY_IP_ADDRESS_BLOCKED
        API_KEY_ANDROID_APP_BLOCKED API_KEY_IOS_APP_BLOCKED RATE_LIMIT_EXCEEDED
        RESOURCE_QUOTA_EXCEEDED LOCATION_ORG_POLICY_VIOLATED LOCATION_TAX_POLICY_VIOLATED
        LOCATION_POLICY_VIOLATED USER_PROJECT_DENIED CONSUMER_SUSPENDED CONSUMER_INVALID
        SECURITY_POLICY_VIOLATED ACCESS_TOKEN_EXPIRED ACCESS_TOKEN_SCOPE_INSUFFICIENT
        ACCOUNT_STATE_INVALID ACCESS_TOKEN_TYPE_UNSUPPORTED CREDENTIALS_MISSING
        RESOURCE_PROJECT_INVALID SESSION_COOKIE_INVALID USER_BLOCKED_BY_ADMIN
        RESOURCE_USAGE_RESTRICTION_VIOLATED SYSTEM_PARAMETER_UNSUPPORTED ORG_RESTRICTION_VIOLATION
        ORG_RESTRICTION_HEADER_INVALID SERVICE_NOT_VISIBLE GCP_SUSPENDED IAM_PERMISSION_DENIED
        """
    ),
}
"""The names of the Gemini API (google-genai 3.6, google.rpc.Code, google.api.ErrorReason). A name
of a newer service is unreadable until this table has the name."""

_QUOTA_WORDS = _words(
    """
    generate content request requests per second seconds minute minutes hour hours day days daily
    month monthly project model user region location global base free paid tier input output
    prediction tokens token count limit limits quota quotas spend spending credit credits billing
    cost usd budget embed embedding embeddings batch enqueued image images audio video file files
    concurrent session sessions live rolling window api generativelanguage googleapis com service
    gemini pro flash lite predict online rpm tpm rpd for and of
    """
)
_MODEL_WORDS = _words(
    """
    gemini gemma learnlm models model tuned publishers google flash lite pro ultra nano preview exp
    experimental latest stable thinking image live native audio dialog tts embedding it vision
    computer use text large
    """
)
_CHARACTERS = re.compile(r"[A-Za-z0-9._:/@-]{1,128}")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NUMBER = re.compile(r"\d{1,4}|\d{1,3}[bn]|e\d{1,2}b")
"""A version, a date or a size of a model's name."""
_OPAQUE = re.compile(r"(?=.*[a-f])[0-9a-f-]{16,64}", re.IGNORECASE)
_DAY = re.compile(r"per_?day|daily|per_?month", re.IGNORECASE)
_SPEND = re.compile(r"spend|credit|billing", re.IGNORECASE)
_QUOTA_DIGITS = 4
_MODEL_DIGITS = 8


def allowed(field: WireText, value: object, *, model: str = "") -> str:
    """Return what may be stored of a field: the text, a fixed word, or "" for a missing field.

    `model` is the name of the configured model, whose words a model version may repeat.
    """
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        return UNREADABLE
    match field:
        case WireText.QUOTA:
            return _quota(value)
        case WireText.MODEL_VERSION:
            return value if _is_model(value, model) else UNREADABLE
        case WireText.RESPONSE_ID:
            return _response_id(value)
        case _:
            return value if value in KNOWN[field] else UNREADABLE


def token_count(value: object) -> int | None:
    """Return a count of tokens; None for a value that is no count, or an absurd one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_TOKENS else None


def hint_seconds(text: str) -> float:
    """Return the seconds of a hint, at most a day."""
    return min(float(text), MAX_HINT_S)


def _quota(value: str) -> str:
    """Return a quota id. An unreadable id keeps its period, which decides when the quota resets."""
    if not _CHARACTERS.fullmatch(value):
        return UNREADABLE
    words = _WORD.findall(value)
    digits = sum(len(word) for word in words if word.isdigit())
    if digits <= _QUOTA_DIGITS and all(w.isdigit() or w.lower() in _QUOTA_WORDS for w in words):
        return value
    if _SPEND.search(value):
        return f"{UNREADABLE}-Spend"
    return f"{UNREADABLE}-PerDay" if _DAY.search(value) else UNREADABLE


def is_lasting(quota_id: str) -> bool:
    """Return whether a quota is longer than a minute: a day, a month, or a spend limit."""
    return bool(_DAY.search(quota_id) or _SPEND.search(quota_id))


def _is_model(value: str, model: str) -> bool:
    if not _CHARACTERS.fullmatch(value) or sum(map(str.isdigit, value)) > _MODEL_DIGITS:
        return False
    known, parts = _MODEL_WORDS | set(_parts(model)), _parts(value)
    return (
        bool(parts)
        and parts[0] in known
        and all(part in known or _NUMBER.fullmatch(part) for part in parts)
    )


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[._:/@-]", name) if part]


def _response_id(value: str) -> str:
    """Return an id of hexadecimal digits, or the digest of another id: equal ids stay equal."""
    if _OPAQUE.fullmatch(value):
        return value
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"sha256-{digest[:32]}"
