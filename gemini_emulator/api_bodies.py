"""The JSON bodies of the Gemini API: replies, and errors with their details.

The shapes come from the service and from public reports. The quota ids and the fractional RetryInfo
are the service's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_RPC = "type.googleapis.com/google.rpc."
_METRIC = "generativelanguage.googleapis.com/"


@dataclass(frozen=True, kw_only=True)
class ServiceQuota:
    """A quota of the service, named as in QuotaFailure."""

    quota_id: str
    metric: str
    limit: float


def minute_requests(limit: int) -> ServiceQuota:
    """Return the quota of requests per minute."""
    return ServiceQuota(
        quota_id="GenerateRequestsPerMinutePerProjectPerModel",
        metric=_METRIC + "generate_requests_per_model",
        limit=limit,
    )


def minute_tokens(limit: int) -> ServiceQuota:
    """Return the quota of input tokens per minute."""
    return ServiceQuota(
        quota_id="GenerateContentPaidTierInputTokensPerModelPerMinute",
        metric=_METRIC + "generate_content_paid_tier_input_token_count",
        limit=limit,
    )


def day_requests(limit: int) -> ServiceQuota:
    """Return the quota of requests per day."""
    return ServiceQuota(
        quota_id="GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        metric=_METRIC + "generate_requests_per_model_per_day",
        limit=limit,
    )


def spend(limit_usd: float) -> ServiceQuota:
    """Return the quota of US dollars in any ten minutes."""
    return ServiceQuota(
        quota_id="SpendLimitPerProjectPer10Minutes", metric=_METRIC + "spend", limit=limit_usd
    )


def encode(body: object) -> bytes:
    """Encode a body like the service: as JSON, indented by two."""
    return json.dumps(body, indent=2, ensure_ascii=False).encode()


def error(code: int, status: str, message: str, details: Sequence[object] = ()) -> bytes:
    """Build an error body."""
    inner: dict[str, Any] = {"code": code, "message": message, "status": status}
    if details:
        inner["details"] = list(details)
    return encode({"error": inner})


def error_info(reason: str, **metadata: str) -> dict[str, object]:
    """Build an ErrorInfo detail."""
    return {
        "@type": _RPC + "ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com", **metadata},
    }


def resource_exhausted(
    quotas: Sequence[ServiceQuota], *, model: str, retry_after_s: float | None, reason: str = ""
) -> bytes:
    """Build a 429 with QuotaFailure, Help and a fractional RetryInfo."""
    lines = [
        "You exceeded your current quota, please check your plan and billing details.",
        *(
            f"* Quota exceeded for metric: {q.metric}, limit: {q.limit}, model: {model}"
            for q in quotas
        ),
    ]
    details: list[object] = []
    if reason:
        details.append(error_info(reason))
    if quotas:
        violations = [
            {
                "quotaMetric": q.metric,
                "quotaId": q.quota_id,
                "quotaDimensions": {"location": "global", "model": model},
                "quotaValue": str(q.limit),
            }
            for q in quotas
        ]
        details.append({"@type": _RPC + "QuotaFailure", "violations": violations})
        link = {
            "description": "Learn more about Gemini API quotas",
            "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
        }
        details.append({"@type": _RPC + "Help", "links": [link]})
    if retry_after_s is not None:
        lines.append(f"Please retry in {retry_after_s:.9f}s.")
        details.append({"@type": _RPC + "RetryInfo", "retryDelay": f"{retry_after_s:.9f}s"})
    return error(429, "RESOURCE_EXHAUSTED", "\n".join(lines), details)


def reply(
    *,
    text: str | None,
    finish_reason: str | None,
    block_reason: str,
    model: str,
    response_id: str,
    usage: Mapping[str, int],
    modalities: Mapping[str, int],
) -> dict[str, object]:
    """Build the body of a generateContent reply."""
    body: dict[str, object] = {}
    if block_reason:
        body["promptFeedback"] = {"blockReason": block_reason}
    else:
        content: dict[str, object] = {"role": "model"}
        if text is not None:
            content["parts"] = [{"text": text}]
        candidate: dict[str, object] = {"content": content, "index": 0}
        if finish_reason is not None:
            candidate["finishReason"] = finish_reason
        body["candidates"] = [candidate]
    body["usageMetadata"] = {**usage, "promptTokensDetails": by_modality(modalities)}
    body["modelVersion"] = model
    body["responseId"] = response_id
    return body


def by_modality(modalities: Mapping[str, int]) -> list[dict[str, object]]:
    """Build the details of a token count: `TEXT`, `DOCUMENT`, `IMAGE`."""
    return [{"modality": name, "tokenCount": count} for name, count in modalities.items() if count]
