"""Why an enriched entity needs a reviewer, in addition to the flags of Pass 1.

A flag is a code, or `code:attribute`. A value that does not fit is flagged and kept, except a
value that no evidence supports: that value is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pipeline.core.labels import flags_in_words


class EnrichmentFlag(StrEnum):
    """The reasons; docs/integrating.md explains each."""

    NOT_GROUNDED = "not_grounded"
    """The attribute does not occur in the entity's evidence; its value is left out."""
    DISPUTED = "disputed"
    """The local engine reads another value."""
    CODE_REFUSED = "code_refused"
    """The reply chose a code that the shortlist does not offer."""
    CODE_UNCERTAIN = "code_uncertain"
    """The shortlist offers several codes that fit equally well; no code is chosen."""
    UNIT_UNKNOWN = "unit_unknown"
    """The printed unit has no UCUM code in the tables."""
    NUMBER_NOT_UNDERSTOOD = "number_not_understood"
    """The printed value is not a number, a comparator with a number, or a known word."""
    RANGE_NOT_UNDERSTOOD = "range_not_understood"
    FLAG_DIFFERS = "flag_differs"
    """The printed flag contradicts the flag that value and range yield."""
    DOSE_NOT_UNDERSTOOD = "dose_not_understood"
    TIMING_NOT_UNDERSTOOD = "timing_not_understood"
    DATE_NOT_UNDERSTOOD = "date_not_understood"
    STATUS_CONTRADICTS = "status_contradicts"
    """The statuses of one entity contradict each other."""
    NOT_ENRICHED = "not_enriched"
    """The reply says nothing about the entity; its attributes come from Pass 1 alone."""
    REVIEWED = "reviewed"
    """A person corrected the printed field before Pass 2 ran, so what the page says is left out."""


def flagged(flag: EnrichmentFlag, attribute: str = "") -> str:
    """Return `code` or `code:attribute`."""
    return f"{flag.value}:{attribute}" if attribute else flag.value


MEANINGS: dict[EnrichmentFlag, str] = {
    EnrichmentFlag.NOT_GROUNDED: "The page does not state this attribute, so its value is left"
    " out.",
    EnrichmentFlag.DISPUTED: "The local engine reads this attribute differently.",
    EnrichmentFlag.CODE_REFUSED: "The reply chose a code outside the shortlist, so no code is set.",
    EnrichmentFlag.CODE_UNCERTAIN: "The page does not decide between the codes of the shortlist,"
    " so no code is set.",
    EnrichmentFlag.UNIT_UNKNOWN: "The printed unit is in no table of units.",
    EnrichmentFlag.NUMBER_NOT_UNDERSTOOD: "The printed value is not understood as a number.",
    EnrichmentFlag.RANGE_NOT_UNDERSTOOD: "The printed reference range is not understood.",
    EnrichmentFlag.FLAG_DIFFERS: "The printed flag contradicts the value and its reference range.",
    EnrichmentFlag.DOSE_NOT_UNDERSTOOD: "The printed amount is not understood.",
    EnrichmentFlag.TIMING_NOT_UNDERSTOOD: "The printed frequency is not understood.",
    EnrichmentFlag.DATE_NOT_UNDERSTOOD: "The printed date is not understood.",
    EnrichmentFlag.STATUS_CONTRADICTS: "The page states statuses that contradict each other.",
    EnrichmentFlag.NOT_ENRICHED: "The reply says nothing about the entity; its attributes come from"
    " Pass 1 alone.",
    EnrichmentFlag.REVIEWED: "A person corrected this field before Pass 2, so what Pass 2 read is"
    " left out.",
}
"""The meaning of each flag for a person, in the order of the documentation."""


def in_words(stored: Iterable[str]) -> tuple[str, ...]:
    """Return the meanings of an entity's flags, each with the attributes that the flag names."""
    return flags_in_words(stored, MEANINGS)
