"""`manage.py snapshot_metrics`: write the hourly snapshots that are missing, rows and files.

The scheduler does the same every 5 minutes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from observability.metrics import sla_files, sla_snapshots
from observability.models import SlaSnapshot
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand


class Command(PlainCommand):
    """Run one tick of the periodic task `snapshot_metrics`."""

    help = "Write the hourly snapshots of the service level that are missing."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write rows and files, and print the counts. Exits with 1 if an hour has no file."""
        sla_snapshots.snapshot()
        hours = SlaSnapshot.objects.filter(priority="normal").count()
        missing = sla_files.count_missing_files()
        if options["json"]:
            self.stdout.write(json.dumps({"hours": hours, "files_missing": missing}))
        else:
            said = f", {missing} without a file" if missing else ""
            self.stdout.write(f"{counted(hours, 'hour')} in the table{said}")
        if missing:
            raise SystemExit(1)
