"""How long the emulated service takes for a call.

Imports nothing of the project. Draws are seeded by what is asked, never by the order of arrival,
so that a run with other workers or limits meets the same latencies.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_FORM = re.compile(
    r"^(?:lognormal:(?P<median>[\d.]+),(?P<sigma>[\d.]+)|(?P<fixed>[\d.]+))(?P<unit>/call|/page)?$"
)


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Seconds of a call: fixed, or lognormal around a median; for each own page, or for a call."""

    median_s: float = 0.0
    sigma: float = 0.0
    per_page: bool = True
    by_place: Mapping[str, float] = field(default_factory=dict)
    """Seconds of particular items, which replace the rest. Keys, most particular first:
    `entities 3:120` (kind, page and offset of the first own slice), `3:120`, `entities 3`, `3`,
    `#5` (the fifth item that was asked for)."""

    def of(self, *, kind: str, page: int, start: int, item: int, pages: int, seed: str) -> float:
        """Return the seconds of one call."""
        for key in (f"{kind} {page}:{start}", f"{page}:{start}", f"{kind} {page}", f"{page}"):
            if key in self.by_place:
                return self.by_place[key]
        if f"#{item}" in self.by_place:
            return self.by_place[f"#{item}"]
        drawn = self.median_s
        if self.sigma:
            drawn *= math.exp(self.sigma * random.Random(seed).gauss(0.0, 1.0))
        return drawn * (max(1, pages) if self.per_page else 1)


def read_latency(text: str, by_place: Mapping[str, float] | None = None) -> Latency:
    """Read `0.2`, `2/call` or `lognormal:0.2,0.5/page`; seconds, each own page by default.

    Raises ValueError for any other form.
    """
    found = _FORM.match(text)
    if found is None:
        raise ValueError(f"not a latency: {text!r}; write 0.2, 2/call or lognormal:0.2,0.5")
    return Latency(
        median_s=float(found["median"] or found["fixed"]),
        sigma=float(found["sigma"] or 0.0),
        per_page=found["unit"] != "/call",
        by_place=by_place or {},
    )
