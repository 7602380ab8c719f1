"""`manage.py retry (--record ID | … | --error-code CODE) [--dry-run] --reason …`.

Only failed work is sent to the provider again. The dry run and the retry use the same selection,
so the retry does exactly what the dry run shows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder

from observability.audit.actor import operator
from observability.management.audited_command import audited, one_line
from observability.management.id_arguments import located, moment
from pipeline.core.errors import ErrorCode
from pipeline.core.labels import counted
from pipeline.core.states import Step
from pipeline.management.plain_command import PlainCommand
from pipeline.models.work_tables import WORK_TABLES, encounter_parents
from pipeline.operations import operator_actions
from pipeline.operations.preview import Preview, Selection
from pipeline.operations.reasons import stated_if_given

_YES_NO = {True: "yes", False: "no", None: "no call was made before"}


class Command(PlainCommand):
    """Retry failed work."""

    help = (
        "Requeue failed work with new attempts; successful work is never sent again."
        " Exits with 0 only if something was retried, or with --dry-run would be retried."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--record", metavar="ID", help="all failed work of a record")
        what.add_argument("--job", metavar="ID", help="the same, by the id of its job")
        what.add_argument("--encounter", metavar="ID", help="failed work of one encounter")
        what.add_argument(
            "--batch",
            metavar="ID",
            help="one chunk of Pass 0.5, batch of Pass 1, zone of Pass 2 or narrative of Pass 3",
        )
        what.add_argument(
            "--error-code",
            metavar="CODE",
            choices=[code.value for code in ErrorCode],
            help="all work that failed with this code, also if behind MAX_RETRIES_EXCEEDED",
        )
        parser.add_argument(
            "--since", metavar="TIME", help="failed since then: 90m, 2h, 7d, or ISO 8601 in UTC"
        )
        parser.add_argument("--step", choices=Step.values, help="with --error-code: in this pass")
        parser.add_argument("--dry-run", action="store_true", help="only show what would happen")
        parser.add_argument("--reason", help="stored with the job, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if nothing can be retried, or if an id is unknown."""
        selection = _selection(options)
        reason = (options["reason"] or "").strip()
        if not reason and not options["dry_run"]:
            raise CommandError("give a reason with --reason, or look with --dry-run", returncode=2)
        with one_line():
            stated_if_given(reason)
            found = operator_actions.retry_preview(selection)
            if not options["json"]:
                for line in lines(found):
                    self.stdout.write(line)
            if options["dry_run"]:
                self._end(found, (), dry_run=True, as_json=options["json"])
                sys.exit(0 if found.eligible else 1)
            kind, target = _target(selection)
            with audited("retry", target_kind=kind, target_id=target, reason=reason) as facts:
                done = operator_actions.work_retry(found, reason=reason, by=operator())
                facts.update(retried=len(done.retried), skipped=len(done.ineligible))
                facts["selection"] = str(selection)
        found = replace(found, ineligible=done.ineligible)
        self._end(found, [each.job_id for each in done.retried], as_json=options["json"])

    def _end(
        self, preview: Preview, retried: Sequence[UUID], *, dry_run: bool = False, as_json: bool
    ) -> None:
        if as_json:
            shown = {"dry_run": dry_run, "retried": list(retried), **preview.as_json()}
            self.stdout.write(json.dumps(shown, cls=DjangoJSONEncoder))
        elif dry_run:
            self.stdout.write("Nothing was changed (dry run).")
        else:
            self.stdout.write(f"Retried {counted(len(retried), 'record')}.")


def lines(preview: Preview) -> list[str]:
    """Return a preview as lines."""
    records, encounters = len(preview.eligible), preview.encounters
    said = [
        f"Retry {preview.selection}",
        f"  Eligible      {counted(records, 'record')} · {counted(encounters, 'failed encounter')}",
    ]
    if preview.is_capped:
        said.append("  These are the oldest ones; run the retry again for the rest")
    if preview.ineligible:
        why = " · ".join(f"{reason} ({number})" for reason, number in preview.reasons.items())
        said.append(f"  Not eligible  {len(preview.ineligible)}: {why}")
    if preview.eligible:
        costs = (
            counted(preview.calls, "call"),
            f"≈ {preview.input_tokens:,} input tokens",
            f"≈ ${preview.cost_usd:.4f}",
            f"≈ {preview.quota_minutes:.1f} min of quota",
            f"pages sent again: {preview.pages:,}",
        )
        said.append(f"  Will make     {' · '.join(costs)}")
        if preview.later_calls:
            said.append(
                f"  Later passes  ≈ {counted(preview.later_calls, 'call')}"
                f" · ≈ {preview.later_tokens:,} input tokens"
            )
        said.append(f"  Same prompt and model as before: {_YES_NO[preview.same_versions]}")
    permanent = sorted({cause for each in preview.eligible for cause in each.permanent})
    if permanent:
        said.append(f"  May well fail again: {', '.join(permanent)}")
    return said


def _target(selection: Selection) -> tuple[str, str]:
    """Return the kind and the name of the target for the audit."""
    if selection.error_code is not None:
        return "error code", selection.error_code.value
    ids = {name: getattr(selection, name) for name in ("record", "job", "encounter", "item")}
    return next((name, str(found)) for name, found in ids.items() if found is not None)


def _selection(options: dict[str, Any]) -> Selection:
    if options["error_code"] is not None:
        return Selection(
            error_code=ErrorCode(options["error_code"]),
            since=moment(options["since"]) if options["since"] else None,
            step=Step(options["step"]) if options["step"] else None,
        )
    if options["since"] or options["step"]:
        raise CommandError("--since and --step need --error-code", returncode=2)
    if options["record"] is not None:
        return Selection(record=located(options["record"], ("record",)).id)
    if options["job"] is not None:
        return Selection(job=located(options["job"], ("job",)).id)
    if options["encounter"] is not None:
        kinds = ("encounter", *(parent.noun for parent in encounter_parents()))
        return Selection(encounter=located(options["encounter"], kinds).node_id)
    return Selection(
        item=located(options["batch"], sorted(t.noun for t in WORK_TABLES.values())).id
    )
