"""`manage.py rqcron`: the clock, in the foreground. Takes the place of django-rq's.

May import the clock. Run one beside the workers; a second one, on another host, stands by.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from pipeline.operations.scheduler import Clock, all_duties


class Command(BaseCommand):
    """Run the periodic duties until SIGTERM or Ctrl-C."""

    help = "Run the periodic duties: " + ", ".join(duty.name for duty in all_duties())

    def handle(self, *args: Any, **options: Any) -> None:
        """Return when told to stop; a PostgreSQL that is away is waited for."""
        Clock().run()
