"""One peer in a process of its own: prepare, make one call, then run the work by the clock.

`python -m bench.peers.run_peer MODULE WORK REPORT`, started by `bench.peers.comparison`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType

import psutil
from redis import Redis

from bench.peers.work import PeerReport, PeerWork, read_work


def main() -> int:
    """Run the peer and write its report."""
    module = import_module(f"bench.peers.{sys.argv[1]}")
    work = read_work(Path(sys.argv[2]))
    prepared = getattr(module, "workers", nullcontext)
    with prepared(work):
        list(module.run(work.warm()))
        time.sleep(work.rest_s)
        report = _measured(module, work)
    Path(sys.argv[3]).write_text(json.dumps(asdict(report)), "utf-8")
    return 0


def _measured(module: ModuleType, work: PeerWork) -> PeerReport:
    sql, commands = getattr(module, "statements", 0), _commands(work)
    servers, own = _cpu_of_servers(work), _own_cpu()
    began, clock = time.time(), time.perf_counter()
    replies = module.run(work)
    wall_s = time.perf_counter() - clock
    own = _own_cpu() - own
    servers = _cpu_of_servers(work) - servers
    return PeerReport(
        began=began,
        wall_s=wall_s,
        cpu_s=own,
        servers_cpu_s=servers,
        sql=getattr(module, "statements", 0) - sql,
        redis=_commands(work) - commands,
        answered=_answered(replies),
    )


def _answered(replies: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(token for token, text in replies if f'"{token}"' in text)


def _commands(work: PeerWork) -> int:
    """Return the commands that Valkey has executed so far; 0 for a peer without servers."""
    if not work.redis_url:
        return 0
    with Redis.from_url(work.redis_url) as redis:
        return int(redis.info("stats")["total_commands_processed"])


def _own_cpu() -> float:
    """Return the CPU seconds of this process, in finer steps than psutil's, and of its children."""
    return time.process_time() + sum(map(_cpu_of, psutil.Process().children()))


def _cpu_of(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of all its children, ended ones too."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        times = each.cpu_times()
        total += times.user + times.system
        total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def _cpu_of_servers(work: PeerWork) -> float:
    """Return the CPU seconds of the servers so far; 0 for a peer without servers."""
    if not work.servers:
        return 0.0
    found = [p for p in psutil.process_iter(["cmdline"]) if work.servers in _command(p)]
    pids = {p.pid for p in found}
    return sum(_cpu_of(p) for p in found if p.ppid() not in pids)


def _command(process: psutil.Process) -> str:
    return " ".join(process.info["cmdline"] or ())


if __name__ == "__main__":
    sys.exit(main())
