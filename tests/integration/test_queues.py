"""A wake-up is sent on commit, carries only ids, and may be lost or doubled."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import cast
from uuid import uuid4

import django_rq
import pytest
import redis
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq.serializers import DefaultSerializer
from rq.utils import as_text

from medproc import addresses, embedded
from pipeline.core.server_faults import ServerFault, line_of
from pipeline.core.states import Step
from pipeline.models import RecordBatch
from pipeline.operations.health import examine
from pipeline.queueing import queues, rq_registries
from pipeline.queueing.queues import (
    RECORD_QUEUES,
    StepEntry,
    StepQueue,
    enqueue_step,
    entry_id,
    push,
    queue_depths,
)
from pipeline.queueing.record_places import give_on
from pipeline.transitions import claim, fenced, requeue_interrupted
from tests.support.rows import a_job

JOB = uuid4()
THREADS = 8


def waiting(client: redis.Redis, step: str) -> list[str]:
    return [as_text(entry) for entry in client.lrange(f"rq:queue:{step}", 0, -1)]


def fetched(client: redis.Redis, entry: str) -> StepEntry:
    found = StepEntry.fetch(entry, connection=client)
    assert isinstance(found, StepEntry)
    return found


def test_a_record_that_is_woken_again_keeps_the_wake_up_when_its_first_one_ends(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    batch = RecordBatch.objects.create(max_concurrent_tasks=1)
    jobs = [a_job(record_batch=batch) for _ in range(2)]
    lease = claim(Step.PASS1, "w1")
    assert lease is not None
    (waits,) = (job.id for job in jobs if job.id != lease.job_id)
    push("pass1", entry_id(waits, "pass1", 0))
    # A second worker takes the wake-up, and finds the batch full.
    found = StepQueue.dequeue_any([StepQueue("pass1", connection=redis_db)], None, redis_db)
    assert found is not None
    first, _ = found
    assert claim(Step.PASS1, "w2") is None

    with fenced(lease):
        requeue_interrupted(lease)
        give_on([(batch.id, lease.job_id)])
    # RQ ends an entry like this whose result is not kept.
    first.cleanup(ttl=0, remove_from_queue=False)

    queue = rq_registries.look(["pass1"])["pass1"]
    assert (len(queue.entries), queue.broken) == (1, ())
    assert queue.entries[0].startswith(entry_id(waits, "pass1", 0))


def test_an_entry_waits_only_after_the_commit(cloned_db: str, redis_db: redis.Redis) -> None:
    with transaction.atomic():
        enqueue_step(JOB, Step.PASS1, 1)
        before = waiting(redis_db, "pass1")

    assert before == []
    assert waiting(redis_db, "pass1") == [f"{JOB}-pass1-1"]


def test_a_rolled_back_transaction_sends_no_wake_up(cloned_db: str, redis_db: redis.Redis) -> None:
    with transaction.atomic():
        enqueue_step(JOB, Step.PASS1, 1)
        transaction.set_rollback(True)

    assert redis_db.keys("*") == []


def test_a_nested_block_waits_for_the_outermost_commit(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    with transaction.atomic():
        with transaction.atomic():
            enqueue_step(JOB, Step.PASS1, 1)
        after_inner = waiting(redis_db, "pass1")

    assert after_inner == []
    assert waiting(redis_db, "pass1") == [f"{JOB}-pass1-1"]


def test_a_rolled_back_savepoint_takes_only_its_own_entry_along(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    with transaction.atomic():
        enqueue_step(JOB, Step.PASS1, 1)
        with transaction.atomic():
            enqueue_step(JOB, Step.PASS2, 1)
            transaction.set_rollback(True)

    assert queue_depths(["pass1", "pass2"]) == {"pass1": 1, "pass2": 0}


def test_outside_a_transaction_an_entry_waits_at_once(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    enqueue_step(JOB, Step.PASS1, 1)

    assert waiting(redis_db, "pass1") == [f"{JOB}-pass1-1"]


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> redis.Redis:
    client = redis.Redis(unix_socket_path="/nonexistent/valkey.sock", retry=Retry(NoBackoff(), 0))
    monkeypatch.setattr(queues, "producer", lambda: client)
    return client


def test_redis_away_at_commit_raises_nothing_and_is_logged_by_id(
    cloned_db: str, redis_away: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), transaction.atomic():
        enqueue_step(JOB, Step.PASS1, 7)

    assert [record.getMessage() for record in caplog.records] == [
        f"wake-up {JOB}-pass1-7 was not sent: {line_of(ServerFault.REDIS_AWAY)}"
    ]


def test_a_wake_up_that_cannot_be_sent_does_not_stop_the_callbacks_after_it(
    cloned_db: str, redis_away: redis.Redis
) -> None:
    called: list[str] = []

    with transaction.atomic():
        enqueue_step(JOB, Step.PASS1, 1)
        transaction.on_commit(lambda: called.append("later"))

    assert called == ["later"]


def test_a_bug_in_sending_does_not_stop_the_callbacks_after_it(
    cloned_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setattr(queues, "producer", dict)  # A connection without any client.

    with transaction.atomic():
        enqueue_step(JOB, Step.PASS1, 1)
        transaction.on_commit(lambda: called.append("later"))

    assert called == ["later"]


@pytest.fixture
def stopped_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that accepts connections and never answers, like a paused Redis."""
    places = embedded.throw_away_places()
    embedded.up(places, with_postgres=False, throw_away=True)
    pid = embedded.status(places)[1].pid
    assert pid
    entry = addresses.queue_settings(f"unix://{places.valkey_socket}")
    client = django_rq.connection_utils.get_redis_connection(entry)
    monkeypatch.setattr(queues, "ENQUEUE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(queues, "get_connection", lambda name: client)
    queues._client.cache_clear()
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)
    queues._client.cache_clear()
    client.close()
    embedded.throw_away(places)


