"""Generated clinical texts with their meaning. The grammar shares no code with the local engine.

A case is one short text and the expectations that a reader of the text has. The seed of a case
makes the same case again on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

Fields = Mapping[str, str | bool]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """One fact that the text states, or that the text does not state."""

    category: str
    name: str
    """Pattern that the lower-case form of the published name contains."""
    fields: Fields = field(default_factory=dict)
    """Attributes as printed, for example {"value": "7.2", "unit": "mmol/L"}. An empty text means
    that the text states no value."""
    is_current: bool = True
    """False where no current, unflagged entity of the patient may have these attributes."""


@dataclass(frozen=True, kw_only=True)
class GeneratedCase:
    """One text, with all facts that it states about the generated names."""

    kind: str
    seed: int
    heading: str
    text: str
    expected: tuple[Expected, ...]


Made = tuple[str, str, tuple[Expected, ...]]
"""Heading, text and expectations."""
Maker = Callable[[random.Random], Made]


def cases(kind: str, maker: Maker, seeds: range) -> Iterator[GeneratedCase]:
    """Yield one case per seed."""
    for seed in seeds:
        heading, text, expected = maker(random.Random(f"{kind}-{seed}"))
        yield GeneratedCase(kind=kind, seed=seed, heading=heading, text=text, expected=expected)
