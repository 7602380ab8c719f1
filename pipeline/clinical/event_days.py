"""The day of a procedure or an immunization."""

from __future__ import annotations

from pipeline.clinical.dates import partial_date
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.structured import Printed


def day_of_event(printed: Printed, attribute: str, flags: list[str]) -> str | None:
    """Return the day of an event in the past, as ISO 8601; add the flags that arise.

    The day of Pass 1 and the printed start are one day, or neither is reported. A stay can last
    weeks: a day after its first day is no proof of another order of day and month.
    """
    facts = printed.facts
    own = facts.entity_date.isoformat() if facts.entity_date else None
    if not printed.start or not printed.start.strip():
        return own
    read, doubts = partial_date(
        printed.start,
        encounter_date=facts.encounter_date,
        order=printed.order,
        known=(facts.entity_date,) if facts.entity_date else (),
        attribute=attribute,
    )
    if read is None and own is not None:
        return own
    flags.extend(doubts)
    if read and own and not own.startswith(read):
        flags.append(flagged(EnrichmentFlag.DATE_NOT_UNDERSTOOD, attribute))
        return None
    return own or read
