"""Turn the reply models into the JSON Schema that Gemini's constrained decoder takes.

Bounds, defaults and titles are left out: each adds states to the decoder, and pydantic checks them
anyway. Fields that only the local engine knows are left out too. Supported keywords:
https://ai.google.dev/gemini-api/docs/structured-output
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

KEPT = frozenset({"type", "enum", "items", "properties", "required", "anyOf", "$ref", "$defs"})
"""Keywords that shape the reply; all other keywords are dropped."""

ENGINE_ONLY = frozenset({"rule", "start", "items_rejected"})
"""A rule id means nothing to a model. A model counts offsets wrongly, so the quote is searched
instead. `reply_parsing` counts the items that it left out."""


@cache
def wire_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema to send as `responseJsonSchema`. The caller must not change the schema."""
    whole = model.model_json_schema(mode="validation")
    schema = _reduced(whole)
    schema["$defs"] = {name: _reduced(part) for name, part in whole.get("$defs", {}).items()}
    return schema


def _reduced(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key in KEPT and key != "$defs"}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if "items" in kept:
        kept["items"] = _reduced(kept["items"])
    if "properties" in kept:
        kept["properties"] = {
            name: _reduced(part)
            for name, part in kept["properties"].items()
            if name not in ENGINE_ONLY
        }
        # The decoder writes fields in this order. Without this keyword the order is alphabetical.
        kept["propertyOrdering"] = list(kept["properties"])
    if "anyOf" in kept:
        return _union([_reduced(part) for part in kept["anyOf"]])
    return kept


def _union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Write "a type or null" as a list of two types, which costs the decoder less than anyOf."""
    if all(set(part) == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}
