"""Why an enriched entity needs a reviewer, in addition to the flags of Pass 1.

A flag is a code, or `code:attribute`. A value that does not fit is flagged and kept, except a
value that no evidence supports: that value is left out.
"""

from __future__ import annotations

from enum import StrEnum


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


def flagged(flag: EnrichmentFlag, attribute: str = "") -> str:
    """Return `code` or `code:attribute`."""
    return f"{flag.value}:{attribute}" if attribute else flag.value
