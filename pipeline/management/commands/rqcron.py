"""`manage.py rqcron`: the scheduler, in the foreground. Replaces the command of django-rq.

Run one scheduler beside the workers. A second one, on another host, waits as a standby.
"""

from __future__ import annotations

from typing import Any

from pipeline.management.plain_command import PlainCommand
from pipeline.operations.scheduler import PeriodicScheduler, periodic_tasks
from pipeline.operations.service_hooks import serving


class Command(PlainCommand):
    """Run the periodic tasks until SIGTERM or Ctrl-C."""

    help = "Run the periodic tasks: " + ", ".join(task.name for task in periodic_tasks())

    def handle(self, *args: Any, **options: Any) -> None:
        """Return after a stop signal; wait while PostgreSQL is unreachable."""
        with serving("scheduler"):
            PeriodicScheduler().run()
