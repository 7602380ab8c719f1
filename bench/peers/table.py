"""The text of one scenario's table."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.figures import PeerFigures
from bench.peers.scenarios import MEDPROC, Peer, PeerScenario

HEAD = (
    f"{'peer':<16} {'wall s':>7} {'÷ ours':>6} {'net s':>7} {'÷ replay':>8} {'CPU ms':>7}"
    f" {'+ servers':>9} {'requests':>8} {'429':>5} {'SQL':>5} {'Redis':>6}  once"
)


def table_of(scenario: PeerScenario, peers: Sequence[Peer], rows: Sequence[PeerFigures]) -> str:
    """Return the table of a scenario; a line below a peer says why medproc is behind it."""
    titles = {peer.name: peer.title for peer in peers}
    ours = next(row for row in rows if row.peer == MEDPROC.name)
    lines = [f"{ours.items} items: {scenario.title}", HEAD]
    for row in rows:
        lines.append(
            f"{row.peer:<16} {row.wall_s:>7.2f} {row.wall_s / ours.wall_s:>6.2f} {row.net_s:>7.2f}"
            f" {row.ratio:>8.3f} {row.cpu_ms:>7.2f} {row.servers_cpu_ms:>9.2f} {row.requests:>8}"
            f" {row.limited:>5} {row.sql:>5} {row.redis:>6}  {row.answered_once}/{row.items}"
            f"  {titles[row.peer]}"
        )
        if row.reason:
            lines.append(f"{'':<16} medproc is behind: {row.reason}")
    return "\n".join(lines)


def line_of_missing(peer: Peer) -> str:
    """Return the line about a peer whose package is not installed."""
    return (
        f"{peer.name} is not installed and is left out; .venv/bin/pip install --require-hashes"
        " --no-deps -r requirements-peers.lock adds it"
    )
