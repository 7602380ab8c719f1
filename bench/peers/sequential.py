"""The base line: a loop of google-genai, one call after the other."""

from __future__ import annotations

from collections.abc import Iterable

from tenacity import Retrying

from bench.peers.sdk import ask, client_of, retries
from bench.peers.work import PeerWork


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Answer all items; each pair is a token and a reply."""
    with client_of(work) as client:
        retrying = Retrying(**retries(work))
        return [(token, retrying(ask, client, work, text)) for token, text in work.items.items()]
