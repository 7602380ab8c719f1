"""The overhead of whole steps of Passes 1 and 2 over the provider's latency: real rows, real HTTP,
real client.

Run `python -m bench.step`; 3 min, on its own PostgreSQL, Valkey and emulator. Exits 1 if a bound
of requirement 12, or the bound of 5 % overhead, is missed.

The makespan of the calls lasts from the first request to the last answer. The step also has the
claim, the plan, and what follows the last answer.
"""

from __future__ import annotations

import heapq
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench._environment import environment_of
from medproc.embedded import throw_away_servers
from medproc.env import PROJECT_ROOT

SOURCE_S = (14.0, 10.0, 8.0, 7.0, 6.5, 5.5, 5.0, 4.0)
"""Seconds per encounter of the 5-page record in requirement 12: 60 in all, the slowest 14."""
SCALE = 0.4
"""The slowest call takes 5.6 s: long enough that the start of a step is a small part."""
BATCHES = 300
SLOTS = 30
FAULTY = 1.15
"""The bound with faults: the replay repeats a call at once, a step after its backoff."""
ZONES = 300
ZONE_PAGES = 75
"""A page of the bulk record has four zones."""


def main() -> int:
    """Run both measurements, print them, and return the exit code."""
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            environment_of(places, folder),
            MEDPROC_PROVIDER="gemini",
            GEMINI_BASE_URL="http://127.0.0.1:1",
            # The rate limiter handles every call, but its quota delays none.
            GEMINI_RPM="1000000",
            GEMINI_TPM="1000000000",
            SKIPPED_PASSES="pass1_5,pass2,pass3",
        )
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0, interactive=False)
        only = sys.argv[1:]
        return max(run() for run in RUNS if not only or run.__name__ in only)


def eight_encounters() -> int:
    """Measure the record of requirement 12 at the default limits, and with one call at a time."""
    from pipeline.models import Entity

    path = PROJECT_ROOT / "samples" / "lab_5p_8enc.pdf"
    longest = max(SOURCE_S) * SCALE
    figures: dict[str, float] = {}
    answers: dict[str, list[Any]] = {}
    for name, calls in (("limit 30", 30), ("limits 1/1", 1)):
        record = _discovered(path)
        encounters = 1 if calls == 1 else 120
        with _emulator(latency_map=_by_encounter(record)), _limits(calls, encounters):
            figures[name] = _timed("pass1")
        answers[name] = list(
            Entity.objects.filter(shell_file_id=record)
            .order_by("page_number", "char_start", "name")
            .values_list("category", "name", "page_number", "char_start", "value")
        )
    ratio, speedup = figures["limit 30"] / longest, figures["limits 1/1"] / figures["limit 30"]
    same = answers["limit 30"] == answers["limits 1/1"] and bool(answers["limit 30"])
    print(
        f"5 pages, 8 encounters, slowest call {longest:.2f} s\n"
        f"  limit 30    {figures['limit 30']:.3f} s = {ratio:.3f} x the slowest (bound 1.05)\n"
        f"  limits 1/1  {figures['limits 1/1']:.3f} s = {speedup:.2f} x slower (bound 4)\n"
        f"  same answers: {same} ({len(answers['limit 30'])} entities)"
    )
    return 0 if ratio <= 1.05 and speedup >= 4 and same else 1


def three_hundred_batches() -> int:
    """Compare 300 encounters of one batch, lognormal latencies, with a replay without overhead."""
    with (
        _bulk_record() as latencies,
        _emulator(latency_map=latencies, answers="minimal") as emulator,
    ):
        took = _timed("pass1")
        return _compared("batches", took, emulator.log(), BATCHES)


def a_tenth_fails() -> int:
    """Compare the same with a tenth of faults: one half at once, the other half after 2 s.

    The seconds of the product are a tenth, like the latencies. Before the last calls, hardly a call
    is in flight, and slow failures end together. They must not open the circuit breaker.
    """
    from django.conf import settings
    from django.test import override_settings

    from pipeline.ratelimit import RateLimiter

    faults = [
        {"fault": "503", "probability": 0.05},
        {"fault": "503-deadline", "probability": 0.05, "delay_s": 2},
    ]
    limiter = RateLimiter.for_("gemini", settings.GEMINI_MODEL)
    before = limiter.state().counters.breaker_trips
    with (
        _bulk_record() as latencies,
        _emulator(latency_map=latencies, answers="minimal", faults=faults) as emulator,
        override_settings(TIME_SCALE=0.1),
    ):
        took = _timed("pass1")
        log = emulator.log()
    trips = limiter.state().counters.breaker_trips - before
    lines = [replace(line, drawn_s=line.latency_s) for line in log]
    print(f"a tenth fails: the circuit breaker opened {trips} times (bound 0)")
    return max(_compared("calls", took, lines, BATCHES, FAULTY), int(trips > 0))


