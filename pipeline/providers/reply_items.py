"""A bad item costs only that item: items of a reply that break the schema are left out.

An item is one entity, encounter or zone. The results that were asked for are the required lists of
the schema. A reply is refused if more than a fifth of its results break the schema, because then
the model did not understand the question.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from pipeline.providers.json_schema import ENGINE_ONLY

MAX_BAD_SHARE = 5
"""One result in this many may break the schema."""


def without_bad_items(content: object, schema: type[BaseModel]) -> tuple[object, int]:
    """Return the content of a reply without its bad items, and their number.

    The content comes back as it was, with the number 0, if too many results are bad. The number
    that a model claims is never taken over.
    """
    if not isinstance(content, dict):
        return content, 0
    kept: dict[str, Any] = dict(content)
    rejected = 0
    for name, field in schema.model_fields.items():
        model, items = _model_of(field.annotation), content.get(name)
        if model is None or not isinstance(items, list):
            continue
        good = [item for item in items if _fits(item, model)]
        bad = len(items) - len(good)
        if field.is_required() and bad * MAX_BAD_SHARE > len(items):
            return content, 0
        kept[name] = good
        rejected += bad
    return kept, rejected


def without_engine_fields(content: object, schema: type[BaseModel]) -> object:
    """Return the content of a model's reply without the fields that only the local engine knows.

    Viewers see the rule of an entity, so a model must not write the rule.
    """
    if not isinstance(content, dict):
        return content
    kept = {name: value for name, value in content.items() if name not in ENGINE_ONLY}
    for name, field in schema.model_fields.items():
        items = kept.get(name)
        if _model_of(field.annotation) is not None and isinstance(items, list):
            kept[name] = [_of_a_model(item) for item in items]
    return kept


def _of_a_model(item: object) -> object:
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if name not in ENGINE_ONLY}


def _model_of(annotation: object) -> type[BaseModel] | None:
    """Return the model of the items if a field is a list of models."""
    if get_origin(annotation) is not list:
        return None
    (item,) = get_args(annotation)
    return item if isinstance(item, type) and issubclass(item, BaseModel) else None


def _fits(item: object, model: type[BaseModel]) -> bool:
    try:
        model.model_validate(item)
    except ValidationError:
        return False
    return True
