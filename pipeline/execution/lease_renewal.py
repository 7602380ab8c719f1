"""The lease of a running step: renewed at each heartbeat, lost when PostgreSQL stays away too long.

While PostgreSQL is away the step keeps its results in memory, as long as its lease lives.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager

from django.conf import settings
from django.db import Error

from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.db_errors import unless_away
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import LeaseLostError
from pipeline.transitions import Lease

logger = logging.getLogger(__name__)


class LeaseRenewal:
    """The heartbeats of one step."""

    def __init__(self, lease: Lease, deadline: StepDeadline) -> None:
        self._lease = lease
        self._deadline = deadline
        self._renewed_at = time.monotonic()
        self.is_cancelled = False
        """Whether an operator wants the job cancelled."""

    def renew(self) -> None:
        """Renew the lease. Raises LeaseLostError where it ran out or was taken."""
        now = time.monotonic()
        with self.unless_away():
            self.is_cancelled |= transitions.heartbeat(self._lease, self._deadline.left_s)
            self._renewed_at = now

    def renew_when_due(self) -> None:
        """Renew the lease when a heartbeat is due."""
        if time.monotonic() - self._renewed_at >= scaled(settings.HEARTBEAT_S):
            self.renew()

    def renew_when_overdue(self) -> None:
        """Renew the lease where it must have run out, or learn that another worker has the job."""
        if self._is_overdue:
            self.renew()

    def unless_away(self) -> AbstractContextManager[None]:
        """Leave the block undone while PostgreSQL is away.

        Raises LeaseLostError where the lease has run out meanwhile.
        """
        return unless_away(self._note_absence)

    def _note_absence(self, error: Error) -> None:
        logger.warning(
            "PostgreSQL is away (%s); results are kept in memory",
            type(error).__name__,
            extra={"action": "database_away", **self._lease.log_context()},
        )
        if self._is_overdue:
            raise LeaseLostError("the lease could not be renewed in time; stopping") from None

    @property
    def _is_overdue(self) -> bool:
        return time.monotonic() - self._renewed_at > scaled(settings.LEASE_S)
