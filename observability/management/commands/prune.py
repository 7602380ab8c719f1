"""`manage.py prune [--dry-run] [--table NAME [--older-than DAYS]]`: delete what is past its time.

The output holds names of tables and counts, and no personal data.
"""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from observability.actions.retention import ALL_RULES, due_rules, line_of, prune_audited
from observability.audit.actor import command_line
from observability.management.audited_command import one_line
from observability.management.owner import deleting_records
from pipeline.management.plain_command import PlainCommand
from pipeline.operations.reasons import stated_if_given

MOST_DAYS = 36_500


class Command(PlainCommand):
    """Delete rows that are older than their retention, once."""

    help = (
        "Delete rows that are older than their retention, in small transactions. Without --table,"
        " all tables with a retention of their own. Never deletes a result that is locked or not"
        " reviewed."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare table, age, dry run and the other options."""
        parser.add_argument("--dry-run", action="store_true", help="only count; change nothing")
        parser.add_argument(
            "--table", choices=sorted(ALL_RULES), metavar="NAME", help=", ".join(sorted(ALL_RULES))
        )
        parser.add_argument(
            "--older-than",
            type=days,
            metavar="DAYS",
            help="with --table: another age than the table's own",
        )
        parser.add_argument("--reason", default="", help="stored in the audit, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each table. Raises CommandError for an age without a table."""
        tables, dry_run = _tables(options), options["dry_run"]
        erases = not dry_run and any(ALL_RULES[name].erases for name in tables)
        with one_line(), deleting_records() if erases else nullcontext():
            reason = stated_if_given(options["reason"]) or ""
            found = prune_audited(command_line(), tables, dry_run=dry_run, reason=reason)
        if options["json"]:
            rows = [asdict(each) for each in found]
            self.stdout.write(json.dumps({"dry_run": dry_run, "tables": rows}))
            return
        for each in found:
            self.stdout.write(line_of(each, dry_run=dry_run))
        if dry_run:
            self.stdout.write("Nothing was changed (dry run).")


def days(text: str) -> int:
    """Parse an age in whole days. Raises ArgumentTypeError for any other text."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"not a number of days from 1 to {MOST_DAYS}")
    return int(text)


def _tables(options: dict[str, Any]) -> dict[str, int]:
    name, age = options["table"], options["older_than"]
    if name is None:
        if age is not None:
            raise CommandError(
                "--older-than needs --table: one age for all tables would delete too much"
                " (VALUE_INVALID)",
                returncode=2,
            )
        return due_rules()
    own = ALL_RULES[name].days if age is None else age
    if own is None:
        raise CommandError(
            f"{name} has no age of its own; give --older-than DAYS (VALUE_INVALID)", returncode=2
        )
    return {name: own}
