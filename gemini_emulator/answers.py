"""The text that the emulated model replies: the local engine's answer, cut to the asked schema.

Constrained decoding returns only fields of the schema, so this module removes all other fields.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal

from pipeline.core.types import PageSlice
from pipeline.providers.prompts import Question, read_prompt, render
from pipeline.providers.tasks import TASKS

Source = Literal["local", "minimal"]
"""`minimal` finds nothing and costs nothing, for measurements of the code around the model."""

CACHED = 1_000


class Answers:
    """Answers prompts; caches recent answers, because retries ask the same."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def warm(self) -> None:
        """Load the engine's word lists, which would otherwise delay the first answers."""
        if self._source == "local":
            page = PageSlice(page=1, start=0, text="Assessment: asthma.")
            for task in TASKS.values():
                _local(read_prompt(render(task, "0" * 32, [page])), {})

    def to(self, question: Question | None, schema: Mapping[str, Any]) -> str:
        """Return the text of the reply; `{}` if the prompt is not one of this project."""
        if question is None:
            return "{}"
        if self._source == "minimal":
            results = TASKS[question.kind].results
            return json.dumps({"item_token": question.item_token, "language": "en", results: []})
        token = question.item_token
        # The cache key omits the token: two equal questions differ only in the echoed token.
        shown = [_shown(part) for part in question.slices]
        listed = [each.as_json() for each in question.facts]
        limits = sorted(question.limits.items())
        asked = repr((question.kind, question.include_zones, shown, listed, limits))
        asked += json.dumps(schema, sort_keys=True)
        key = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()
        if key not in self._known:
            self._known[key] = token, _local(question, schema)
            while len(self._known) > CACHED:
                self._known.popitem(last=False)
        first_token, text = self._known[key]
        return text.replace(first_token, token)


def _shown(part: PageSlice) -> tuple[object, ...]:
    return part.page, part.start, part.context, part.text


def _local(question: Question, schema: Mapping[str, Any]) -> str:
    # Imported late: the lexicons take time to load, and `minimal` never needs them.
    from pipeline.providers import local

    reply = local.answer_to(question).model_dump(mode="json", exclude_none=True)
    return json.dumps(_fitted(reply, schema, schema), ensure_ascii=False)


def _fitted(value: object, schema: Mapping[str, Any], root: Mapping[str, Any]) -> object:
    """Remove every field that `schema` does not name."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        return [_fitted(part, schema.get("items", {}), root) for part in value]
    properties = schema.get("properties")
    if isinstance(value, dict) and properties:
        return {k: _fitted(v, properties[k], root) for k, v in value.items() if k in properties}
    return value
