"""The splits that a step asks about, and which of them have ended.

A row has ended when each of its splits has. The replies to splits that succeeded in an earlier run
are read again from `provider_payloads`, so that no split is asked about twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic
from uuid import UUID

from pipeline.core.errors import ERRORS, Budget, CallDetails, ErrorCode, PipelineError
from pipeline.execution.reuse.kept import compressed
from pipeline.execution.splits import Split, SplitKey
from pipeline.execution.step_work import AcceptedReply, StepWork, W
from pipeline.models import selectors
from pipeline.models.work_item import WorkItem
from pipeline.providers.reply_parsing import stored_output

logger = logging.getLogger(__name__)

SPLIT_CODES = frozenset(code for code, policy in ERRORS.items() if policy.budget is Budget.SPLIT)


class SplitPlan(Generic[W]):
    """The splits of the rows of one step."""

    def __init__(self, work: StepWork[W]) -> None:
        self._work = work
        self._splits: dict[SplitKey, Split[W]] = {}
        self._open: dict[UUID, set[str]] = {}
        self._replies: dict[UUID, dict[str, AcceptedReply]] = {}
        self._failures: dict[UUID, dict[str, BaseException]] = {}
        self.accepted: set[SplitKey] = set()
        """Splits that have an accepted call already, whether its reply could be used or not."""
        for row in work.rows:
            self._add(Split(row=row, pages=tuple(work.pages_of(row))))
        self._resume([row for row in work.rows if _was_split(row)])

    def __getitem__(self, key: SplitKey) -> Split[W]:
        return self._splits[key]

    @property
    def open(self) -> list[Split[W]]:
        """The splits that still need a call."""
        return [
            self._splits[row, name] for row, names in self._open.items() for name in sorted(names)
        ]

    @property
    def answered_rows(self) -> list[W]:
        """Rows whose splits have all been answered in earlier runs."""
        return [
            self._splits[row, ""].row
            for row, names in self._open.items()
            if not names and self._replies[row]
        ]

    def halve(self, split: Split[W]) -> tuple[Split[W], ...]:
        """Replace a split by its halves; return them, or nothing for a single page."""
        halves = split.halves
        if halves:
            self._open[split.row.id].discard(split.name)
            for each in halves:
                self._add(each)
        return halves

    def answer(self, split: Split[W], reply: AcceptedReply) -> bool:
        """Note an accepted reply; return whether the row has now ended."""
        # The call log has written the raw reply. A step of a thousand replies would hold them all.
        self._replies[split.row.id][split.name] = replace(reply, details=CallDetails())
        return self._end(split)

    def fail(self, split: Split[W], error: BaseException) -> bool:
        """Note a split that failed for good; return whether the row has now ended."""
        self._failures[split.row.id][split.name] = error
        return self._end(split)

    def failure(self, row: W) -> tuple[str, BaseException] | None:
        """Return the name of a row's first failed split by its pages, and its error."""
        failures = self._failures[row.id]
        return next(((name, failures[name]) for name in sorted(failures)), None)

    def output(self, row: W) -> AcceptedReply:
        """Return what a row is built from; all its splits have been answered."""
        replies = self._replies[row.id]
        if "" in replies:
            return replies[""]
        return self._work.merge(
            row, [(self._splits[row.id, name], replies[name].output) for name in sorted(replies)]
        )

    def take_kept(self, row: W) -> dict[str, bytes]:
        """Return the compressed replies of a row by split."""
        return {name: reply.kept for name, reply in self._replies[row.id].items()}

    def forget(self, row: W) -> None:
        """Forget the replies of a row that has ended; a large step would hold them all."""
        self._replies[row.id] = {}

    def _add(self, split: Split[W]) -> None:
        self._splits[split.key] = split
        self._open.setdefault(split.row.id, set()).add(split.name)
        self._replies.setdefault(split.row.id, {})
        self._failures.setdefault(split.row.id, {})

    def _end(self, split: Split[W]) -> bool:
        self._open[split.row.id].discard(split.name)
        return not self._open[split.row.id]

    def _resume(self, rows: Sequence[W]) -> None:
        """Continue the halving where an earlier run left it."""
        if not rows:
            return
        calls = {(c.row_id, c.split, c.accepted): c for c in selectors.split_calls(rows)}
        for row in rows:
            waiting = [self._splits[row.id, ""]]
            while waiting:
                split = waiting.pop()
                call = calls.get((row.id, split.name, True))
                if call is not None:
                    self.accepted.add(split.key)
                    reply = self._read_again(split, call)
                    if reply is not None:
                        self.answer(split, reply)
                elif (row.id, split.name, False) in calls:
                    waiting += self.halve(split)

    def _read_again(self, split: Split[W], call: selectors.SplitCall) -> AcceptedReply | None:
        """Return the stored reply; None where it is gone, or is not about these pages."""
        if call.reply is None or call.page_range != split.page_range:
            return None
        try:
            output = stored_output(
                call.reply, self._work.schema, split.token, is_of_engine=call.is_of_engine
            )
            return replace(self._work.accept(split, output), kept=compressed(output))
        except PipelineError as error:
            logger.warning(
                "a stored reply could not be used (%s); the provider is asked again",
                error.code,
                extra={"action": "stored_reply_unusable"},
            )
            return None


def _was_split(row: WorkItem) -> bool:
    return any(ErrorCode(entry["error_code"]) in SPLIT_CODES for entry in row.failure_history)
