"""The reasons for a review of Passes 1 and 2, as sentences for people."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.clinical import enrichment_flags
from pipeline.core.labels import flags_in_words
from pipeline.stages.pass1 import review_flags

_MEANINGS: dict[str, str] = {
    **{flag.value: words for flag, words in enrichment_flags.MEANINGS.items()},
    **{flag.value: words for flag, words in review_flags.MEANINGS.items()},
}


def in_words(stored: Iterable[str]) -> tuple[str, ...]:
    """Return the meanings of flags of both passes, one for each code."""
    return flags_in_words(stored, _MEANINGS)
