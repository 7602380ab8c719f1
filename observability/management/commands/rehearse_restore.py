"""`manage.py rehearse_restore BACKUP`: prove that a backup can be restored, without any risk."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from observability.management.audited_command import one_line
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand
from pipeline.operations.backup.rehearsal import rehearse_restore


class Command(PlainCommand):
    """Rehearse a restore."""

    help = (
        "Restore a backup into throw-away servers in TMPDIR, check rows, files and audit, and"
        " remove everything again. Touches neither the database nor the files of the service."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the backup and the output."""
        parser.add_argument("backup", type=Path, metavar="BACKUP", help="the folder of the backup")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit with 1 and one line if the backup cannot be restored, or differs afterwards."""
        with one_line():
            found = rehearse_restore(options["backup"])
        manifest = found.manifest
        if options["json"]:
            rows = {"records": manifest.records, "files": manifest.files}
            spent = {"seconds": round(found.seconds, 1), "audit_events": found.audit_events}
            self.stdout.write(json.dumps({**rows, **spent, "made_at": manifest.made_at}))
            return
        self.stdout.write(
            f"The backup of {manifest.made_at} can be restored:"
            f" {counted(manifest.records, 'record')} and {counted(manifest.files, 'stored file')}"
            f" in {found.seconds:.1f} s. Rows of {counted(len(manifest.tables), 'table')} equal the"
            f" backup, no file is missing, and the audit is intact"
            f" ({counted(found.audit_events, 'event')})."
        )
