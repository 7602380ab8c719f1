"""One RQ job per call, with one worker process per slot; tenacity repeats a failed call in its job.

The workers are forks of this process, which has made its first call, and fork no horse per job.
RQ's own retries wait whole seconds, and its scheduler looks once a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from google import genai
from redis import Redis
from rq import Queue, SimpleWorker
from rq.worker_pool import WorkerPool
from tenacity import Retrying

from bench.peers.sdk import ask, client_of, retries
from bench.peers.sequential import run as run_one
from bench.peers.work import PeerWork

QUEUE = "bench-peers"
STORED_S = 3600

_inherited: list[PeerWork] = []
"""The work that the workers inherit, so that a job carries only its token and prompt."""


@contextmanager
def workers(work: PeerWork) -> Iterator[None]:
    """Run one worker per slot that has an item."""
    run_one(work.warm())
    _inherited[:] = [work, work.warm()]
    pool = WorkerPool(
        [QUEUE],
        connection=Redis.from_url(work.redis_url),
        num_workers=min(work.slots, len(work.items)),
        worker_class=SimpleWorker,
    )
    pool.start_workers(burst=False, logging_level="WARNING")
    try:
        yield
    finally:
        pool.stop_workers()
        for worker in pool.worker_dict.values():
            worker.process.join()


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Answer all items; each pair is a token and a reply."""
    # A result of a quota's last window takes longer than the default timeout of the client.
    with Redis.from_url(work.redis_url, socket_timeout=None) as redis:
        jobs = Queue(QUEUE, connection=redis).enqueue_many(
            [
                Queue.prepare_data(answer, (work.url, text), result_ttl=STORED_S)
                for text in work.items.values()
            ]
        )
        results = (job.latest_result(timeout=STORED_S) for job in jobs)
        texts = [result.return_value or "" if result else "" for result in results]
        return list(zip(work.items, texts, strict=True))


def answer(url: str, prompt: str) -> str:
    """Make the call of one job, in a worker."""
    work = next(work for work in _inherited if work.url == url)
    text: str = Retrying(**retries(work))(ask, _client(url), work, prompt)
    return text


@cache
def _client(url: str) -> genai.Client:
    return client_of(next(work for work in _inherited if work.url == url))
