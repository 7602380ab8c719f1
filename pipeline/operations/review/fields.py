"""What a reviewer may correct, and how a corrected value is validated and structured.

A printed field is checked by the model of the replies (`FoundEntity`), an attribute by the model of
its category (`clinical.attributes`), and a code by the loaded code systems. A corrected printed
field makes its attributes again, by the rules of Pass 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from pydantic import ValidationError

from pipeline.clinical.attributes import ATTRIBUTES
from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.structurers import structured
from pipeline.models import Code, EnrichedEntity, Entity, SystemKey
from pipeline.operations.review.attribute_changes import (
    LONGEST,
    PREFIX,
    first_mistake,
    invalid,
    one_line,
    with_changes,
)
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass2.grounding import of_pass1
from pipeline.transitions.review_decisions import Change

PRINTED = (
    "name", "value", "unit", "reference_range", "abnormal_flag", "strength", "dose",
    "previous_dose", "route", "frequency", "status", "step", "reaction", "entity_date", "negated",
    "temporality", "certainty", "experiencer",
)  # fmt: skip
"""The columns of an entity that a reviewer can correct."""
_REPLY_NAMES = {"entity_date": "date"}
"""Columns whose field of a reply has another name."""

DERIVED: Mapping[str, tuple[str, ...]] = {
    "name": ("ingredient", "substance", "product"),
    "strength": ("strength", "daily_dose"),
    "dose": ("dose", "daily_dose"),
    "previous_dose": ("previous_dose",),
    "route": ("route", "printed_route"),
    "frequency": ("timing", "daily_dose"),
    "status": ("status",),
    "step": ("step",),
    "value": ("value", "value_text", "components", "converted", "computed_flag"),
    "unit": ("value", "components", "converted", "computed_flag"),
    "reference_range": ("reference_range", "computed_flag"),
    "abnormal_flag": ("printed_flag",),
    "reaction": ("reaction",),
    "entity_date": ("onset", "printed_onset", "effective", "occurrence", "performed"),
    "negated": ("clinical_status", "verification_status"),
    "temporality": ("clinical_status", "status"),
    "certainty": ("verification_status",),
}
"""The attributes that follow from each printed field. The trigger of Pass 2 has the same table."""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A validated correction: the changes in words, and the columns to write."""

    changes: tuple[Change, ...]
    entity: Mapping[str, Any] = field(default_factory=dict, repr=False)
    enriched: Mapping[str, Any] = field(default_factory=dict, repr=False)


def correction(
    entity: Entity, enriched: EnrichedEntity | None, asked: Mapping[str, Any]
) -> Correction:
    """Validate the wanted values of an entity, by field.

    A field is a name of `PRINTED`, an `attributes.<path>` or `code`; None empties a field. Raises
    UserError (VALUE_INVALID) for an unknown field, a wrong value, or a request without a change.
    """
    if not asked:
        raise invalid("name the fields to correct, with their values")
    printed = {name: value for name, value in asked.items() if name in PRINTED}
    others = asked.keys() - printed.keys()
    unknown = sorted(each for each in others if not _is_of_pass2(each))
    if unknown:
        raise invalid(f"{unknown[0]!r} is no field that can be corrected")
    if others and enriched is None:
        raise invalid("the entity has no attributes yet; correct its printed fields")
    columns = _printed(entity, printed)
    corrected = _facts(entity, columns)
    attributes: dict[str, Any] = dict(enriched.attributes) if enriched else {}
    code = _code_of(enriched)
    if enriched is not None:
        attributes = _attributes_again(corrected, attributes, columns)
        attributes = with_changes(corrected, attributes, asked)
        # A code was chosen for the old name.
        code = None if "name" in columns and "code" not in asked else code
        if "code" in asked:
            code = _code(asked["code"])
    changes = [
        Change(field=name, old=_plain(getattr(entity, name)), new=_plain(value))
        for name, value in columns.items()
    ]
    written: dict[str, Any] = {}
    if enriched is not None:
        changes += _changed_attributes(enriched.attributes, attributes)
        if attributes != enriched.attributes:
            written["attributes"] = attributes
        if code != _code_of(enriched):
            changes.append(Change(field="code", old=_code_of(enriched), new=code))
            written |= {
                "code_system": code and code["system"],
                "code": code and code["code"],
                "code_display": code and code["display"],
            }
    if not changes:
        raise invalid("the entity has these values already; accept the entity instead")
    return Correction(changes=tuple(changes), entity=columns, enriched=written)


