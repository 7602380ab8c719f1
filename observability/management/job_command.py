"""A verb about the job of one record: what `cancel` and `requeue` have in common.

Imports naming and the audit. A verb that cannot be carried out is one line and exit code 1.
"""

from __future__ import annotations

import argparse
import json
from abc import ABC, abstractmethod
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand

from observability.audit.actor import operator
from observability.management.audited_command import deed, one_line
from observability.management.id_arguments import record_of


class RecordVerbCommand(BaseCommand, ABC):
    """Takes any id of a record and a reason; says what was done as a line or as JSON."""

    verb = ""
    """As the audit names it."""

    @abstractmethod
    def act(self, record: UUID, *, reason: str | None, by: str) -> tuple[str, dict[str, str]]:
        """Carry the verb out; return the line, and what `--json` says beside the record's id.

        Raises UserError where there is nothing to be done.
        """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the id."""
        parser.add_argument("id", metavar="ID", help="the record's id, or any other of it")
        parser.add_argument("--reason", help="why; kept with the job, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError where nothing can be done, or the id names nothing."""
        record = record_of(options["id"])
        reason = options["reason"]
        row = {"target_kind": "record", "target_id": record, "reason": reason}
        with one_line(), deed(self.verb, **row) as told:
            line, facts = self.act(record, reason=reason, by=operator())
            told["message"] = line
        if options["json"]:
            line = json.dumps({"shell_file_id": str(record), **facts})
        self.stdout.write(line)
