"""The time of 300 items at a quota: with a warm rate limiter, a new installation, and a lost Redis.

Run `python -m bench.quota_start`; 5 min with a quota of 100 requests per 20 s. A real Pass 1 step
runs in its own process, with the real google-genai client and the emulator. The least possible time
is two windows, and the calls of the third window in all slots. Exits 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bench._environment import environment_of
from bench.quota import SLOTS, one_record
from medproc.embedded import throw_away_servers

if TYPE_CHECKING:
    from gemini_emulator import Emulator, LogLine

ITEMS = 300
QUOTA = 100
LATENCY_S = 3.0
BOUND = 1.02
PATIENCE_S = 240.0
POLL_S = 0.05


def main() -> int:
    """Run each case in its own process, because a process has one database; return the code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", type=float, default=20.0, help="seconds of a quota's minute")
    parser.add_argument("--only", choices=[*CASES])
    options = parser.parse_args()
    if options.only:
        return measured(options.only, options.window)
    print(f"{ITEMS} items, {QUOTA} requests per {options.window:.0f} s, {LATENCY_S} s per call")
    own = [sys.executable, "-m", "bench.quota_start", "--window", str(options.window), "--only"]
    codes = [subprocess.run([*own, name], check=False).returncode for name in CASES]
    print(f"bounds: ≤ {BOUND} × the least possible time, no 429")
    return max(codes)


def measured(case: str, window_s: float) -> int:
    """Measure one case, print its figures, and return the exit code."""
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        environment = {
            **environment_of(places, folder),
            "MEDPROC_PROVIDER": "gemini",
            "GEMINI_BASE_URL": "http://127.0.0.1:1",
            "GEMINI_RPM": str(QUOTA),
            "GEMINI_TPM": "1000000000",
            "GATE_WINDOW_S": str(window_s),
            "BENCH_CALL_TOKENS": "800",
        }
        os.environ.update(environment)
        import django

        django.setup()
        from django.core.management import call_command

        from gemini_emulator import Emulator

        call_command("migrate", verbosity=0, interactive=False)
        one_record(0, ITEMS)
        with Emulator(
            rpm=QUOTA, window_s=window_s, latency=f"{LATENCY_S}/call", answers="minimal"
        ) as emulator:
            lines = CASES[case](emulator, environment, window_s)
    wall_s = max(line.time + line.latency_s for line in lines) - min(line.time for line in lines)
    full = math.ceil(ITEMS / QUOTA) - 1
    least_s = full * window_s + math.ceil((ITEMS - full * QUOTA) / SLOTS) * LATENCY_S
    limited = sum(line.status == 429 for line in lines)
    holds = wall_s <= BOUND * least_s and not limited
    print(
        f"  {case:<5} {wall_s:6.2f} s, {wall_s / least_s:.3f} × the least possible {least_s:.2f} s,"
        f" {limited} × 429 in {len(lines)} calls{'' if holds else ': MISSED'}",
        flush=True,
    )
    return 0 if holds else 1


def new(emulator: Emulator, environment: Mapping[str, str], window_s: float) -> list[LogLine]:
    """Run the step on an empty Redis and a database without a call."""
    return _run(emulator, environment)


def lost(emulator: Emulator, environment: Mapping[str, str], window_s: float) -> list[LogLine]:
    """Empty Redis in the second window, while calls are in flight."""
    from django.conf import settings

    from pipeline.ratelimit.limiter import limiter_client

    def empty(lines: list[LogLine]) -> bool:
        if len(lines) < QUOTA * 3 // 2:
            return False
        limiter_client(settings.REDIS_URL).flushall()
        return True

    return _run(emulator, environment, meanwhile=empty)


def warm(emulator: Emulator, environment: Mapping[str, str], window_s: float) -> list[LogLine]:
    """Run the step with a rate limiter whose window is empty and whose ramp is over."""
    from django.conf import settings

    from pipeline.ratelimit import Ask, Go, Outcome, RateLimiter, Standing

    limiter = RateLimiter.for_("gemini", settings.GEMINI_MODEL, standing=Standing)
    ends_at = time.monotonic() + PATIENCE_S
    asked = Ask(job="warm", item="warm", tokens=1)
    while not isinstance(answer := limiter.admit(asked), Go):
        if time.monotonic() > ends_at:
            raise RuntimeError("the rate limiter did not open")
        time.sleep(POLL_S)
    limiter.report(answer.ticket, Outcome.success(1))
    limiter.leave()
    # The window that counts as spent, the call, and the ramp.
    time.sleep(window_s + 1)
    return _run(emulator, environment)


def _run(
    emulator: Emulator,
    environment: Mapping[str, str],
    meanwhile: Callable[[list[LogLine]], bool] = lambda _: True,
) -> list[LogLine]:
    """Run the step to its end; call `meanwhile` with the calls so far until it returns True."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.quota", "--call", "limiter"],
        env={**environment, "GEMINI_BASE_URL": emulator.url},
        stderr=subprocess.DEVNULL,
    )
    ends_at, is_done = time.monotonic() + PATIENCE_S, False
    while process.poll() is None and time.monotonic() < ends_at:
        is_done = is_done or meanwhile(_calls(emulator))
        time.sleep(POLL_S)
    process.kill()
    process.wait()
    lines = _calls(emulator)
    if sum(line.status == 200 for line in lines) < ITEMS:
        raise RuntimeError("the step ended before its time")
    return lines


def _calls(emulator: Emulator) -> list[LogLine]:
    return [line for line in emulator.log() if line.route == "generateContent"]


CASES: dict[str, Callable[[Emulator, Mapping[str, str], float], list[LogLine]]] = {
    "warm": warm,
    "new": new,
    "lost": lost,
}


if __name__ == "__main__":
    sys.exit(main())
