"""The attempts that the failed calls of a step have cost, and their refund after an outage.

Each split has attempts of its own, each row its own limited calls. A row shows the attempts of the
split that spent the most. A call that failed because the provider was down costs nothing; it stays
in the row's history, marked `refunded`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pipeline.core.errors import ERRORS, Budget, ErrorCode
from pipeline.execution.splits import Split, SplitKey
from pipeline.models.work_item import WorkItem

SKEW_S = 1.0
"""Redis's clock tells when an outage began, this host's clock when a call failed."""


@dataclass(kw_only=True, eq=False)
class _FailedCall:
    row: WorkItem
    split: str
    code: ErrorCode
    at: float
    """Seconds of the epoch."""
    spent: bool
    position: int | None = None
    """Position in the row's history, once the call is recorded there."""


class AttemptBudget:
    """The spent attempts of the splits of a step."""

    def __init__(self, rows: Iterable[WorkItem], refundable: frozenset[ErrorCode]) -> None:
        self._refundable = refundable
        self._spent: defaultdict[UUID, dict[str, int]] = defaultdict(dict)
        self._recorded: defaultdict[UUID, dict[str, int]] = defaultdict(dict)
        self._limited_calls: dict[UUID, int] = {}
        self._failed: list[_FailedCall] = []
        self._unrecorded: defaultdict[SplitKey, deque[_FailedCall]] = defaultdict(deque)
        for row in rows:
            self._limited_calls[row.id] = row.rate_limit_waits
            self._read(row)

    def attempts(self, split: Split[WorkItem]) -> int:
        """Return how many attempts a split has spent."""
        return self._spent[split.row.id].get(split.name, 0)

    def limited_calls(self, row: WorkItem) -> int:
        """Return how many limited calls a row has met."""
        return self._limited_calls[row.id]

    @property
    def has_refundable(self) -> bool:
        """Whether an outage could give anything back."""
        return any(self._is_refundable(call) for call in self._failed)

    def fail(self, split: Split[WorkItem], code: ErrorCode, at: float, *, spends: bool) -> None:
        """Count a failed call as soon as it is decided about; its row shows it when recorded."""
        call = _FailedCall(row=split.row, split=split.name, code=code, at=at, spent=spends)
        self._unrecorded[split.key].append(call)
        self._failed.append(call)
        if spends:
            _add(self._spent[split.row.id], split.name, 1)
        elif ERRORS[code].budget is Budget.RATE_LIMIT:
            self._limited_calls[split.row.id] += 1

    def record(self, split: Split[WorkItem], position: int) -> None:
        """Show a failed call on its row, whose history has the call at `position` now."""
        call = self._unrecorded[split.key].popleft()
        call.position = position
        _mark(call)
        _add(self._recorded[split.row.id], split.name, int(call.spent))
        if ERRORS[call.code].budget is Budget.RATE_LIMIT:
            split.row.count_limited_call()
        self._show(split.row)

    def answer(self, split: Split[WorkItem]) -> None:
        """Count the call that was accepted."""
        _add(self._spent[split.row.id], split.name, 1)
        _add(self._recorded[split.row.id], split.name, 1)
        self._show(split.row)

    def refund(self, since: float, until: float | None = None) -> list[WorkItem]:
        """Refund what failed in an outage; return the rows that have changed."""
        changed = []
        for call in self._failed:
            if not self._is_refundable(call) or call.at < since - SKEW_S:
                continue
            if until is not None and call.at > until + SKEW_S:
                continue
            call.spent = False
            _add(self._spent[call.row.id], call.split, -1)
            if call.position is not None:
                _add(self._recorded[call.row.id], call.split, -1)
            _mark(call)
            self._show(call.row)
            changed.append(call.row)
        return changed

    def _read(self, row: WorkItem) -> None:
        """Take over what earlier runs spent."""
        spent_by_split = self._spent[row.id]
        for position, entry in enumerate(row.failure_history):
            code, name = ErrorCode(entry["error_code"]), entry.get("split", "")
            is_counted = ERRORS[code].budget in {Budget.ATTEMPT, Budget.NONE}
            spent = is_counted and not entry.get("refunded")
            spent_by_split[name] = spent_by_split.get(name, 0) + spent
            self._failed.append(
                _FailedCall(
                    row=row,
                    split=name,
                    code=code,
                    at=datetime.fromisoformat(entry["timestamp"]).timestamp(),
                    spent=spent,
                    position=position,
                )
            )
        if len(spent_by_split) < 2:
            spent_by_split[""] = row.attempt_count
        self._recorded[row.id] = dict(spent_by_split)

    def _is_refundable(self, call: _FailedCall) -> bool:
        return call.spent and call.code in self._refundable

    def _show(self, row: WorkItem) -> None:
        # A call that is decided about and not recorded yet must not count here: the history numbers
        # the next call by what the row shows.
        row.show_attempts(max(self._recorded[row.id].values(), default=0))


def _add(by_split: dict[str, int], split: str, number: int) -> None:
    by_split[split] = max(0, by_split.get(split, 0) + number)


def _mark(call: _FailedCall) -> None:
    is_refunded = not call.spent and ERRORS[call.code].budget is Budget.ATTEMPT
    if is_refunded and call.position is not None:
        call.row.refund_failure(call.position)
