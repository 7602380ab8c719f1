"""What a text record also says, beside the entities that its generator wrote.

The generator marks the facts of its story. The sentences around the facts name further findings
(`no murmur`), drugs without a name (`the blood thinner`) and tests. `also.txt` lists these, read
by hand, for every sample but `long_72p`. An entity in neither list is a defect of the engine.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

_LIST = Path(__file__).parent / "also.txt"


class Also(NamedTuple):
    """One entity beside the story."""

    page: int
    category: str
    state: str
    """`present`, `denied`, `possible`, `hypothetical`, `past`, `family`; for a drug `stopped`, …"""
    quote: str
    """As printed, with one blank for each white space."""


def of(file: str) -> Counter[Also]:
    """Return the entities that `file` also names, each as often as its page names the entity."""
    found: Counter[Also] = Counter()
    for line in _LIST.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, page, category, state, quote = line.split(" | ")
            if name == file:
                found[Also(int(page), category, state, quote)] += 1
    return found
