"""A verb about the job of one record: what `cancel` and `requeue` have in common.

Imports naming. A verb that cannot be carried out is one line and exit code 1.
"""

from __future__ import annotations

import argparse
import json
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand

from observability.management.naming import record_of
from pipeline.management.holding import one_line, operator


class RecordVerbCommand(BaseCommand):
    """Takes any id of a record and a reason; says what was done as a line or as JSON."""

    def act(self, record: UUID, *, reason: str | None, by: str) -> tuple[str, dict[str, str]]:
        """Carry the verb out; return the line, and what `--json` says beside the record's id.

        Raises UserError where there is nothing to be done.
        """
        raise NotImplementedError

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the id."""
        parser.add_argument("id", metavar="ID", help="the record's id, or any other of it")
        parser.add_argument("--reason", help="why; kept with the job, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError where nothing can be done, or the id names nothing."""
        record = record_of(options["id"])
        with one_line():
            line, facts = self.act(record, reason=options["reason"], by=operator())
        if options["json"]:
            line = json.dumps({"shell_file_id": str(record), **facts})
        self.stdout.write(line)
