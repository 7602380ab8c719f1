"""The fan-out: groups of items become calls in threads, and events for one consumer thread.

The package is pure Python and knows neither Django nor a provider. `driver` is the entry point.
Groups and calls have separate limits, a waiting retry holds no slot, the largest item starts first,
and limits of 1 cause no deadlock (requirements 1 to 9 and 26).
"""

from __future__ import annotations

from pipeline.execution.fanout.cancel_event import CancelEvent
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
from pipeline.execution.fanout.scheduler import Admit, AdmitMany, Call, Decide
from pipeline.execution.fanout.thread_pool import (
    CallFunction,
    CallResult,
    Clock,
    Executor,
    StopRequest,
    Unchecked,
)

__all__ = [
    "DEADLINE",
    "Admit",
    "AdmitMany",
    "AttemptFailed",
    "Call",
    "CallFunction",
    "CallResult",
    "CallTimedOut",
    "CancelEvent",
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
    "Unchecked",
]
