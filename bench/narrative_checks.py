"""Measure the check of narratives: altered sentences found, unaltered sentences refused.

`python -m bench.narrative_checks [--sentences N] [--seed S] [--show]` prints one row per kind of
alteration. Sentences come from the local narrative of generated texts and from written prose.
"""

from __future__ import annotations

import argparse
import os

import django


def main() -> None:
    """Print the table, and with `--show` every sentence that is judged wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=2_000, help="altered sentences")
    parser.add_argument("--seed", type=int, default=1, help="seed of texts and alterations")
    parser.add_argument("--show", action="store_true", help="print wrong judgements")
    parser.add_argument(
        "--prose",
        default="all",
        help="all, tuned, held, notes-tuned, notes-unseen, letters, letters-later or letters-last",
    )
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    django.setup()
    from tests.support.narrative_judge import judged

    report = judged(options.sentences, options.seed, prose=options.prose)
    print("\n".join(report.table()))
    if options.show:
        print("\n".join(report.wrong))


if __name__ == "__main__":
    main()
