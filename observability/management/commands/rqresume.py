"""`manage.py rqresume`: the end of a suspension. Replaces the command of django-rq."""

from __future__ import annotations

from typing import Any

from observability.management.audited_command import audited
from pipeline.management.plain_command import PlainCommand
from pipeline.queueing import queues


class Command(PlainCommand):
    """Let the workers of all hosts begin steps again."""

    help = "End the suspension that `rqsuspend` began."

    def handle(self, *args: Any, **options: Any) -> None:
        """Resume the workers, and audit the end of the suspension."""
        with audited("resume", target_kind="workers", target_id="all") as facts:
            was_suspended = queues.resume()
            facts["message"] = "resumed" if was_suspended else "was not suspended"
        self.stdout.write("Resumed." if was_suspended else "The workers were not suspended.")
