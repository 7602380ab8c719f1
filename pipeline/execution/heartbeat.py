"""The heartbeat of a step: `Heartbeat` renews the lease in a fan-out, `with_lease` elsewhere.

`StepWriter.keep_up` calls `Heartbeat` between calls to a provider. Passes call `with_lease` around
long work such as OCR. While PostgreSQL is away the step keeps its results in memory, as long as its
lease lives. A dead process sends no heartbeat, so its lease expires.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Generator, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

from django.conf import settings
from django.db import Error

from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.db_errors import unless_away
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import (
    CallError,
    ErrorCode,
    LeaseLostError,
    LeaseUnrenewedError,
    PipelineError,
)
from pipeline.core.server_faults import fault_of, line_of
from pipeline.execution.fanout import CancelEvent
from pipeline.transitions import Lease

logger = logging.getLogger(__name__)

T = TypeVar("T")
REPEAT_SHARE = 0.25
"""The part of the interval between two heartbeats after which a refused heartbeat is repeated."""
LOG_EVERY_S = 60.0
"""How often a lasting absence of PostgreSQL is logged."""
AHEAD = 2
"""Results that may wait for the executor; more would only hold memory."""
LOOK_S = 1.0
"""How soon a passed deadline is noticed."""
POLL_S = 0.05
"""How soon a thread notices that its results are not wanted any more, or that the lease lives."""


class Heartbeat:
    """The heartbeats of one step that calls a provider; its executor thread sends them."""

    def __init__(self, lease: Lease, deadline: StepDeadline) -> None:
        self._lease = lease
        self._deadline = deadline
        self._renewed_at = time.monotonic()
        self._tried_at = self._renewed_at
        self._absences: dict[str, tuple[str, float]] = {}
        """The cause that was last logged for each kind of statement, and when; until one succeeds.
        """
        self._was_refused = False
        """Whether PostgreSQL has refused since the last renewal."""
        self.is_cancelled = False
        """Whether an operator wants the job cancelled."""

    def renew(self) -> None:
        """Renew the lease. Raises LeaseLostError where it ran out or was taken."""
        now = self._tried_at = time.monotonic()
        with self.unless_away("the heartbeat"):
            try:
                self.is_cancelled |= transitions.renew_lease(self._lease, self._deadline.left_s)
            except LeaseLostError as error:
                if self._was_refused:
                    raise LeaseUnrenewedError(error.message) from None
                raise
            self._renewed_at = now
            self._was_refused = False
            self._deadline.sign_of_life(now)

    def renew_when_due(self) -> None:
        """Renew the lease when a heartbeat is due; a refused heartbeat is due again a little later.

        Without that pause, each event of the step would send one more heartbeat.
        """
        now = time.monotonic()
        interval_s = scaled(settings.HEARTBEAT_S)
        is_due = now - self._renewed_at >= interval_s
        if is_due and now - self._tried_at >= interval_s * REPEAT_SHARE:
            self.renew()

    def renew_when_overdue(self) -> None:
        """Renew the lease where it must have run out, or learn that another worker has the job."""
        if self._is_overdue:
            self.renew()

    def await_lease(self, unwanted: CancelEvent) -> None:
        """Wait while the lease must have run out. A call thread asks right before it sends.

        A machine can sleep between the admission of a call and its sending. The executor's thread
        then renews the lease, or learns that another worker has the job and sets `unwanted`.
        Raises CallError if the call is unwanted.
        """
        while self._is_overdue:
            if unwanted.wait(POLL_S):
                raise CallError("the step ended before the call was sent", code=ErrorCode.CANCELLED)

    @contextlib.contextmanager
    def unless_away(self, statement: str) -> Iterator[None]:
        """Suppress a refusal of PostgreSQL in the block; `statement` names the work of the block.

        Logs the first refusal for each cause, then one a minute, and the first success. Raises
        LeaseLostError if the lease has run out meanwhile.
        """
        is_done = False
        with unless_away(lambda error: self._note_absence(statement, error)):
            yield
            is_done = True
        if is_done and self._absences.pop(statement, None) is not None:
            self._log(logging.INFO, "database_back", f"PostgreSQL accepts {statement} again")

    def _note_absence(self, statement: str, error: Error) -> None:
        self._was_refused = True
        now = time.monotonic()
        fault, state = fault_of(error), getattr(error.__cause__, "sqlstate", None)
        why = line_of(fault) if fault else f"SQLSTATE {state}"
        logged_why, logged_at = self._absences.get(statement, ("", now))
        if why != logged_why or now - logged_at >= LOG_EVERY_S:
            self._absences[statement] = (why, now)
            message = f"PostgreSQL refused {statement}; results wait in memory: {why}"
            self._log(logging.WARNING, "database_away", message)
        if self._is_overdue:
            raise LeaseUnrenewedError("the lease could not be renewed in time; stopping") from None
        # The step is alive and ends by itself; only the database is away.
        self._deadline.sign_of_life(time.monotonic())

    def _log(self, level: int, action: str, message: str) -> None:
        logger.log(level, "%s", message, extra={"action": action, **self._lease.log_context()})

    @property
    def _is_overdue(self) -> bool:
        return time.monotonic() - self._renewed_at > scaled(settings.LEASE_S)


class _Done:
    """Ends a stream; carries what the work raised, if it did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def renew(lease: Lease, deadline: StepDeadline) -> None:
    """Renew the lease and store the deadline, where no provider is called.

    Raises LeaseLostError, and PipelineError CANCELLED where an operator wants the job cancelled.
    """
    asked_at = time.monotonic()
    if transitions.renew_lease(lease, deadline.left_s):
        raise PipelineError(code=ErrorCode.CANCELLED)
    deadline.sign_of_life(asked_at)


def with_lease(
    lease: Lease, deadline: StepDeadline, source: Callable[[], Iterator[T]]
) -> Generator[T, None, None]:
    """Yield what `source` yields, renewing the lease in between and while it takes long.

    The source runs in a thread of its own and touches no row. The caller's thread renews the lease.
    At the step's deadline the caller's thread leaves the source alone.

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
                renew(lease, deadline)
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
