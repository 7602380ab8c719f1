"""`manage.py evaluate [DATA]`: extraction quality of the local engine on labelled data.

The command needs neither database nor services. DATA contains notes in Anafora or brat form, JSON
lines with contexts, or sample records with their truth. The default is the project's samples.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table

from evaluation import Score, evaluate

_SAMPLES = Path(__file__).resolve().parents[3] / "samples"
_WIDTH = 110
"""Width of the table if the output is not a terminal."""


class Command(BaseCommand):
    """Score the local engine."""

    help = "Measure the local engine's extraction quality on labelled data."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the folder and the output format."""
        parser.add_argument("data", nargs="?", help="folder with labelled data (default: samples)")
        parser.add_argument("--json", action="store_true", help="print one JSON list")
        parser.add_argument(
            "--misses", action="store_true", help="print each miss with its words (PHI of the data)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Score every data set in the folder and print one table."""
        folder = Path(options["data"] or _SAMPLES)
        if not folder.is_dir():
            raise CommandError(f"The folder {folder} does not exist.")
        scores = evaluate(folder, self._print_miss if options["misses"] else None)
        if not scores:
            raise CommandError(
                f"{folder} contains no labelled data: no Anafora XML, brat .ann, context_*.jsonl "
                "or *.truth.json beside its text."
            )
        if options["json"]:
            self.stdout.write(json.dumps([score.as_json() for score in scores], indent=2))
        else:
            terminal = self.stdout.isatty()
            console = Console(width=None if terminal else _WIDTH, force_terminal=terminal)
            with console.capture() as capture:
                console.print(_table(scores))
            self.stdout.write(capture.get())

    def _print_miss(self, note: str, measure: str, words: str) -> None:
        self.stdout.write(f"{note} | {measure} | {' '.join(words.split())}")


def _table(scores: list[Score]) -> Table:
    table = Table(title="Local engine on labelled data (relaxed overlap)")
    for name in ("data", "part", "measure"):
        table.add_column(name)
    for name in ("TP", "FP", "FN", "P", "R", "F1"):
        table.add_column(name, justify="right")
    before = ""
    for score in scores:
        if before and score.data != before:
            table.add_section()
        table.add_row(
            score.data if score.data != before else "",
            score.part,
            score.measure,
            str(score.tp),
            str(score.fp),
            str(score.fn),
            *(
                "" if figure is None else f"{figure:.3f}"
                for figure in (score.precision, score.recall, score.f1)
            ),
        )
        before = score.data
    return table
