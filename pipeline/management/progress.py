"""The wait of `process`: until no record changes any more, or no worker is left.

A tick costs five statements for any number of records. This module only reads; the `View` decides
what is shown.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone
from redis.exceptions import RedisError

from medproc.timing import scaled
from pipeline.core.db_errors import is_away
from pipeline.core.server_faults import explain, line_of
from pipeline.core.states import JobStatus
from pipeline.models import selectors
from pipeline.models.selectors import Progress
from pipeline.operations.server_check import recent_server_faults
from pipeline.queueing.queues import queues_served

TICK_S = 0.5
LOOK_S = 2.0
"""Seconds between two reads of the workers' registry."""
QUIET_S = 5.0
"""Workers that are started together with the command need one or two seconds to appear."""
PATIENCE_S = 120.0
"""Seconds without workers and without progress after which following ends."""
SERVER_PATIENCE_S = 120.0
"""Seconds for which following waits for a server that refuses, without any progress."""
SHORT_PARK_S = 60.0
"""For a person at a terminal, a record that is parked for longer has ended."""


OUTAGE_PATIENCE_S = 600.0
"""Longest wait for the end of a provider outage, in seconds."""


class View(Protocol):
    """The display of progress."""

    def update(self, progress_by_record: Mapping[UUID, Progress]) -> None:
        """Show the state of the records; called at each tick with every followed record."""
        ...

    def say(self, line: str) -> None:
        """Show a message that is not about one record."""
        ...


class FollowingEndedError(Exception):
    """A server refused for `SERVER_PATIENCE_S` without progress; carries the line of the fault."""


def follow(shell_file_ids: Collection[UUID], view: View) -> dict[UUID, Progress]:
    """Return the progress of the records once each has ended or is parked, or no worker is left.

    Raises FollowingEndedError if a server refuses for `SERVER_PATIENCE_S` without progress.
    """
    found: dict[UUID, Progress] = {}
    workers = _EligibleWorkers(view)
    database = _Database(view)
    still_open = set(shell_file_ids)
    while True:
        if not database.read(found, still_open):
            time.sleep(LOOK_S)
            continue
        view.update(found)
        still_open = {i for i in still_open if not is_settled(found[i])}
        waiting = [found[i] for i in still_open]
        if not waiting or not workers.is_there_for(waiting):
            return found
        time.sleep(TICK_S)


def is_settled(progress: Progress) -> bool:
    """Return whether the record will not change soon, so that waiting is useless."""
    if progress.is_terminal:
        return True
    if progress.status != JobStatus.PARKED:
        return False
    if progress.outage_since is not None:
        lasts = timezone.now() - progress.outage_since
        return lasts > timedelta(seconds=scaled(OUTAGE_PATIENCE_S))
    soon = timezone.now() + timedelta(seconds=SHORT_PARK_S)
    return progress.parked_until is None or progress.parked_until > soon


class _Refusal:
    """Tells the view that a server refuses, and ends the following after `SERVER_PATIENCE_S`."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._since: float | None = None

    def wait(self, line: str, *, moved: bool = False) -> None:
        """Say the line of a fault; raises FollowingEndedError after the patience."""
        now = time.monotonic()
        self._since = now if moved or self._since is None else self._since
        patience_s = scaled(SERVER_PATIENCE_S)
        if now - self._since >= patience_s:
            raise FollowingEndedError(line)
        self._view.say(f"{line} Waiting at most {patience_s:.0f} s for progress.")

    def end(self) -> None:
        """Say that the server accepts work again, if it refused."""
        if self._since is not None:
            self._since = None
            self._view.say("The server accepts work again.")


class _Database:
    """Reads the records, and waits for a PostgreSQL that refuses."""

    def __init__(self, view: View) -> None:
        self._refusal = _Refusal(view)

    def read(self, progress_by_record: dict[UUID, Progress], ids: Collection[UUID]) -> bool:
        """Read the open records again; return False while PostgreSQL refuses."""
        try:
            progress_by_record.update(selectors.progress(ids))
        except (DatabaseError, InterfaceError) as error:
            connection.close()
            if not is_away(error):
                raise
            self._refusal.wait(explain(error))
            return False
        self._refusal.end()
        return True


class _EligibleWorkers:
    """The workers that could run the waiting records."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._refusal = _Refusal(view)
        self._looked_at = 0.0
        self._alone_since: float | None = None
        self._seen: Sequence[Progress] = ()

    def is_there_for(self, waiting: Sequence[Progress]) -> bool:
        now = time.monotonic()
        if self._looked_at and now - self._looked_at < min(LOOK_S, scaled(QUIET_S)):
            return True
        self._looked_at = now
        moved = list(waiting) != list(self._seen)
        self._seen = waiting
        for fault in recent_server_faults():
            # A server that refuses writes also stops the workers' signs of life.
            self._refusal.wait(line_of(fault), moved=moved)
            return True
        self._refusal.end()
        if self._works(waiting) or (moved and self._alone_since is not None):
            self._alone_since = None
            return True
        self._alone_since = self._alone_since or now
        alone_s = now - self._alone_since
        if alone_s >= scaled(QUIET_S):
            self._view.say(
                "No worker is running: start `manage.py rqworker-pool`. Waiting for one."
            )
        return alone_s < scaled(PATIENCE_S)

    def _works(self, waiting: Sequence[Progress]) -> bool:
        if any(progress.is_held for progress in waiting):
            return True
        try:
            served = queues_served()
        except (RedisError, OSError) as error:
            self._view.say(f"{explain(error)} Records continue afterwards; their results are safe.")
            return True
        return any(progress.step in served for progress in waiting)
