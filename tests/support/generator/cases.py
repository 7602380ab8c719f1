"""Generated clinical texts with their meaning. The grammar shares no code with the local engine.

A case is one short text and the expectations that a reader of the text has. The seed of a case
makes the same case again on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Said = str | bool | tuple[str, ...]
"""A value as printed, an assertion, or several texts each of which is right."""
Fields = Mapping[str, Said]


class FactKind(StrEnum):
    """How the text means a fact."""

    CURRENT = "current"
    """The text states the attributes for the patient, now."""
    ANY_TIME = "any time"
    """A current or an earlier value: both readings are fair."""
    ASIDE = "aside"
    """The text names the entity, but not as a current fact; the attributes say why."""
    ABSENT = "absent"
    """No current, unflagged entity of the patient may have these attributes."""
    FREE = "free"
    """A reader may publish the entity or not, such as a birth weight under this name."""
    NO_VALUE = "no value"
    """The text names the test without a result; printed words such as `pending` are fair."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """One fact that the text states, or that the text does not state."""

    category: str
    name: str
    """Pattern that the lower-case form of the published name contains."""
    fields: Fields = field(default_factory=dict)
    """Attributes as printed, for example {"value": "7.2", "unit": "mmol/L"}. An empty text means
    that the text states no value."""
    kind: FactKind = FactKind.CURRENT

    @property
    def is_current(self) -> bool:
        """Whether an entity with these attributes may be published."""
        return self.kind in (FactKind.CURRENT, FactKind.ANY_TIME)


@dataclass(frozen=True, kw_only=True)
class GeneratedCase:
    """One text, with all facts that it states about the generated names."""

    kind: str
    seed: int
    heading: str
    text: str
    """The page text: blocks that are printed side by side follow each other."""
    blocks: tuple[str, ...] = ()
    """The blocks that a page prints side by side."""
    expected: tuple[Expected, ...]


BESIDE = "\v"
"""Separates blocks that are printed side by side in the text of a maker."""
Made = tuple[str, str, tuple[Expected, ...]]
"""Heading, text and expectations."""
Maker = Callable[[random.Random], Made]


def cases(kind: str, maker: Maker, seeds: range) -> Iterator[GeneratedCase]:
    """Yield one case per seed."""
    for seed in seeds:
        heading, text, expected = maker(random.Random(f"{kind}-{seed}"))
        blocks = tuple(text.split(BESIDE))
        yield GeneratedCase(
            kind=kind,
            seed=seed,
            heading=heading,
            text="\n\n".join(blocks),
            blocks=blocks,
            expected=expected,
        )
