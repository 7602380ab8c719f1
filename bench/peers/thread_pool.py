"""A thread pool; tenacity repeats a failed call in its thread."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tenacity import Retrying

from bench.peers.sdk import ask, client_of, retries
from bench.peers.work import PeerWork


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Answer all items; each pair is a token and a reply."""
    with client_of(work) as client, ThreadPoolExecutor(work.slots) as pool:
        texts = pool.map(
            lambda prompt: Retrying(**retries(work))(ask, client, work, prompt),
            work.items.values(),
        )
        return list(zip(work.items, texts, strict=True))
