"""Keeping a lease while something takes long outside the fan-out, whose ticks do it elsewhere.

Imports transitions. The work runs in a thread of its own and touches no row; the owner thread only
waits for it and renews the lease, so that a page of OCR may take longer than a lease lasts. At the
step's deadline it is left alone.
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
from pipeline.core import deadline
from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.transitions import Lease, heartbeat

T = TypeVar("T")
AHEAD = 2
"""Results that may wait for the owner; more would only hold memory."""
LOOK_S = 1.0
"""How soon a passed deadline is noticed."""
POLL_S = 0.05
"""How soon the thread notices that nobody wants its results any more."""


class _Done:
    """Ends a stream; carries what the work raised, if it did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def kept(lease: Lease, source: Callable[[], Iterator[T]]) -> Generator[T, None, None]:
    """Yield what `source` yields, renewing the lease in between and while it takes long.

    Raises what `source` raises, LeaseLostError, and PipelineError: DEADLINE_EXCEEDED when the
    step's time is used up, CANCELLED where an operator wants that. Closing this generator closes
    the source.
    """
    ready: Queue[T | _Done] = Queue(AHEAD)
    unwanted = Event()
    thread = Thread(target=_produce, args=(source, ready, unwanted), daemon=True)
    thread.start()
    beaten = time.monotonic()
    every = scaled(settings.HEARTBEAT_S)
    try:
        while True:
            with contextlib.suppress(Empty):
                item = ready.get(timeout=min(every / 2, LOOK_S))
                if isinstance(item, _Done):
                    if item.error is not None:
                        raise item.error
                    return
                yield item
            if deadline.is_passed():
                raise PipelineError(
                    "the step's time was used up before its work had ended",
                    code=ErrorCode.DEADLINE_EXCEEDED,
                )
            if time.monotonic() - beaten >= every:
                if heartbeat(lease):
                    raise PipelineError(code=ErrorCode.CANCELLED)
                beaten = time.monotonic()
    finally:
        unwanted.set()
        # What hangs would not end for being waited for; it ends with the process.
        thread.join(POLL_S if deadline.is_passed() else None)


def kept_call(lease: Lease, work: Callable[[], T]) -> T:
    """Return what `work` returns, renewing the lease until it does."""
    return next(kept(lease, lambda: iter((work(),))))


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
    except BaseException as error:  # noqa: BLE001 - it is raised again in the owner thread
        done = _Done(error)
    _put(ready, done, unwanted)


def _put(ready: Queue[T | _Done], item: T | _Done, unwanted: Event) -> bool:
    while not unwanted.is_set():
        with contextlib.suppress(Full):
            ready.put(item, timeout=POLL_S)
            return True
    return False
