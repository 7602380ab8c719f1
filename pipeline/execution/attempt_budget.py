"""What the failed calls of a step have cost, and what an outage gives back of it.

Imports `errors` and `parts`. Each piece has its own attempts, each row its own limited calls; a row
shows the attempts of its dearest piece. What failed because the provider was down counts nowhere,
and stays in the row's history, marked `given_back`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pipeline.core.errors import ERRORS, Budget, ErrorCode
from pipeline.execution.splits import Key, Piece

SKEW_S = 1.0
"""The outage's beginning is told by Redis's clock, a failure by this host's."""


@dataclass(kw_only=True, eq=False)
class _Failure:
    piece: Piece
    code: ErrorCode
    at: float
    """Seconds of the epoch."""
    spent: bool
    entry: dict[str, Any] | None = None
    """What the row's history says of it, once it is recorded."""


class Tally:
    """The budgets of the pieces of a step."""

    def __init__(self, rows: Iterable[Any], outage_codes: frozenset[ErrorCode]) -> None:
        self._outage_codes = outage_codes
        self._spent: defaultdict[UUID, dict[str, int]] = defaultdict(dict)
        self._waits: dict[UUID, int] = {}
        self._failures: list[_Failure] = []
        self._unrecorded: defaultdict[Key, deque[_Failure]] = defaultdict(deque)
        for row in rows:
            self._waits[row.id] = row.rate_limit_waits
            self._read(row)

    def attempts(self, piece: Piece) -> int:
        """Return how many attempts a piece has spent."""
        return self._spent[piece.row.id].get(piece.name, 0)

    def waits(self, row: Any) -> int:
        """Return how many limited calls a row has met."""
        return self._waits[row.id]

    @property
    def has_outage_failures(self) -> bool:
        """Tell whether anything could be given back."""
        return any(self._counts(f) for f in self._failures)

    def failed(self, piece: Piece, code: ErrorCode, at: float, *, spends: bool) -> None:
        """Count a failed call."""
        failure = _Failure(piece=piece, code=code, at=at, spent=spends)
        self._unrecorded[piece.key].append(failure)
        self._failures.append(failure)
        if spends:
            self._spend(piece, 1)
        elif ERRORS[code].budget is Budget.RATE_LIMIT:
            self._waits[piece.row.id] += 1

    def recorded(self, piece: Piece, entry: dict[str, Any]) -> None:
        """Bring a row up to a failed call whose entry its history now has."""
        failure = self._unrecorded[piece.key].popleft()
        failure.entry = entry
        _mark(failure)
        if ERRORS[failure.code].budget is Budget.RATE_LIMIT:
            piece.row.rate_limit_waits += 1
        self._show(piece.row)

    def answered(self, piece: Piece) -> None:
        """Count the call that was accepted."""
        self._spend(piece, 1)
        self._show(piece.row)

    def give_back(self, since: float, until: float | None = None) -> list[Any]:
        """Give back what failed in an outage; return the rows that have changed."""
        changed = []
        for failure in self._failures:
            if not self._counts(failure) or failure.at < since - SKEW_S:
                continue
            if until is not None and failure.at > until + SKEW_S:
                continue
            failure.spent = False
            self._spend(failure.piece, -1)
            _mark(failure)
            self._show(failure.piece.row)
            changed.append(failure.piece.row)
        return changed

    def _read(self, row: Any) -> None:
        """Take over what earlier runs spent."""
        history: list[dict[str, Any]] = row.transient_error_history or []
        of_parts = self._spent[row.id]
        for entry in history:
            code = ErrorCode(entry["error_code"])
            name = entry.get("part", "")
            spent = ERRORS[code].budget in {Budget.ATTEMPT, Budget.NONE}
            spent = spent and not entry.get("given_back")
            of_parts[name] = of_parts.get(name, 0) + spent
            self._failures.append(
                _Failure(
                    piece=Piece(row=row, pages=(), name=name),
                    code=code,
                    at=datetime.fromisoformat(entry["timestamp"]).timestamp(),
                    spent=spent,
                    entry=entry,
                )
            )
        if len(of_parts) < 2:
            of_parts[""] = row.attempt_count

    def _counts(self, failure: _Failure) -> bool:
        return failure.spent and failure.code in self._outage_codes

    def _spend(self, piece: Piece, number: int) -> None:
        of_parts = self._spent[piece.row.id]
        of_parts[piece.name] = max(0, of_parts.get(piece.name, 0) + number)

    def _show(self, row: Any) -> None:
        row.attempt_count = max(self._spent[row.id].values(), default=0)


def _mark(failure: _Failure) -> None:
    is_given_back = not failure.spent and ERRORS[failure.code].budget is Budget.ATTEMPT
    if is_given_back and failure.entry is not None:
        failure.entry["given_back"] = True
