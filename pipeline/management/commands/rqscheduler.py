"""`manage.py rqscheduler` is refused: `rqcron` is the scheduler."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django_rq.management.commands.rqscheduler import Command as Scheduler


class Command(Scheduler):
    """Refuse the command of django-rq, with one line that names the right command."""

    help = "Refused: the periodic tasks run in `rqcron`."

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError."""
        raise CommandError("there is no rq-scheduler; the scheduler is `manage.py rqcron`")
