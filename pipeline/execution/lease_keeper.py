"""The lease of a step is renewed while work outside the fan-out takes long, as OCR of a page does.

The work runs in a thread of its own and touches no row. The executor thread waits for the work and
renews the lease. At the step's deadline the executor thread leaves the work alone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

from django.conf import settings

from medproc.timing import scaled
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.transitions import Lease, heartbeat

T = TypeVar("T")
AHEAD = 2
"""Results that may wait for the executor; more would only hold memory."""
LOOK_S = 1.0
"""How soon a passed deadline is noticed."""
POLL_S = 0.05
"""How soon the thread notices that its results are not wanted any more."""


class _Done:
    """Ends a stream; carries what the work raised, if it did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def with_lease(
    lease: Lease, deadline: StepDeadline, source: Callable[[], Iterator[T]]
) -> Generator[T, None, None]:
    """Yield what `source` yields, renewing the lease in between and while it takes long.

    Raises what `source` raises, LeaseLostError, and PipelineError: DEADLINE_EXCEEDED when the
    step's time is used up, CANCELLED where an operator wants the job cancelled. Closing this
    generator closes the source.
    """
    ready: Queue[T | _Done] = Queue(AHEAD)
    unwanted = Event()
    thread = Thread(target=_produce, args=(source, ready, unwanted), daemon=True)
    thread.start()
    renewed_at = time.monotonic()
    interval_s = scaled(settings.HEARTBEAT_S)
    try:
        while True:
            with contextlib.suppress(Empty):
                item = ready.get(timeout=min(interval_s / 2, LOOK_S))
                if isinstance(item, _Done):
                    if item.error is not None:
                        raise item.error
                    return
                yield item
            if deadline.is_passed:
                raise PipelineError(
                    "the step's time was used up before its work had ended",
                    code=ErrorCode.DEADLINE_EXCEEDED,
                )
            if time.monotonic() - renewed_at >= interval_s:
                if heartbeat(lease, deadline.left_s):
                    raise PipelineError(code=ErrorCode.CANCELLED)
                renewed_at = time.monotonic()
    finally:
        unwanted.set()
        # Work that hangs is not waited for: its daemon thread ends with the process.
        thread.join(POLL_S if deadline.is_passed else None)


def call_with_lease(lease: Lease, deadline: StepDeadline, work: Callable[[], T]) -> T:
    """Return what `work` returns, renewing the lease until it does."""
    return next(with_lease(lease, deadline, lambda: iter((work(),))))


def _produce(source: Callable[[], Iterator[T]], ready: Queue[T | _Done], unwanted: Event) -> None:
    done = _Done()
    try:
        items = source()
        with (
            contextlib.closing(items) if isinstance(items, Generator) else contextlib.nullcontext()
        ):
            for item in items:
                if not _put(ready, item, unwanted):
                    return
    except BaseException as error:  # noqa: BLE001 - raised again in the executor thread
        done = _Done(error)
    _put(ready, done, unwanted)


def _put(ready: Queue[T | _Done], item: T | _Done, unwanted: Event) -> bool:
    while not unwanted.is_set():
        with contextlib.suppress(Full):
            ready.put(item, timeout=POLL_S)
            return True
    return False
