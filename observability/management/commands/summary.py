"""`manage.py summary ID…`: codes, lists and narrative of records. The output is PHI.

Each reading is audited. Sentences that the entities do not support are not printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from medproc.printable import printable
from observability.audit.actor import command_line
from observability.audit.log import READ_PHI, record
from observability.drilldown.lookup import SHORTEST, IdError, locate
from observability.phi.clinical_summary import ClinicalSummary, clinical_summary
from observability.phi.list_entries import LIST_TITLES, ListEntry
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand

OUTDATED = " [outdated: a reviewer has changed an entity]"


class Command(PlainCommand):
    """Print the clinical summary of records."""

    help = (
        "Print the clinical summary of records: the narrative (Pass 3), the chosen codes, and the"
        " lists of problems, medications, allergies and laboratory series (Pass 2). The output"
        " contains clinical data of patients, and each reading is audited."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the ids and the options."""
        parser.add_argument(
            "ids",
            metavar="ID",
            nargs="+",
            help="the id of a record or of anything in the record, or the first"
            f" {SHORTEST} or more hexadecimal digits",
        )
        parser.add_argument(
            "--lines",
            type=_lines,
            default=0,
            metavar="N",
            help="the first N sentences, codes and entries of each list (default: all)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object per record")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError, which is one line and exit code 1, for an unknown id."""
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            located = [locate(each) for each in options["ids"]]
        except IdError as error:
            raise CommandError(str(error)) from None
        for each in located:
            if each.shell_file_id is None:
                raise CommandError(f"{each.id} is the id of no record")
            with transaction.atomic():
                found = clinical_summary(each.shell_file_id)
                record(
                    command_line(),
                    READ_PHI,
                    target_kind="record",
                    target_id=each.shell_file_id,
                    facts={"what": "summary"},
                )
            if options["json"]:
                self.stdout.write(json.dumps(found.as_json()))
                continue
            for line in lines_of(found, options["lines"] or None):
                self.stdout.write(printable(line))


def lines_of(found: ClinicalSummary, most: int | None) -> Iterator[str]:
    """Yield the lines of a summary; `most` limits sentences, codes and entries of each list."""
    yield f"Record {found.shell_file_id}"
    if found.incomplete_note:
        yield f"  {found.incomplete_note}"
    yield from (f"  {sentence}" for sentence in found.open_passes)
    if not found.entities:
        yield "  No pass after Pass 1 has results of this record."
        return
    for narrative in found.narratives[:most]:
        yield f"  {narrative.title}"
        yield from (
            f"    {sentence.text}{OUTDATED if sentence.is_outdated else ''}"
            for sentence in narrative.sentences[:most]
        )
        if narrative.left_out:
            yield f"    ({counted(narrative.left_out, 'sentence')} not supported and left out)"
    coded = sum(each.entities for each in found.codes)
    yield f"  Codes: {coded:,} of {counted(found.entities, 'entity')}"
    for each in found.codes[:most]:
        yield f"    {each.code}  {each.display}  ×{each.entities}"
    for kind, entries in found.lists.items():
        yield f"  {LIST_TITLES[kind]}: {len(entries)}"
        for entry in entries[:most]:
            yield from _entry(entry)


def _entry(entry: ListEntry) -> Iterator[str]:
    code = f" [{entry.code}]" if entry.code else ""
    numbers = ", ".join(map(str, entry.encounters))
    where = "encounter" if len(entry.encounters) == 1 else "encounters"
    said = f": {entry.words}" if entry.words else ""
    yield f"    {entry.name}{code}{said} ({where} {numbers}){OUTDATED if entry.is_outdated else ''}"
    yield from (f"      contradiction: {message}" for message in entry.contradictions)
    yield from (f"      review: {reason}" for reason in entry.reasons)


def _lines(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 10_000:
        raise argparse.ArgumentTypeError("a number from 1 to 10000")
    return number
