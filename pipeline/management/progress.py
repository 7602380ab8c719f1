"""Waits for records until nothing more happens to them, and says when nobody works.

Imports selectors and queues; reads only. A tick costs five statements, however many records are
followed; what it shows, and how, is the view's business.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from redis.exceptions import RedisError

from medproc.timing import scaled
from pipeline import selectors
from pipeline.core.states import JobStatus
from pipeline.queueing.queues import queues_served
from pipeline.selectors import Progress

TICK_S = 0.25
LOOK_S = 2.0
"""Seconds between two looks at the workers' registry."""
QUIET_S = 5.0
"""Workers that are started together with the command need a second or two to appear."""
PATIENCE_S = 120.0
"""How long nobody may work, and nothing move, until following ends."""
SHORT_PARK_S = 60.0
"""A record that is parked for longer is as good as ended for whoever waits at a terminal."""


OUTAGE_PATIENCE_S = 600.0
"""An outage of the provider is waited out for so long."""


class View(Protocol):
    """Shows what happens."""

    def update(self, found: Mapping[UUID, Progress]) -> None:
        """Show how the records stand; called at each tick with every one that is followed."""
        ...

    def say(self, line: str) -> None:
        """Say something that is not about one record."""
        ...


def follow(shell_file_ids: Collection[UUID], view: View) -> dict[UUID, Progress]:
    """Return how the records stand when each has ended, is parked, or nobody works on them."""
    found: dict[UUID, Progress] = {}
    crew = _Crew(view)
    still_open = set(shell_file_ids)
    while True:
        if not _look(found, still_open, view):
            continue
        view.update(found)
        still_open = {i for i in still_open if not is_settled(found[i])}
        waiting = [found[i] for i in still_open]
        if not waiting or not crew.is_there_for(waiting):
            return found
        time.sleep(TICK_S)


def is_settled(progress: Progress) -> bool:
    """Tell whether waiting longer would change nothing soon."""
    if progress.is_terminal:
        return True
    if progress.status != JobStatus.PARKED:
        return False
    if progress.outage_since is not None:
        lasts = timezone.now() - progress.outage_since
        return lasts > timedelta(seconds=scaled(OUTAGE_PATIENCE_S))
    soon = timezone.now() + timedelta(seconds=SHORT_PARK_S)
    return progress.parked_until is None or progress.parked_until > soon


def _look(found: dict[UUID, Progress], ids: Collection[UUID], view: View) -> bool:
    """Read the open records anew; False where PostgreSQL went away meanwhile."""
    try:
        found.update(selectors.progress(ids))
    except (OperationalError, InterfaceError):
        connection.close()
        view.say("PostgreSQL is away; waiting for it.")
        time.sleep(LOOK_S)
        return False
    return True


class _Crew:
    """Whether anybody works on what is waited for."""

    def __init__(self, view: View) -> None:
        self._view = view
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
        except (RedisError, OSError):
            self._view.say("Redis is away; records go on when it is back.")
            return True
        return any(progress.step in served for progress in waiting)
