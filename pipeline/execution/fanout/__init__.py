"""The concurrency engine: groups of items become calls in threads, and events for one owner.

Layer 2: pure Python, no Django, no provider. `events` holds the values, `line` the order,
`core` the scheduler, `threads` the executor, `run` the driver, `simulated` their stand-ins.
Promises: separate limits for groups and calls, retries that hold no slot, largest first, no
deadlock at limits of 1 (`spec.md` points 1 to 9 and 26).
"""

from __future__ import annotations

from pipeline.execution.fanout.driver import FanOut
from pipeline.execution.fanout.events import (
    DEADLINE,
    AttemptFailed,
    CallTimedOut,
    DeadlineExceeded,
    Decision,
    Event,
    Fail,
    Failed,
    Finished,
    GroupSettled,
    Item,
    LateReply,
    Limits,
    Park,
    Replace,
    Replaced,
    Retry,
    Returned,
    Started,
    Stopped,
    Succeeded,
    Tick,
)
from pipeline.execution.fanout.scheduler import Admit, Call, Decide
from pipeline.execution.fanout.thread_pool import (
    CallFunction,
    CallResult,
    Clock,
    Executor,
    StopRequest,
)

__all__ = [
    "DEADLINE",
    "Admit",
    "AttemptFailed",
    "Call",
    "CallFunction",
    "CallResult",
    "CallTimedOut",
    "Clock",
    "DeadlineExceeded",
    "Decide",
    "Decision",
    "Event",
    "Executor",
    "Fail",
    "Failed",
    "FanOut",
    "Finished",
    "GroupSettled",
    "Item",
    "LateReply",
    "Limits",
    "Park",
    "Replace",
    "Replaced",
    "Retry",
    "Returned",
    "Started",
    "StopRequest",
    "Stopped",
    "Succeeded",
    "Tick",
]
