"""`manage.py backup FOLDER`: the database and all stored files of one moment, in a new folder.

The output holds counts and the name of the new folder. The backup itself is PHI.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from observability.audit import chain, log
from observability.management.audited_command import one_line
from observability.management.owner import as_owner
from pipeline.core.errors import UserError
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand
from pipeline.operations.backup.making import make_backup

BACKUP = "backup"
"""The audit's name for a backup."""


class Command(PlainCommand):
    """Make a backup."""

    help = (
        "Write a backup of the database and of all stored files into a new folder below FOLDER."
        " medproc keeps working meanwhile. The backup is not encrypted."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the folder and the output."""
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="for example another disk")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit with 1 and one line if the backup is not complete; no folder is left then."""
        with one_line():
            try:
                with as_owner():
                    made, manifest = make_backup(options["folder"], chain.head)
            except UserError as error:
                _audit("", {}, refusal=error)
                raise
        facts = {"records": manifest.records, "files": manifest.files}
        _audit(made.name, facts)
        if options["json"]:
            shown = {"folder": str(made), **facts, "files_bytes": manifest.files_bytes}
            self.stdout.write(json.dumps({**shown, "audit_head": manifest.audit_head}))
            return
        self.stdout.write(
            f"{made}: {counted(manifest.records, 'record')},"
            f" {counted(manifest.files, 'stored file')} ({manifest.files_bytes / 1e6:.1f} MB),"
            f" {counted(len(manifest.tables), 'table')}"
        )
        self.stdout.write("The backup is not encrypted. Keep SECRET_KEY apart from the backup.")


def _audit(name: str, facts: Mapping[str, int], refusal: UserError | None = None) -> None:
    log.record_command(BACKUP, target_kind="backup", target_id=name, refusal=refusal, facts=facts)
