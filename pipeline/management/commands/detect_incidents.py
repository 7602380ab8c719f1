"""`manage.py detect_incidents`: run the detection of incidents once, as the scheduler does.

Prints the open incidents afterwards; the output contains no PHI.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from pipeline.core.labels import counted
from pipeline.core.states import IncidentState
from pipeline.management.audit import record_command
from pipeline.management.plain_command import PlainCommand
from pipeline.models import Incident
from pipeline.operations import operator_actions


class Command(PlainCommand):
    """Open, update and close incidents, and start their probes, once."""

    help = "Detect outages, throttling, used-up quotas and refused keys once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the number of opened and closed incidents, and one line per open incident."""
        tick = operator_actions.incidents_detect()
        if tick.changed:
            facts = {"opened": len(tick.opened), "closed": len(tick.closed), "linked": tick.linked}
            record_command("detect_incidents", target_kind="incidents", facts=facts)
        still_open = Incident.objects.filter(state=IncidentState.OPEN).order_by("opened_at", "id")
        if options["json"]:
            found = {
                "opened": tick.opened,
                "closed": tick.closed,
                "linked": tick.linked,
                "probes": len(tick.due),
                "open": [
                    {
                        "id": incident.id,
                        "kind": incident.kind,
                        "provider": incident.provider,
                        "model": incident.model,
                        "opened_at": incident.opened_at,
                        "first_failure_at": incident.first_failure_at,
                        "resumes_at": incident.resumes_at,
                        "evidence": incident.evidence,
                    }
                    for incident in still_open
                ],
            }
            self.stdout.write(json.dumps(found, cls=DjangoJSONEncoder))
            return
        self.stdout.write(
            f"{len(tick.opened)} opened, {len(tick.closed)} closed,"
            f" {counted(len(tick.due), 'probe')}, {counted(len(still_open), 'incident')} open"
        )
        for incident in still_open:
            self.stdout.write(
                f"  {incident.kind:<12} {incident.provider} {incident.model}"
                f"  since {incident.first_failure_at:%Y-%m-%d %H:%M:%S} UTC  {incident.id}"
            )
