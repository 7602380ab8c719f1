"""`manage.py rqcron`: the scheduler, in the foreground. Replaces the command of django-rq.

Run one scheduler beside the workers. A second one, on another host, waits as a standby.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from pipeline.operations.scheduler import Clock, all_duties


class Command(BaseCommand):
    """Run the periodic tasks until SIGTERM or Ctrl-C."""

    help = "Run the periodic tasks: " + ", ".join(duty.name for duty in all_duties())

    def handle(self, *args: Any, **options: Any) -> None:
        """Return after a stop signal; wait while PostgreSQL is unreachable."""
        Clock().run()
