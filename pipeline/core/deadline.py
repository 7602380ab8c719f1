"""The deadline of a step: one object, created by `run_step` and passed to everything that asks.

The deadline is soft at `SOFT_SHARE` of the step's time, when nothing more is begun, then hard.
Only the object itself moves its end. Waiting for a quota is not work: it moves the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SOFT_SHARE = 0.9
"""Part of a step's time after which nothing is begun (requirements 26 and 44: 270 of 300 s)."""


def _unpublished(_ends_at: float | None) -> None:
    """Publish the end of a step nowhere."""


def _ignore_sign(_at: float) -> None:
    """Ignore a sign of life."""


# Why a wait moves the end even if other calls of the step are in flight: the quota alone decides
# how long a step takes, so a step with a small quota would run out of time although all its calls
# succeed. A step that hangs ends all the same. A call ends at CALL_DEADLINE_S, the number of calls
# is bounded by the attempts, and a wait moves the end only when a running step asks and is refused.
# A process that hangs asks no more, so its end stays where it is, and its worker kills it.
class StepDeadline:
    """When one step must end, in seconds of the system's monotonic clock.

    `publish` gets every new end, and None when the step is over. `sign` gets the time of every sign
    of life of the step.
    """

    def __init__(
        self,
        seconds: float,
        *,
        now: float | None = None,
        soft_share: float | None = None,
        publish: Callable[[float | None], None] = _unpublished,
        sign: Callable[[float], None] = _ignore_sign,
    ) -> None:
        self._publish = publish
        self._sign = sign
        self._soft_share = SOFT_SHARE if soft_share is None else soft_share
        self.has_progressed = False
        """Whether the step has completed a part of its work, which a later run need not repeat."""
        self.restart(seconds, now=now)

    def restart(self, seconds: float, *, now: float | None = None) -> None:
        """Give the step so many seconds from now, once its work is known.

        A wait that was left out of the time before does not count as left out of the new time.
        """
        now = time.monotonic() if now is None else now
        self._left_out_until = 0.0
        self.soft_s = seconds * self._soft_share
        """Seconds of a whole step in which work may begin."""
        self._set(now + seconds, now + self.soft_s)

    def extend(self, seconds: float) -> None:
        """Move the end by time that does not count."""
        self._set(self.ends_at + seconds, self.soft_ends_at + seconds)

    def leave_out(self, seconds: float, *, now: float) -> None:
        """Leave a wait that begins now out of the step's time (requirement 26).

        Waits that overlap are left out once.
        """
        until = now + seconds
        added = until - max(now, self._left_out_until)
        if added > 0:
            self._left_out_until = until
            self.extend(added)

    def leave_out_until(self, now: float) -> None:
        """Leave out the time since the end of the last wait, because the step still waits.

        A step asks again a little after the time that it was told. With thousands of short waits
        these moments add up.
        """
        if 0.0 < self._left_out_until < now:
            self.leave_out(now - self._left_out_until, now=self._left_out_until)

    def note_progress(self) -> None:
        """Note that a part of the work is complete: the step can no longer fail for its time alone.

        `run_step` requeues a step that has progressed. Each such run completes at least one of the
        parts, so the number of runs is bounded.
        """
        self.has_progressed = True

    def sign_of_life(self, at: float) -> None:
        """Tell the worker that the step was alive at this time of the monotonic clock.

        The worker kills a step without a sign for most of a lease.
        """
        self._sign(at)

    def close(self) -> None:
        """Publish that the step is over."""
        self._publish(None)

    @property
    def left_s(self) -> float:
        """The seconds until the step must end; below 0 when that time has passed."""
        return self.ends_at - time.monotonic()

    @property
    def is_soft_passed(self) -> bool:
        """Whether the step should begin nothing more."""
        return time.monotonic() >= self.soft_ends_at

    @property
    def is_passed(self) -> bool:
        """Whether the step's time is used up."""
        return time.monotonic() >= self.ends_at

    def _set(self, ends_at: float, soft_ends_at: float) -> None:
        self.ends_at = ends_at
        self.soft_ends_at = soft_ends_at
        self._publish(ends_at)
