"""Judge the local engine on generated cases: `python -m tests.support.generator --cases 2000`.

The last lines name every wrong case. `--case KIND:SEED` shows one case again.
"""

from __future__ import annotations

import argparse
import os
import sys

import django


def main() -> None:
    """Print the table, or one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2_000, help="number of cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run")
    parser.add_argument("--kind", default="", help="only kinds whose name begins with this")
    parser.add_argument(
        "--pdf", type=float, default=0.0, help="share of the cases that go through a PDF (0 to 1)"
    )
    parser.add_argument("--case", default="", help="KIND:SEED of one case to show")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    django.setup()
    _print_case(options) if options.case else _print_table(options)


def _print_table(options: argparse.Namespace) -> None:
    from tests.support.generator.kinds import all_cases
    from tests.support.generator.reading import judge_all
    from tests.support.generator.report import Report

    chosen = (
        case
        for case in all_cases(options.cases, options.seed)
        if case.kind.startswith(options.kind)
    )
    report = Report.of(judge_all(chosen, options.pdf))
    lines = [*report.table(), "", *report.wrong]
    sys.stdout.write("\n".join(lines) + "\n")


def _print_case(options: argparse.Namespace) -> None:
    from tests.support.generator.kinds import the_case
    from tests.support.generator.reading import judge_all

    (judged,) = judge_all([the_case(options.case)], options.pdf)
    lines = [judged.case.heading, judged.case.text, ""]
    if judged.page_text:
        lines += ["as read from the PDF:", judged.page_text, ""]
    lines += [f"expected {fact}" for fact in judged.case.expected]
    lines += [
        f"found { ({k: v for k, v in row.items() if v and not k.endswith('_id') and k != 'id'}) }"
        for row in judged.rows
    ]
    lines += [f"{attribute}: {verdict}" for attribute, verdict in judged.verdicts]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
