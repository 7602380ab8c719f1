"""`manage.py cancel ID`: cancel a record's job, by any id of the record.

May import services. What waits is cancelled at once; a running step keeps what succeeds and ends.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand

from observability.management.naming import record_of
from pipeline import services
from pipeline.management.holding import one_line, operator


class Command(BaseCommand):
    """Cancel a record's job."""

    help = (
        "Cancel the job of a record. One that waits ends at once; a running step is told, keeps"
        " what succeeds and ends as cancelled. What is complete stays; `retry --record` goes on."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the id."""
        parser.add_argument("id", metavar="ID", help="the record's id, or any other of it")
        parser.add_argument("--reason", help="why; kept with the job, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError where it has ended already, or the id names nothing."""
        record = record_of(options["id"])
        with one_line():
            done = services.job_cancel(record, reason=options["reason"], by=operator())
        if options["json"]:
            status = "cancelled" if done.is_ended else "cancelling"
            shown = {"shell_file_id": str(done.shell_file_id), "status": status}
            self.stdout.write(json.dumps(shown))
        elif done.is_ended:
            self.stdout.write("Cancelled.")
        else:
            self.stdout.write("Its step runs: it was told to stop, and ends as cancelled.")
