"""`manage.py reconcile`: one tick of the reconciler, as the clock has it.

May import services. Prints counts; no PHI.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from pipeline.operations import services


class Command(BaseCommand):
    """Recover, release and wake what is due, once."""

    help = "Put jobs of lost workers back in line, and make queues and rows agree, once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the form of the answer."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what was done; more than a tick's bounds is left to the next one."""
        tick = services.jobs_reconcile()
        self.stdout.write(json.dumps(asdict(tick)) if options["json"] else tick.said)
