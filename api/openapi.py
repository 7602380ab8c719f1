"""What the framework does not know about the operations: errors, headers and upload bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.bodies import FILE, NAME_HEADER, PATIENT, PATIENT_HEADER
from api.idempotency import HEADER, LONGEST_KEY, REPLAYED
from api.problems import MEDIA_TYPE
from api.schemas import Problem

_HEADERS = {
    401: "WWW-Authenticate", 403: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After",
}  # fmt: skip
"""Status -> the header of its answer."""
_ALWAYS = (401, 403, 429, 500, 503)


def _answers(*statuses: int) -> dict[int, type[Problem]]:
    return dict.fromkeys(sorted({*_ALWAYS, *statuses}), Problem)


@dataclass(frozen=True, kw_only=True)
class ErrorAnswers:
    """The error answers of each kind of operation."""

    submit: Mapping[int, type[Problem]]
    listed: Mapping[int, type[Problem]]
    one: Mapping[int, type[Problem]]
    acted: Mapping[int, type[Problem]]
    created: Mapping[int, type[Problem]]
    conflicting: Mapping[int, type[Problem]]
    exported: Mapping[int, type[Problem]]


ANSWERS = ErrorAnswers(
    submit=_answers(400, 409, 413, 415, 422),
    listed=_answers(400, 422),
    one=_answers(400, 404, 422),
    acted=_answers(400, 404, 409, 413, 422),
    created=_answers(400, 409, 413, 422),
    conflicting=_answers(400, 404, 409, 422),
    exported=_answers(400, 404, 409, 422),
)

_KEY = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
    "description": "A repetition with the same key gets the answer of the first request.",
    "example": "8f1b2c1e-5c53-4d0f-9a3d-0f6d0a1f2b3c",
}
_REPLAYED = {
    REPLAYED: {
        "description": "`true` if an earlier request with the same key did the work.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}

IDEMPOTENT: dict[str, Any] = {
    "parameters": [_KEY],
    "responses": {200: {"headers": _REPLAYED}},
}
"""The part of the text for an action that accepts an idempotency key."""

UPLOAD: dict[str, Any] = {
    "parameters": [
        _KEY,
        {
            "in": "header",
            "name": PATIENT_HEADER,
            "required": False,
            "schema": {"type": "string", "maxLength": 100},
            "description": "Your reference of the patient; a form can state it in a field.",
        },
        {
            "in": "header",
            "name": NAME_HEADER,
            "required": False,
            "schema": {"type": "string"},
            "description": "The name of the file, for a body that is the file itself.",
            "example": 'attachment; filename="letter.pdf"',
        },
    ],
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        FILE: {"type": "string", "format": "binary"},
                        PATIENT: {
                            "type": "string",
                            "maxLength": 100,
                            "description": "Your reference of the patient.",
                        },
                    },
                    "required": [FILE],
                    "additionalProperties": False,
                }
            },
            "application/pdf": {"schema": {"type": "string", "format": "binary"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "image/*": {"schema": {"type": "string", "format": "binary"}},
            "text/*": {"schema": {"type": "string", "format": "binary"}},
        },
    },
    "responses": {
        201: {
            "headers": {
                **_REPLAYED,
                "Location": {
                    "description": "The address of the record's status.",
                    "schema": {"type": "string"},
                },
            }
        }
    },
}
"""The part of the text for a submission."""


EXPORTED: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The file, as an attachment.",
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}}
                for kind in ("application/fhir+json", "text/csv", "text/html", "application/zip")
            },
        }
    }
}
"""The part of the text for an export."""


def with_problems(text: dict[str, Any]) -> dict[str, Any]:
    """Give each error answer of an OpenAPI text its media type and its headers."""
    for path in text["paths"].values():
        for operation in path.values():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    content = answer["content"]
                    content[MEDIA_TYPE] = content.pop("application/json", content.get(MEDIA_TYPE))
                    answer["headers"] = _headers(int(status))
    return text


def _headers(status: int) -> dict[str, Any]:
    name = _HEADERS.get(status)
    return {name: {"schema": {"type": "string"}}} if name else {}
