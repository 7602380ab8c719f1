"""Turn the body of a successful reply into a validated `Reply` that matches its request.

The order of the checks is fixed: web page, error inside, block reason, finish reason, text, JSON,
schema, item token, encounter. An error keeps the details read so far. The model's text is only in
`CallDetails.raw_reply`. The module knows the wire format of the Gemini API, not the SDK.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from pipeline.core.errors import CallDetails, ErrorCode, ReplyError
from pipeline.providers.base import Reply, Request
from pipeline.providers.error_mapping import error_inside_200, error_of_page, is_page
from pipeline.providers.reply_items import without_bad_items, without_engine_fields
from pipeline.providers.reply_text import NotJsonError, content_of
from pipeline.providers.wire_text import WireText, allowed, token_count

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

_ENCOUNTER = "encounter_id"
_ID = re.compile(r"[0-9a-f]{32}")

REJECTED = "items_rejected"
"""Field of a reply that counts the items which were left out."""

COUNTS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
)
"""The token counts of a reply that are stored."""


def read_reply(body: str, request: Request, *, model: str = "") -> Reply:
    """Read the body of a 200 reply of `model`.

    Raises `ReplyError` if the body does not answer `request`, and `CallError` if a proxy answered.
    """
    envelope = _envelope(body)
    details = _details(envelope, model)
    if reason := _block_reason(envelope):
        details = replace(details, finish_reason=reason)
        raise ReplyError(f"blocked: {reason}", code=ErrorCode.CONTENT_BLOCKED, details=details)
    text = _text(envelope)
    details = replace(details, raw_reply=text)
    _check_finish(details)
    if not text.strip():
        raise ReplyError("the reply had no text", code=ErrorCode.EMPTY_RESPONSE, details=details)
    return Reply(output=_validated(text, request, details), details=details)


def stored_output(
    text: str, schema: type[BaseModel], item_token: str, *, is_of_engine: bool = False
) -> BaseModel:
    """Read a stored reply again that was accepted earlier.

    Only a reply of the local engine keeps the fields of the engine. Raises `ReplyError` if the
    reply no longer fits.
    """
    try:
        content = content_of(text)
        kept = content if is_of_engine else without_engine_fields(content, schema)
        output: BaseModel | None = _parsed(kept, schema)
    except (NotJsonError, ValidationError):
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
    if is_page(body):
        raise error_of_page()
    try:
        envelope = json.loads(body)
    except (ValueError, RecursionError):
        envelope = None
    if (passed_on := error_inside_200(envelope)) is not None:
        raise passed_on
    if isinstance(envelope, dict):
        return envelope
    # Raised outside the except block: the decoder's error holds the body and must not become this
    # error's context.
    code = ErrorCode.EMPTY_RESPONSE if envelope == [] else ErrorCode.PARSE_JSON
    raise ReplyError("the body was not a reply", code=code, details=CallDetails(http_status=200))


def _details(envelope: dict[str, Any], model: str) -> CallDetails:
    usage = _dict(envelope.get("usageMetadata"))
    counts = {name: 0 if usage.get(name) is None else token_count(usage[name]) for name in COUNTS}
    is_unknown = None in counts.values()
    # One absurd count makes the whole usage unknown: the other counts are of the same source.
    known = {name: 0 if is_unknown else count or 0 for name, count in counts.items()}
    return CallDetails(
        http_status=200,
        finish_reason=allowed(WireText.FINISH_REASON, _candidate(envelope).get("finishReason")),
        model_version=allowed(WireText.MODEL_VERSION, envelope.get("modelVersion"), model=model),
        response_id=allowed(WireText.RESPONSE_ID, envelope.get("responseId")),
        input_tokens=known["promptTokenCount"] + known["toolUsePromptTokenCount"],
        output_tokens=known["candidatesTokenCount"],
        thinking_tokens=known["thoughtsTokenCount"],
        cached_tokens=known["cachedContentTokenCount"],
        is_usage_unknown=is_unknown,
    )


def _check_finish(details: CallDetails) -> None:
    """Accept STOP. A reply with neither a reason nor text is reported as empty by the caller."""
    reason = details.finish_reason
    if reason == "STOP" or (not reason and not details.raw_reply):
        return
    code = FINISHES.get(reason, ErrorCode.EMPTY_RESPONSE) if reason else ErrorCode.PARSE_JSON
    raise ReplyError(f"ended with {reason or 'no finish reason'}", code=code, details=details)


def _validated(text: str, request: Request, details: CallDetails) -> Any:
    try:
        content = content_of(text)
    except NotJsonError:
        message, code = "the reply was not JSON", ErrorCode.PARSE_JSON
    else:
        # Check the token first: the reply to another item need not have the shape of this reply.
        if _token_of(content) not in (None, request.item_token):
            message, code = "the reply echoed another item token", ErrorCode.REPLY_MISMATCH
        elif _names_another_encounter(content, request.encounter_id):
            message, code = "the reply named another encounter", ErrorCode.ENCOUNTER_NOT_FOUND
        else:
            try:
                return _parsed(without_engine_fields(content, request.schema), request.schema)
            except ValidationError as exc:
                message, code = _problem(exc), ErrorCode.PARSE_SCHEMA
    # Raised outside the except blocks: a parser's error holds the text of the reply.
    raise ReplyError(message, code=code, details=details)


def _token_of(content: object) -> str | None:
    token = content.get("item_token") if isinstance(content, dict) else None
    return token if isinstance(token, str) else None


def _names_another_encounter(content: object, encounter_id: str) -> bool:
    """Return whether the reply, or one of its items, names the id of another encounter.

    A model that numbers its own finds names no encounter of ours, so only ids count.
    """
    if not isinstance(content, dict):
        return False
    items = [item for value in content.values() if isinstance(value, list) for item in value]
    stated = (part.get(_ENCOUNTER) for part in (content, *items) if isinstance(part, dict))
    named = {text.replace("-", "").lower() for text in stated if isinstance(text, str)}
    return any(_ID.fullmatch(text) and text != encounter_id for text in named)


def _parsed(content: object, schema: type[BaseModel]) -> BaseModel:
    """Return the reply without the items that break the schema; they are counted."""
    if isinstance(content, dict):
        # The parser counts; a number that the model wrote is dropped.
        content = {name: value for name, value in content.items() if name != REJECTED}
    try:
        output, rejected = schema.model_validate(content), 0
    except ValidationError:
        kept, rejected = without_bad_items(content, schema)
        # A schema that cannot report the number loses no item.
        if not rejected or REJECTED not in schema.model_fields:
            raise
        output = schema.model_validate(kept)
    return output.model_copy(update={REJECTED: rejected}) if rejected else output


def _problem(exc: ValidationError) -> str:
    """Describe the failed validation by field names and error types, never by a value."""
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    places = [f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['type']}" for e in errors[:3]]
    return f"{len(errors)} errors of shape; {', '.join(places)}"


def _block_reason(envelope: dict[str, Any]) -> str:
    feedback = _dict(envelope.get("promptFeedback"))
    if "blockReason" not in feedback:
        return ""
    return allowed(WireText.BLOCK_REASON, feedback["blockReason"]) or "BLOCKED"


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


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
