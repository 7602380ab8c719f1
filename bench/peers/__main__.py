"""medproc and its peers in one run: same prompts, same schema, same latencies and faults.

Run `python -m bench.peers`; 15 min, on its own PostgreSQL, Valkey and emulator. `pip install
--require-hashes --no-deps -r requirements-peers.lock` adds the peers that are libraries. Exits 1 if
an item is not answered exactly once, or if medproc draws a 429.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.peers.comparison import Comparison, PeerFailedError
from bench.peers.figures import PeerFigures
from bench.peers.scenarios import MEDPROC, PEERS, SCENARIOS
from bench.peers.table import line_of_missing, table_of
from medproc.embedded import throw_away_servers


def main() -> int:
    """Run the scenarios, print their tables, and return the exit code."""
    options = _options()
    wanted = [p for p in PEERS if not options.peer or p is MEDPROC or p.name in options.peer]
    peers = [peer for peer in wanted if peer.is_installed]
    for peer in wanted:
        if not peer.is_installed:
            print(line_of_missing(peer))
    before, rows, failed = os.getloadavg(), [], False
    began = datetime.now(UTC)
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(places, folder, items=options.items, pace=options.pace)
        for scenario in SCENARIOS:
            if scenario.name not in (options.only or scenario.name):
                continue
            try:
                found = comparison.rows(scenario, peers)
            except PeerFailedError as error:
                print(f"\n{scenario.title}: FAILED: {error}", flush=True)
                failed = True
                continue
            rows += found
            print(f"\n{table_of(scenario, peers, found)}", flush=True)
    machine = _machine(before)
    print(f"\n{began:%d %B %Y, %H:%M} UTC, {', '.join(f'{k} {v}' for k, v in machine.items())}")
    if options.json:
        document = {
            "began": began.isoformat(timespec="seconds"),
            "machine": machine,
            "rows": [row.as_json() for row in rows],
        }
        Path(options.json).write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return 1 if failed or not _holds(rows) else 0


def _holds(rows: Sequence[PeerFigures]) -> bool:
    return all(
        row.answered_once == row.items and not (row.peer == MEDPROC.name and row.limited)
        for row in rows
    )


def _machine(before: Sequence[float]) -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{memory / 2**30:.0f} GiB",
        "Python": platform.python_version(),
        "load before": round(before[0], 1),
        "load after": round(os.getloadavg()[0], 1),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=300, help="items per scenario")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--only", action="append", choices=[s.name for s in SCENARIOS])
    parser.add_argument("--peer", action="append", choices=[p.name for p in PEERS])
    parser.add_argument("--pace", type=float, default=1.0, help="factor of all seconds")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
