"""`manage.py explain ID`: the drill-down as a tree, from any id; for an incident its evidence.

The first line is the answer. The output never contains a file name, a person's name or document
text.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder
from rich.console import Console

from medproc.printable import printable
from observability.diagnostics.incidents import IncidentReport, incident_report
from observability.drilldown.explain import drill_down_to
from observability.drilldown.lookup import SHORTEST, IdError, locate
from observability.drilldown.nodes import DrillDown
from observability.drilldown.text import as_lines, as_tree, hides, outline
from pipeline.management.plain_command import PlainCommand


class Command(PlainCommand):
    """Explain the state of a record and its reasons."""

    help = (
        "Explain the state of a record, from any of its ids: record (shell file), job, session,"
        " encounter, chunk, batch, zone, narrative, call, entity, enriched entity, sentence or list"
        " entry; or explain an incident, with its evidence."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the id and the options."""
        parser.add_argument(
            "id", metavar="ID", help=f"an id, or its first {SHORTEST} or more hexadecimal digits"
        )
        parser.add_argument("--all", action="store_true", help="show everything; fold nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError, which is one line and exit code 1, for an unknown id."""
        try:
            located = locate(options["id"])
        except IdError as error:
            raise CommandError(str(error)) from None
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
        if located.kind == "incident":
            self._print_incident(incident_report(located.id), as_json=options["json"])
            return
        try:
            found = drill_down_to(located)
        except IdError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(found.as_json(), cls=DjangoJSONEncoder))
        else:
            self._print(found, everything=options["all"])

    def _print_incident(self, report: IncidentReport, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(report.as_json(), cls=DjangoJSONEncoder))
            return
        for line in (report.answer, "", *report.as_lines()):
            self.stdout.write(line)

    def _print(self, drill_down: DrillDown, *, everything: bool) -> None:
        rows = outline(drill_down, everything=everything)
        hint = "" if everything or not hides(drill_down, rows) else "\n--all shows what is folded."
        if not self.stdout.isatty():
            self.stdout.write(drill_down.answer)
            if drill_down.answer != drill_down.record_answer:
                self.stdout.write(drill_down.record_answer)
            if drill_down.incomplete_note:
                self.stdout.write(drill_down.incomplete_note)
            for each in drill_down.reused:
                self.stdout.write(each.line)
            self.stdout.write("")
            for line in as_lines(rows):
                self.stdout.write(line)
            if hint:
                self.stdout.write(hint)
            return
        console = Console(file=sys.stdout, highlight=False)
        console.print(printable(drill_down.answer), style="bold", markup=False)
        if drill_down.answer != drill_down.record_answer:
            console.print(printable(drill_down.record_answer), markup=False)
        if drill_down.incomplete_note:
            console.print(printable(drill_down.incomplete_note), style="yellow", markup=False)
        for each in drill_down.reused:
            console.print(each.line, markup=False)
        console.print()
        console.print(as_tree(rows))
        if hint:
            console.print(hint, style="dim", markup=False)
