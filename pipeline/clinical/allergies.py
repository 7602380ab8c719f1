"""The structured attributes of an allergy.

The severity is only what the text prints. A denied allergy and a tolerated substance are refuted.
"""

from __future__ import annotations

import re
from typing import get_args

from pipeline.clinical.attributes import AllergyAttributes, Severity
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.structured import Printed, Structured

_CLINICAL = ("active", "inactive", "resolved")
_VERIFICATION = ("unconfirmed", "confirmed", "refuted", "entered-in-error")
"""FHIR `AllergyIntolerance` has no provisional and no differential status."""
_NOTHING = re.compile(
    r"(?:none|unknown|unspecified|n/?a|not (?:known|stated|specified|documented)|nil|[-–—?]+"
    r"|unable to (?:recall|remember))\.?",
    re.I,
)
_NO_ALLERGIES = re.compile(
    r"n\.?k\.?d?\.?a\.?|no (?:known )?(?:drug |medication |food )*allergies", re.I
)


def allergy_attributes(printed: Printed) -> Structured:
    """Return the attributes of an allergy. Nothing raises, whatever the texts say."""
    facts = printed.facts
    substance = _words(printed.substance) or _words(facts.name)
    if substance and _NO_ALLERGIES.fullmatch(substance):
        return Structured(attributes=AllergyAttributes())
    if facts.experiencer not in (None, "patient") or facts.zone_type == "family_history":
        return Structured(attributes=AllergyAttributes(substance=substance))
    verification, is_contradicted = _verification(printed)
    replied = (printed.status or "").strip().lower()
    status = replied if replied in _CLINICAL else None
    if verification in ("refuted", "entered-in-error"):
        # FHIR ait-2 forbids a clinical status of an error, and a refuted allergy has none.
        is_contradicted = is_contradicted or status == "active"
        status = None
    severity = (printed.severity or "").strip(" .").lower()
    is_denied = verification in ("refuted", "entered-in-error")
    flags = (flagged(EnrichmentFlag.STATUS_CONTRADICTS, "status"),) if is_contradicted else ()
    return Structured(
        attributes=AllergyAttributes.model_validate(
            {
                "substance": substance,
                "reaction": None if is_denied else _words(printed.reaction),
                "severity": severity if severity in get_args(Severity) and not is_denied else None,
                "clinical_status": status,
                "verification_status": verification,
            }
        ),
        flags=flags,
    )


def _words(text: str | None) -> str | None:
    """Return words with single blanks; None for a word that says nothing."""
    plain = " ".join((text or "").split()).strip(" ,;")
    return None if not plain or _NOTHING.fullmatch(plain) else plain


def _verification(printed: Printed) -> tuple[str | None, bool]:
    """Return the verification status, and whether the reply contradicts Pass 1.

    The denial of Pass 1 is stronger than any other reading.
    """
    facts = printed.facts
    replied = (printed.verification or "").strip().lower()
    said = replied if replied in _VERIFICATION else None
    if said == "entered-in-error" or facts.status == "entered_in_error":
        return "entered-in-error", False
    if facts.negated:
        # An allergy that is over was an allergy: its status says so.
        over = (printed.status or "").strip().lower() in ("inactive", "resolved")
        return (said if over else "refuted"), said not in (None, "refuted")
    if facts.certainty in ("possible", "hypothetical"):
        return "unconfirmed", said not in (None, "unconfirmed")
    return said, said == "refuted" and facts.negated is False
