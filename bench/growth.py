"""What a claim, a tick of the reconciler and the overview cost with more and more jobs.

Run `python -m bench.growth [--jobs N ...]`. Each number of jobs has its own PostgreSQL and Valkey,
in a process of its own. Five per cent of the jobs wait, two per cent are parked, and each job has
20 batches; 100,000 jobs are seeded in 1 to 2 min. Exits 1 if the least time of the largest number
exceeds its bound.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from bench._environment import seeded_records
from medproc.env import PROJECT_ROOT

JOBS = (1_000, 10_000, 100_000)
ROUNDS = 20
BOUNDS_MS = {"claim": 6.0, "reconcile": 25.0, "reconcile, no wake-up": 400.0, "overview": 100.0}
"""Bounds of the least time at the largest number of jobs."""

Times = dict[str, list[float]]
"""What was measured → milliseconds of each round."""


def main() -> int:
    """Measure each number of jobs, print a table, and return the exit code."""
    asked = _arguments()
    if asked.child:
        print(json.dumps(_measure(asked.jobs[0])))
        return 0
    found = {jobs: _in_child(jobs) for jobs in asked.jobs}
    print(f"{'least / median, ms':24}" + "".join(f"{jobs:>18,}" for jobs in found))
    for name in BOUNDS_MS:
        figures = [
            f"{min(times[name]):.1f} / {statistics.median(times[name]):.1f}"
            for times in found.values()
        ]
        print(f"{name:24}" + "".join(f"{each:>18}" for each in figures))
    largest = found[max(found)]
    missed = [name for name, bound in BOUNDS_MS.items() if min(largest[name]) > bound]
    print(f"bounds missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def _in_child(jobs: int) -> Times:
    done = subprocess.run(
        [sys.executable, "-m", "bench.growth", "--child", "--jobs", str(jobs)],
        cwd=PROJECT_ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    times: Times = json.loads(done.stdout.splitlines()[-1])
    return times


def _measure(jobs: int) -> Times:
    from bench._seeding import RECORD_BATCHES

    with seeded_records(
        jobs * RECORD_BATCHES, lambda line: print(line, file=sys.stderr, flush=True)
    ):
        return _times()


def _times() -> Times:
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import reverse

    from medproc.web.warming import warm
    from pipeline.core.states import Step
    from pipeline.operations import operator_actions
    from pipeline.transitions import claim

    warm()
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.create_superuser("bench"))
    first = _timed(operator_actions.jobs_reconcile, 1)
    while operator_actions.jobs_reconcile().woken:
        pass
    return {
        "reconcile, no wake-up": first,
        "reconcile": _timed(operator_actions.jobs_reconcile),
        "claim": _timed(lambda: claim(Step.PAGES, "bench")),
        "overview": _timed(lambda: client.get(reverse("admin:overview"))),
    }


def _timed(what: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        if not what():
            raise SystemExit("there was nothing to do")
        found.append(1000 * (time.perf_counter() - began))
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=list(JOBS))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
