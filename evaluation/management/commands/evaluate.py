"""`manage.py evaluate [DATA]`: extraction quality of the local engine on labelled data.

The command needs neither database nor services. DATA contains notes in Anafora or brat form, JSON
lines with contexts, sample records with their truth, or inputs with expectations. The default is
the project's samples.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table

from evaluation.attributes import AttributeOutcome, AttributeScore
from evaluation.reports import BadDataError
from evaluation.run import Evaluation, evaluate
from evaluation.scores import Score
from medproc.printable import printable

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
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--misses", action="store_true", help="print each miss with its words (PHI of the data)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Judge every data set in the folder and print the tables."""
        folder = Path(options["data"] or _SAMPLES)
        if not folder.is_dir():
            raise CommandError(f"EVAL_NO_FOLDER: the folder {folder} does not exist.")
        try:
            found = evaluate(folder, self._print_miss if options["misses"] else None)
        except BadDataError as error:
            raise CommandError(str(error)) from None
        if found.is_empty:
            raise CommandError(
                f"EVAL_NO_DATA: {folder} contains no labelled data: no Anafora XML, brat .ann, "
                "context_*.jsonl, *.truth.json or JSON with expectations."
            )
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(found), indent=2))
            return
        terminal = self.stdout.isatty()
        console = Console(width=None if terminal else _WIDTH, force_terminal=terminal)
        with console.capture() as capture:
            for table in _tables(found):
                console.print(table)
        self.stdout.write(capture.get())

    def _print_miss(self, note: str, measure: str, words: str) -> None:
        self.stdout.write(printable(f"{note} | {measure} | {' '.join(words.split())}"))


def _as_json(found: Evaluation) -> dict[str, object]:
    return {
        "attributes": [line.as_json() for line in found.attributes.scores()],
        "reports": _report_figures(found),
        "scores": [score.as_json() for score in found.scores],
    }


def _tables(found: Evaluation) -> Iterator[Table | str]:
    lines = found.attributes.scores()
    if lines:
        yield _attribute_table(lines)
    if found.reports:
        yield _report_line(found)
    if found.scores:
        yield _table(found.scores)


def _report_figures(found: Evaluation) -> dict[str, int]:
    checked = [each for result in found.reports for each in result.checked]
    return {
        "inputs": len(found.reports),
        "whole": sum(result.is_whole for result in found.reports),
        "expectations": len(checked),
        "hold": sum(each.holds for each in checked),
        "wrong_and_unflagged": sum(each.is_wrong for each in checked),
    }


def _report_line(found: Evaluation) -> str:
    figures = _report_figures(found)
    failed = [
        f"{result.id}{' (wrong)' if result.is_wrong else ''}"
        for result in found.reports
        if not result.is_whole
    ]
    line = (
        f"{figures['whole']} of {figures['inputs']} inputs with expectations whole, "
        f"{figures['hold']} of {figures['expectations']} expectations hold, "
        f"{figures['wrong_and_unflagged']} wrong and unflagged"
    )
    return f"{line}\nnot whole: {', '.join(failed)}\n" if failed else f"{line}\n"


def _attribute_table(lines: list[AttributeScore]) -> Table:
    table = Table(title="Attributes: counts and shares")
    table.add_column("category")
    table.add_column("attribute")
    for outcome in AttributeOutcome:
        table.add_column(outcome.value, justify="right")
    before = ""
    for line in lines:
        if before and line.category != before:
            table.add_section()
        table.add_row(
            line.category if line.category != before else "",
            line.attribute,
            *(f"{line.counts[each]:,} ({line.share(each):.1%})" for each in AttributeOutcome),
        )
        before = line.category
    return table


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
