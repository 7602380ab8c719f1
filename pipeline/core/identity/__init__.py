"""Decide whether two sets of printed identifiers name the same patient.

A wrong match is the worst error. So the verdict is DISAGREE if two people are as likely as one.
Verdicts and reasons contain no PHI.
"""

from __future__ import annotations

from pipeline.core.identity.blocking import filed_under, sought_under
from pipeline.core.identity.comparison import (
    Agreement,
    ComparisonResult,
    compare,
    compare_digests,
    digests,
)
from pipeline.core.identity.parsing import Identity, Reading
from pipeline.core.identity.people import WeightedStatements, combine, distinct, dominant

__all__ = [
    "Agreement",
    "ComparisonResult",
    "Identity",
    "Reading",
    "WeightedStatements",
    "combine",
    "compare",
    "compare_digests",
    "digests",
    "distinct",
    "dominant",
    "filed_under",
    "sought_under",
]
