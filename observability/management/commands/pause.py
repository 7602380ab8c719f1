"""`manage.py pause (QUEUE | --provider P [--model M]) --reason …`: hold work back.

May import services and the audit. What waits is parked as workers come to it; a step of a paused
provider that runs starts no more calls, one of a paused queue goes on to its end.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from observability.audit.actor import operator
from observability.management.audited_command import add_target, held, one_line, target_of
from pipeline.operations import services


class Command(BaseCommand):
    """Hold a queue, or a provider and one or all of its models."""

    help = "Hold a queue, or what asks a provider, until `resume`."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what is held, and why."""
        add_target(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError where it is paused already, or nothing was named."""
        queue = target_of(options)
        with one_line(), held("pause", options) as facts:
            facts["message"] = "paused"
            if queue is not None:
                services.queue_pause(queue, reason=options["reason"], by=operator())
            else:
                services.provider_pause(
                    options["provider"],
                    options["model"],
                    reason=options["reason"],
                    by=operator(),
                )
        self.stdout.write("Paused.")