def test_a_redis_that_hangs_does_not_hold_the_request(
    cloned_db: str, stopped_redis: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), transaction.atomic():
        enqueue_step(JOB, Step.PASS1, 7)

    assert [record.getMessage() for record in caplog.records] == [
        f"wake-up {JOB}-pass1-7 was not sent: {line_of(ServerFault.REDIS_AWAY)}"
    ]


def test_the_health_check_reports_a_hanging_redis_as_an_outage_and_still_reads_the_rows(
    cloned_db: str, stopped_redis: None
) -> None:
    a_job()

    found = examine()

    assert found.problems[0] == line_of(ServerFault.REDIS_AWAY)
    assert (found.steps[Step.PASS1].waiting, found.served) == (1, frozenset())


def test_a_socket_that_the_server_has_closed_is_replaced_unseen(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    enqueue_step(JOB, Step.PASS1, 1)
    redis_db.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    enqueue_step(JOB, Step.PASS1, 2)

    assert waiting(redis_db, "pass1") == [f"{JOB}-pass1-1", f"{JOB}-pass1-2"]


def test_the_same_id_twice_is_harmless(cloned_db: str, redis_db: redis.Redis) -> None:
    enqueue_step(JOB, Step.PASS1, 1)

    enqueue_step(JOB, Step.PASS1, 1)

    entry = fetched(redis_db, entry_id(JOB, "pass1", 1))
    assert entry.args == ["pass1"]
    assert entry.is_ours()


def test_ids_carry_the_step_and_the_dispatch_and_no_colon() -> None:
    ids = {entry_id(JOB, step, number) for step in Step.values for number in (1, 2)}

    assert len(ids) == 2 * len(Step.values)
    assert not any(":" in entry for entry in ids)


def test_an_unknown_step_is_refused_before_the_commit() -> None:
    with pytest.raises(ValueError, match="pass9"):
        enqueue_step(JOB, "pass9", 1)


def test_the_provider_queues_are_later_passes_first_without_pages() -> None:
    assert RECORD_QUEUES == ("pass3", "pass2", "pass1_5", "pass1", "pass05")


def test_redis_holds_nothing_but_ids_as_json(cloned_db: str, redis_db: redis.Redis) -> None:
    enqueue_step(JOB, Step.PASS1, 3)

    entry = f"{JOB}-pass1-3"
    fields = cast("dict[bytes, bytes]", redis_db.hgetall(f"rq:job:{entry}"))
    assert sorted(redis_db.keys("*")) == [
        f"rq:job:{entry}".encode(),
        b"rq:queue:pass1",
        b"rq:queues",
    ]
    assert (
        zlib.decompress(fields[b"data"])
        == b'["pipeline.workers.run_step.run_step", null, ["pass1"], {}]'
    )
    assert fields[b"description"] == entry.encode()
    assert fields[b"result_ttl"] == b"0"
    assert int(fields[b"failure_ttl"]) == queues.FAILURE_TTL_S
    assert int(fields[b"timeout"]) == queues.NO_TIMEOUT


@pytest.mark.parametrize("make", [StepQueue, lambda name, **kw: StepEntry(name, **kw)])
def test_another_serializer_is_refused(make: Callable[..., object], redis_db: redis.Redis) -> None:
    for serializer in (DefaultSerializer, "pickle", "rq.serializers.DefaultSerializer", pickle):
        with pytest.raises(ImproperlyConfigured, match="JSON"):
            make("pass1", connection=redis_db, serializer=serializer)


@pytest.mark.parametrize(
    "payload",
    [
        pickle.dumps(("pipeline.workers.run_step.run_step", None, ["pass1"], {})),
        b'["os.system", null, ["true"], {}]',
        b'["pipeline.workers.run_step.run_step", null, ["pass9"], {}]',
        b'["pipeline.workers.run_step.run_step", null, ["pass1", "more"], {}]',
        b'["pipeline.workers.run_step.run_step", null, ["pass1"], {"a": 1}]',
        b'["pipeline.workers.run_step.run_step", "an.instance", ["pass1"], {}]',
        b'["pipeline.workers.run_step.run_step", null, [["pass1"]], {}]',
        b'["pipeline.workers.run_step.run_step", null, 5, {}]',
        b"{}",
        b"not json",
    ],
)
def test_an_entry_that_we_did_not_write_is_not_ours(payload: bytes, redis_db: redis.Redis) -> None:
    redis_db.hset("rq:job:crafted", mapping={"data": payload, "origin": "pass1"})

    entry = fetched(redis_db, "crafted")

    assert not entry.is_ours()


def test_callbacks_and_webhooks_of_a_crafted_entry_are_not_read(redis_db: redis.Redis) -> None:
    redis_db.hset(
        "rq:job:crafted",
        mapping={
            "data": b'["pipeline.workers.run_step.run_step", null, ["pass1"], {}]',
            "success_callback_name": "os.system",
            "failure_callback_name": "os.system",
            "stopped_callback_name": "os.system",
            "webhooks": '[{"url": "http://127.0.0.1:9/"}]',
            "timeout": "1",
        },
    )

    entry = fetched(redis_db, "crafted")

    assert entry.success_callback is None
    assert entry.failure_callback is None
    assert entry.stopped_callback is None
    assert not entry.webhooks
    assert entry.timeout == queues.NO_TIMEOUT


def test_threads_that_ask_at_the_same_time_share_one_client(redis_db: redis.Redis) -> None:
    """A second client would be lost at once, with the connection of the thread that made it."""
    queues._client.cache_clear()
    together = Barrier(THREADS)

    def ask(_: int) -> int:
        together.wait()
        with queues.producer().pipeline() as commands:
            commands.incr("medproc:test:asked")
            commands.execute()
        return id(queues.producer())

    with ThreadPoolExecutor(THREADS) as pool:
        clients = set(pool.map(ask, range(THREADS)))

    assert len(clients) == 1
    assert redis_db.get("medproc:test:asked") == str(THREADS).encode()
