"""Decide whether two printed names belong to one facility."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

ALIKE = 0.88
"""Ratio of equal characters from which two names are the same; a scanner garbles one letter in
ten."""
SHORTEST_PREFIX = 8
"""The least letters of a short name that counts as the beginning of a longer name (a
department)."""


def same_facility(a: str, b: str) -> bool:
    """Return whether two names belong to one facility, despite scanner errors."""
    one, other = _plain(a), _plain(b)
    if not one or not other:
        return False
    if one == other or SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= SHORTEST_PREFIX and long.startswith(short + " ")


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.casefold()))
