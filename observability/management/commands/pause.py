"""`manage.py pause (QUEUE | --provider P [--model M]) --reason …`: pause work.

Waiting jobs are parked when a worker reaches them. A running step starts no more calls to a paused
provider; a running step of a paused queue runs to its end.
"""

from __future__ import annotations

import argparse
from typing import Any

from observability.audit.actor import operator
from observability.management.audited_command import add_target, held, one_line, target_of
from pipeline.management.plain_command import PlainCommand
from pipeline.operations import operator_actions


class Command(PlainCommand):
    """Pause a queue, or one or all models of a provider."""

    help = "Pause a queue, or all work that calls a provider, until `resume`."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the target and the reason."""
        add_target(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if the target is paused already, or if none was named."""
        queue = target_of(options)
        with one_line(), held("pause", options) as facts:
            facts["message"] = "paused"
            if queue is not None:
                operator_actions.queue_pause(queue, reason=options["reason"], by=operator())
            else:
                operator_actions.provider_pause(
                    options["provider"],
                    options["model"],
                    reason=options["reason"],
                    by=operator(),
                )
        self.stdout.write("Paused.")
