"""`manage.py restore BACKUP`: fill an installation with an empty database from a backup."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management import call_command

from observability.audit import log
from observability.management.audited_command import one_line
from observability.management.owner import as_owner
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand
from pipeline.operations.backup.restoring import restore_backup

RESTORE = "restore"
"""The audit's name for a restore."""


class Command(PlainCommand):
    """Restore a backup."""

    help = (
        "Restore a backup into an installation whose database is empty. The command compares all"
        " files and the rows of each table with the backup, and then migrates."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the backup and the options."""
        parser.add_argument("backup", type=Path, metavar="BACKUP", help="the folder of the backup")
        parser.add_argument(
            "--other-secret-key",
            action="store_true",
            help="restore although the backup was made under another SECRET_KEY",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit with 1 and one line if the backup cannot be restored."""
        with one_line():
            with as_owner():
                manifest = restore_backup(options["backup"], other_key=options["other_secret_key"])
            # The role of the service needs its privileges before it can write the audit.
            call_command("migrate", verbosity=0, interactive=False)
        facts = {"made_at": manifest.made_at, "records": manifest.records, "files": manifest.files}
        log.record_command(
            RESTORE,
            target_kind="backup",
            target_id=options["backup"].resolve().name,
            refusal=None,
            facts=facts,
        )
        if options["json"]:
            self.stdout.write(json.dumps(facts))
            return
        self.stdout.write(
            f"Restored {counted(manifest.records, 'record')} and"
            f" {counted(manifest.files, 'stored file')} as of {manifest.made_at}. Rows of"
            f" {counted(len(manifest.tables), 'table')} equal the backup."
        )
        self.stdout.write("Now start workers, scheduler and console, with an empty Redis.")
