"""The values of a drill-down: a tree of nodes, each with status, counts, time, tokens and cause.

Imports `words` and `errors` of the pipeline; holds no document text, no name and no file name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.labels import Word


class Kind(StrEnum):
    """What a node stands for; also the noun that people read."""

    RECORD = "record"
    PASS = "pass"  # noqa: S105 - a pass of the pipeline
    ENCOUNTER = "encounter"
    CHUNK = "chunk"
    BATCH = "batch"
    ZONE = "zone"
    CALL = "call"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why something failed, in words of ours."""

    code: str
    underlying: str | None = None
    """What lies under MAX_RETRIES_EXCEEDED."""
    message: str = ""

    @property
    def root(self) -> str:
        """The code that a person should act on."""
        return self.underlying or self.code

    @property
    def explained_by(self) -> ErrorCode | None:
        """The code whose row of the error table explains it; None for one that is not in there."""
        spent = self.code == ErrorCode.MAX_RETRIES_EXCEEDED
        try:
            return ErrorCode(self.root if spent else self.code)
        except ValueError:
            return None

    @property
    def advice(self) -> str:
        """What to do about it; empty where the message says it, or the code is of no taxonomy."""
        # A refusal of a file names the limit that it met and what to do.
        if self.message and self.code.startswith("INPUT_"):
            return ""
        return ERRORS[self.explained_by].advice if self.explained_by else ""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Time, tokens and money; None where not known or not applicable."""

    started_at: datetime | None = None
    took_ms: int | None = None
    waited_ms: int | None = None
    """Between being ready and being sent."""
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_usd: Decimal = Decimal(0)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One thing of a record's processing and what it consists of."""

    kind: Kind
    id: str
    title: str
    """`encounter 3 (pages 21–30)`."""
    status: Word
    counts: dict[str, int] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    cause: Cause | None = None
    notes: tuple[str, ...] = ()
    """What a person should look at though it is done."""
    absorbed: int = 0
    """Failed calls of its own after which it succeeded all the same."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What is particular to this kind: HTTP status, attempt, model version, ..."""
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, from the top."""
        yield self
        for child in self.children:
            yield from child.walk()

    def as_json(self) -> dict[str, Any]:
        """Return the node for JSON; `cause` carries its advice."""
        found = asdict(self) | {"children": [child.as_json() for child in self.children]}
        if self.cause is not None:
            found["cause"] |= {"root": self.cause.root, "advice": self.cause.advice}
        return found


@dataclass(frozen=True, kw_only=True)
class DrillDown:
    """The answer to "why did this one fail, and what is lost?", with its evidence."""

    asked: str
    """The id that was asked about, in full."""
    asked_kind: str
    focus: str
    """The id of the node that it stands for."""
    answer: str
    """One line about the focus, with the advice."""
    record_answer: str
    """The same about the whole record."""
    root: Node
    taken_at: datetime

    def path(self) -> tuple[Node, ...]:
        """Return the nodes from the record down to the focus."""
        return _path(self.root, self.focus) or (self.root,)

    def as_json(self) -> dict[str, Any]:
        """Return the whole for JSON."""
        return {
            "asked": self.asked,
            "asked_kind": self.asked_kind,
            "focus": self.focus,
            "answer": self.answer,
            "record_answer": self.record_answer,
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
