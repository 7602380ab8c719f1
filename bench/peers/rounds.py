"""Rounds: call all items in a thread pool, then call the failed items again together."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from bench.peers.sdk import ask, client_of, hint_of, is_transient
from bench.peers.work import PeerWork


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Answer all items; each pair is a token and a reply."""
    texts: dict[str, str] = {}
    waiting = dict(work.items)
    with client_of(work) as client, ThreadPoolExecutor(work.slots) as pool:
        for round_number in range(work.attempts):
            calls = {token: pool.submit(ask, client, work, text) for token, text in waiting.items()}
            failed = {token: error for token, call in calls.items() if (error := call.exception())}
            texts |= {token: call.result() for token, call in calls.items() if token not in failed}
            fatal = [error for error in failed.values() if not is_transient(error)]
            if fatal:
                raise fatal[0]
            waiting = {token: waiting[token] for token in failed}
            if not waiting:
                return list(texts.items())
            backoff = min(work.backoff_s * 2**round_number, work.most_backoff_s)
            # The longest hint: after a shorter wait a part of the round would fail again.
            time.sleep(max(backoff, *map(hint_of, failed.values())))
    raise RuntimeError(f"{len(waiting)} items have no answer after {work.attempts} rounds")
