"""Cohen's kappa has the values that follow from observed agreement and agreement by chance."""

from __future__ import annotations

import pytest

from pipeline.operations.review.agreement import kappa


def table(*rows: tuple[int, ...]) -> list[tuple[str, str]]:
    """Return the pairs of a contingency table."""
    return [
        (str(first), str(second))
        for first, row in enumerate(rows)
        for second, count in enumerate(row)
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        # Fifty grants that two readers judge: observed 0.7, by chance 0.5.
        (((20, 5), (10, 15)), 0.4),
        # The same observed agreement of 0.6, and another distribution.
        (((45, 15), (25, 15)), 0.1304),
        (((25, 35), (5, 35)), 0.2593),
        # Three labels: observed 0.70, by chance 0.41.
        (((88, 10, 2), (14, 40, 6), (18, 10, 12)), 0.4915),
        (((10, 0), (0, 10)), 1.0),
        (((0, 10), (10, 0)), -1.0),
    ],
)
def test_kappa_is_the_agreement_beyond_chance(
    rows: tuple[tuple[int, ...], ...], value: float
) -> None:
    assert kappa(table(*rows)) == pytest.approx(value, abs=0.0005)


def test_kappa_is_not_defined_without_pairs_or_where_chance_explains_all() -> None:
    assert kappa([]) is None
    assert kappa([("accepted", "accepted")] * 5) is None
