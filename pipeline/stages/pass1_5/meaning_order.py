"""Pass 1.5 with an embedder: the shortlists of a group, ordered by words and by meaning.

Without vectors a shortlist keeps the order of the words, and the record gets a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.clinical.facts import Candidate
from pipeline.codes.search import meaning
from pipeline.codes.search.search import Asked
from pipeline.core.deadline import StepDeadline
from pipeline.execution.embedding_calls import EmbeddingCalls
from pipeline.execution.heartbeat import Heartbeat
from pipeline.execution.step_result import StepInterrupted
from pipeline.providers.factory import embedding_provider
from pipeline.transitions import Lease

Shortlists = Mapping[Asked, Sequence[Candidate]]
_WARNING = "Candidate codes of some entities are ordered by words alone, because {reason}."


@dataclass(frozen=True)
class Ordered:
    """The shortlists of a group in their final order."""

    shortlists: Shortlists
    warning: str = ""
    """Why some are ordered by words alone, in words without PHI; empty if none is."""


class MeaningOrder:
    """Orders the shortlists of one step; without an embedder the order stays as it is."""

    def __init__(self, lease: Lease, deadline: StepDeadline, heartbeat: Heartbeat) -> None:
        self._calls: EmbeddingCalls | None = None
        if provider := embedding_provider():
            self._calls = EmbeddingCalls(lease, provider, deadline, heartbeat)

    def of(self, found: Shortlists) -> Ordered | StepInterrupted:
        """Return the shortlists in order, or why the step must stop. Raises LeaseLostError."""
        if self._calls is None:
            return Ordered(found)
        needed = {asked: meaning.texts_of(asked.text, each) for asked, each in found.items()}
        answer = self._calls.vectors({text for texts in needed.values() for text in texts})
        if isinstance(answer, StepInterrupted):
            return answer
        ordered = {
            asked: meaning.ordered(asked.text, candidates, answer.found)
            if needed[asked] <= answer.found.keys()
            else candidates
            for asked, candidates in found.items()
        }
        return Ordered(ordered, _WARNING.format(reason=answer.reason) if answer.reason else "")
