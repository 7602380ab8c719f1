"""The comparison with the peers gives each peer the same calls, and counts what each peer did.

Durations are not tested here: `python -m bench.peers` measures them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.comparison import Comparison
from bench.peers.figures import PeerFigures
from bench.peers.scenarios import MEDPROC, PEERS, SCENARIOS, PeerScenario
from bench.peers.table import table_of
from medproc.embedded import throw_away_servers

ITEMS = 6
PACE = 0.05
INSTALLED = [
    peer if peer is MEDPROC else replace(peer, is_beside_others=True)
    for peer in PEERS
    if not peer.package
]
"""The peers that need no library of their own; side by side, because no duration is tested."""

pytestmark = [
    pytest.mark.slow(reason="starts seven processes in each of four scenarios"),
    pytest.mark.xdist_group("peers"),
]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    folder: Path = tmp_path_factory.mktemp("peers")
    with throw_away_servers() as places:
        yield Comparison(places, str(folder), items=ITEMS, pace=PACE)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_peer_answers_each_item_of_the_same_plan_once(
    comparison: Comparison, scenario: PeerScenario
) -> None:
    rows = comparison.rows(scenario, INSTALLED)

    by_peer = {row.peer: row for row in rows}
    ours = by_peer[MEDPROC.name]
    assert [row.peer for row in rows] == [peer.name for peer in INSTALLED]
    assert ours.items == (8 if scenario.by_encounter else ITEMS)
    assert {row.peer: row.answered_once for row in rows} == dict.fromkeys(by_peer, ours.items)
    # The emulator draws the latency from the text, and counts the tokens of the text.
    assert {row.peer: row.prompts for row in rows} == dict.fromkeys(by_peer, ours.prompts)
    assert ours.sql > 0
    assert ours.limited == 0
    assert all(row.requests == row.items + row.failed for row in rows)
    assert not scenario.windows or by_peer["pool"].limited > 0
    _check_reasons(scenario, rows, ours)


def _check_reasons(scenario: PeerScenario, rows: list[PeerFigures], ours: PeerFigures) -> None:
    """Each peer that is faster than medproc has a reason in the table."""
    table = table_of(scenario, INSTALLED, rows)
    for row in rows:
        is_ahead = row.wall_s * 1.01 < ours.wall_s or row.cpu_ms * 1.01 < ours.cpu_ms
        assert bool(row.reason) == is_ahead
        assert row.reason in table
