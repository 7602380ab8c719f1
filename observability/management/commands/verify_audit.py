"""`manage.py verify_audit [--head SEQ:HASH]`: check that the audit is unchanged.

Prints ids and hashes; the output contains no reason and no name.
"""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

from django.core.management.base import CommandError

from observability.audit.actor import command_line
from observability.audit.chain import BrokenChainError, ChainHead
from observability.audit.watch import verify_all
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand


class Command(PlainCommand):
    """Check the hash chain of the audit."""

    help = (
        "Check that no audit row was changed, removed or inserted since it was written."
        " Compares the audit with all heads that were recorded; --head adds one of your own."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--head",
            type=_head,
            metavar="SEQ:HASH",
            help="a head, from a log or a file",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError for the first row that does not fit the chain."""
        try:
            found = verify_all([options["head"]] if options["head"] else [], by=command_line())
        except BrokenChainError as error:
            raise CommandError(f"The audit was tampered with: {error}.") from None
        if options["json"]:
            shown = {"events": found.seq if found else 0, "head": str(found) if found else None}
            self.stdout.write(json.dumps(shown))
        elif found is None:
            self.stdout.write("The audit is empty.")
        else:
            self.stdout.write(f"The audit is intact: {counted(found.seq, 'event')}, head {found}.")


def _head(text: str) -> ChainHead:
    matched = re.fullmatch(r"(\d{1,18}):([0-9a-f]{64})", text)
    if matched is None:
        raise argparse.ArgumentTypeError("not a head as it is logged, SEQ:HASH")
    return ChainHead(int(matched[1]), matched[2])
