"""One clause of a text: its parts, its names, and the parts that belong to no name."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.clinical.narrative.items import PartKind, SentencePart
from pipeline.clinical.narrative.known import CitedEntity
from pipeline.clinical.narrative.told import ToldStatement

SCOPED = {
    "negation": "negation", "possible": "certainty", "hypothetical": "certainty",
    "confirmed": "certainty", "history": "time", "planned": "time", "current": "time",
    "family": "person", "other": "person", "patient": "person", "allergy": "allergy",
    "stopped": "status", "on_hold": "status", "started": "status", "not_started": "status",
    "changed": "status", "in_error": "status", "active": "status",
}  # fmt: skip
"""The dimension of each cue whose scope is several names."""
FLAGS = {"high", "low", "normal", "abnormal", "critical"}
"""The cues that interpret a result."""
NEAREST = FLAGS | {"left", "right", "bilateral", "mild", "moderate", "severe"}
"""The cues that act on the nearest name only."""


class NarrativeClause:
    """One clause: one subject and one predicate, or a list."""

    def __init__(
        self,
        items: Sequence[SentencePart],
        cited: Sequence[CitedEntity],
        *,
        inherited: list[tuple[str, SentencePart]],
        earlier: Sequence[list[ToldStatement]],
    ) -> None:
        self.items = items
        self.cited = cited
        self.inherited = inherited
        """The person of the clause before, for names without a person."""
        self.earlier = earlier
        """The names of each clause before that has names."""
        self.before = earlier[-1][-1] if earlier else None
        """The last name of the clauses before."""
        self.told = [
            ToldStatement(name=item, at=at)
            for at, item in enumerate(items)
            if item.kind is PartKind.NAME
        ]
        self.strays: list[SentencePart] = []
        self.last_post: dict[str, int] = {}
        """Per dimension, the index of the last cue or date that acts on names before that index."""

    def told_at(self, index: int) -> ToldStatement:
        """Return the statement about the name at an index."""
        return next(told for told in self.told if told.at == index)

    def group(self, last: ToldStatement) -> list[ToldStatement]:
        """Return a name with the names before it that only separators part from it."""
        names = [last]
        for index in range(last.at - 1, -1, -1):
            item = self.items[index]
            if item.kind is PartKind.NAME:
                names.append(self.told_at(index))
            elif item.kind not in (PartKind.BREAK, PartKind.FUNCTION):
                break
        return names
