"""`manage.py check_sla`: the service level by priority, and the forecast of the backlog's end.

The scheduler runs the same check every 5 minutes. Writes nothing.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from observability.metrics.sla import backlog_forecast, in_words, service_levels
from pipeline.management.plain_command import PlainCommand


class Command(PlainCommand):
    """Print the targets, the late records and the compliance."""

    help = "Show which records are past their target, and when the backlog ends."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line per priority, then the late records with the forecast."""
        levels, expected = service_levels(), backlog_forecast()
        if options["json"]:
            found = {
                "levels": [asdict(each) | {"compliance": each.compliance} for each in levels],
                "backlog_ends_at": expected.at,
                "basis": expected.words,
            }
            self.stdout.write(json.dumps(found, cls=DjangoJSONEncoder))
            return
        for each in levels:
            share = "–" if each.compliance is None else f"{each.compliance:.1%}"
            self.stdout.write(
                f"{each.priority:<7} target {each.target_s:>6.0f} s  late {each.late:>5}"
                f"  met {each.met:>6}  missed {each.missed:>6}  compliance {share}"
            )
        self.stdout.write(in_words(levels, expected))
