"""The status of a medication, and the contradictions of its sources."""

from __future__ import annotations

from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.structured import Printed

STATUSES = frozenset(
    {"active", "stopped", "on_hold", "planned", "not_started", "changed", "entered_in_error"}
)
"""The values of `models.assertions.MedicationStatus`."""
TAKEN = frozenset({"active", "changed"})
_NEVER_TAKEN = frozenset({"not_started", "entered_in_error"})


def status_of(printed: Printed, stop: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the status, with a flag if the reply, Pass 1 and the dates contradict each other.

    `stop` is the day on which the medication ends, as ISO 8601. The status of Pass 1 is kept.
    """
    facts = printed.facts
    replied = printed.status.strip() if printed.status else None
    known = facts.status if facts.status in STATUSES else None
    status = known or (replied if replied in STATUSES else None)
    is_contradicted = (
        (replied is not None and replied != status)
        or (facts.negated is True and status in TAKEN)
        or (facts.negated is False and status in _NEVER_TAKEN)
        or (status in TAKEN and _compared(stop, printed) < 0)
        or (status == "stopped" and _compared(stop, printed) > 0)
    )
    flags = (flagged(EnrichmentFlag.STATUS_CONTRADICTS, "status"),) if is_contradicted else ()
    return status, flags


def _compared(stop: str | None, printed: Printed) -> int:
    """Return -1 if the end lies before the encounter, 1 if the end lies after, otherwise 0."""
    day = printed.facts.encounter_date
    if stop is None or day is None:
        return 0
    seen = day.isoformat()[: len(stop)]
    return (stop > seen) - (stop < seen)
