"""What a pass tells the step executor about its work items, and about their publication."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from uuid import UUID

from pydantic import BaseModel

from pipeline.core.errors import CallDetails, ErrorCode
from pipeline.execution.splits import Split
from pipeline.models.work_item import WorkItem
from pipeline.providers.base import Request
from pipeline.transitions import Flush

W = TypeVar("W", bound=WorkItem)
W_contra = TypeVar("W_contra", bound=WorkItem, contravariant=True)


@dataclass(frozen=True, kw_only=True)
class AcceptedReply:
    """A checked reply: what is stored on the row until its publication, counts and call details."""

    output: Mapping[str, Any] = field(repr=False)
    counts: Mapping[str, int]
    """Columns of the row, as `entities_detected`."""
    details: CallDetails = field(default_factory=CallDetails)
    kept: bytes = field(default=b"", repr=False)
    """The reply itself, compressed, for later records with the same bytes; empty if not kept."""


class StepWork(Protocol[W]):
    """The work items of one step, and how one of them becomes calls and output."""

    @property
    def rows(self) -> Sequence[W]:
        """The rows that still need a call."""
        ...

    @property
    def known(self) -> Sequence[W]:
        """Rows that succeeded in an earlier run and are not published yet."""
        ...

    @property
    def groups(self) -> Sequence[Hashable]:
        """The groups in order; a group whose rows have all succeeded settles at once."""
        ...

    @property
    def schema(self) -> type[BaseModel]:
        """The schema of a reply."""
        ...

    def group_of(self, row: W) -> Hashable:
        """Return the group of a row: its rows settle together."""
        ...

    def pages_of(self, row: W) -> Sequence[int]:
        """Return the pages that a row holds, in order."""
        ...

    def size_of(self, split: Split[W]) -> int:
        """Return the estimated input tokens of the call; the largest call starts first."""
        ...

    def request(self, split: Split[W]) -> Request:
        """Render the request. Runs in a call thread; touches no database."""
        ...

    def accept(self, split: Split[W], output: BaseModel) -> AcceptedReply:
        """Check a reply against its pages. Runs in a call thread; raises ReplyError."""
        ...

    def merge(self, row: W, outputs: Sequence[tuple[Split[W], Mapping[str, Any]]]) -> AcceptedReply:
        """Return the output of a row from the outputs of its splits, in the order of the pages."""
        ...


class GroupPublisher(Protocol[W_contra]):
    """Makes the groups of a pass visible; only a pass that publishes group by group has one."""

    def start(self, row: W_contra, flush: Flush) -> None:
        """Add what changes in the row's group when a call of the row begins."""
        ...

    def settle(self, group: Hashable, flush: Flush) -> Sequence[UUID]:
        """Add what changes when the last row of a group has ended; return the published rows.

        The flush that makes these rows visible clears their stored output.
        """
        ...

    def refuse(self, group: Hashable, code: ErrorCode, flush: Flush) -> None:
        """Add what changes when the publication of a group cannot be made or written."""
        ...
