"""The entities that rules hand to the engine: spans of the document's text with attributes.

Offsets count in the document's text, not yet on a page.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.providers.schemas import Category, ZoneType


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One entity before it is placed on its page."""

    category: Category
    start: int
    end: int
    """The end of the last part of a structured row."""
    head_end: int
    """The end of the entity's own words. Assertions are judged around `start..head_end`."""
    name: str
    rule: str
    strength: float
    value: str | None = None
    unit: str | None = None
    reference_range: str | None = None
    abnormal_flag: str | None = None
    dose: str | None = None
    route: str | None = None
    frequency: str | None = None
    date: str | None = None
    reaction: str | None = None
    negated: bool | None = None
    historical: bool | None = None
    hypothetical: bool | None = None
    family: bool | None = None
    zone: ZoneType | None = None


def own_words(text: str) -> str:
    """Return words as printed, with one blank in place of each line break."""
    return " ".join(text.split())
