"""`manage.py rqenqueue` is refused: an entry is a wake-up for a row, and runs no other function."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django_rq.management.commands.rqenqueue import Command as Enqueue


class Command(Enqueue):
    """Refuse the command of django-rq, with one line that names the right command."""

    help = "Refused: workers run medproc's own steps only. Submit a record with `process`."

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError."""
        raise CommandError(
            "workers run no function by name; submit a record with `manage.py process FILE`"
        )
