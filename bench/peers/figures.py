"""The figures of one peer in one scenario, from its report and the emulator's log."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.peers.work import PeerReport
from gemini_emulator import LogLine

NOTICEABLE = 1.01
"""A peer that is faster by less than this ratio is as fast."""


@dataclass(frozen=True, kw_only=True)
class PeerFigures:
    """One row of the table."""

    scenario: str
    peer: str
    items: int
    answered_once: int
    """Items whose reply the peer has, and which the emulator answered exactly once."""
    wall_s: float
    """From the start of the clock to all results in hand; of medproc, to the last commit."""
    net_s: float
    """From the first request to the last answer, as the emulator saw them."""
    replay_s: float
    """The same calls in the same order, without overhead and without waits."""
    before_s: float
    """From the start of the clock to the first request."""
    after_s: float
    """From the last answer to the end."""
    cpu_ms: float
    """Per item, of the peer's processes."""
    servers_cpu_ms: float
    """Per item, of PostgreSQL and Valkey."""
    requests: int
    failed: int
    """Requests that the emulator did not answer with a reply of the model."""
    limited: int
    """Number of 429s, which are failed requests too."""
    prompts: str
    """The digest of the prompts that the emulator received. Equal prompts have equal digests."""
    sql: int
    redis: int
    reason: str = ""
    """Why medproc is behind this peer."""

    @property
    def ratio(self) -> float:
        """The duration of the calls in replays."""
        return self.net_s / self.replay_s

    def as_json(self) -> dict[str, Any]:
        """Return the row for programs, with its ratio."""
        return {**asdict(self), "net_by_replay": self.ratio}


def figures_of(
    *,
    scenario: str,
    peer: str,
    tokens: Sequence[str],
    report: PeerReport,
    log: Iterable[LogLine],
    slots: int,
    window_s: float,
    per_window: int,
) -> PeerFigures:
    """Return the row of one peer; `tokens` are those of its items, `log` holds its calls only."""
    lines = sorted(log, key=lambda line: line.time)
    first, last = lines[0].time, max(line.time + line.latency_s for line in lines)
    answered = Counter(line.item_token for line in lines if line.outcome == "ok")
    in_hand = Counter(report.answered)
    once = sum(answered[token] == in_hand[token] == 1 for token in tokens)
    return PeerFigures(
        scenario=scenario,
        peer=peer,
        items=len(tokens),
        answered_once=once,
        wall_s=report.wall_s,
        net_s=last - first,
        replay_s=_least(lines, slots, window_s, per_window),
        before_s=first - report.began,
        after_s=report.began + report.wall_s - last,
        cpu_ms=1e3 * report.cpu_s / len(tokens),
        servers_cpu_ms=1e3 * report.servers_cpu_s / len(tokens),
        requests=len(lines),
        failed=sum(line.outcome != "ok" for line in lines),
        prompts=_digest(lines, per_window),
        limited=sum(line.status == 429 for line in lines),
        sql=report.sql,
        redis=report.redis,
    )


def _digest(lines: Iterable[LogLine], per_window: int) -> str:
    """Return a digest of pages, input tokens and latency of each answered call.

    The emulator draws a latency from text and attempt. A quota changes the attempts.
    """
    seen = sorted(
        (line.pages, line.input_tokens, 0.0 if per_window else line.drawn_s)
        for line in lines
        if line.outcome == "ok"
    )
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def _least(lines: Sequence[LogLine], slots: int, window_s: float, per_window: int) -> float:
    """Return the least seconds for these calls: whole windows of a quota, then the last burst."""
    served = [line for line in lines if line.status != 429]
    waits = max(0, math.ceil(len(served) / per_window) - 1) if per_window else 0
    return waits * window_s + _replay(served[waits * per_window :], slots)


def _replay(lines: Sequence[LogLine], slots: int) -> float:
    """Return the end of a schedule in this order; a retry begins when its slot is free, at once."""
    chains: dict[str, list[float]] = {}
    for line in lines:
        # A fault has no drawn latency: the emulator's own measurement takes its place.
        chains.setdefault(line.item_token, []).append(line.drawn_s or line.latency_s)
    fresh, retries = deque(chains.values()), list[tuple[float, int, list[float]]]()
    free, ends_at, number = [0.0] * slots, 0.0, 0
    while fresh or retries:
        at = heapq.heappop(free)
        if retries and (not fresh or retries[0][0] <= at):
            due, _, chain = heapq.heappop(retries)
            at = max(at, due)
        else:
            chain = fresh.popleft()
        ended = at + chain[0]
        ends_at, number = max(ends_at, ended), number + 1
        heapq.heappush(free, ended)
        if chain[1:]:
            heapq.heappush(retries, (ended, number, chain[1:]))
    return ends_at


def reason_of(row: PeerFigures, ours: PeerFigures) -> str:
    """Say why medproc is behind a peer; empty if medproc is first in wall and CPU."""
    reasons = []
    if row.wall_s * NOTICEABLE < ours.wall_s:
        order = ours.replay_s - row.replay_s
        parts = {
            "before the first call (claim, plan, rows)": ours.before_s - row.before_s,
            "because its order of the same calls ends later": order,
            "for the calls (rate limiter, second reading)": ours.net_s - row.net_s - order,
            "after the last answer (rows, totals)": ours.after_s - row.after_s,
        }
        more = [f"{more:.2f} s more {where}" for where, more in parts.items() if more >= 0.005]
        reasons.append(f"wall: medproc needs {' and '.join(more)}")
        if row.limited > ours.limited:
            reasons.append(
                f"the peer asks until the provider accepts: {row.limited} × 429, medproc"
                f" {ours.limited}"
            )
    if row.cpu_ms * NOTICEABLE < ours.cpu_ms:
        reasons.append(
            "CPU: medproc admits, checks and records each call, and reads each page a second time"
            f" ({ours.sql} SQL statements)"
        )
    return "; ".join(reasons)
