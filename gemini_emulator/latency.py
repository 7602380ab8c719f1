"""The latency of an emulated call.

Random draws are seeded by the content, never by the order of arrival. So a run with other workers
or limits has the same latencies.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_FORM = re.compile(
    r"^(?:lognormal:(?P<median>[\d.]+),(?P<sigma>[\d.]+)|(?P<fixed>[\d.]+))(?P<unit>/call|/page)?"
    r"(?:\+stall:(?P<stalled>[\d.]+),(?P<stall>[\d.]+))?$"
)


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Seconds of a call: fixed, or lognormal around a median; per own page or per call.

    A share of the calls stalls for longer, independent of their pages.
    """

    median_s: float = 0.0
    sigma: float = 0.0
    per_page: bool = True
    stalled: float = 0.0
    """Share of the calls that stall, from 0 to 1."""
    stall_s: float = 0.0
    """Median seconds of a stall, added to the other latency."""
    by_place: Mapping[str, float] = field(default_factory=dict)
    """Seconds of particular items, instead of the computed latency. Keys, most specific first:
    `entities 3:120` (kind, page and offset of the first own slice), `3:120`, `entities 3`, `3`,
    `#5` (the fifth item in order of first call)."""

    def of(self, *, kind: str, page: int, start: int, item: int, pages: int, seed: str) -> float:
        """Return the seconds of one call."""
        for key in (f"{kind} {page}:{start}", f"{page}:{start}", f"{kind} {page}", f"{page}"):
            if key in self.by_place:
                return self.by_place[key]
        if f"#{item}" in self.by_place:
            return self.by_place[f"#{item}"]
        luck = random.Random(seed)
        drawn = self.median_s * self._spread(luck) * (max(1, pages) if self.per_page else 1)
        if self.stalled and luck.random() < self.stalled:
            drawn += self.stall_s * self._spread(luck)
        return drawn

    def scaled(self, factor: float) -> Latency:
        """Return the same latency with all its seconds times `factor`."""
        return replace(
            self,
            median_s=self.median_s * factor,
            stall_s=self.stall_s * factor,
            by_place={place: seconds * factor for place, seconds in self.by_place.items()},
        )

    def _spread(self, luck: random.Random) -> float:
        return math.exp(self.sigma * luck.gauss(0.0, 1.0)) if self.sigma else 1.0


def read_latency(text: str, by_place: Mapping[str, float] | None = None) -> Latency:
    """Parse `0.2`, `2/call` or `lognormal:0.2,0.5/page`: seconds, per own page by default.

    With the suffix `+stall:0.01,45` one call in a hundred stalls for about 45 s. Raises ValueError
    for any other form.
    """
    found = _FORM.match(text)
    if found is None:
        raise ValueError(
            f"not a latency: {text!r}; write 0.2, 2/call or lognormal:0.2,0.5; append"
            " +stall:0.01,45 if some calls stall"
        )
    return Latency(
        median_s=float(found["median"] or found["fixed"]),
        sigma=float(found["sigma"] or 0.0),
        per_page=found["unit"] != "/call",
        stalled=float(found["stalled"] or 0.0),
        stall_s=float(found["stall"] or 0.0),
        by_place=by_place or {},
    )
