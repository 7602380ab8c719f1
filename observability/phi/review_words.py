"""The words and shapes of a review: reasons, states of entities, and reasons of a rejection.

Each state is a word and a shape, because some people cannot see the colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.models import AlignmentKind, DecisionAction, Entity, ReviewReason, ReviewVerdict


@dataclass(frozen=True, kw_only=True)
class ReviewMark:
    """A state as a word and a shape."""

    shape: str
    word: str
    tone: str
    """A status class of the console, which gives the colour."""


REASONS: Mapping[ReviewReason, ReviewMark] = {
    ReviewReason.MISMATCH: ReviewMark(
        shape="■", word="another patient: pages held back", tone="failed"
    ),
    ReviewReason.FAILED: ReviewMark(shape="✕", word="the record failed", tone="failed"),
    ReviewReason.FLAGGED: ReviewMark(shape="▲", word="flagged", tone="waiting"),
    ReviewReason.COMPLETED: ReviewMark(shape="○", word="nothing flagged", tone="running"),
}
"""Why a record is reviewed."""

UNALIGNED = ReviewMark(shape="◇", word="no place on the page", tone="failed")
HELD = ReviewMark(shape="■", word="held: no result yet", tone="failed")
FLAGGED = ReviewMark(shape="▲", word="flagged", tone="waiting")
PLAIN = ReviewMark(shape="○", word="not flagged", tone="running")
OPINION = ReviewMark(shape="✓", word="your opinion is stored", tone="done")
VERDICTS: Mapping[ReviewVerdict, ReviewMark] = {
    ReviewVerdict.ACCEPTED: ReviewMark(shape="✓", word="accepted", tone="done"),
    ReviewVerdict.CORRECTED: ReviewMark(shape="✎", word="corrected", tone="done"),
    ReviewVerdict.REJECTED: ReviewMark(shape="✕", word="rejected", tone="dead"),
    ReviewVerdict.ADDED: ReviewMark(shape="+", word="added", tone="done"),
    ReviewVerdict.DISPUTED: ReviewMark(shape="≠", word="disputed", tone="failed"),
}

REJECTIONS: tuple[str, ...] = (
    "the page does not say this",
    "the words are read wrongly",
    "not about this patient",
    "no clinical fact: a heading, a form or an example",
    "a repetition of another entity",
    "another reason",
)
"""The reasons of a rejection, in the order of their digits 1 to 6."""

DONE: Mapping[str, str] = {
    DecisionAction.ACCEPT: "Accepted.",
    DecisionAction.CORRECT: "Corrected.",
    DecisionAction.REJECT: "Rejected.",
    DecisionAction.ADD: "Added.",
    DecisionAction.MOVE: "Moved to the other encounter.",
    "accept-all": "All unflagged entities are accepted.",
    "claim": "You hold this review now.",
    "give-back": "The review is given back.",
    "close": "The last review is closed. This is the next one.",
    "round": "Your part of the last review is done. This is the next one.",
    "skip": "The last review is given back. This is the next one.",
    "none": "Done. No other review is free for you now.",
    "reopen": "The review is open again.",
}
"""What an action has done, said after the action."""


def mark_of(entity: Entity, *, is_waiting: bool, is_flagged: bool, is_second: bool) -> ReviewMark:
    """Return the state of an entity in the present round of its review."""
    if not is_waiting:
        if is_second:
            return OPINION
        if entity.verdict:
            return VERDICTS[ReviewVerdict(entity.verdict)]
    if entity.verdict == ReviewVerdict.DISPUTED:
        return VERDICTS[ReviewVerdict.DISPUTED]
    if entity.alignment == AlignmentKind.UNALIGNED:
        return UNALIGNED
    if not entity.accepted and not entity.verdict:
        return HELD
    return FLAGGED if is_flagged else PLAIN
