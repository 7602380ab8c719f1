"""The structured attributes of an immunization: product, day, number of the dose, status.

Only a vaccine that was given has a day of occurrence. The day of a refusal is not such a day.
"""

from __future__ import annotations

import re

from pipeline.clinical.attributes import ImmunizationAttributes
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.event_days import day_of_event
from pipeline.clinical.page_text.spellings import NUMBER_WORDS
from pipeline.clinical.structured import Printed, Structured

_STATUSES = ("completed", "not-done", "planned", "entered-in-error")
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "initial": 1,
    "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5, "6th": 6,
}  # fmt: skip
_N = rf"(?P<n>[1-9]|1[0-2]|{'|'.join(w for w in NUMBER_WORDS if w != 'half')})"
_FORMS = (
    re.compile(rf"(?:dose[ ]?)?(?:#|no\.?|number)?[ ]?{_N}[ ]?of[ ]?(?P<of>[1-9])(?:[ ]doses?)?"),
    re.compile(rf"(?:dose|shot|vaccine|inj(?:ection)?)[ ]?(?:#|no\.?|number)?[ ]?{_N}"),
    re.compile(rf"#[ ]?{_N}"),
    re.compile(rf"(?:the[ ])?(?P<ordinal>{'|'.join(_ORDINALS)})(?:[ ](?:dose|shot|vaccine|of.*))?"),
)
_SINGLE_FIGURE = re.compile(_N)


def immunization_attributes(printed: Printed) -> Structured:
    """Return the attributes of an immunization. Nothing raises, whatever the texts say."""
    facts = printed.facts
    product = " ".join((printed.product or facts.name).split()) or None
    if facts.experiencer not in (None, "patient"):
        return Structured(attributes=ImmunizationAttributes(product=product))
    flags = list[str]()
    status = _status(printed, flags)
    return Structured(
        attributes=ImmunizationAttributes.model_validate(
            {
                "product": product,
                "occurrence": day_of_event(printed, "occurrence", flags)
                if status in (None, "completed")
                else None,
                "dose_number": dose_number_of(printed.dose_number),
                "status": status,
            }
        ),
        flags=tuple(dict.fromkeys(flags)),
    )


def dose_number_of(text: str | None) -> int | None:
    """Return the number of a dose (`2 of 3`, `#2`, `second`); None for a booster.

    `2/3` can be a day, so these figures are no number.
    """
    low = " ".join((text or "").lower().split()).strip(" .,;()")
    if not low or len(low) > 40 or "booster" in low:
        return None
    for form in (*_FORMS, _SINGLE_FIGURE):
        if m := form.fullmatch(low):
            groups = m.groupdict()
            if groups.get("ordinal"):
                return _ORDINALS[groups["ordinal"]]
            number = int(NUMBER_WORDS.get(m["n"], m["n"]))
            return None if groups.get("of") and number > int(groups["of"]) else number
    return None


def _status(printed: Printed, flags: list[str]) -> str | None:
    facts = printed.facts
    replied = (printed.status or "").strip().lower()
    said = replied if replied in _STATUSES else None
    known: str | None = None
    if facts.status == "entered_in_error":
        known = "entered-in-error"
    elif facts.negated:
        known = "not-done"
    elif facts.temporality == "planned" or facts.certainty == "hypothetical":
        known = "planned"
    elif facts.certainty == "possible":
        known = None
    elif facts.entity_date or printed.start:
        known = "completed"
    if said is not None and known is not None and said != known:
        flags.append(flagged(EnrichmentFlag.STATUS_CONTRADICTS, "status"))
        return said if said != "completed" else known
    return known if known is not None or facts.certainty == "possible" else said
