"""Turn the body of a successful reply into a validated `Reply` that matches its request.

The order of the checks is fixed: block reason, finish reason, text, JSON, schema, item token. An
error keeps the details read so far (tokens, finish reason). The model's text is only in
`CallDetails.raw_reply`. The module knows the wire format of the Gemini API, not the SDK.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from pipeline.core.errors import CallDetails, ErrorCode, ReplyError
from pipeline.providers.base import Reply, Request

BLOCKED_FINISHES = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "MODEL_ARMOR",
    }
)

FINISHES: dict[str, ErrorCode] = {
    **dict.fromkeys(BLOCKED_FINISHES, ErrorCode.CONTENT_BLOCKED),
    "MAX_TOKENS": ErrorCode.OUTPUT_TRUNCATED,
    "CONTINUATION": ErrorCode.OUTPUT_TRUNCATED,
    "MALFORMED_FUNCTION_CALL": ErrorCode.PARSE_JSON,
    "MALFORMED_RESPONSE": ErrorCode.PARSE_JSON,
    "UNEXPECTED_TOOL_CALL": ErrorCode.PARSE_JSON,
    "TOO_MANY_TOOL_CALLS": ErrorCode.PARSE_JSON,
    "MISSING_THOUGHT_SIGNATURE": ErrorCode.PARSE_JSON,
}
"""Finish reasons other than STOP. An unknown reason becomes EMPTY_RESPONSE, which is retried."""

_FENCE = re.compile(r"^\s*```[a-z]*[ \t]*\r?\n(.*?)\s*```\s*$", re.DOTALL | re.IGNORECASE)
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_NAME = re.compile(r"^[A-Z][A-Z0-9_]{0,63}$")


def read_reply(body: str, request: Request) -> Reply:
    """Read the body of a 200 reply. Raises `ReplyError` if the body does not answer `request`."""
    envelope = _envelope(body)
    details = _details(envelope)
    if reason := _block_reason(envelope):
        details = replace(details, finish_reason=reason)
        raise ReplyError(f"blocked: {reason}", code=ErrorCode.CONTENT_BLOCKED, details=details)
    text = _text(envelope)
    details = replace(details, raw_reply=text)
    _check_finish(details)
    if not text.strip():
        raise ReplyError("the reply had no text", code=ErrorCode.EMPTY_RESPONSE, details=details)
    return Reply(output=_validated(text, request, details), details=details)


def stored_output(text: str, schema: type[BaseModel], item_token: str) -> BaseModel:
    """Read a stored reply again that was accepted earlier.

    Raises `ReplyError` if the reply no longer fits.
    """
    fenced = _FENCE.match(text)
    try:
        output: BaseModel | None = _parsed(fenced[1] if fenced else text, schema)
    except ValidationError:
        output = None
    if output is None or getattr(output, "item_token", item_token) != item_token:
        raise ReplyError("a stored reply does not fit", code=ErrorCode.PARSE_SCHEMA)
    return output


def _envelope(body: str) -> dict[str, Any]:
    if not body.strip():
        raise ReplyError(
            "the body was empty",
            code=ErrorCode.EMPTY_RESPONSE,
            details=CallDetails(http_status=200),
        )
    try:
        envelope = json.loads(body)
    except (ValueError, RecursionError):
        envelope = None
    if isinstance(envelope, dict):
        return envelope
    # Raised outside the except block: the decoder's error holds the body and must not become this
    # error's context.
    code = ErrorCode.EMPTY_RESPONSE if envelope == [] else ErrorCode.PARSE_JSON
    raise ReplyError("the body was not a reply", code=code, details=CallDetails(http_status=200))


def _details(envelope: dict[str, Any]) -> CallDetails:
    usage = _dict(envelope.get("usageMetadata"))
    return CallDetails(
        http_status=200,
        finish_reason=_name(_candidate(envelope).get("finishReason")),
        model_version=_short(envelope.get("modelVersion")),
        response_id=_short(envelope.get("responseId")),
        input_tokens=_count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount"),
        output_tokens=_count(usage, "candidatesTokenCount"),
        thinking_tokens=_count(usage, "thoughtsTokenCount"),
        cached_tokens=_count(usage, "cachedContentTokenCount"),
    )


def _check_finish(details: CallDetails) -> None:
    """Accept STOP. A reply with neither a reason nor text is reported as empty by the caller."""
    reason = details.finish_reason
    if reason == "STOP" or (not reason and not details.raw_reply):
        return
    code = FINISHES.get(reason, ErrorCode.EMPTY_RESPONSE) if reason else ErrorCode.PARSE_JSON
    raise ReplyError(f"ended with {reason or 'no finish reason'}", code=code, details=details)


def _validated(text: str, request: Request, details: CallDetails) -> Any:
    fenced = _FENCE.match(text)
    text = fenced[1] if fenced else text
    # Check the token first: the reply to another item need not have the shape of this item's reply.
    if _token_of(text) not in (None, request.item_token):
        raise ReplyError(
            "the reply echoed another item token", code=ErrorCode.REPLY_MISMATCH, details=details
        )
    try:
        return _parsed(text, request.schema)
    except ValidationError as exc:
        message, code = _problem(exc)
    raise ReplyError(message, code=code, details=details)


def _token_of(text: str) -> str | None:
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(text)
        if isinstance(found, dict) and isinstance(found.get("item_token"), str):
            return str(found["item_token"])
    return None


def _parsed(text: str, schema: type[BaseModel]) -> BaseModel:
    try:
        return schema.model_validate_json(text)
    except ValidationError:
        # Models cut emoji into half surrogate pairs. Pydantic's parser refuses half pairs, Python's
        # parser accepts them.
        if not _HALF_PAIR.search(text):
            raise
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        if content is None:
            raise
        return schema.model_validate(content)


def _problem(exc: ValidationError) -> tuple[str, ErrorCode]:
    """Describe the failed validation by field names and error types, never by a value."""
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    if errors[0]["type"] == "json_invalid":
        return "the reply was not JSON", ErrorCode.PARSE_JSON
    places = [f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['type']}" for e in errors[:3]]
    return f"{len(errors)} errors of shape; {', '.join(places)}", ErrorCode.PARSE_SCHEMA


def _block_reason(envelope: dict[str, Any]) -> str:
    feedback = _dict(envelope.get("promptFeedback"))
    return (_name(feedback.get("blockReason")) or "BLOCKED") if "blockReason" in feedback else ""


def _candidate(envelope: dict[str, Any]) -> dict[str, Any]:
    candidates = envelope.get("candidates")
    return _dict(candidates[0]) if isinstance(candidates, list) and candidates else {}


def _text(envelope: dict[str, Any]) -> str:
    parts = _dict(_candidate(envelope).get("content")).get("parts")
    return "".join(
        part["text"]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and isinstance(part.get("text"), str) and not part.get("thought")
    )


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _name(value: object) -> str:
    return value if isinstance(value, str) and _NAME.match(value) else ""


def _short(value: object) -> str:
    return value[:120] if isinstance(value, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