@contextmanager
def _bulk_record() -> Iterator[dict[str, float]]:
    """Create a record of 300 encounters of one batch; give the latency of each batch."""
    from samples.bulk import make_text_record

    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(make_text_record(BATCHES, BATCHES, 7))
        file.flush()
        record = _discovered(Path(file.name))
    draw = random.Random(7)
    latencies = {
        key: draw.lognormvariate(0.2, 0.5) for key in sorted(_by_encounter(record, repeat=True))
    }
    with _limits(SLOTS, 120):
        yield latencies


def three_hundred_zones() -> int:
    """Compare Pass 2 with a replay without overhead: zones of lognormal latency.

    The replies name no entity, so the checks structure the attributes of Pass 1, and the second
    reader has nothing to compare.
    """
    from django.test import override_settings

    from pipeline.workers import run_step
    from samples.bulk import make_text_record

    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(make_text_record(ZONE_PAGES, ZONE_PAGES, 7))
        file.flush()
        with override_settings(SKIPPED_PASSES=("pass1_5",)):
            _discovered(Path(file.name))
            with override_settings(MEDPROC_PROVIDER="local"):
                run_step.run_step("pass1")
    with (
        _emulator(latency="lognormal:1.2,0.5/call", answers="minimal") as emulator,
        _limits(SLOTS, 120),
        override_settings(SKIPPED_PASSES=("pass1_5", "pass3")),
    ):
        took = _timed("pass2")
    return _compared("zones", took, emulator.log(), ZONES)


def _compared(noun: str, took: float, log: Iterable[Any], planned: int, bound: float = 1.05) -> int:
    asked = sorted(log, key=lambda line: line.time)
    ideal = _replay([line.drawn_s for line in asked], SLOTS)
    calls = max(line.time + line.drawn_s for line in asked) - asked[0].time
    print(
        f"{len(asked)} {noun} of lognormal latency at {SLOTS} slots\n"
        f"  replay {ideal:.3f} s, same order and latencies, no overhead\n"
        f"  calls  {calls:.3f} s = {calls / ideal:.3f} x the replay (bound {bound})\n"
        f"  step   {took:.3f} s = {took / ideal:.3f} x the replay (bound {bound})"
    )
    return 0 if took / ideal <= bound and len(asked) >= planned * 0.95 else 1


def _replay(latencies: list[float], slots: int) -> float:
    free = [0.0] * slots
    for seconds in latencies:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def _discovered(path: Path) -> Any:
    """Submit a record and run it up to Pass 1 with the local engine; return its id."""
    from django.test import override_settings

    from pipeline.operations import operator_actions
    from pipeline.stages.intake import Submission
    from pipeline.workers import run_step

    with override_settings(MEDPROC_PROVIDER="local"):
        received = operator_actions.record_submit(Submission(path=path))
        run_step.run_step("pages")
        run_step.run_step("pass05")
    return received.shell_file_id


def _by_encounter(record: Any, *, repeat: bool = False) -> dict[str, float]:
    """Return a latency for each encounter's batch, by the batch's first page and offset."""
    from pipeline.models import Encounter, selectors

    spans = selectors.spans_by_encounter(record)
    sizes = {e.id: e.character_count for e in Encounter.objects.filter(shell_file_id=record)}
    largest_first = sorted(spans, key=lambda key: -sizes[key])
    seconds = SOURCE_S * (len(largest_first) // len(SOURCE_S) + 1) if repeat else SOURCE_S
    return {
        f"entities {spans[key][0].page}:{spans[key][0].start}": s * SCALE
        for key, s in zip(largest_first, seconds, strict=False)
    }


@contextmanager
def _emulator(**options: Any) -> Iterator[Any]:
    from django.test import override_settings

    from gemini_emulator import Emulator

    with Emulator(**options) as emulator, override_settings(GEMINI_BASE_URL=emulator.url):
        yield emulator


@contextmanager
def _limits(calls: int, encounters: int) -> Iterator[None]:
    from django.test import override_settings

    with override_settings(PASS1_CONCURRENCY_LIMIT=calls, PASS1_ENCOUNTER_LIMIT=encounters):
        yield


def _timed(step: str) -> float:
    from pipeline.workers import run_step
    from pipeline.workers.warming import warm, warm_engine

    # Like a pool before it forks its workers.
    warm()
    warm_engine()
    began = time.perf_counter()
    run_step.run_step(step)
    return time.perf_counter() - began


RUNS = (eight_encounters, three_hundred_batches, a_tenth_fails, three_hundred_zones)


if __name__ == "__main__":
    sys.exit(main())
