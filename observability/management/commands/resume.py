"""`manage.py resume (QUEUE | --provider P [--model M]) --reason …`: end a pause.

For a provider the command also ends the open incidents.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from observability.audit.actor import operator
from observability.management.audited_command import add_target, held, one_line, target_of
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand
from pipeline.operations import operator_actions


class Command(PlainCommand):
    """End the holds on a queue, or on one or all models of a provider."""

    help = "End a pause, and for a provider its open incidents; release the parked jobs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the target and the reason."""
        add_target(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if the target is not on hold, or if none was named."""
        queue = target_of(options)
        with one_line(), held("resume", options) as facts:
            if queue is not None:
                done = operator_actions.queue_resume(queue, reason=options["reason"], by=operator())
            else:
                done = operator_actions.provider_resume(
                    options["provider"],
                    options["model"],
                    reason=options["reason"],
                    by=operator(),
                )
            facts.update(asdict(done))
        self.stdout.write(
            f"Ended {counted(done.pauses, 'pause')} and {counted(done.incidents, 'incident')};"
            f" released {counted(done.released, 'job')}."
        )
