"""The values that a fan-out takes and yields: items, limits, decisions, errors and events.

Every value is frozen; scheduler and driver pass nothing else. Times are seconds on the driver's
monotonic clock.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
"""The key of an item."""
G = TypeVar("G", bound=Hashable)
"""The key of a group."""
R = TypeVar("R")
"""The result of a call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Item(Generic[K, G]):
    """A unit of work that one call can complete.

    `attempts` counts the spent attempts, in earlier runs too: the next call is attempt
    `attempts + 1`. `free_retries` counts the retries that cost no attempt.
    """

    key: K
    group: G
    size: float
    attempts: int = 0
    free_retries: int = 0


DEADLINE = "deadline"
"""The stop reason of a run whose time is used up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How many groups and calls run at once, and how long a call may take (requirements 2 and 3).

    `groups` and `calls` are counts, the rest seconds.
    """

    groups: int = 120
    calls: int = 30
    call_deadline_s: float = 120.0
    grace_s: float = 10.0
    tick_s: float = 0.5

    def __post_init__(self) -> None:
        if self.groups < 1 or self.calls < 1:
            raise ValueError("a fan-out needs at least one group and one call at a time")
        for name in ("call_deadline_s", "tick_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0 s")
        for field in fields(self):
            limit = getattr(self, field.name)
            if math.isnan(limit) or limit < 0:
                raise ValueError(f"{field.name} must not be negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """Call the item again after `delay_s`; only then does it compete for a slot."""

    delay_s: float
    spends_attempt: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Fail:
    """Give the item up for good; `error` takes the place of the call's own in `Failed`."""

    error: BaseException | None = None
    spends_attempt: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Park:
    """The item must wait: it spends nothing, and the run drains as by `stop(reason)`."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Replace(Generic[K, G]):
    """Put other items of the same group in the item's place; spends nothing."""

    items: tuple[Item[K, G], ...]


Decision: TypeAlias = Retry | Fail | Park | Replace[K, G]


class CallTimedOut(Exception):  # noqa: N818 - named for what happened, as TimeoutError's own kin
    """A call ran past its wall deadline and was written off."""

    def __init__(self, *, deadline_s: float, elapsed_s: float) -> None:
        self.deadline_s = deadline_s
        self.elapsed_s = elapsed_s
        super().__init__(f"no reply after {elapsed_s:.1f} s, the limit being {deadline_s:.1f} s")


class DeadlineExceeded(Exception):  # noqa: N818 - the taxonomy's word, DEADLINE_EXCEEDED
    """A retry would begin after the soft deadline of the run (requirement 26)."""

    def __init__(self, *, remaining_s: float, delay_s: float, original: BaseException) -> None:
        self.remaining_s = remaining_s
        self.delay_s = delay_s
        self.original = original
        super().__init__(
            f"the retry would wait {delay_s:.1f} s and the run has {remaining_s:.1f} s left"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Started(Generic[K]):
    """A call has begun; `call_no` is unique in the run, `queue_wait_s` runs from readiness."""

    key: K
    attempt: int
    call_no: int
    queue_wait_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Succeeded(Generic[K, R]):
    """The item is done."""

    key: K
    attempt: int
    call_no: int
    result: R
    duration_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptFailed(Generic[K]):
    """A call raised or was written off; `retry_in_s` is None when this run does not retry the call.

    A run that is stopped before a promised retry returns the item instead.
    """

    key: K
    attempt: int
    call_no: int
    error: BaseException
    retry_in_s: float | None
    spends_attempt: bool
    duration_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed(Generic[K]):
    """The item has failed for good; follows its last `AttemptFailed`."""

    key: K
    error: BaseException


@dataclass(frozen=True, kw_only=True, slots=True)
class Replaced(Generic[K, G]):
    """The item was replaced by `items`; follows its `AttemptFailed`."""

    key: K
    items: tuple[Item[K, G], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Returned(Generic[K]):
    """The run was stopped before the item was settled; a cut-off call spends nothing.

    `call_no` is that of the call given up at the end of the grace period, else None.
    """

    key: K
    call_no: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LateReply(Generic[K, R]):
    """A written-off call returned after all; only the tokens of the call count."""

    key: K
    attempt: int
    call_no: int
    result: R | None
    error: BaseException | None
    duration_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupSettled(Generic[K, G]):
    """Every item of the group has succeeded or failed; `failed_keys` in the order given."""

    group: G
    failed_keys: tuple[K, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """Yielded at least every `tick_s`, so that the consumer can act; the counts of this moment."""

    in_flight: int
    ready: int
    waiting: int
    groups_open: int
    written_off: int
    unsettled: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """Every item is settled; the last event."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopped:
    """The run was stopped and has drained; `returned` items are left. The last event."""

    reason: str
    returned: int


Event: TypeAlias = (
    Started[K]
    | AttemptFailed[K]
    | Failed[K]
    | Replaced[K, G]
    | Returned[K]
    | GroupSettled[K, G]
    | Succeeded[K, R]
    | LateReply[K, R]
    | Tick
    | Finished
    | Stopped
)
