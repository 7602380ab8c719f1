"""The structured attributes of an entity as fields of the form of a correction. PHI.

The models of `clinical.attributes` decide which fields a category has, so a reviewer can add an
attribute that Pass 2 did not read. The text of the page and what Pass 2 computes are no fields: the
first is corrected as a printed field, the second is left out when its source changes.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from observability.phi.attribute_words import LABELS
from observability.phi.review_fields import FormField, typed
from pipeline.clinical.attributes import ATTRIBUTES
from pipeline.models.assertions import MedicationStatus
from pipeline.operations.review.attribute_changes import COMPUTED, PREFIX

_OF_THE_PAGE = frozenset(
    {"printed", "printed_unit", "printed_route", "printed_onset", "printed_flag"}
)
_NO_FIELD = _OF_THE_PAGE.union(*COMPUTED.values())
_NOT_READ: tuple[object, ...] = (None, "", [], {})
_INDEX = re.compile(r"\.[0-9]+\.")
_MOST = {"components": 2}
"""The most members of a list; another list always has room for one more."""
_STATUSES = {"medication": tuple(MedicationStatus.values)}
"""Values of an attribute `status` that the model leaves open."""


def attribute_fields(
    category: str, attributes: Mapping[str, Any], posted: Mapping[str, str] | None = None
) -> list[FormField]:
    """Return one field for each part of each attribute; a list has fields for a further member.

    `posted` holds what a refused form contained.
    """
    model = ATTRIBUTES.get(category)
    if model is None:
        return []
    found = []
    for path, annotation in _parts(model, attributes):
        was = _text(_at(attributes, path))
        whole = ".".join(path.split(".")[: 2 if _INDEX.search(path) else 1])
        options = _options(category, path, annotation)
        if options:
            # A stored value that the model leaves open stays chosen.
            options = tuple(dict.fromkeys(("", *options, was)))
        name = f"{PREFIX}{path}"
        found.append(
            FormField(
                name=name,
                label=_label(path),
                kind="choice" if options else "text",
                value=typed(posted or {}, name, was),
                was=was,
                options=[(each, each.replace("_", " ") or "not stated") for each in options],
                is_read=_at(attributes, whole) not in _NOT_READ,
            )
        )
    return found


def _parts(model: type[BaseModel], attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path and the type of each part."""
    for name, info in model.model_fields.items():
        if name in _NO_FIELD:
            continue
        annotation = _plain(info.annotation)
        of_list = _of_list(annotation)
        inner = of_list or annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            yield name, annotation
        elif of_list:
            stored = len(attributes.get(name) or ())
            for at in range(max(stored, _MOST.get(name, stored + 1))):
                yield from _inside(f"{name}.{at}", inner)
        else:
            yield from _inside(name, inner)


def _inside(path: str, model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        if name not in _NO_FIELD:
            yield f"{path}.{name}", _plain(info.annotation)


def _plain(annotation: Any) -> Any:
    """Return the type without `None`."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(each for each in get_args(annotation) if each is not type(None))
    return annotation


def _of_list(annotation: Any) -> Any:
    """Return the type of the members of a list of models; None for another type."""
    members = get_args(annotation) if get_origin(annotation) is tuple else ()
    is_model = members and isinstance(members[0], type) and issubclass(members[0], BaseModel)
    return members[0] if is_model else None


def _options(category: str, path: str, annotation: Any) -> Sequence[str]:
    if get_origin(annotation) is Literal:
        return tuple(map(str, get_args(annotation)))
    if annotation is bool:
        return ("no", "yes")
    return _STATUSES.get(category, ()) if path == "status" else ()


def _at(attributes: Mapping[str, Any], path: str) -> Any:
    value: Any = attributes
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = (value or {}).get(part)
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def _label(path: str) -> str:
    """Return `value: number`; the parts of a list have numbers from 1."""
    name, *parts = path.split(".")
    words = [LABELS.get(name, name.replace("_", " "))]
    if parts and parts[0].isdecimal():
        words[0] += f" {int(parts.pop(0)) + 1}"
    return ": ".join([*words, *(each.replace("_", " ") for each in parts)])
