"""The comparable forms of the flags of a laboratory.

This module is pure. The table says which flags mean the same; an unknown flag is compared as
printed.
"""

from __future__ import annotations

import re

_FLAGS: dict[str, tuple[str, ...]] = {
    # A laboratory prints the letter, the word or the arrow.
    "high": ("h", "hi", "↑", "▲", "elevated"),
    "low": ("l", "lo", "↓", "▼"),
    "critical high": ("hh", "ch", "ph", "↑↑", "▲▲", "critical hi"),
    "critical low": ("ll", "cl", "pl", "↓↓", "▼▼", "critical lo"),
    "abnormal": ("a", "abn", "aa"),
    "critical": ("c", "crit", "panic"),
    "normal": ("n",),
}
_FLAG = {other: flag for flag, others in _FLAGS.items() for other in others}
_FLAG_TOKEN = re.compile(
    r"(?<![\w/])(?:(?:critical|panic)[ ](?:high|low)|[a-z]+)(?![\w/])|[↑↓▲▼]+|[*!]+"
)


def flag_of(text: str) -> str:
    """Return the meaning of a flag."""
    low = " ".join(text.lower().strip(" ()[]").split())
    low = low.strip("*!") or low
    return _FLAG.get(low, low)


def flags(text: str) -> frozenset[str]:
    """Return the meanings of all words and marks of a text that may be flags."""
    return frozenset(flag_of(m.group()) for m in _FLAG_TOKEN.finditer(text.lower()))
