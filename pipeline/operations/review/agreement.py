"""How far two reviewers agree: Cohen's kappa for each category.

Kappa = (p_o − p_e) ÷ (1 − p_e) of Cohen (1960), with the observed agreement p_o and the agreement
by chance p_e. Ten lines of own code: the libraries with this function (scikit-learn, statsmodels)
bring numpy and scipy, 100 MB for one formula. The tests hold reference values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

# The opinion of the second reviewer beside the verdict that the first reviewer left. The newest
# opinion of a review counts.
_PAIRS = """
SELECT DISTINCT ON (review_item_id, entity_id) category, old_value #>> '{}', new_value #>> '{}'
FROM review_decisions
WHERE field = 'opinion' AND created_at >= %s
ORDER BY review_item_id, entity_id, created_at DESC
"""


@dataclass(frozen=True, kw_only=True)
class ReviewAgreement:
    """The agreement of two reviewers about the entities of one category."""

    category: str
    entities: int
    agreed: int
    kappa: float | None
    """None if both reviewers gave one and the same verdict throughout: chance explains all."""


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of two raters, −1 to 1; None if it is not defined."""
    total = len(pairs)
    if not total:
        return None
    first, second = (Counter(pair[rater] for pair in pairs) for rater in (0, 1))
    observed = sum(one == other for one, other in pairs) / total
    by_chance = sum(first[label] * second[label] for label in first) / total**2
    if by_chance == 1:
        return None
    return (observed - by_chance) / (1 - by_chance)


def agreement(since: datetime) -> list[ReviewAgreement]:
    """Return the agreement of double reviews for each category since a time."""
    by_category: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_PAIRS, [since])
        for category, first, second in cursor.fetchall():
            by_category[category].append((first, second))
    return [
        ReviewAgreement(
            category=category,
            entities=len(pairs),
            agreed=sum(one == other for one, other in pairs),
            kappa=kappa(pairs),
        )
        for category, pairs in sorted(by_category.items())
    ]
