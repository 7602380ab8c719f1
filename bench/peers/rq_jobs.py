"""One RQ job per call, with one worker process per slot; tenacity repeats a failed call in its job.

The workers have made a call before the clock starts, and fork no horse per job. RQ's own retries
wait whole seconds, and its scheduler looks once a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from google import genai
from redis import Redis
from rq import Queue, SimpleWorker
from rq.worker import WorkerStatus
from rq.worker_pool import WorkerPool
from tenacity import Retrying

from bench.peers.sdk import ask, client_of, retries
from bench.peers.sequential import run as run_one
from bench.peers.work import PeerWork

QUEUE = "bench-peers"
POLL_S = 0.05
STORED_S = 3600

_inherited: list[PeerWork] = []
"""The work that the workers inherit, so that a job carries only its token and prompt."""


class PreparedWorker(SimpleWorker):
    """A worker that makes its clients and a first call before it takes a job."""

    def work(self, *args: Any, **kwargs: Any) -> bool:
        work, warm = _inherited
        _client(work.url)
        for prompt in warm.items.values():
            ask(_client(warm.url), warm, prompt)
        return super().work(*args, **kwargs)


@contextmanager
def workers(work: PeerWork) -> Iterator[None]:
    """Run a worker for each slot that has an item, and wait until all workers are idle."""
    # A fork inherits the one-time work of the SDK from this call.
    run_one(work.warm())
    _inherited[:] = [work, work.warm()]
    count = min(work.slots, len(work.items))
    with Redis.from_url(work.redis_url) as redis:
        pool = WorkerPool([QUEUE], connection=redis, num_workers=count, worker_class=PreparedWorker)
        pool.start_workers(burst=False, logging_level="WARNING")
        try:
            queue = Queue(QUEUE, connection=redis)
            while _idle(queue) < count:
                time.sleep(POLL_S)
            yield
        finally:
            pool.stop_workers()
            for worker in pool.worker_dict.values():
                worker.process.join()


def _idle(queue: Queue) -> int:
    states = [worker.get_state() for worker in PreparedWorker.all(queue=queue)]
    return states.count(WorkerStatus.IDLE)


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
