"""An entity without the attributes about which a reviewer must decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.clinical.facts import EntityFacts

_CODES = ("disputed", "not_grounded", "not_in_quote")
_DATE_FLAGS = frozenset(
    {"date_order_contradicts", "date_order_unknown", "disputed:date", "date_not_understood"}
)
_PRINTED = frozenset(
    {
        "value", "unit", "reference_range", "abnormal_flag", "strength", "dose", "previous_dose",
        "route", "frequency", "status", "step", "reaction", "negated", "temporality", "certainty",
        "experiencer",
    }
)  # fmt: skip
_MODELS = {"reference_range": "reference_range", "abnormal_flag": "printed_flag"}
_OF_FREQUENCY = ("timing", "daily_dose")


def undoubted(facts: EntityFacts) -> EntityFacts:
    """Return the entity without disputed attributes and attributes that no evidence supports."""
    flags = {*facts.flags, *facts.review_flags}
    doubted = {
        name for flag in flags for code, _, name in [flag.partition(":")] if code in _CODES and name
    }
    changes: dict[str, Any] = dict.fromkeys(doubted & _PRINTED)
    gone = doubted | {_MODELS.get(name, name) for name in doubted}
    if "frequency" in doubted:
        gone |= set(_OF_FREQUENCY)
    if doubted & {"dose", "strength"}:
        gone.add("daily_dose")
    if "value" in doubted:
        gone |= {"value_text", "converted", "components", "computed_flag"}
    if flags & _DATE_FLAGS:
        changes["entity_date"] = None
        gone |= {"effective", "performed", "occurrence"}
    if gone & set(facts.attributes):
        kept = {name: value for name, value in facts.attributes.items() if name not in gone}
        changes["attributes"] = kept
    return replace(facts, **changes) if changes else facts
