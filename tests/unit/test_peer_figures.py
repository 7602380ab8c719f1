"""The figures of a peer count double, missing and limited answers, and know the least duration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench.peers.figures import PeerFigures, figures_of, reason_of
from bench.peers.scenarios import PEERS, Peer
from bench.peers.table import line_of_missing
from bench.peers.work import PeerReport
from gemini_emulator import LogLine

REPORT = PeerReport(
    began=100.0,
    wall_s=9.0,
    cpu_s=0.03,
    servers_cpu_s=0.0,
    sql=0,
    redis=0,
    answered=["a", "b", "c"],
)


def line(token: str, *, at: float, took: float = 1.0, status: int = 200) -> LogLine:
    """Return one call of the emulator's log; a failed call has no drawn latency."""
    is_ok = status == 200
    return LogLine(
        time=at, number=1, route="generateContent", item_token=token, kind="entities", attempt=1,
        pages=[1], outcome="ok" if is_ok else str(status), status=status, finish_reason="",
        response_id="", input_tokens=10, output_tokens=1, drawn_s=took if is_ok else 0.0,
        latency_s=took, delivered=True,
    )  # fmt: skip


def figures(
    log: Sequence[LogLine], *, report: PeerReport = REPORT, per_window: int = 0, slots: int = 2
) -> PeerFigures:
    """Return the figures of a peer with three items."""
    return figures_of(
        scenario="quota",
        peer="pool",
        tokens=["a", "b", "c"],
        report=report,
        log=log,
        slots=slots,
        window_s=20.0,
        per_window=per_window,
    )


ONCE = [line("a", at=101.0), line("b", at=101.0), line("c", at=102.0, took=3.0)]


def test_the_parts_of_the_wall_add_up() -> None:
    found = figures(ONCE)

    assert found.answered_once == 3
    assert (found.before_s, found.net_s, found.after_s) == (1.0, 4.0, 4.0)
    assert found.before_s + found.net_s + found.after_s == found.wall_s
    assert found.cpu_ms == pytest.approx(10.0)


def test_an_item_that_is_answered_twice_or_is_not_in_hand_does_not_count() -> None:
    twice = [*ONCE, line("a", at=103.0)]
    lost = replace(REPORT, answered=["a", "b"])

    assert figures(twice).answered_once == 2
    assert figures(ONCE, report=lost).answered_once == 2


def test_the_replay_has_the_calls_and_the_failures_without_waits() -> None:
    failed = [line("c", at=101.0, took=0.5, status=503), *ONCE]

    assert figures(ONCE).replay_s == 4.0
    assert figures(ONCE, slots=1).replay_s == 5.0
    assert figures(failed, slots=1).replay_s == 5.5
    # The second attempt of c cannot begin before the end of the first attempt.
    assert figures(failed, slots=9).replay_s == 3.5


def test_the_least_duration_at_a_quota_is_its_whole_windows_and_the_last_burst() -> None:
    limited = [*ONCE, line("c", at=101.5, took=0.01, status=429)]

    found = figures(limited, per_window=2)

    assert found.limited == found.failed == 1
    assert found.replay_s == 20.0 + 3.0


def test_a_row_gives_the_reason_only_if_medproc_is_behind() -> None:
    row = figures([*ONCE, line("c", at=101.5, took=0.01, status=429)])
    slower = replace(row, wall_s=9.5, after_s=4.5, limited=0, sql=60)
    dearer = replace(row, cpu_ms=12.0, sql=60)
    unlucky = replace(row, wall_s=9.5, net_s=4.5, replay_s=row.replay_s + 0.4)

    assert reason_of(row, row) == ""
    assert reason_of(slower, row) == ""
    assert "0.50 s more after the last answer" in reason_of(row, slower)
    assert "0.40 s more because its order of the same calls ends later" in reason_of(row, unlucky)
    assert "0.10 s more for the calls" in reason_of(row, unlucky)
    assert "1 × 429, medproc 0" in reason_of(row, slower)
    assert "60 SQL statements" in reason_of(row, dearer)


def test_a_peer_without_its_package_is_one_clear_line() -> None:
    missing = Peer(name="batch", title="", module="batch_llm", package="no_such_package")

    assert not missing.is_installed
    assert line_of_missing(missing) == (
        "batch is not installed and is left out; .venv/bin/pip install --require-hashes --no-deps"
        " -r requirements-peers.lock adds it"
    )


def test_each_peer_is_named_once() -> None:
    assert len({peer.name for peer in PEERS}) == len({peer.module for peer in PEERS}) == len(PEERS)
