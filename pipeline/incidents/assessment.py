"""Whether the failures of one record look like an outage of the provider (`spec.md` point 25).

Imports models and `errors`; reads only. The record's own failures are judged here; what the
provider does to all of them is an incident.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.db.models import Count
from django.db.models.fields.json import KT

from pipeline.core.errors import ErrorCode
from pipeline.core.states import WorkStatus
from pipeline.models.work_tables import WORK_TABLES

OUTAGE_FAILURES = 5
"""More failures than these with the same cause of the provider's look like an outage."""
OUTAGE_CAUSES = frozenset({ErrorCode.API_5XX, ErrorCode.API_TIMEOUT, ErrorCode.RATE_LIMIT})


class Assessment(StrEnum):
    """What the failures with one root cause look like."""

    LIKELY_OUTAGE = "LIKELY_OUTAGE"
    INDIVIDUAL_FAILURES = "INDIVIDUAL_FAILURES"


@dataclass(frozen=True, kw_only=True)
class CauseCount:
    """How many work items of a record failed with one root cause."""

    root_cause: str
    failed_count: int

    @property
    def assessment(self) -> Assessment:
        """Whether that many with that cause look like an outage."""
        return assess(self.root_cause, self.failed_count)


def assess(root_cause: str, failed_count: int) -> Assessment:
    """Judge so many failures with one root cause."""
    if failed_count > OUTAGE_FAILURES and root_cause in OUTAGE_CAUSES:
        return Assessment.LIKELY_OUTAGE
    return Assessment.INDIVIDUAL_FAILURES


def assess_record(shell_file_id: UUID) -> list[CauseCount]:
    """Return the root causes of a record's failed work items, the most frequent first."""
    found: Counter[str] = Counter()
    for table in WORK_TABLES.values():
        causes = (
            table.rows.filter(status=WorkStatus.FAILED, **{table.record: shell_file_id})
            .order_by()
            .values_list(KT("error_context__final_underlying_error"))
            .annotate(number=Count("id"))
        )
        for cause, number in causes:
            found[cause or ErrorCode.INTERNAL_ERROR] += number
    return [
        CauseCount(root_cause=cause, failed_count=number) for cause, number in found.most_common()
    ]
