"""An action on the job of one record: the shared base of `cancel` and `requeue`.

An action that cannot be carried out is one line and exit code 1.
"""

from __future__ import annotations

import argparse
import json
from abc import ABC, abstractmethod
from typing import Any
from uuid import UUID

from observability.audit.actor import operator
from observability.management.audited_command import audited, one_line
from observability.management.id_arguments import record_of
from pipeline.management.plain_command import PlainCommand


class RecordActionCommand(PlainCommand, ABC):
    """Takes any id of a record and a reason; reports the action as a line or as JSON."""

    action = ""
    """The name of the action in the audit."""

    @abstractmethod
    def act(self, record: UUID, *, reason: str | None, by: str) -> tuple[str, dict[str, str]]:
        """Carry out the action; return its line, and the extra fields of `--json`.

        Raises UserError if there is nothing to do.
        """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the id and the options."""
        parser.add_argument("id", metavar="ID", help="the record's id, or any id in the record")
        parser.add_argument("--reason", help="stored with the job, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if there is nothing to do, or if the id is unknown."""
        record = record_of(options["id"])
        reason = options["reason"]
        row = {"target_kind": "record", "target_id": record, "reason": reason}
        with one_line(), audited(self.action, **row) as told:
            line, facts = self.act(record, reason=reason, by=operator())
            told["message"] = line
        if options["json"]:
            line = json.dumps({"shell_file_id": str(record), **facts})
        self.stdout.write(line)
