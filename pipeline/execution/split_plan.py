"""The pieces that a step asks for: rows, and the parts of rows whose pages were halved.

Imports `parts`, `selectors` and the reading of replies. A row is done when each of its pieces is;
the replies of pieces that succeeded in an earlier run are read again from `provider_payloads`, so
that none of them is asked for twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from pydantic import BaseModel

from pipeline import selectors
from pipeline.core.errors import ERRORS, Budget, ErrorCode, PipelineError
from pipeline.execution.splits import Key, Piece, token_of
from pipeline.providers.reply_parsing import stored_output

logger = logging.getLogger(__name__)

SPLIT_CODES = frozenset(code for code, facts in ERRORS.items() if facts.budget is Budget.SPLIT)


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A reply that fits: what is stored on the row until it is published, and its counts."""

    output: dict[str, Any] = field(repr=False)
    counts: dict[str, int]
    """Columns of the row, as `entities_detected`."""


class Dividing(Protocol):
    """What a pass knows of the pages of its rows."""

    @property
    def schema(self) -> type[BaseModel]:
        """What a reply must be."""
        ...

    def pages_of(self, row: Any) -> Sequence[int]:
        """Return the pages that a row holds, in order."""
        ...

    def accept(self, piece: Piece, output: BaseModel) -> Accepted:
        """Check a reply against its pages. Runs in a call thread; raises ReplyError."""
        ...

    def merged(self, row: Any, answers: Sequence[tuple[Piece, dict[str, Any]]]) -> Accepted:
        """Return the output of a row from those of its parts, in the order of the pages."""
        ...


class Pieces:
    """Which pieces the rows of a step have, and which of them have ended."""

    def __init__(self, work: Dividing, rows: Sequence[Any]) -> None:
        self._work = work
        self._of: dict[Key, Piece] = {}
        self._open: dict[UUID, set[str]] = {}
        self._answers: dict[UUID, dict[str, Accepted]] = {}
        self._failures: dict[UUID, dict[str, BaseException]] = {}
        self.accepted: set[Key] = set()
        """Pieces that have an accepted call already, whether its reply could be used or not."""
        for row in rows:
            self._add(Piece(row=row, pages=tuple(work.pages_of(row))))
        self._resume([row for row in rows if _was_split(row)])

    def __getitem__(self, key: Key) -> Piece:
        return self._of[key]

    @property
    def open(self) -> list[Piece]:
        """The pieces that still need a call."""
        return [self._of[row, name] for row, names in self._open.items() for name in sorted(names)]

    @property
    def rows_answered(self) -> list[Any]:
        """Rows whose parts have all been answered in earlier runs."""
        return [
            self._of[row, ""].row
            for row, names in self._open.items()
            if not names and self._answers[row]
        ]

    def split(self, piece: Piece) -> tuple[Piece, ...]:
        """Put its halves in the place of a piece; return them, or none for a single page."""
        halves = piece.halves
        if halves:
            self._open[piece.row.id].discard(piece.name)
            for one in halves:
                self._add(one)
        return halves

    def answered(self, piece: Piece, answer: Accepted) -> bool:
        """Note an accepted reply; return whether the row has now ended."""
        self._answers[piece.row.id][piece.name] = answer
        return self._end(piece)

    def failed(self, piece: Piece, error: BaseException) -> bool:
        """Note a piece that failed for good; return whether the row has now ended."""
        self._failures[piece.row.id][piece.name] = error
        return self._end(piece)

    def failure(self, row: Any) -> tuple[str, BaseException] | None:
        """Return the first failed part of a row by its pages, and why it failed."""
        failures = self._failures[row.id]
        return next(((name, failures[name]) for name in sorted(failures)), None)

    def output(self, row: Any) -> Accepted:
        """Return what a row is built from; all its pieces have been answered."""
        answers = self._answers[row.id]
        if "" in answers:
            return answers[""]
        return self._work.merged(
            row, [(self._of[row.id, name], answers[name].output) for name in sorted(answers)]
        )

    def _add(self, piece: Piece) -> None:
        self._of[piece.key] = piece
        self._open.setdefault(piece.row.id, set()).add(piece.name)
        self._answers.setdefault(piece.row.id, {})
        self._failures.setdefault(piece.row.id, {})

    def _end(self, piece: Piece) -> bool:
        self._open[piece.row.id].discard(piece.name)
        return not self._open[piece.row.id]

    def _resume(self, rows: Sequence[Any]) -> None:
        """Take up the halving where an earlier run left it."""
        if not rows:
            return
        by_key = {(c.row_id, c.part, c.accepted): c for c in selectors.split_calls(rows)}
        for row in rows:
            waiting = [self._of[row.id, ""]]
            while waiting:
                piece = waiting.pop()
                call = by_key.get((row.id, piece.name, True))
                if call is not None:
                    self.accepted.add(piece.key)
                    answer = self._read_again(piece, call)
                    if answer is not None:
                        self.answered(piece, answer)
                elif (row.id, piece.name, False) in by_key:
                    waiting += self.split(piece)

    def _read_again(self, piece: Piece, call: selectors.SplitCall) -> Accepted | None:
        """Return what a stored reply says; None where it is gone, or not of these pages."""
        if call.reply is None or call.page_range != piece.page_range:
            return None
        try:
            output = stored_output(
                call.reply, self._work.schema, token_of(piece.row.id, piece.name)
            )
            return self._work.accept(piece, output)
        except PipelineError as error:
            logger.warning(
                "a stored reply could not be used (%s); it is asked for again",
                error.code,
                extra={"action": "stored_reply_unusable"},
            )
            return None


def _was_split(row: Any) -> bool:
    return any(
        ErrorCode(entry["error_code"]) in SPLIT_CODES for entry in row.transient_error_history or ()
    )
