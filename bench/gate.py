"""What the gate costs: server time of a script, and an admission's way beside a PING's.

Run `python bench/gate.py`; it starts servers of its own. Exits 1 when an admission takes the
server more than 100 µs on average, or its median is more than 150 µs above that of PING.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")

import redis

from medproc.embedded import throw_away_servers
from pipeline.gate import Ask, Gate, Go, Outcome, Quota, Tuning
from pipeline.gate.gate import gate_client

SERVER_US = 100.0
BEYOND_PING_US = 150.0
JOBS = 10


def timed(action: Callable[[], object]) -> float:
    """Give the microseconds of an action."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


def server_us(client: redis.Redis) -> float:
    """Give the server's mean microseconds per script since its statistics were reset."""
    return float(client.info("commandstats")["cmdstat_evalsha"]["usec_per_call"])


def measured(client: redis.Redis, name: str, quota: Quota, calls: int) -> bool:
    """Measure admissions of one kind, each beside a PING; print, and tell whether they hold."""
    client.flushall()
    gate = Gate("gemini", name, client=client, quota=quota, tuning=Tuning(ramp_first=1000))
    gate.admit(Ask(job="warm", item="warm", tokens=8_000))
    client.config_resetstat()
    pings, admits, gone = [], [], []
    for n in range(calls):
        ask = Ask(job=f"job-{n % JOBS}", item=f"item-{n}", tokens=8_000, prompt_version="v1")
        pings.append(timed(client.ping))
        began = time.perf_counter()
        answer = gate.admit(ask)
        admits.append((time.perf_counter() - began) * 1e6)
        if isinstance(answer, Go):
            gone.append(answer.ticket)
    admit_us = server_us(client)
    client.config_resetstat()
    for ticket in gone:
        gate.report(ticket, Outcome.success(8_000))
    report_us = server_us(client) if gone else 0.0
    ping, admit = statistics.median(pings), statistics.median(admits)
    print(
        f"{name:<12} {len(gone):>7} {admit_us:>10.1f} {report_us:>10.1f} {ping:>9.0f} "
        f"{admit:>9.0f} {admit - ping:>9.0f} {statistics.quantiles(admits, n=100)[98]:>9.0f}"
    )
    return admit_us <= SERVER_US and admit - ping <= BEYOND_PING_US


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5_000)
    calls = parser.parse_args().calls
    kinds = {
        "unlimited": Quota(),
        "admitted": Quota(requests=10**6, tokens=10**11),
        "refused": Quota(requests=300, tokens=1_000_000),
        "tokens bind": Quota(requests=10**6, tokens=50_000_000),
    }
    print(
        f"{'asks':<12} {'let go':>7} {'admit µs':>10} {'report µs':>10} {'PING p50':>9} "
        f"{'ask p50':>9} {'beyond':>9} {'ask p99':>9}"
    )
    with throw_away_servers() as places:
        client = gate_client(places.redis_url)
        holds = [measured(client, name, quota, calls) for name, quota in kinds.items()]
    print(
        f"bounds: admit ≤ {SERVER_US:.0f} µs on the server, ask p50 ≤ PING + {BEYOND_PING_US:.0f}"
    )
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
