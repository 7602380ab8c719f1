"""`manage.py rqsuspend [--duration S]`: no worker begins a step. Replaces the command of django-rq.

Running steps continue, and waiting jobs keep their places. The overview and `health` report the
suspension. `rqresume` ends the suspension.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from observability.management.audited_command import audited
from pipeline.management.plain_command import PlainCommand
from pipeline.queueing import queues


class Command(PlainCommand):
    """Suspend all workers of all hosts."""

    help = "Let no worker of any host begin a step, until `rqresume` or for --duration seconds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the duration."""
        parser.add_argument(
            "-d", "--duration", type=_seconds, metavar="S", help="seconds; default: no end"
        )

    def handle(self, *args: Any, duration: int | None, **options: Any) -> None:
        """Suspend the workers, and audit the suspension."""
        until = "until rqresume" if duration is None else f"for {duration} s"
        with audited("suspend", target_kind="workers", target_id="all") as facts:
            facts["message"] = f"suspended {until}"
            queues.suspend(duration)
        self.stdout.write(f"No worker begins a step, {until}. Running steps continue.")


def _seconds(text: str) -> int:
    """Return a duration of 1 s to 1 year; raise ArgumentTypeError for other values."""
    try:
        seconds = int(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= 365 * 24 * 3600:
        raise ArgumentTypeError("a whole number of seconds, 1 to 31536000")
    return seconds
