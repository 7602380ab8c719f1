"""What the text says about an allergy, as printed: substance, reaction, severity, status."""

from __future__ import annotations

import re

from pipeline.clinical.condition_words import GRADE_RANGE, GRADES
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.enrichment.clauses import cells_of, only

_REACTION_COLUMN = re.compile(r"reactions?|type of reaction|manifestations?|symptoms?")
_SEVERITY_COLUMN = re.compile(r"severity|grade|criticality")
_STATUS_COLUMN = re.compile(r"(?:clinical )?status|active\??")
_RESOLVED = re.compile(
    r"\b(?:outgrew|outgrown|(?:has[ ])?resolved|no[ ]longer[ ]allergic|delabell?ed|de-labell?ed)\b",
    re.I,
)
_NO = re.compile(r"\b(?:not|no|never|without|denie[sd]|n['’]t|unknown)\b", re.I)
_STATUSES = ("active", "inactive", "resolved")
_FAR = 60


def read(facts: EntityFacts, evidence: Evidence) -> dict[str, str]:
    """Return fields of `FoundAttributes`."""
    found = {"substance": facts.name}
    status = _status(evidence)
    if facts.negated:
        over = status in ("inactive", "resolved")
        return found | ({"status": status} if over and status else {"verification": "refuted"})
    if facts.certainty in ("possible", "hypothetical"):
        found["verification"] = "unconfirmed"
    reaction = facts.reaction or only(list(cells_of(evidence, _REACTION_COLUMN)))
    if reaction:
        found["reaction"] = reaction
    if severity := _severity(evidence):
        found["severity"] = severity
    if status:
        found["status"] = status
    return found


def _severity(evidence: Evidence) -> str | None:
    """Return the one grade beside the allergy; a denied grade and a range are no grade."""
    cells = list(cells_of(evidence, _SEVERITY_COLUMN))
    text = " ".join((evidence.quote, evidence.after[:_FAR], *cells)).replace("\n", " ")
    found = [m.group().lower() for m in GRADES.finditer(text)]
    if GRADE_RANGE.search(text) or _NO.search(text):
        return None
    return only(found)


def _status(evidence: Evidence) -> str | None:
    cells = [cell.lower() for cell in cells_of(evidence, _STATUS_COLUMN)]
    found = [cell for cell in cells if cell in _STATUSES]
    near = f"{evidence.quote} {evidence.after[:_FAR]}".replace("\n", " ")
    if _RESOLVED.search(near) and not re.search(r"\bnot\b|n['’]t", near, re.I):
        found.append("resolved")
    return only(found)
