"""`manage.py reconcile`: run the reconciler once, as the scheduler does.

Prints counts only; the output contains no PHI.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from pipeline.management.audit import record_command
from pipeline.management.plain_command import PlainCommand
from pipeline.operations import operator_actions


class Command(PlainCommand):
    """Recover expired leases, release parked jobs, and enqueue missing wake-ups, once."""

    help = "Requeue jobs of lost workers, and make Redis queues and database rows agree, once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the counts; work beyond the limits of one tick is left to the next tick."""
        tick = operator_actions.jobs_reconcile()
        if tick.changed:
            record_command("reconcile", target_kind="jobs", facts=asdict(tick))
        self.stdout.write(json.dumps(asdict(tick)) if options["json"] else tick.summary)
