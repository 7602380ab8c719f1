"""What the text says about a procedure, as printed: day, status, place and side."""

from __future__ import annotations

import re

from pipeline.clinical.condition_words import (
    SIDE,
    SIDE_AHEAD,
    SIDE_BEHIND,
    SITE_BEHIND,
    SITE_IN,
)
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.enrichment.clauses import cells_of, event_dates, only

_DAY_COLUMN = re.compile(
    r"date|dates?[ ](?:performed|done|of[ ](?:procedure|surgery|service))|performed|year|when"
    r"|(?:procedure|surgery|service)[ ]date"
)
_SIDE_COLUMN = re.compile(r"side|laterality")
_DONE = re.compile(
    r"\b(?:s/p|status[ -]post|underwent|performed|completed|was[ ]done|had)\b(?![ ]not)", re.I
)
_PLANNED = re.compile(
    r"\b(?:schedul\w*|order(?:ed)?|plan\w*|will|refer\w*|recommend\w*|consider\w*|awaiting"
    r"|pending|needs?|if|to[ ]be)\b",
    re.I,
)
_NOT = re.compile(r"\b(?:not|never|declin\w*|refus\w*|cancel\w*|without|no)\b|n['’]t\b", re.I)


def read(facts: EntityFacts, evidence: Evidence) -> dict[str, str]:
    """Return fields of `FoundAttributes`."""
    found: dict[str, str] = {}
    if side := _side(evidence):
        found["laterality"] = side
    if site := _site(evidence):
        found["body_site"] = site
    if status := _status(facts, evidence):
        found["status"] = status
    if status in ("not-done", "preparation"):
        return found
    days = [cell for cell in cells_of(evidence, _DAY_COLUMN) if re.search(r"\d", cell)]
    if day := only([*days, *event_dates(facts, evidence)]):
        found["start"] = day
    return found


def _side(evidence: Evidence) -> str | None:
    mentions = [*SIDE.finditer(evidence.quote)]
    mentions += [m for m in (SIDE_AHEAD.search(evidence.before),) if m]
    mentions += [m for m in (SIDE_BEHIND.match(evidence.after),) if m]
    found = [m["side"].lower() for m in mentions]
    found += [c.lower() for c in cells_of(evidence, _SIDE_COLUMN) if SIDE.fullmatch(c)]
    return only([side if side in ("left", "right") else "bilateral" for side in found])


def _site(evidence: Evidence) -> str | None:
    found = [m.group() for m in SITE_IN.finditer(evidence.quote)]
    found += [m["site"] for m in (SITE_BEHIND.match(evidence.after),) if m]
    return only(found)


def _status(facts: EntityFacts, evidence: Evidence) -> str | None:
    if facts.negated:
        return "not-done"
    if facts.temporality == "planned" or facts.certainty == "hypothetical":
        return "preparation"
    near = f"{evidence.before[-40:]} {evidence.quote} {evidence.after[:40]}".replace("\n", " ")
    if facts.certainty == "possible" or _PLANNED.search(near) or _NOT.search(near):
        return None
    return "completed" if _DONE.search(near) else None
