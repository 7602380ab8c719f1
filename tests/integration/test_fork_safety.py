"""A warmed parent forks safely: no reply reaches another process.

Elsewhere, 15 to 80 % of the replies reached a wrong process after such a fork.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from gemini_emulator import Emulator
from pipeline.core.errors import CallError
from pipeline.providers.base import Reply, Request
from pipeline.providers.gemini import GeminiProvider
from pipeline.providers.schemas import EntityReply
from tests.support.emulator import entities_request, gemini

# This test may fork a process that has threads (of xdist).
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

WORKERS = 4
CALLS_PER_WORKER = 500
THREADS = 8


def _ask(provider: GeminiProvider, request: Request) -> Reply | CallError:
    try:
        return provider.generate(request)
    except CallError as error:
        return error


def _is_answer_to(request: Request, outcome: Reply | CallError) -> bool:
    """Check the raw text too, independently of the provider's own check."""
    return (
        isinstance(outcome, Reply)
        and isinstance(outcome.output, EntityReply)
        and outcome.output.item_token == request.item_token
        and request.item_token in outcome.details.raw_reply
    )


def _count_right_answers(provider: GeminiProvider, calls: int) -> int:
    # Forked children share the parent's random state, but `secrets` does not.
    requests = [entities_request(token=secrets.token_hex(16)) for _ in range(calls)]
    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = list(pool.map(lambda request: _ask(provider, request), requests))
    return sum(map(_is_answer_to, requests, outcomes))


def _in_child(work: Callable[[], int]) -> tuple[int, int]:
    """Fork a child that writes the result of `work`; return its pid and the reading end."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.write(writing, str(work()).encode())
    finally:
        os._exit(0)


def _result_of(pid: int, reading: int) -> int:
    with os.fdopen(reading) as pipe:
        written = pipe.read()
    os.waitpid(pid, 0)
    return int(written or -1)


def test_no_reply_reaches_another_process_when_a_warmed_parent_forks() -> None:
    with Emulator(answers="minimal", latency="0.002/call") as emulator:
        provider = gemini(emulator.url)
        provider.generate(entities_request())

        children = [
            _in_child(lambda: _count_right_answers(provider, CALLS_PER_WORKER))
            for _ in range(WORKERS)
        ]
        right = [_result_of(*child) for child in children]
        parent_right = _count_right_answers(provider, 20)
        lines = emulator.log()

    assert right == [CALLS_PER_WORKER] * WORKERS
    assert parent_right == 20
    assert len({line.item_token for line in lines}) == WORKERS * CALLS_PER_WORKER + 21
    assert all(line.attempt == 1 and line.delivered for line in lines)


def test_a_child_answers_even_if_a_thread_held_the_lock_when_it_was_forked() -> None:
    with Emulator(answers="minimal") as emulator:
        provider = gemini(emulator.url)
        provider._lock.acquire()

        right = _result_of(*_in_child(lambda: _count_right_answers(provider, 10)))

    assert right == 10


@pytest.mark.parametrize("threads", [1, 32])
def test_threads_of_one_process_share_one_client(threads: int) -> None:
    with Emulator(answers="minimal") as emulator, ThreadPoolExecutor(threads) as pool:
        provider = gemini(emulator.url)

        clients = set(pool.map(lambda _: id(provider._own_client()), range(threads * 4)))

    assert len(clients) == 1
