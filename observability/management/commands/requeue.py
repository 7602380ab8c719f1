"""`manage.py requeue ID`: put a dead letter back in line, by any id of its record.

May import services. It starts with a new budget; what befell it stays in its history.
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
    """Put a dead letter back in line."""

    help = (
        "Put a dead letter (a job whose workers died too often) back in line with a new budget;"
        " its history is kept. For a failed or cancelled one use `retry`."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the id."""
        parser.add_argument("id", metavar="ID", help="the record's id, or any other of it")
        parser.add_argument("--reason", help="why; kept with the job, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError where it is no dead letter, or the id names nothing."""
        record = record_of(options["id"])
        with one_line():
            done = services.job_requeue(record, reason=options["reason"], by=operator())
        if options["json"]:
            shown = {
                "shell_file_id": str(done.shell_file_id),
                "status": "running",
                "step": done.due.step.value,
            }
            self.stdout.write(json.dumps(shown))
        else:
            self.stdout.write(f"Back in line for {done.due.step.value}.")
