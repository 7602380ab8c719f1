"""Whether two sets of printed identifiers name the same patient.

Imports nothing of the project. Never wrong about a patient comes first: where two people are as
likely as one, the verdict is DISAGREE. Verdicts and reasons hold no PHI.
"""

from __future__ import annotations

from pipeline.core.identity.blocking import filed_under, sought_under
from pipeline.core.identity.comparison import Agreement, Verdict, compare, compare_digests, digests
from pipeline.core.identity.parsing import Identity, Reading
from pipeline.core.identity.people import Tally, combine, distinct, dominant

__all__ = [
    "Agreement",
    "Identity",
    "Reading",
    "Tally",
    "Verdict",
    "combine",
    "compare",
    "compare_digests",
    "digests",
    "distinct",
    "dominant",
    "filed_under",
    "sought_under",
]
