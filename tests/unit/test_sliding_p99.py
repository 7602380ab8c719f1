"""The p99 of the latest values is that of the sorted values."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ratelimit.sliding_p99 import SlidingP99


@given(st.lists(st.floats(0, 10), min_size=1, max_size=300), st.sampled_from([1, 2, 3, 100, 150]))
def test_it_is_the_p99_of_the_latest_values(values: list[float], size: int) -> None:
    sliding = SlidingP99(size)

    found = [sliding.add(value) for value in values]

    for at, p99 in enumerate(found, start=1):
        latest = sorted(values[max(at - size, 0) : at])
        assert p99 == latest[math.ceil(0.99 * len(latest)) - 1]
