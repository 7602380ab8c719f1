"""A reviewer's changes of structured attributes, by path: `attributes.value.number`.

A path names an attribute, or a part of an attribute; a part of a list has its index. The model of
the category (`clinical.attributes`) checks the result. What was computed from a changed attribute
is left out, because a missing value is safer than the value of the old numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pipeline.clinical.attributes import ATTRIBUTES
from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.units.printed_unit import UnitContext, ucum_code
from pipeline.clinical.units.unit_table import codes
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models.fields import storable

PREFIX = "attributes."
LONGEST = 2_000
"""Most characters of a corrected text, as of a quote."""
COMPUTED: Mapping[str, tuple[str, ...]] = {
    "dose": ("daily_dose",),
    "timing": ("daily_dose",),
    "strength": ("daily_dose",),
    "value": ("converted", "computed_flag"),
    "value_text": ("computed_flag",),
    "components": ("converted",),
    "reference_range": ("computed_flag",),
}
"""What Pass 2 computes from each attribute."""
PRINTED_BY: Mapping[str, str] = {
    "dose": "dose",
    "previous_dose": "previous_dose",
    "strength": "strength",
    "timing": "frequency",
    "value": "value",
    "components": "value",
    "reference_range": "reference_range",
}
"""The printed field of each attribute that has parts."""
_CONTEXTS = {"vital": UnitContext.VITAL, "medication": UnitContext.MEDICATION}
_DEEPEST = 3


def with_changes(
    facts: EntityFacts, attributes: Mapping[str, Any], asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the attributes with the wanted changes; raises UserError (VALUE_INVALID)."""
    wanted = {
        name.removeprefix(PREFIX): value for name, value in asked.items() if name.startswith(PREFIX)
    }
    if not wanted:
        return dict(attributes)
    changed: dict[str, Any] = copy.deepcopy(dict(attributes))
    for path, value in wanted.items():
        _put(facts, changed, path, value)
    for name in {path.partition(".")[0] for path in wanted}:
        for computed in COMPUTED.get(name, ()):
            if computed not in wanted:
                changed.pop(computed, None)
    try:
        built = ATTRIBUTES[facts.category].model_validate(changed)
    except ValidationError as error:
        raise invalid(f"{PREFIX}{first_mistake(error)} has no permitted value") from None
    return dict(built.model_dump(mode="json", exclude_none=True))


def one_line(name: str, value: Any) -> Any:
    """Return a text without outer white space, None for an empty one; raises UserError."""
    if not isinstance(value, str):
        return value
    words = storable(value).strip()
    if len(words) > LONGEST or any(not each.isprintable() for each in words):
        raise invalid(f"{name}: give one printable line of at most {LONGEST} characters", name)
    return words or None


def first_mistake(error: ValidationError) -> str:
    """Return the field of the first mistake, never its value."""
    return ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])


def invalid(message: str, field: str = "") -> UserError:
    """Return the refusal of a value, with the name of its field."""
    return UserError(message, code=UserErrorCode.VALUE_INVALID, field=field)


def _put(facts: EntityFacts, attributes: dict[str, Any], path: str, value: Any) -> None:
    name, *parts = path.split(".")
    value = _checked(facts, path, value)
    if not parts:
        attributes[name] = value
        return
    if len(parts) > _DEEPEST:
        raise invalid(f"{PREFIX}{name} has no such part")
    inside = attributes.get(name)
    if parts[0].isdecimal():
        rows: list[Any] = list(inside) if isinstance(inside, list) else []
        at = int(parts.pop(0)[:4])
        if at > len(rows) or not parts:
            raise invalid(f"{PREFIX}{name} has no such part")
        if at == len(rows):
            rows.append(_empty(facts, name))
        attributes[name], inside = rows, rows[at]
    elif not isinstance(inside, dict):
        inside = attributes[name] = _empty(facts, name)
    if len(parts) > 1 or not isinstance(inside, dict):
        raise invalid(f"{PREFIX}{name} has no such part")
    if value is None:
        inside.pop(parts[0], None)
    else:
        inside[parts[0]] = value


def _empty(facts: EntityFacts, name: str) -> dict[str, Any]:
    """Return an attribute that has only its printed text."""
    column = PRINTED_BY.get(name)
    printed = column and getattr(facts, column)
    if not printed:
        words = (column or name).replace("_", " ")
        raise invalid(f"{PREFIX}{name}: give the printed {words} first")
    return {"printed": printed}


def _checked(facts: EntityFacts, path: str, value: Any) -> Any:
    value = one_line(f"{PREFIX}{path}", value)
    if not isinstance(value, str):
        return value
    last = path.rpartition(".")[2]
    if last == "printed" or (path == last and last in PRINTED_BY):
        raise invalid(f"{PREFIX}{path} is the text of the page; correct the printed field")
    if last == "unit":
        return _unit(facts, path, value)
    return value.split() if last == "when" else value


def _unit(facts: EntityFacts, path: str, value: str) -> str:
    if value in codes():
        return value
    context = _CONTEXTS.get(facts.category, UnitContext.LAB)
    code = ucum_code(value, context=context, name=facts.name or "")
    if code is None:
        raise invalid(f"{PREFIX}{path}: give a unit that is known, such as mg/dL")
    return code
