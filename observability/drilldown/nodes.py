"""The tree of a drill-down: nodes with status, counts, time, tokens and cause.

No node contains document text, a name or a file name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.labels import StatusWord


class NodeKind(StrEnum):
    """The object of a node; the value is the noun that people read.

    A work item has the noun of its pass instead (`work_tables`).
    """

    RECORD = "record"
    PASS = "pass"  # noqa: S105 - a pass of the pipeline
    ENCOUNTER = "encounter"
    CALL = "call"


@dataclass(frozen=True, kw_only=True)
class FailureCause:
    """The reason of a failure, in fixed words without PHI."""

    code: str
    underlying: str | None = None
    """The code behind MAX_RETRIES_EXCEEDED."""
    message: str = ""

    @property
    def root(self) -> str:
        """The code that a person must act on."""
        return self.underlying or self.code

    @property
    def explained_by(self) -> ErrorCode | None:
        """The code whose row of the error table has the explanation; None if no row has it."""
        spent = self.code == ErrorCode.MAX_RETRIES_EXCEEDED
        try:
            return ErrorCode(self.root if spent else self.code)
        except ValueError:
            return None

    @property
    def advice(self) -> str:
        """The action to take; empty if the message contains it, or if the code is unknown."""
        # The refusal of a file names the limit and the action in its message.
        if self.message and self.code.startswith("INPUT_"):
            return ""
        return ERRORS[self.explained_by].advice if self.explained_by else ""

    def as_json(self) -> dict[str, str | None]:
        """Return the cause for JSON, with its advice."""
        return asdict(self) | {"root": self.root, "advice": self.advice}


class Spent(NamedTuple):
    """Time, tokens and money; None if unknown or not applicable.

    A tuple, because a record can have thousands of them.
    """

    started_at: datetime | None = None
    took_ms: int | None = None
    waited_ms: int | None = None
    """Time between being ready and being sent."""
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_usd: Decimal = Decimal(0)


_NO_FACTS: Mapping[str, Any] = MappingProxyType({})
NOTHING_SPENT = Spent()


class Node(NamedTuple):
    """One object in the processing of a record, with its parts.

    A tuple, because a record can have thousands of them.
    """

    kind: NodeKind | str
    id: str
    title: str
    """Such as `encounter 3 (pages 21–30)`."""
    status: StatusWord
    counts: Mapping[str, int] = _NO_FACTS
    spent: Spent = NOTHING_SPENT
    cause: FailureCause | None = None
    notes: tuple[str, ...] = ()
    """Facts that a person must check although the node is done."""
    absorbed: int = 0
    """Failed calls of the node itself, which succeeded in the end."""
    facts: Mapping[str, Any] = _NO_FACTS
    """Facts that only this kind has: HTTP status, attempt, model version, ..."""
    children: tuple[Node, ...] = ()

    @property
    def is_work_item(self) -> bool:
        """Whether the node is a batch, a chunk or another work item."""
        return not isinstance(self.kind, NodeKind)

    def walk(self) -> Iterator[Node]:
        """Yield this node and all nodes below it, from the top."""
        # A generator for each level would pass each node on once for each level above.
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += node.children[::-1]

    def as_json(self) -> dict[str, Any]:
        """Return the node for JSON; `cause` carries its advice."""
        facts = dict(self.facts)
        if "reused" in facts:
            facts["reused"] = [each.as_json() for each in facts["reused"]]
        return self._asdict() | {
            "counts": dict(self.counts),
            "spent": self.spent._asdict(),
            "cause": self.cause.as_json() if self.cause else None,
            "facts": facts,
            "children": [child.as_json() for child in self.children],
        }


@dataclass(frozen=True, kw_only=True)
class DrillDown:
    """The answer to "why did this fail, and what is lost?", with its evidence."""

    asked: str
    """The full id in question."""
    asked_kind: str
    focus: str
    """The id of the node that shows the object in question."""
    answer: str
    """One line about the focus, with the advice."""
    record_answer: str
    """One line about the whole record."""
    root: Node
    taken_at: datetime

    @property
    def incomplete_note(self) -> str:
        """The sentence about a record of which some encounters are missing; else empty."""
        return str(self.root.facts.get("incomplete_note", ""))

    @property
    def reused(self) -> Sequence[Any]:
        """The records whose results this record reused (`reuse.ReusedFrom`)."""
        found: Sequence[Any] = self.root.facts.get("reused", ())
        return found

    def path(self) -> tuple[Node, ...]:
        """Return the nodes from the record down to the focus."""
        return _path(self.root, self.focus) or (self.root,)

    def as_json(self) -> dict[str, Any]:
        """Return the drill-down for JSON."""
        return {
            "asked": self.asked,
            "asked_kind": self.asked_kind,
            "focus": self.focus,
            "answer": self.answer,
            "record_answer": self.record_answer,
            "incomplete_note": self.incomplete_note,
            "reused": [each.as_json() for each in self.reused],
            "taken_at": self.taken_at,
            "tree": self.root.as_json(),
        }


def _path(node: Node, focus: str) -> tuple[Node, ...]:
    if node.id == focus:
        return (node,)
    for child in node.children:
        if below := _path(child, focus):
            return (node, *below)
    return ()
