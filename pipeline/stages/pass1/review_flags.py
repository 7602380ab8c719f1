"""The reasons why a person must check an entity: one table for code, console and documentation.

A flag is `code` or `code:attribute`. A flag that prevents acceptance keeps the entity out of every
count and every export of results; the entity stays visible with its quote.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from pipeline.core.labels import flags_in_words


class Flag(StrEnum):
    """The codes of review flags."""

    UNALIGNED = "unaligned"
    ROW_NOT_UNDERSTOOD = "row_not_understood"
    NOT_IN_QUOTE = "not_in_quote"
    DISPUTED = "disputed"
    IMPLAUSIBLE = "implausible_value"
    UNUSUAL_SIZE = "unusual_size"
    DATE_ORDER_CONTRADICTS = "date_order_contradicts"
    DATE_ORDER_UNKNOWN = "date_order_unknown"
    DECIMAL_SIGN_CONTRADICTS = "decimal_sign_contradicts"
    READ_ONCE = "read_once"
    AMBIGUOUS_PLACE = "ambiguous_place"
    RELOCATED = "relocated"
    HIDDEN_TEXT = "hidden_text"
    ADDRESSES_A_MODEL = "addresses_a_model"
    LOW_OCR_CONFIDENCE = "low_ocr_confidence"
    REVIEWED_PLACE = "reviewed_place"


class FlagRow(NamedTuple):
    """What a flag means, and whether an entity with this flag is not accepted."""

    flag: Flag
    meaning: str
    prevents: bool
    reason: str
    """Why the flag does or does not prevent acceptance."""


TABLE: tuple[FlagRow, ...] = (
    FlagRow(
        Flag.UNALIGNED,
        "The quote is on no page of its batch.",
        prevents=True,
        reason="Nothing visible supports the entity: hidden text is no text of a page.",
    ),
    FlagRow(
        Flag.ROW_NOT_UNDERSTOOD,
        "A part of the row was not understood, so no value is given.",
        prevents=True,
        reason="The unexplained part may belong to the value.",
    ),
    FlagRow(
        Flag.NOT_IN_QUOTE,
        "The quote and its row do not show this attribute.",
        prevents=True,
        reason="An attribute that the page does not show is invented, altered or of another row.",
    ),
    FlagRow(
        Flag.DISPUTED,
        "The local engine reads this attribute differently.",
        prevents=True,
        reason="One of two readings is wrong about the patient.",
    ),
    FlagRow(
        Flag.IMPLAUSIBLE,
        "No living person has this value in this unit.",
        prevents=True,
        reason="The number or the unit is misread.",
    ),
    FlagRow(
        Flag.UNUSUAL_SIZE,
        "The value is far above its printed reference range, or usual only in another unit.",
        prevents=False,
        reason="Severe disease reaches such values, and a row may leave out its unit.",
    ),
    FlagRow(
        Flag.DATE_ORDER_CONTRADICTS,
        "The date contradicts the order of day and month in the dates of its source.",
        prevents=False,
        reason="Only the date of the fact is in doubt.",
    ),
    FlagRow(
        Flag.DATE_ORDER_UNKNOWN,
        "The source does not show whether the day or the month of the date comes first.",
        prevents=False,
        reason="Only the date of the fact is in doubt.",
    ),
    FlagRow(
        Flag.DECIMAL_SIGN_CONTRADICTS,
        "The source prints both decimal signs, and this number can be read with either.",
        prevents=True,
        reason="One reading is a thousand times the other.",
    ),
    FlagRow(
        Flag.READ_ONCE,
        "The local engine did not understand the row that the reply reads.",
        prevents=False,
        reason="The numbers are printed beside the name, but only one reader explains them.",
    ),
    FlagRow(
        Flag.AMBIGUOUS_PLACE,
        "The quote occurs in several places, and its neighbours do not decide between them.",
        prevents=False,
        reason="Every place shows the words; the other checks compare what the place says.",
    ),
    FlagRow(
        Flag.RELOCATED,
        "The quote is on another page than the reply said.",
        prevents=False,
        reason="The words are on a page of the same batch.",
    ),
    FlagRow(
        Flag.HIDDEN_TEXT,
        "The page has hidden words between or below the words of this entity.",
        prevents=True,
        reason="The page was changed here, and the hidden words may be the true ones.",
    ),
    FlagRow(
        Flag.ADDRESSES_A_MODEL,
        "The paragraph of this entity addresses a language model.",
        prevents=True,
        reason="These words were written to a machine, not for the care of the patient.",
    ),
    FlagRow(
        Flag.LOW_OCR_CONFIDENCE,
        "A number of the quote was read by OCR with low confidence.",
        prevents=False,
        reason="OCR doubts many numbers that are right.",
    ),
    FlagRow(
        Flag.REVIEWED_PLACE,
        "A person decided about an entity of the same kind at this place.",
        prevents=True,
        reason="A later reading may contradict the person, so a person compares both.",
    ),
)
"""Every flag, in the order in which the documentation lists them."""

CONTEXT_ONLY = frozenset({"reference_range", "abnormal_flag"})
"""Disputed attributes that leave the fact itself undisputed: they never prevent acceptance."""

MEANINGS: dict[Flag, str] = {row.flag: row.meaning for row in TABLE}
"""The meaning of each flag for a person."""

_ROWS = {row.flag: row for row in TABLE}


def flagged(flag: Flag, attribute: str = "") -> str:
    """Return a flag as it is stored: `code` or `code:attribute`."""
    return f"{flag.value}:{attribute}" if attribute else flag.value


def prevents_acceptance(stored: str) -> bool:
    """Return whether an entity with this flag is not accepted; an unknown flag prevents."""
    code, _, attribute = stored.partition(":")
    if code not in set(Flag):
        return True
    flag = Flag(code)
    if flag is Flag.DISPUTED and attribute in CONTEXT_ONLY:
        return False
    return _ROWS[flag].prevents


def in_words(stored: Iterable[str]) -> tuple[str, ...]:
    """Return the meanings of an entity's flags for a person, each with the attributes it names."""
    return flags_in_words(stored, MEANINGS)
