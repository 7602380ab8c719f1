"""`manage.py health`: the current problems; the exit code is 1 if a problem exists.

The command only reads, and names no record.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand
from pipeline.models import FileSweep
from pipeline.operations.health import Health, examine

MIB = 1024 * 1024


class Command(PlainCommand):
    """Check the scheduler, the workers, and the ages of waiting and running work."""

    help = "Report problems: no scheduler, no workers, work that waits or runs for too long."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the problems first, then the figures."""
        health = examine()
        if options["json"]:
            self.stdout.write(json.dumps(_object(health)))
        else:
            for line in _lines(health):
                self.stdout.write(line)
        if health.problems:
            raise SystemExit(1)


def _object(health: Health) -> dict[str, Any]:
    return {
        "ok": not health.problems,
        "problems": list(health.problems),
        "warnings": list(health.warnings),
        "notices": list(health.notices),
        "faults": list(health.faults),
        "oldest_waiting_s": health.oldest_waiting_s,
        "oldest_running_s": health.oldest_running_s,
        "steps": {step.value: asdict(ages) for step, ages in health.steps.items()},
        "clock": [asdict(tick) for tick in health.ticks],
        "queues": dict(health.depths),
        "served": sorted(health.served),
        "stored_files": _figures(health.file_sweep) if health.file_sweep else None,
    }


def _figures(row: FileSweep) -> dict[str, Any]:
    return {
        name: getattr(row, name)
        for name in (
            "files", "orphaned_files", "orphaned_bytes", "young_files", "young_bytes",
            "deleted_files", "missing_files", "held",
        )
    }  # fmt: skip


def _lines(health: Health) -> list[str]:
    lines = [f"problem: {problem}" for problem in health.problems]
    lines += [f"notice: {notice}" for notice in health.notices]
    lines = lines or ["all is well"]
    lines += [f"warning: {warning}" for warning in health.warnings]
    lines.append(
        f"oldest waiting {_age(health.oldest_waiting_s)},"
        f" oldest running {_age(health.oldest_running_s)}"
    )
    for step, ages in health.steps.items():
        if not (ages.waiting or ages.running or ages.parked):
            continue
        lines.append(
            f"  {step.value:<8} {ages.waiting} waiting ({_age(ages.oldest_waiting_s)}),"
            f" {ages.running} running ({_age(ages.oldest_running_s)}),"
            f" {ages.expired} held by lost workers, {ages.parked} parked"
        )
    for tick in health.ticks:
        last = f"{_age(tick.age_s)} ago, {tick.outcome}" if tick.outcome else "never"
        lines.append(f"  scheduler {tick.task}: {last}")
    if row := health.file_sweep:
        left = row.orphaned_files + row.young_files - row.deleted_files
        size = row.orphaned_bytes + row.young_bytes - row.deleted_bytes
        lines.append(
            f"  stored files at the last sweep: {row.files}, of which {left} without a record"
            f" ({size / MIB:.1f} MiB); {counted(row.missing_files, 'record')} without a file"
        )
    return lines


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"
