"""`manage.py reset_stale_batches`: requeue batches that no worker processes any more.

Shows the evidence for each batch: age, worker, heartbeat and lease. The output contains no PHI.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from medproc.timing import scaled
from observability.management.audited_command import audited, one_line
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand
from pipeline.operations import operator_actions
from pipeline.operations.reasons import stated_if_given
from pipeline.transitions.stale import STALE_S, Stale

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Command(PlainCommand):
    """Reset stale batches and chunks to `pending`, once."""

    help = "Requeue batches that have been processing for long and whose lease has expired."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare age, dry run and the other options."""
        parser.add_argument(
            "--older-than",
            type=seconds,
            default=scaled(STALE_S),
            metavar="AGE",
            help="only batches that have been processing for longer: 90s, 10m, 2h (default 10m)",
        )
        parser.add_argument("--dry-run", action="store_true", help="only show what would be reset")
        parser.add_argument("--reason", default="", help="stored in the audit, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each row with its evidence."""
        with one_line():
            rows = _reset(options["older_than"], options["reason"], dry_run=options["dry_run"])
        if options["json"]:
            found = {
                "dry_run": options["dry_run"],
                "older_than_s": options["older_than"],
                "count": len(rows),
                "rows": [asdict(row) for row in rows],
            }
            self.stdout.write(json.dumps(found, cls=DjangoJSONEncoder))
            return
        action = "would be reset" if options["dry_run"] else "reset"
        self.stdout.write(f"{counted(len(rows), 'stale row')} {action}")
        for row in rows:
            self.stdout.write(f"  {_line(row)}")


def seconds(text: str) -> float:
    """Parse an age into seconds. Raises ArgumentTypeError for any other text."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if matched is None:
        raise argparse.ArgumentTypeError("not an age such as 90s, 10m or 2h")
    return float(matched[1]) * _UNITS[matched[2]]


def _reset(older_s: float, reason: str, *, dry_run: bool) -> list[Stale]:
    if dry_run:
        return operator_actions.stale_batches_reset(older_s, dry_run=True)
    with audited("reset", target_kind="stale work", reason=stated_if_given(reason)) as facts:
        rows = operator_actions.stale_batches_reset(older_s)
        facts.update(older_s=older_s, requeued=len(rows))
        facts["jobs"] = sorted({str(row.job_id) for row in rows})
    return rows


def _line(row: Stale) -> str:
    lease = (
        f"lease expired {row.lease_expired_s:.0f} s ago"
        if row.lease_expired_s is not None
        else f"job {row.job_status}"
    )
    heard = f", last heartbeat {row.heartbeat_age_s:.0f} s ago" if row.heartbeat_age_s else ""
    return (
        f"{row.kind} {row.number:<4} {row.id}  processing for {row.processing_s:.0f} s,"
        f" attempt {row.attempt_count}, worker {row.worker_id or 'none'}, {lease}{heard}"
    )
