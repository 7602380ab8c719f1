"""Why a sentence of a narrative is not supported, as `code:word`."""

from __future__ import annotations

from enum import StrEnum


class UnsupportedReason(StrEnum):
    """The codes of the reasons."""

    NUMBER = "number"
    """No cited entity has the number in this place."""
    UNIT = "unit"
    """The number has another unit, or a dose has none."""
    DATE = "date"
    """The cited entity does not have the date."""
    NAME = "name"
    """A cited entity is not named, or a name is not that of a cited entity."""
    NEGATION = "negation"
    """The sentence denies what the entity states, or states what the entity denies."""
    PERSON = "person"
    """The sentence is about another person than the entity."""
    CERTAINTY = "certainty"
    TEMPORALITY = "temporality"
    STATUS = "status"
    """The sentence says that a medication is taken, stopped or planned, and the entity does not."""
    FLAG = "flag"
    """The sentence interprets a result, and the entity does not."""
    WORD = "word"
    """A word that no cited entity contains and that is no function word."""
    NOT_CITED = "not_cited"
    """The sentence cites no entity."""
    NOT_ACCEPTED = "not_accepted"
    """A cited entity waits for a reviewer."""
    UNKNOWN_KEY = "unknown_key"
    """The sentence cites a key that the prompt does not contain. The caller reports this reason."""
    LENGTH = "length"
    """The text has more words than the limit."""


def reason(code: UnsupportedReason, word: object = "") -> str:
    """Return `code:word`, or `code` without a word."""
    text = str(word).strip()
    return f"{code.value}:{text[:80]}" if text else code.value