def added_columns(category: str, name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the printed fields of an entity that a reviewer adds. Raises UserError."""
    if category not in ATTRIBUTES:
        raise invalid(f"the category is one of {', '.join(ATTRIBUTES)}")
    unknown = sorted(set(asked) - set(PRINTED))
    if unknown:
        raise invalid(f"{unknown[0]!r} is no printed field of an entity")
    return _printed(Entity(category=category, quote=name, page_number=1), {**asked, "name": name})


def added_attributes(entity: Entity) -> dict[str, Any]:
    """Return the attributes of an added entity, structured by the rules of Pass 2."""
    return _structured(_facts(entity, {}))


def _printed(entity: Entity, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that change, validated by the model of a reply."""
    wanted = {name: one_line(name, value) for name, value in asked.items()}
    if wanted.get("status") is not None and entity.category != "medication":
        raise invalid("only a medication has a status")
    known = {name: _plain(getattr(entity, name)) for name in PRINTED}
    reply = {_REPLY_NAMES.get(k, k): v for k, v in {**known, **wanted}.items()}
    try:
        found = FoundEntity.model_validate(
            {
                **reply,
                "quote": (entity.quote or "-")[:LONGEST],
                "page": entity.page_number,
                "category": entity.category,
            }
        )
    except ValidationError as error:
        name = first_mistake(error)
        raise invalid(f"{name} has no permitted value", name) from None
    columns: dict[str, Any] = {}
    for name in wanted:
        value = getattr(found, _REPLY_NAMES.get(name, name))
        if name == "entity_date":
            value = _day(value)
        if value != getattr(entity, name):
            columns[name] = value
    return columns


def _day(value: str | None) -> date | None:
    if value is None:
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise invalid("entity_date: give a day as 2026-01-31") from None


def _attributes_again(
    facts: EntityFacts, attributes: Mapping[str, Any], columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the attributes after a correction: those that follow from it are made again."""
    names = {attribute for column in columns for attribute in DERIVED.get(column, ())}
    if not names:
        return dict(attributes)
    again = _structured(facts)
    kept = {name: value for name, value in attributes.items() if name not in names}
    return {**kept, **{name: again[name] for name in names if name in again}}


def _structured(facts: EntityFacts) -> dict[str, Any]:
    try:
        built = structured(of_pass1(facts).printed)
    except (ValueError, ArithmeticError, LookupError):
        # The printed text stays; an attribute that no rule understands is left out.
        return {}
    return dict(built.attributes.model_dump(mode="json", exclude_none=True))


def _facts(entity: Entity, columns: Mapping[str, Any]) -> EntityFacts:
    printed = {name: columns.get(name, getattr(entity, name)) for name in PRINTED}
    return EntityFacts(
        key="",
        category=entity.category,
        quote=entity.quote,
        page=entity.page_number,
        start=entity.char_start,
        end=entity.char_end,
        page_end=entity.page_end,
        zone_type=entity.zone_type,
        **printed,
    )


def _changed_attributes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    return [
        Change(field=f"attributes.{name}", old=old.get(name), new=new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _code_of(enriched: EnrichedEntity | None) -> dict[str, Any] | None:
    if enriched is None or enriched.code is None:
        return None
    return {
        "system": enriched.code_system,
        "code": enriched.code,
        "display": enriched.code_display,
    }


def _code(asked: Any) -> dict[str, Any] | None:
    """Return a code of a loaded system, asked for as `SYSTEM|CODE`."""
    if asked is None:
        return None
    system, _, code = str(asked).partition("|")
    if system not in SystemKey.values:
        raise invalid(f"code: give SYSTEM|CODE, with a system of {', '.join(SystemKey.values)}")
    known = Code.objects.filter(system_id=system, code=code).values_list("display", flat=True)
    display = known.first()
    if display is None:
        raise invalid(f"code: the loaded codes of {system} do not have this code")
    return {"system": system, "code": code, "display": display}


def _is_of_pass2(name: str) -> bool:
    return name == "code" or name.startswith(PREFIX)


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    return json.loads(json.dumps(value, cls=DjangoJSONEncoder))
