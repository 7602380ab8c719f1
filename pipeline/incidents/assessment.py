"""The judgement whether the failures of one record look like an outage (requirement 25).

Only the record's own failures count here. An incident covers all calls of a provider.
"""

from __future__ import annotations

from enum import StrEnum

from pipeline.core.errors import OUTAGE_CODES, ErrorCode

OUTAGE_FAILURES = 5
"""Number of failures with the same outage cause above which they look like an outage."""
OUTAGE_CAUSES = OUTAGE_CODES | {ErrorCode.RATE_LIMIT}


class Assessment(StrEnum):
    """The judgement of failures with one root cause."""

    LIKELY_OUTAGE = "LIKELY_OUTAGE"
    INDIVIDUAL_FAILURES = "INDIVIDUAL_FAILURES"


def assess(root_cause: str, failed_count: int) -> Assessment:
    """Judge a number of failures with the same root cause."""
    if failed_count > OUTAGE_FAILURES and root_cause in OUTAGE_CAUSES:
        return Assessment.LIKELY_OUTAGE
    return Assessment.INDIVIDUAL_FAILURES
