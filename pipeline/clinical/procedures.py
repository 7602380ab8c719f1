"""The structured attributes of a procedure: day, status, place and side."""

from __future__ import annotations

import re

from pipeline.clinical.attributes import ProcedureAttributes
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.event_days import day_of_event
from pipeline.clinical.structured import Printed, Structured

_STATUSES = ("completed", "not-done", "preparation", "in-progress", "unknown")
_SIDES = {
    **dict.fromkeys(("left", "l", "lt", "left-sided"), "left"),
    **dict.fromkeys(("right", "r", "rt", "right-sided"), "right"),
    **dict.fromkeys(("bilateral", "bilaterally", "both", "b/l", "bilat"), "bilateral"),
}
_SIDE_WORD = re.compile(r"\b(left|right|bilateral)\b", re.I)


def procedure_attributes(printed: Printed) -> Structured:
    """Return the attributes of a procedure. Nothing raises, whatever the texts say."""
    facts = printed.facts
    values: dict[str, str | None] = {
        "body_site": " ".join((printed.body_site or "").split()) or None,
        "laterality": _side(printed),
    }
    if facts.experiencer not in (None, "patient") or facts.zone_type == "family_history":
        return Structured(attributes=ProcedureAttributes.model_validate(values))
    flags = list[str]()
    status = _status(printed, flags)
    values["status"] = status
    if status not in ("not-done", "preparation"):
        values["performed"] = day_of_event(printed, "performed", flags)
    return Structured(
        attributes=ProcedureAttributes.model_validate(values), flags=tuple(dict.fromkeys(flags))
    )


def _side(printed: Printed) -> str | None:
    """Return the side; None if the printed side and the name of the procedure differ."""
    side = _SIDES.get((printed.laterality or "").strip(" .").lower())
    named = {m.group().lower() for m in _SIDE_WORD.finditer(printed.facts.name)}
    return side if not named or named == {side} else None


def _status(printed: Printed, flags: list[str]) -> str | None:
    """Return the status; the denial and the plan of Pass 1 are stronger than the reply."""
    facts = printed.facts
    replied = (printed.status or "").strip().lower()
    said = replied if replied in _STATUSES else None
    known: str | None = None
    if facts.negated:
        known = "not-done"
    elif facts.temporality == "planned" or facts.certainty == "hypothetical":
        known = "preparation"
    elif facts.certainty == "possible":
        known = "unknown"
    elif facts.temporality == "historical":
        known = "completed"
    if known is None or said is None or said == known:
        return said if known is None else known
    flags.append(flagged(EnrichmentFlag.STATUS_CONTRADICTS, "status"))
    return known
