"""What the text says about an immunization, as printed: product, day, number of the dose."""

from __future__ import annotations

import re

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.enrichment.clauses import cells_of, event_dates, only

_DAY_COLUMN = re.compile(
    r"date|dates?[ ](?:given|administered|received|of[ ]administration)|given|administered"
    r"|received|administration[ ]date|date[ ]of[ ]service|last[ ](?:given|dose|date)"
)
_NUMBER_COLUMN = re.compile(r"dose|dose[ ]?(?:#|no\.?|number)|series|number[ ]in[ ]series|#")
_NTH = r"(?:first|second|third|fourth|fifth|sixth|[1-6](?:st|nd|rd|th))"
_NUMBER = re.compile(
    r"(?:\bdose[ ]?#?[ ]?)?(?<![\d/.])[1-9][ ]of[ ][1-9](?!\d)"
    r"|#[ ]?[1-9](?![\d./])"
    r"|\bdose[ ]?(?:#|no\.?|number)?[ ]?[1-9](?![\d./-]|[ ]?(?:mL|ml|mcg|mg|units?))"
    rf"|\b(?:{_NTH})[ ](?:dose|shot)\b"
    r"|\bbooster\b",
    re.I,
)
_AHEAD = re.compile(rf"(?P<number>{_NTH}[ ](?:dose|shot))[ ](?:of[ ])?(?:the[ ])?$", re.I)
_TAIL = re.compile(rf"[ ,(]*(?:{_NUMBER.pattern})[ )]*$", re.I)
_GIVEN = re.compile(
    r"\b(?:given|administered|received|completed|up[ ]to[ ]date|had|immuni[sz]ed[ ]with)\b", re.I
)
_OPEN = re.compile(r"\b(?:due|not|never|if|will|to[ ]be|schedul|plan|offer|recommend|next)", re.I)
_NO_NUMBER = re.compile(r"\b(?:next|due|needs?|needed|will|plan|schedul)", re.I)


def read(facts: EntityFacts, evidence: Evidence) -> dict[str, str]:
    """Return fields of `FoundAttributes`."""
    found = {"product": _TAIL.sub("", facts.name) or facts.name}
    if number := _number(evidence):
        found["dose_number"] = number
    if facts.negated:
        return found | {"status": "not-done"}
    if facts.temporality == "planned" or facts.certainty == "hypothetical":
        return found | {"status": "planned"}
    days = [cell for cell in cells_of(evidence, _DAY_COLUMN) if re.search(r"\d", cell)]
    day = only([*days, *event_dates(facts, evidence)])
    near = f"{evidence.before[-40:]} {evidence.quote} {evidence.after[:40]}".replace("\n", " ")
    if day:
        found["start"] = day
    is_given = day is not None or facts.entity_date is not None or _GIVEN.search(near) is not None
    if is_given and not _OPEN.search(near) and facts.certainty in (None, "certain"):
        found["status"] = "completed"
    return found


def _number(evidence: Evidence) -> str | None:
    near = f"{evidence.quote} {evidence.after[:60]}".replace("\n", " ")
    found = [] if _NO_NUMBER.search(near) else [m.group() for m in _NUMBER.finditer(near)]
    if ahead := re.search(
        rf"(?:{_NTH})[ ](?:dose|shot)[ ](?:of[ ])?(?:the[ ])?$", evidence.before, re.I
    ):
        found.append(ahead.group().strip())
    cells = [cell for cell in cells_of(evidence, _NUMBER_COLUMN) if _CELL.fullmatch(cell)]
    return only([*found, *cells])


_CELL = re.compile(rf"{_NUMBER.pattern}|[1-9]|{_NTH}", re.I)
